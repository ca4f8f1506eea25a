"""Ops that a plugin makes with tinygrad_ext.library are its own: named after it, and undone with it."""

import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library, ops, plugins, registry
from tinygrad_ext.library import definition, state
from tinygrad_ext.plugins import PluginWarning

PLUGIN = """
import tinygrad_ext as torch

@torch.library.custom_op("demo::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2

double.register_autograd(lambda ctx, grad: grad * 2)
lib = torch.library.Library("demo", "FRAGMENT")
lib.define("half(Tensor x) -> Tensor")
lib.impl("half", lambda x: x / 2)
"""


def test_custom_ops_belong_to_the_plugin(site):
    site.plugin(text=PLUGIN)
    assert ops.demo.double(tg.ones(1)).item() == 2 and ops.demo.half(tg.ones(1)).item() == 0.5
    assert repr(ops.demo.double) == "<function tinygrad_ext.ops.demo.double (tgx-demo 1.0)>"
    assert plugins.owner_of(ops.demo.half) == ("tgx-demo", "1.0")
    assert plugins.info("demo").ops == ("demo::double", "demo::half")
    with pytest.raises(TypeError, match=r"demo::double \(tgx-demo 1.0\)"):
        ops.demo.double(3)
    x = tg.ones(1, requires_grad=True)
    ops.demo.double(x).backward()
    assert x.grad.item() == 2


def test_disabling_the_plugin_takes_its_ops_back(site):
    site.plugin(text=PLUGIN)
    ops.demo.double
    assert "demo::double" in definition.definitions
    plugins.disable("demo")
    assert not {"demo::double", "demo::half"} & {
        *registry.ops,
        *definition.definitions,
        *state.states,
        *definition._scopes,
    }
    plugins.enable("demo")
    assert ops.demo.double(tg.ones(1)).item() == 2


def test_a_program_does_not_undefine_the_ops_of_a_plugin(site):
    site.plugin(text=PLUGIN)
    ops.demo.double
    with pytest.raises(RuntimeError, match=r"'demo::double' belongs to tgx-demo 1.0; .*plugins.disable"):
        library.undefine("demo::double")


def test_a_pickled_op_loads_its_plugin(site):
    site.plugin(text=PLUGIN)
    data = pickle.dumps(definition.definitions["demo::double"] if ops.demo.double else None)
    plugins.reload("demo")
    assert pickle.loads(data) is definition.definitions["demo::double"]


def test_by_name_an_op_of_a_plugin_is_found_and_the_plugin_loaded(site):
    site.plugin(text=PLUGIN)
    library.register_fake("demo::double", lambda x: tg.empty_like(x))
    assert ops.demo.double(tg.ones(1, device="meta")).is_meta


def test_a_foreign_namespace_is_refused(site, tables):
    site.plugin(text=PLUGIN.replace('"demo::double"', '"other::double"'))
    before = tables()
    with pytest.warns(PluginWarning, match="may not register under the foreign namespace 'other'"):
        with pytest.raises(AttributeError, match="has no namespace 'demo' at present"):
            ops.demo.double
    assert tables() == before


def test_a_plugin_that_fails_after_its_ops_leaves_none(site, tables):
    site.plugin(text=PLUGIN + "raise OSError('late')\n")
    before = tables(), set(definition.definitions), set(state.states)
    with pytest.warns(PluginWarning, match="late"):
        with pytest.raises(AttributeError):
            ops.demo.double
    assert (tables(), set(definition.definitions), set(state.states)) == before


def test_what_a_plugin_adds_to_an_op_of_the_program_goes_with_it(site):
    f = library.custom_op("mine::f", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    try:
        site.plugin(
            text=PLUGIN + "torch.library.register_kernel('mine::f', 'cpu', lambda x: x * 100)\n",
        )
        ops.demo.double
        assert f(tg.ones(1)).item() == 100
        plugins.disable("demo")
        assert f(tg.ones(1)).item() == 2
    finally:
        library.undefine("mine::f")
