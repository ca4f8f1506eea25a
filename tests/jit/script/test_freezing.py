"""A frozen module gives the same, from constants: what no method writes is in its graphs, and dead branches are not."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor, self.calls, self.names = 2.0, 0, ["a"]
        self.double = True

    def forward(self, x):
        self.calls += 1
        if self.double:
            return x * self.factor
        return x / self.factor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.scale = Scale()
        self.register_buffer("seen", tg.zeros(1))
        self.limit = 10.0

    def forward(self, x):
        self.seen = self.seen + 1
        if self.training:
            x = x + 1000
        x = self.scale(self.drop(self.norm(self.first(x))))
        return x.clamp(-self.limit, self.limit)

    @jit.export
    def limit_of(self) -> float:
        return self.limit


def ops(graph):
    return [node.op for node in graph.walk()]


def test_attributes_are_constants_and_dead_branches_fall_away():
    net = Net().eval()
    scripted = jit.script(net)
    frozen = jit.freeze(scripted)
    x = tg.randn(4, 3)
    assert frozen(x).equal(net(x)) and frozen(x).equal(scripted(x))
    assert "aten::div.Tensor" not in ops(frozen.graph) and "1000" not in str(frozen.graph)
    assert ops(frozen.graph).count("prim::If") == 1, "what the normalization asks of its input"
    assert [(s.name, s.kind) for s in frozen.graph.state if s.written] == [
        ("seen", "buffer"),
        ("scale.calls", "attribute"),
    ]
    assert {s.kind for s in frozen.graph.state if not s.written} == {"constant"}
    assert not list(frozen.parameters()) and list(frozen.state_dict()) == ["seen"]
    assert [name for name, _ in scripted.named_parameters()] == [name for name, _ in net.named_parameters()]
    assert frozen.scale.calls == 2 and frozen.seen.item() == 2.0
    with tg.no_grad():
        net.first.weight.zero_()
    assert not frozen(x).equal(net(x)), "a constant does not follow the module that it was taken from"


def test_a_frozen_module_is_saved_without_its_class():
    frozen = jit.freeze(jit.script(Net().eval()))
    file = io.BytesIO()
    jit.save(frozen, file)
    again = jit.load(io.BytesIO(file.getvalue()))
    x = tg.randn(4, 3)
    assert again(x).equal(frozen(x)) and again.scale.calls == 1


def test_preserved_attributes_and_methods_stay():
    frozen = jit.freeze(jit.script(Net().eval()), preserved_attrs=["limit", "limit_of", "first.weight"])
    assert [name for name, _ in frozen.named_parameters()] == ["first.weight"]
    frozen.limit = 0.0
    assert frozen.limit_of() == 0.0 and not frozen(tg.randn(2, 3)).any()


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: jit.freeze(nn.Linear(2, 2)), "ScriptModule"),
        (lambda: jit.freeze(jit.script(nn.Linear(2, 2))), "eval"),
        (lambda: jit.freeze(jit.script(nn.Linear(2, 2).eval()), ["none"]), "preserved_attrs has 'none'"),
    ],
)
def test_what_cannot_be_frozen_is_refused(make, told):
    with pytest.raises(RuntimeError, match=told):
        make()


def test_frozen_modules_are_optimized_already():
    module = jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval())
    frozen, x = jit.freeze(module), tg.randn(3, 2)
    assert jit.run_frozen_optimizations(frozen) is None and frozen(x).equal(module(x))
    file = io.BytesIO()
    jit.save(frozen, file)
    file.seek(0)
    for compiled in (module, jit.freeze(jit.trace(nn.Linear(2, 2).eval(), x)), jit.load(file)):
        assert jit.run_frozen_optimizations(compiled) is None
    for other in (3, nn.Linear(2, 2)):
        with pytest.raises(TypeError, match=r"expected a module that jit.freeze\(\) gave, not "):
            jit.run_frozen_optimizations(other)


def test_optimize_for_inference_freezes():
    module = jit.script(Net())
    fast = jit.optimize_for_inference(module)
    x = tg.randn(2, 3)
    assert fast(x).equal(module.eval()(x)) and not list(fast.parameters())


class Part(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = tg.tensor(by)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return x.relu() + self.by


class Alternating(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Part(1.0), Part(2.0)
        self.part, self.turn = self.first, 0

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        self.turn += 1
        if self.turn % 2 == 1:
            self.part = self.second
        else:
            self.part = self.first
        return self.part(x)

    @jit.export
    def present(self, x: tg.Tensor) -> tg.Tensor:
        return self.part(x)


def test_a_method_puts_one_part_in_the_place_of_another():
    module, x = Alternating(), tg.arange(3.0)
    scripted = jit.script(Alternating()).eval()
    frozen = jit.freeze(jit.script(Alternating()).eval())
    for _ in range(4):
        wanted = module(x)
        assert scripted(x).equal(wanted) and frozen(x).equal(wanted)
        assert scripted.present(x).equal(module.present(x))


def test_a_part_that_is_replaced_says_what_it_gives():
    class Silent(nn.Module):
        def forward(self, x):
            return x

    class Replacing(nn.Module):
        def __init__(self):
            super().__init__()
            self.part, self.other = Silent(), Silent()

        def forward(self, x):
            if x.sum() > 0:
                self.part = self.other
            return self.part(x)

    with pytest.raises(jit.Error, match=r"write def forward\(\.\.\.\) -> Tensor"):
        jit.script(Replacing())
