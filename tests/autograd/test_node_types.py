"""The type of a node bears the name of its op's derivative, as in PyTorch, and is a Node."""

import gc
import sys
import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function
from tinygrad_ext.autograd.graph import Node

MADE = {
    "add": lambda T, x: x + 1,
    "mul": lambda T, x: x * x,
    "sum": lambda T, x: x.sum(),
    "mm": lambda T, x: T.mm(x, x),
    "select": lambda T, x: x[0],
    "written": lambda T, x: (x * 1).mul_(2),
    "base": lambda T, x: [y := x * 1, y[0].mul_(2)][0],
    "view": lambda T, x: [y := x * 1, v := y[0], y.mul_(2)][1],
    "max": lambda T, x: x.max(0).values,
    "leaf": lambda T, x: x,
}


def name(t):
    return None if t.grad_fn is None else type(t.grad_fn).__name__


@pytest.mark.parametrize("case", MADE)
def test_the_name_of_the_type_is_that_of_torch(case):
    torch = pytest.importorskip("torch")
    ours, theirs = (MADE[case](T, T.ones(2, 2, requires_grad=True)) for T in (tg, torch))
    assert name(ours) == name(theirs)


def test_types_are_made_once_and_are_nodes():
    x = tg.ones(2, requires_grad=True)
    a, b = (x + 1).grad_fn, (x + 2).grad_fn
    assert type(a).__name__ == "AddBackward0" and type(a) is type(b) and type(a) is not type((x * 2).grad_fn)
    assert isinstance(a, Node) and issubclass(type(a), Node)
    assert type(a).__module__ == "builtins" and repr(a).startswith("<AddBackward0 object at 0x")
    ((leaf, _), *_) = a.next_functions
    assert type(leaf).__name__ == "AccumulateGrad" and isinstance(leaf, Node)


def test_nodes_behind_a_shown_one_show_their_types_too():
    x = tg.ones(2, requires_grad=True)
    node = (x * 2).exp().sum().grad_fn
    names = []
    while node is not None:
        names.append(type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    assert names == ["SumBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad"]


def test_a_function_names_its_node():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            return x**3

        @staticmethod
        def backward(ctx, grad):
            return grad

    node = Cube.apply(tg.ones(2, requires_grad=True)).grad_fn
    assert type(node).__name__ == "CubeBackward" and isinstance(node, Node)


def test_a_shown_node_works_and_goes_with_its_last_tensor():
    x = tg.ones(3, requires_grad=True)
    y = x * x
    seen, alive = [], weakref.ref(y.grad_fn)
    y.grad_fn.register_prehook(lambda row: seen.append(len(row)))
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and seen == [1] and type(alive()).__name__ == "MulBackward0"
    gc.disable()
    try:
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_nodes_shown_and_freed_leave_their_type_with_the_same_references():
    x = tg.ones(3, requires_grad=True)
    kind = type((x * x).grad_fn)
    before = sys.getrefcount(kind)
    for _ in range(100):
        assert type((x * x).grad_fn) is kind
    assert sys.getrefcount(kind) == before
