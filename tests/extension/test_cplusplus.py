"""tgx.hpp: a fused op in C++ with derivatives of every order, and exceptions that stop at the edge."""

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.utils import cpp_extension

from .conftest import SAMPLES


@pytest.fixture(params=["11", "17"])
def gates(request, _cache):
    flags = [f"-std=c++{request.param}", "-Wall", "-Wextra", "-Werror"]
    cpp_extension.load("gates", SAMPLES / "gate.cpp", extra_cflags=flags)
    return tg.ops.gates


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_the_op_is_what_its_parts_are(gates, dtype):
    x, g = tg.randn(3, 4, dtype=dtype), tg.randn(4, 3, dtype=dtype).t()
    for _ in range(10):
        assert tg.allclose(gates.gate(x, g), x * g.sigmoid())


def test_derivatives_of_every_order(gates):
    x, g = (tg.randn(5, dtype=tg.float64, requires_grad=True) for _ in range(2))
    assert tg.autograd.gradcheck(gates.gate, (x, g)) and tg.autograd.gradgradcheck(gates.gate, (x, g))
    third = tg.func.jacrev(tg.func.jacrev(tg.func.grad(lambda v: gates.gate(v, v).sum())))(x.detach())
    wanted = tg.func.jacrev(tg.func.jacrev(tg.func.grad(lambda v: (v * v.sigmoid()).sum())))(x.detach())
    assert tg.allclose(third, wanted)


def test_a_gradient_that_nobody_wants_is_not_computed(gates):
    x, g = tg.randn(4, requires_grad=True), tg.randn(4)
    (got,) = tg.autograd.grad(gates.gate(x, g).sum(), x)
    assert tg.allclose(got, g.sigmoid())


@pytest.mark.parametrize(
    "how, error, words",
    [
        (0, RuntimeError, "^gates::fails: thrown in C"),
        (1, KeyError, "no such key"),
        (2, RuntimeError, "no std::exception"),
        (3, MemoryError, "no memory"),
        (4, LookupError, "no op 'aten::no_such_op'"),
        (5, TypeError, "argument 0 is of another kind"),
    ],
)
def test_what_is_thrown_stops_at_the_edge(gates, how, error, words):
    for _ in range(10):
        with pytest.raises(error, match=words):
            gates.fails(how)


def test_wrong_arguments_are_told(gates):
    with pytest.raises(ValueError, match="gates::gate: x and g must be of one size"):
        gates.gate(tg.ones(3), tg.ones(4))
    with pytest.raises(TypeError, match="another dtype"):
        gates.gate(tg.ones(3), tg.ones(3, dtype=tg.float64))


def test_nothing_leaks(gates):

    def round_trip():
        x, g = tg.randn(1000, requires_grad=True), tg.randn(1000, requires_grad=True)
        gates.gate(x, g).sum().backward()

    for _ in range(20):
        round_trip()
    collect()
    before = tg.memory_stats()["allocated"]
    for _ in range(50):
        round_trip()
    collect()
    assert tg.memory_stats()["allocated"] == before
