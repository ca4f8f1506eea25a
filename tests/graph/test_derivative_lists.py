"""Gradients go through lists and dicts of tensors: they grow in a loop, change in a branch, a number picks of them."""

import pytest

import tinygrad_ext as tg
from tests.graph.test_derivative import outcome
from tests.graph.test_derivative_again import close, doubles
from tests.helpers.derivatives import orders, refused, runner, tensors
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph


def rnn(x, w):
    h = x[0]
    outs = []
    for i in range(x.size(0)):
        h = tg.tanh(x[i] + h @ w)
        outs.append(h)
    return (tg.stack(outs) * x).sum() + outs[-1].sum()


def catted(x, w):
    outs = [x]
    for i in range(x.size(0)):
        outs.append(outs[i] @ w * 0.5)
    return tg.cat(outs).sin().sum()


def picked(x, w, n: int):
    a = [x, x @ w, x * 2]
    s = x.sum()
    for i in range(n):
        s = s + (a[i % 3] * a[0].mean()).sum()
        if i == 1:
            a[2] = s * x
    return s


def dicts(x, w, n: int):
    d = {"a": x, "b": x @ w}
    for i in range(n):
        d["a"] = d["b"] * i + d["a"]
    return (d["a"] * d["b"]).sum()


def dicts_grow(x, w, n: int):
    d: dict[int, tg.Tensor] = {}
    s = x.sum()
    for i in range(n):
        d[i] = x * i + s
        s = s + d[i // 2].tanh().sum()
    return s


def in_branch(x, w, n: int):
    outs = [x]
    for i in range(n):
        if i % 2 == 0:
            outs.append(outs[-1] @ w * 0.2)
        else:
            outs.append(x)
            outs[0] = outs[0] * 0.5
    return tg.stack(outs).sum(0).sin().sum()


def queue(x, w, n: int):
    q = [x, x * 2]
    s = x.sum()
    for _ in range(n):
        a = q.pop(0)
        q.append((a * w[0]).tanh())
        q.insert(1, a)
        s = s + a.mean()
    return s + tg.stack(q).sum()


def straight_list(x, w):
    a = [x]
    a.append(x @ w)
    a.extend([x, x * 2])
    a.reverse()
    b = a.pop()
    return (b + a[0] * a[1]).sum() + tg.stack(a).sin().sum()


def unused(x, w, n: int):
    outs = []
    for i in range(n):
        outs.append(w * i)
    return x.sum() * len(outs)


def of_rows(x, w):
    s = x.sum()
    for row in x.unbind(0):
        s = s + (row @ w).tanh().sum()
    return s


def two_loops(x, w, n: int):
    outs = []
    for i in range(n):
        outs.append((x * (i + 1)).sin())
    s = x.sum()
    for o in outs:
        s = s + (o @ w).tanh().sum()
    return s


PROGRAMS = [
    (rnn, ()), (catted, ()), (picked, (4,)), (dicts, (3,)), (dicts_grow, (4,)), (in_branch, (5,)), (queue, (3,)),
    (straight_list, ()), (unused, (3,)), (of_rows, ()), (two_loops, (4,)), (two_loops, (0,)),
]  # fmt: skip


@pytest.mark.parametrize(("program", "more"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_one_derivative_has_the_bits_of_eager_for_all_sizes(program, more):
    graph = jit.script(program).graph
    for rows, sign in ((3, 1.0), (2, -1.0), (5, 1.0)):
        args = (*tensors(rows, sign), *more)
        if program in (in_branch, picked):  # gradients of three parts, of which two meet in the list
            close(*(orders(call, [*doubles(rows, sign), *more], 1) for call in (runner(graph), program)))
        else:
            assert outcome(runner(graph), args) == outcome(program, args)
    assert not graph.effects
    assert refused(graph) == []


@pytest.mark.parametrize(("program", "more"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_derived_again(program, more):
    graph = jit.script(program).graph
    count = 3 if program in (rnn, two_loops) else 2
    for rows, sign in ((3, 0.5), (2, -0.5)):
        close(*(orders(call, [*doubles(rows, sign), *more], count) for call in (runner(graph), program)))
    assert refused(graph) == []


def test_the_graphs_read_back():
    graph = jit.script(rnn).graph
    orders(runner(graph), doubles(3, 1.0), 1)
    (joint,) = (j for each in graph.derivative.joints.values() for j in each)
    for each in (joint.forward, joint.backward, joint.whole):
        assert Graph.parse(str(each.check())) == each


def test_a_number_of_turns_is_no_part_of_the_derivative():
    graph = jit.script(two_loops).graph
    for n in (3, 1, 0, 8):
        args = (*tensors(), n)
        assert outcome(runner(graph), args) == outcome(two_loops, args)
    assert sum(map(len, graph.derivative.joints.values())) == 1


def test_what_is_never_read_has_no_gradient():
    x, w = tensors()
    runner(jit.script(unused).graph)(x, w, 3).backward()
    assert x.grad is not None and w.grad is None


def test_a_list_of_arguments_is_picked_from_by_a_number():
    def program(items: list[tg.Tensor], n: int):
        s = items[0].sum()
        for i in range(n):
            s = s + (items[i % len(items)] * s).tanh().sum()
        return s

    scripted = jit.script(program)
    found = []
    for call in (scripted, program):
        items = [t[:3].detach().requires_grad_() for t in tensors()]
        found.append([g.tolist() for g in tg.autograd.grad(call(items, 5), items)])
    assert found[0] == found[1]
    assert refused(scripted.graph) == []


@pytest.mark.parametrize("program", [rnn, of_rows, in_branch])
def test_a_backward_pass_may_be_run_twice(program):
    x, w = tensors()
    out = runner(jit.script(program).graph)(x, w, *([4] if program is in_branch else []))
    first, second = (tg.autograd.grad(out, (x, w), retain_graph=True) for _ in range(2))
    assert [g.tolist() for g in first] == [g.tolist() for g in second]


def test_an_index_out_of_range_is_the_programs():
    def program(x, n: int):
        outs = [x]
        for i in range(n):
            outs.append(outs[i + 1] * 2)
        return tg.stack(outs)

    with pytest.raises(IndexError):
        jit.script(program)(tensors()[0], 2)
