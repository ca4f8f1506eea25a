"""`compile` never changes what a program does, be it run from a graph or as it was written."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


def test_a_function_runs_from_graphs_for_any_size():
    calls = []

    @tg.compile
    def f(x, scale=2):
        calls.append(1)
        return (x.exp() * scale).sum(0)

    for n in (3, 1, 7):
        x = tg.randn(n, 2)
        assert f(x).equal((x.exp() * 2).sum(0)) and f(x, scale=3).equal((x.exp() * 3).sum(0))
    assert len(calls) == 2 and f.explain() == "f: 2 graphs"


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
