"""swap_tensors exchanges all that two tensors are, and says so where a graph led to one of them."""

import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.utils import swap_tensors


class Wrapped(tg.Tensor):
    """A subclass written in Python."""


class OneSlot(tg.Tensor):
    __slots__ = ("note",)


class OtherSlots(tg.Tensor):
    __slots__ = ("more", "note")


MADE = {
    "vector": lambda: tg.ones(2),
    "matrix turned": lambda: tg.arange(6.0).reshape(2, 3).t(),
    "ints": lambda: tg.zeros(3, dtype=tg.int64),
    "seven dimensions": lambda: tg.ones(1, 1, 2, 1, 1, 1, 2),
    "parameter": lambda: nn.Parameter(tg.ones(4)),
    "subclass": lambda: tg.zeros(2, 2).as_subclass(Wrapped),
    "meta": lambda: tg.empty(5, device="meta"),
    "history": lambda: tg.ones(3, requires_grad=True) * 2,
    "view": lambda: tg.ones(4, requires_grad=True)[1:],
}


def _facts(t):
    numbers = None if t.is_meta else t.detach().as_subclass(tg.Tensor).tolist()
    return (
        type(t),
        t.shape,
        t.stride(),
        t.dtype,
        t.requires_grad,
        t.is_leaf,
        str(t.grad_fn)[:12],
        dict(vars(t)),
        numbers,
    )


@pytest.mark.parametrize("first", MADE)
@pytest.mark.parametrize("second", MADE)
def test_each_is_what_the_other_was(first, second):
    a, b = MADE[first](), MADE[second]()
    a.note = "of the first"
    before = _facts(a), _facts(b)
    swap_tensors(a, b)
    assert (_facts(b), _facts(a)) == before
    swap_tensors(a, b)
    assert (_facts(a), _facts(b)) == before


def test_gradients_and_hooks_go_along():
    a, b = tg.ones(2, requires_grad=True), tg.zeros(3)
    a.grad, seen = tg.full((2,), 7.0), []
    a.register_hook(lambda grad: seen.append(grad.tolist()))
    swap_tensors(a, b)
    assert a.grad is None and b.grad.tolist() == [7, 7]
    (b * 2).sum().backward()
    assert b.grad.tolist() == [9, 9] and seen == [[2, 2]]
    assert (a + 1).sum().requires_grad is False


def test_a_tensor_stays_what_it_is_when_swapped_with_itself():
    a = tg.ones(2)
    swap_tensors(a, a)
    assert a.tolist() == [1, 1]


def test_history_of_a_swapped_result_leads_where_it_led():
    leaf = tg.ones(2, requires_grad=True)
    result, other = leaf * 3, tg.zeros(5)
    swap_tensors(result, other)
    other.sum().backward()
    assert leaf.grad.tolist() == [3, 3]


def test_a_graph_that_leads_to_a_swapped_leaf_raises():
    a = tg.ones(2, requires_grad=True)
    out = (a * 2).sum()
    swap_tensors(a, tg.zeros(2))
    with pytest.raises(RuntimeError, match="AccumulateGrad node that was poisoned by swap_tensors"):
        out.backward()


@pytest.mark.parametrize("size", [2, 3])
def test_a_graph_that_saved_a_swapped_tensor_raises(size):
    factor, leaf = tg.ones(2), tg.ones(2, requires_grad=True)
    out = (leaf * factor).sum()
    swap_tensors(factor, tg.zeros(size))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_graphs_made_afterwards_are_as_always():
    a, b = nn.Parameter(tg.ones(2)), nn.Parameter(tg.full((3,), 2.0))
    (a * a).sum().backward()
    a.grad = None
    swap_tensors(a, b)
    (a * a).sum().backward()
    assert a.grad.tolist() == [4, 4, 4] and b.grad is None


def test_slots_are_swapped_where_both_have_the_same():
    a, b = tg.ones(2).as_subclass(OneSlot), tg.zeros(3).as_subclass(OneSlot)
    a.note = "first"
    swap_tensors(a, b)
    assert b.note == "first" and not hasattr(a, "note") and a.shape == (3,)


REFUSED = {
    "t1 that is no tensor": (lambda: (3, tg.ones(2)), TypeError, "'t1' must be a tensor"),
    "other slots": (
        lambda: (tg.ones(2).as_subclass(OneSlot), tg.ones(2).as_subclass(OtherSlots)),
        RuntimeError,
        "different slots",
    ),
    "slots beside none": (lambda: (tg.ones(2), tg.ones(2).as_subclass(OneSlot)), RuntimeError, "different slots"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    make, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        swap_tensors(*make())


@pytest.mark.parametrize("number", [0, 1])
def test_weak_references_are_refused(number):
    pair = tg.ones(2), tg.zeros(2)
    reference = weakref.ref(pair[number])
    with pytest.raises(RuntimeError, match=f"Cannot swap t{number + 1} because it has weakref"):
        swap_tensors(*pair)
    assert reference() is pair[number]


def test_a_tensor_and_a_view_of_it_are_not_swapped():
    whole = tg.ones(3, requires_grad=True) * 2
    view = whole.view(3)
    for pair in ((whole, view), (view, whole)):
        with pytest.raises(RuntimeError, match="a view of it"):
            swap_tensors(*pair)
    assert view._base is whole and whole._base is None
