"""`jit._overload`: several signatures of one function."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


@jit._overload
def pick(x: tg.Tensor, n: int) -> tg.Tensor:
    pass


@jit._overload
def pick(x: list[tg.Tensor], n: int = 0) -> tg.Tensor:  # noqa: F811
    pass


@jit._overload
def pick(x: int | None, n: int) -> int:  # noqa: F811
    pass


def pick(x, n=1):  # noqa: F811
    if isinstance(x, list):
        return x[n]
    if isinstance(x, tg.Tensor):
        return x * n
    return n


def test_the_first_signature_that_fits():
    @jit.script
    def program(x, k: int):
        return pick(x, 3), pick([x, x + 1], n=1), pick([x]), pick(None, k), pick(k, 5)

    x = tg.ones(2)
    a, b, c, d, e = program(x, 4)
    assert a.equal(x * 3) and b.equal(x + 1) and c.equal(x) and (d, e) == (4, 5)


class Net(nn.Module):
    @jit._overload_method
    def scaled(self, x: int) -> int:
        pass

    @jit._overload_method
    def scaled(self, x: tg.Tensor) -> tg.Tensor:  # noqa: F811
        pass

    def scaled(self, x):  # noqa: F811
        return x * 2

    def forward(self, x, n: int):
        return self.scaled(x) + self.scaled(n)


def test_methods():
    net = Net()
    assert jit.script(net)(tg.ones(2), 3).equal(net(tg.ones(2), 3))


def test_what_none_fits_is_refused_with_the_line():
    def program(x):
        return pick("a", 1)

    told = r"none of the signatures of pick fits \(str, int\): \(Tensor, int\);[\s\S]*test_overloads"
    with pytest.raises(jit.Error, match=told):
        jit.script(program)


def test_only_functions_are_marked():
    with pytest.raises(RuntimeError, match="marks functions"):
        jit._overload(3)
