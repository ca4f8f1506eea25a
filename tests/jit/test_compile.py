"""`compile` never changes what a program does, be it run from a graph or as it was written."""

import collections
import random

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


def test_a_function_runs_from_graphs_for_any_size():
    @tg.compile
    def f(x, scale=2):
        return (x.exp() * scale).sum(0)

    for n in (3, 1, 7):
        x = tg.randn(n, 2)
        assert f(x).equal((x.exp() * 2).sum(0)) and f(x, scale=3).equal((x.exp() * 3).sum(0))
    assert f.explain() == "f: 2 graphs"


def test_what_cannot_be_captured_runs_as_it_was_written():
    def f(x):
        return x * 2 if x.sum() > 0 else -x

    compiled = tg.compile(f)
    for x in (tg.ones(2), -tg.ones(2), tg.ones(2)):
        assert compiled(x).equal(f(x))
    assert "as it was written because __bool__() reads the elements" in compiled.explain()
    with pytest.raises(RuntimeError, match="reads the elements"):
        tg.compile(f, fullgraph=True)(tg.ones(2))


def test_errors_are_the_programs_own():
    def f(x):
        if x.shape[0] > 2:
            raise KeyError("too long")
        return x @ x

    compiled = tg.compile(f)
    with pytest.raises(KeyError, match="too long"):
        compiled(tg.ones(3))
    with pytest.raises(RuntimeError):
        compiled(tg.ones(2, 3))
    assert compiled(tg.ones(2)) == 2


def test_gradients_are_those_of_the_program():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    compiled = tg.compile(model)
    x = tg.randn(5, 3)
    tg.manual_seed(1)
    compiled(x).sum().backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    tg.manual_seed(1)
    model(x).sum().backward()
    assert all(g.equal(p.grad) for g, p in zip(got, model.parameters()))
    compiled.eval()
    with tg.no_grad():
        assert compiled(x).equal(model(x)) and compiled(x[:2]).equal(model(x[:2]))
    assert compiled.explain() == "Sequential: 2 graphs"
    assert next(n for n, _ in compiled.named_parameters()) == "_orig_mod.0.weight"


def test_methods_and_switches():
    class Scale:
        factor = 3

        @tg.compile(fullgraph=True)
        def apply(self, x):
            return x * self.factor

    assert Scale().apply(tg.ones(2)).tolist() == [3, 3]

    def f(x):
        return x

    assert tg.compile(f, disable=True) is f
    with pytest.raises(TypeError, match="takes a function or a module, not int"):
        tg.compile(3)


def test_arguments_of_any_kind():
    assert tg.compile(lambda x, among: x + len(among))(tg.ones(1), {1, 2}).item() == 3


class Remembers(nn.Module):
    """Sets tensors as attributes while it runs: a buffer, a plain one, and one that was not there."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", tg.zeros(2), persistent=False)
        self.plain = tg.zeros(2)

    def forward(self, x):
        self.state = self.state + x
        self.plain = self.plain * 2 + x
        self.last = x.sin()
        return self.state * x + self.plain


def test_what_a_program_sets_as_attributes_is_what_it_sets_as_it_was_written():
    plain, module = Remembers(), Remembers()
    compiled = tg.compile(module)
    for i in range(3):
        x = tg.full((2,), i + 1.0, requires_grad=i > 0)
        assert compiled(x).equal(plain(x))
        for name in ("state", "plain", "last"):
            assert getattr(module, name).equal(getattr(plain, name))
            assert getattr(module, name).requires_grad == getattr(plain, name).requires_grad
    assert "it sets state, plain, last to a tensor" in compiled.explain()
    with pytest.raises(RuntimeError, match="it sets"):
        tg.compile(Remembers(), fullgraph=True)(tg.ones(2))


def test_a_module_that_is_traced_keeps_its_attributes():
    module = Remembers()
    state, plain = module.state, module.plain
    traced = tg.jit.trace(module, tg.ones(2), check_trace=False)
    assert module.state is state and module.plain is plain and not hasattr(module, "last")
    assert module._buffers["state"] is state
    assert traced(tg.ones(2)).tolist() == [2.0, 2.0]


# ---- what Python does besides ----------------------------------------------------------------------------------------

COUNTS, KEPT, SUM = {}, [], 0


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps, self.seen, self.told = 0, [], {}
        self.inner = nn.Identity()

    def forward(self, x):
        self.steps += 1
        self.seen.append(len(self.seen))
        self.told["n"] = self.told.get("n", 0) + 1
        self.inner.last = self.steps
        return x * self.steps + len(self.seen) + self.told["n"]


class Holder:
    def __init__(self):
        self.n, self.last = 0, None


def changing():
    """A program that changes what it closes over, names and attributes of functions and objects."""
    count, holder, rows, numbers = 0, Holder(), collections.deque(), set()

    def program(x):
        nonlocal count
        global SUM
        count, SUM, holder.n = count + 1, SUM + 2, holder.n + 1
        rows.append(count)
        numbers.add(count)
        COUNTS["n"] = COUNTS.get("n", 0) + 1
        KEPT.append(x * 2)
        holder.last = x * 3
        program.calls = getattr(program, "calls", 0) + 1
        return x * count + SUM + holder.n + len(rows) + len(numbers) + COUNTS["n"] + len(KEPT) + program.calls

    return program, holder


@pytest.mark.parametrize("backend", [None, lambda module, inputs: module.forward])
def test_what_a_program_changes_besides_is_changed_at_each_call(backend):
    global SUM
    found = []
    for wrapped in (False, True):
        COUNTS.clear(), KEPT.clear()
        SUM, (program, holder), module = 0, changing(), Counter()
        for function in (program, module):
            run = tg.compile(function, backend=backend) if wrapped else function
            found.append([run(tg.tensor(float(i))).item() for i in range(5)])
        assert holder.last.item() == 12 and KEPT[3].item() == 6 and len(KEPT) == 5 and module.inner.last == 5
        assert module.seen == [0, 1, 2, 3, 4] and module.told == {"n": 5}
    assert found[:2] == found[2:]


def test_what_it_changes_is_told():
    with pytest.raises(RuntimeError, match="Counter: it changes steps, .*, which no call of a graph would do"):
        tg.compile(Counter(), fullgraph=True)(tg.ones(1))
    compiled = tg.compile(changing()[0])
    compiled(tg.ones(1))
    assert "as it was written because program: it changes" in compiled.explain()


def test_what_a_failed_capture_did_is_put_back():
    rows = []

    def program(x):
        rows.append(1)
        return x if x.sum() > 0 else -x

    compiled = tg.compile(program)
    compiled(tg.ones(1)), compiled(tg.ones(1))
    assert rows == [1, 1]


def test_what_keeps_what_it_computed_first_is_one_graph_from_then_on():
    class Lazy(nn.Module):
        scale = None

        def forward(self, x):
            if self.scale is None:
                self.scale = 3
            return x * self.scale

    compiled = tg.compile(Lazy())
    assert [compiled(tg.ones(1)).item() for _ in range(3)] == [3, 3, 3]
    assert compiled.explain().endswith(": 1 graph")


def test_iterators_go_on_and_numbers_of_python_are_drawn():
    numbers = iter(range(100))
    compiled = tg.compile(lambda x: x * next(numbers))
    assert [compiled(tg.ones(1)).item() for _ in range(3)] == [0, 1, 2]
    for draw in (random.random, np.random.rand):
        compiled, seed = (
            tg.compile(lambda x, draw=draw: x * draw()),
            random.seed if draw is random.random else np.random.seed,
        )
        seed(1)
        found = [compiled(tg.ones(1, dtype=tg.float64)).item() for _ in range(3)]
        seed(1)
        assert found == [draw() for _ in range(3)]


def test_what_needs_a_gradient_from_then_on_is_as_it_was_written():
    def of_argument(x):
        return x.requires_grad_() * 2

    def of_result(x):
        return x * 2, (x * 3).requires_grad_()

    def inside(x):
        y = x.detach().requires_grad_()
        (y * y).sum().backward()
        return y.grad

    compiled, x = tg.compile(of_argument), tg.ones(2)
    for x in (tg.ones(2), tg.ones(2)):
        compiled(x).sum().backward()
        assert x.grad.tolist() == [2, 2]
    compiled = tg.compile(of_result)
    assert [[t.requires_grad for t in compiled(tg.ones(2))] for _ in range(3)] == [[False, True]] * 3
    compiled = tg.compile(inside, fullgraph=True)
    assert compiled(tg.ones(2)).tolist() == compiled(tg.ones(2)).tolist() == [2, 2]
