"""The op of tgx-hello is there when the package is installed, and passes the checks of `plugins check hello`."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import plugins
from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_hello", reason="tgx-hello is not installed: pip install ./plugins/hello")

test_conformance = plugin_tests("hello")


def test_the_op_comes_by_entry_point():
    assert tg.ops.hello.double(tg.tensor([1, -2])).tolist() == [2, -4]
    info = plugins.info("hello")
    assert (info.distribution, info.state, info.ops) == ("tgx-hello", "active", ("hello::double",))


def test_its_derivative_follows_from_the_ops_it_is_written_in():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    tg.ops.hello.double(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
