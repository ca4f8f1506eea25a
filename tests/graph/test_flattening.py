"""Functions are opened and containers are taken apart before a graph is planned: nothing of either is left between the
steps of a plan, and results, their identity and errors are those of eager mode."""

from typing import NamedTuple

import numpy as np
import pytest
from captured import same_bits

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.autograd import Function
from tinygrad_ext.graph.flattening import FORMS


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.exp())  # read by backward only
        return x.sin() * 2

    @staticmethod
    def backward(ctx, grad):
        (kept,) = ctx.saved_tensors
        return grad * kept


class Outer(Function):
    @staticmethod
    def forward(ctx, x):
        return Twice.apply(x + 1) * 3

    @staticmethod
    def backward(ctx, grad):
        return grad


class OfNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tg.from_numpy(np.sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * tg.from_numpy(np.cos(x.detach().numpy()))


class Pair(NamedTuple):
    first: tg.Tensor
    second: tg.Tensor


def kinds(traced, *args):
    return [line.kind for line in traced.graph.plan(*args).lines()]


X = tg.tensor([0.5, -1.5, 2.0, 0.25])


# ---- Functions


@pytest.mark.parametrize("function", [Twice, Outer])
def test_a_function_is_part_of_the_tile_around_it(function):
    def f(x):
        return (function.apply(x + 1) * 3).relu()

    traced = jit.trace(f, (X,))
    assert same_bits(traced(X), f(X))
    (line,) = traced.graph.plan(X).lines()
    assert line.kind == "TILE" and "exp" not in " ".join(line.ops)  # what backward reads is not computed
    assert "in no plan" not in traced.explain()
    assert "prim::Function" in str(traced.graph)  # which keeps both halves


def test_functions_in_branches_and_loops_are_planned():
    def f(x, n: int):
        for i in range(n):
            if i % 2 == 0:
                x = Twice.apply(x)
            else:
                x = x + i
        return x

    scripted = jit.script(f)
    assert same_bits(scripted(X, 3), f(X, 3)) and same_bits(scripted(X, 4), f(X, 4))
    assert "in no plan" not in scripted.graph.explain()


def test_a_function_that_leaves_the_library_is_one_step_between_planned_ones():
    def f(x):
        return (OfNumPy.apply(x.exp() + 1) * 3).relu()

    traced = jit.trace(f, (X,))
    assert same_bits(traced(X), f(X))
    assert kinds(traced, X) == ["TILE", "BOXED", "TILE"]
    assert "prim::boxed" in traced.explain() and "it is a function of Python" in traced.explain()


def test_gradients_within_a_graph_have_one_step_for_each_half():
    weight = X.clone().requires_grad_()

    def f(x):
        return tg.autograd.grad(OfNumPy.apply(x * weight).sum(), weight)[0]

    traced = jit.trace(f, (X,))
    assert same_bits(traced(X), f(X))
    assert [line.split()[3] for line in traced.explain().splitlines() if "in no plan" in line] == [
        "prim::boxed",
        "prim::boxed",
    ]


def test_an_error_in_a_function_names_the_line_there():
    class Adds(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    traced = jit.trace(lambda x, y: Adds.apply(x, y) * 2, (X, X))
    with pytest.raises(RuntimeError, match=r"must match[\s\S]*test_flattening.py:\d+ in forward"):
        traced(X, tg.ones(3))


# ---- what is passed through


def test_what_no_way_changes_is_returned_itself():
    def branch(x, n: int):
        if n > 0:
            y = x + 1
        elif n < -5:
            y = x * 2
        else:
            y = x
        return y

    def loop(x, n: int):
        for i in range(n):
            x = x + i
        return x

    def swapped(x, y, n: int):
        for _ in range(n):
            x, y = y, x
        return x, y

    def chosen(x, y, n: int):
        best = x * 0
        for i in range(n):
            if i % 3 == 0:
                best = x
            elif i % 3 == 1:
                best = y[:]
            else:
                best = best + 1
        return best, [best]

    for x in (X.clone(), X.clone().requires_grad_()):
        for f in (jit.script(branch), jit.script(loop)):
            assert f(x, 0) is x and f(x, 3) is not x and f(x, -3) is x
        y = X.clone()
        swap, choose = jit.script(swapped), jit.script(chosen)
        for n in range(4):
            found = swap(x, y, n)
            assert found[n % 2] is x and found[1 - n % 2] is y
            best, (same,) = choose(x, y, n)
            assert same_bits(best.detach(), chosen(x, y, n)[0].detach())
            assert (best is x and same is x) == (n == 1)
            assert (best.data_ptr() == y.data_ptr()) == (n == 2)
        assert "in no plan" not in swap.graph.explain() + choose.graph.explain()


def test_gradients_of_what_is_passed_through():
    def f(x, n: int):
        if n > 1:
            y = x
        else:
            y = x * 2
        for _ in range(n):
            y = y * y
        return y

    scripted = jit.script(f)
    for n in range(4):
        a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
        assert same_bits(tg.autograd.grad(scripted(a, n).sum(), a), tg.autograd.grad(f(b, n).sum(), b))


def test_a_state_that_is_written_to_is_not_taken_for_a_result():
    class Counts(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", tg.zeros(2))

        def forward(self, n: int):
            before = self.seen.clone()
            if n > 0:
                out = before
            else:
                out = before + 1
            self.seen.add_(1)
            return out

    eager, scripted = Counts(), jit.script(Counts())
    for n in (1, 0, 1):
        assert same_bits(scripted(n), eager(n)) and same_bits(scripted.seen, eager.seen)


# ---- containers


def of_list(xs):
    return (xs[0] + xs[1] * 3).relu()


def of_rest(xs):
    return tg.cat(xs) + len(xs)


def of_dict(d):
    return d["a"] + d["b"][0] * d["b"][1]


def of_pair(p):
    return p.first + p.second


CASES = {
    "list": (of_list, [X, X * 2]),
    "tuple": (of_list, (X, X * 2)),
    "the_same_twice": (of_list, [X, X]),
    "cat": (of_rest, [X, X[:2], X[:0]]),
    "dict": (of_dict, {"a": X, "b": (X + 1, X + 2)}),
    "dict_with_a_number": (of_dict, {"a": X, "b": [X + 1, 3.0]}),
    "namedtuple": (of_pair, Pair(X, X + 1)),
    "none": (lambda d: d["a"] + 1 if d["b"] is None else d["a"], {"a": X, "b": None}),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_of_containers_are_inputs_of_the_plan(name):
    f, argument = CASES[name]
    traced = jit.trace(f, (argument,))
    assert same_bits(traced(argument), f(argument))
    assert "in no plan" not in traced.explain()
    assert "BOXED" not in kinds(traced, argument)


def test_a_scripted_list_may_have_any_length():
    def f(xs: list[tg.Tensor], d: dict[str, tg.Tensor]):
        total = d["a"]
        for x in xs:
            total = total + x
        return total, len(xs) + len(d)

    scripted = jit.script(f)
    for n in (2, 0, 5, 2):
        for d in ({"a": X}, {"a": X, "b": X}, {"b": X, "a": X * 2}):
            assert same_bits(scripted([X * i for i in range(n)], d), f([X * i for i in range(n)], d))
    assert len(scripted.graph.executor.spread.made) == 3 * 3


def test_none_in_the_place_of_a_list_is_taken_as_it_is():
    def total(x, dims: "list[int] | None" = None):
        return x.sum(dims)

    scripted, x = jit.script(total), tg.arange(6.0).view(2, 3)
    for dims in (None, [1], None, [0, 1]):
        assert tg.equal(scripted(x, dims), total(x, dims))


def test_more_forms_than_are_kept():
    def f(xs: list[tg.Tensor]):
        return tg.cat(xs)

    scripted = jit.script(f)
    for n in [*range(1, FORMS + 5), 1]:
        assert same_bits(scripted([X] * n), tg.cat([X] * n))
    assert len(scripted.graph.executor.spread.made) == FORMS


def test_more_parts_than_a_row_of_nodes_reads():
    many = [X * i for i in range(400)]
    traced = jit.trace(of_rest, (many,))
    assert same_bits(traced(many), of_rest(many))


def test_which_container_it_was_is_not_lost():
    def itself(xs: list[tg.Tensor]):
        return xs, xs[0] + 1

    def inner(xs: list[list[tg.Tensor]]):
        return xs[0], xs[1][0] + 1

    def grows(xs: list[tg.Tensor]):
        xs.append(xs[0] + 1)
        return len(xs)

    given = [X, X]
    assert jit.script(itself)(given)[0] is given
    nested = [[X], [X, X]]
    assert jit.script(inner)(nested)[0] is nested[0]
    assert jit.script(grows)(given) == 3 and len(given) == 3


def test_what_is_not_there_raises_as_in_eager_mode():
    def f(xs: list[tg.Tensor], d: dict[str, tg.Tensor]):
        return xs[2] + d["a"]

    scripted = jit.script(f)
    assert same_bits(scripted([X] * 3, {"a": X}), X + X)
    with pytest.raises(IndexError, match="list index out of range"):
        scripted([X], {"a": X})
    with pytest.raises(KeyError, match="a"):
        scripted([X] * 3, {"b": X})


def test_gradients_flow_to_parts():
    def f(d):
        return (d["a"] * d["b"][0]).sum()

    a, b = X.clone().requires_grad_(), (X + 1).requires_grad_()
    traced = jit.trace(f, ({"a": a, "b": [b]},))
    found = tg.autograd.grad(traced({"a": a, "b": [b]}), [a, b])
    assert same_bits(found, tg.autograd.grad(f({"a": a, "b": [b]}), [a, b]))
    with tg.no_grad():
        assert same_bits(traced({"a": a, "b": [b]}), f({"a": a, "b": [b]}))


def test_states_are_written_back_beside_containers():
    bn = tg.nn.BatchNorm1d(2)
    twin = tg.nn.BatchNorm1d(2)
    xs = [tg.randn(3, 2), tg.randn(3, 2)]
    traced = jit.trace(lambda xs: bn(xs[0] + xs[1]), (xs,))
    for _ in range(2):
        assert same_bits(traced(xs), twin(xs[0] + xs[1]))
    assert same_bits(bn.running_mean, twin.running_mean) and bn.num_batches_tracked == 2


def test_the_number_of_values_is_checked():
    traced = jit.trace(of_list, ([X, X],))
    with pytest.raises(TypeError, match="takes 1 values, 2 are given"):
        traced.graph.executor([X, X], X)
