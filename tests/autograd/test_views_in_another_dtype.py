"""view(dtype) shows memory without a derivative, as in PyTorch: no history comes to it from its base, or goes there."""

import pytest
from functions import Scenarios, node

import tinygrad_ext as tg

SCENARIOS = Scenarios()
PAIRS = (
    ("complex64", "float32"),
    ("float32", "complex64"),
    ("float32", "int32"),
    ("float64", "float32"),
    ("complex128", "complex64"),
    ("float32", "float32"),
)


def both(T, source, target):
    base = T.zeros(4, dtype=getattr(T, source))
    return base, base.view(getattr(T, target))


@SCENARIOS.add
def no_base_is_told(T):
    told = []
    for source, target in PAIRS:
        base, view = both(T, source, target)
        part = view[1:]
        told.append(
            (view._is_view(), view._base, part._is_view(), part._base is view, view.data_ptr() == base.data_ptr())
        )
    return told


@SCENARIOS.add
def a_write_to_the_base(T):
    told = []
    for source, target in PAIRS:
        base, view = both(T, source, target)
        base.add_(T.ones(4, dtype=getattr(T, source), requires_grad=True))
        part = view[1:]
        told.append((view.requires_grad, node(view), part.requires_grad, node(base), view._version, view.tolist()))
    return told


@SCENARIOS.add
def a_write_to_the_view(T):
    told = []
    for source, target in PAIRS:
        base, view = both(T, source, target)
        if view.is_floating_point() or view.is_complex():
            view.add_(T.ones(view.shape, dtype=getattr(T, target), requires_grad=True))
            part = view[1:]
            told.append((base.requires_grad, node(view), node(part), part._base is view, base._version, base.tolist()))
    return told


@SCENARIOS.add
def a_write_to_the_view_of_what_has_a_history(T):
    x = T.tensor([1 + 2j, 3 + 4j], dtype=T.complex128, requires_grad=True)
    made = x * 1
    parts = made.view(T.float64)
    parts.mul_(T.full((4,), 2.0, dtype=T.float64, requires_grad=True))
    made.sum().abs().backward()
    return node(made), node(parts), made.tolist(), x.grad.tolist()


@SCENARIOS.add
def a_write_to_the_view_of_a_leaf(T):
    x = T.zeros(2, dtype=T.complex64, requires_grad=True)
    x.view(T.float32).add_(1)
    return x.tolist(), x._version, x.is_leaf


@SCENARIOS.add
def parts_that_have_a_derivative_go_on_having_one(T):
    base = T.zeros(2, dtype=T.complex64)
    parts, real = T.view_as_real(base), base.real
    base.add_(T.ones(2, dtype=T.complex64, requires_grad=True))
    return parts.requires_grad, real.requires_grad, parts._base is base, real._base is base


@pytest.mark.parametrize("name", SCENARIOS)
def test_is_as_in_pytorch(name):
    torch = pytest.importorskip("torch")
    assert SCENARIOS[name](tg) == SCENARIOS[name](torch)


def test_a_view_in_another_dtype_is_no_part_of_the_graph():
    base, parts = both(tg, "complex64", "float32")
    base.add_(tg.ones(4, dtype=tg.complex64, requires_grad=True))
    assert base.requires_grad and not parts.requires_grad and parts.grad_fn is None and parts._base is None
    assert parts.tolist() == [1.0, 0.0] * 4
