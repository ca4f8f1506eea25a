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


# ---- objects among the arguments -------------------------------------------------------------------------------------


class Scaled:
    def __init__(self, k):
        self.k, self.t = k, tg.ones(2)

    @tg.compile
    def method(self, x):
        return x * self.k + self.t


class Decorated(nn.Module):
    def __init__(self):
        super().__init__()
        self.k, self.drop, self.w = 1, nn.Dropout(1.0), nn.Parameter(tg.ones(2))

    @tg.compile
    @tg.no_grad()
    def forward(self, x):
        return self.drop(x * self.k * self.w) + 1


def test_compiled_methods_notice_what_their_object_has():
    x = tg.ones(2)
    one, other = Scaled(1), Scaled(7)
    assert [o.method(x).tolist() for o in (one, other, one)] == [[2, 2], [8, 8], [2, 2]]
    one.k, other.t = 5, tg.zeros(2)
    assert [o.method(x).tolist() for o in (one, other)] == [[6, 6], [7, 7]]
    net = Decorated().eval()
    assert net(x).tolist() == [2, 2]
    net.k = 5
    assert net(x).tolist() == [6, 6] and net.train()(x).tolist() == [1, 1]
    net.eval().w = nn.Parameter(tg.ones(2) * 2)
    assert net(x).tolist() == [11, 11] and Decorated().eval()(x).tolist() == [2, 2]


@pytest.mark.parametrize("backend", [None, lambda module, inputs: module.forward])
def test_modules_optimizers_and_objects_are_arguments(backend):
    def step(model, optimizer, told, x):
        loss = (model(x) * told.k).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    found = []
    for wrapped in (False, True):
        tg.manual_seed(1)
        model, told = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), Scaled(2)
        optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
        run, x, rows = tg.compile(step, backend=backend) if wrapped else step, tg.ones(3, 2), []
        for change in (lambda: None, lambda: None, model.eval, lambda: setattr(told, "k", 3), lambda: None):
            change()
            rows.append(run(model, optimizer, told=told, x=x).item())
        model[0].bias = None
        found.append([*rows, run(model, optimizer, told, x).item()])
    assert found[1] == pytest.approx(found[0])


def test_objects_that_are_new_in_each_call_run_as_it_was_written_in_the_end():
    compiled = tg.compile(lambda told, x: x * told.k)
    for i in range(40):
        assert compiled(Scaled(i), tg.ones(1)).item() == i
    assert len(compiled.holding) < 40


def test_sizes_as_text_and_errors_that_are_caught_are_decided_anew():
    def caught(x):
        try:
            return x.reshape(3)
        except RuntimeError:
            return x * 7

    for program in (lambda x: (x, ",".join(str(n) for n in x.shape)), caught):
        compiled = tg.compile(program)
        for n in (4, 3, 4, 2):
            tg.testing.assert_close(compiled(tg.ones(n))[0], program(tg.ones(n))[0])
            assert compiled(tg.ones(n))[1] == program(tg.ones(n))[1]


def test_a_layout_that_is_asked_for_after_a_write_is_that_of_the_tensor():
    def f(x, ask):
        x.add_(1)
        return x * ask(x)

    for ask in (lambda x: x.stride(0), lambda x: 2 if x.is_contiguous() else 3, lambda x: x[1:].storage_offset()):
        for made in (lambda: tg.ones(3, 8)[:, ::2], lambda: tg.ones(9, 4)[3:6], lambda: tg.ones(3, 4)):
            assert tg.equal(tg.compile(f)(made(), ask), f(made(), ask))
    with pytest.raises(RuntimeError, match=r"stride\(\) of a tensor with gaps that was written to before"):
        tg.jit.trace(lambda x: f(x, lambda x: x.stride(0)), (tg.ones(3, 8)[:, ::2],))
