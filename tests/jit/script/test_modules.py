"""Modules: parameters, buffers and attributes are state, children are compiled with them, users see a module."""

import copy
from typing import Final

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Counting(nn.Module):
    names: list[str]
    limit: Final[int]

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tg.ones(2))
        self.register_buffer("seen", tg.zeros(2))
        self.calls = 0
        self.rate = 0.5
        self.names = []
        self.limit = 3
        self.label: str = "a"

    def forward(self, x, name: str = "x"):
        self.calls += 1
        self.names.append(name)
        self.seen = self.seen + x.detach()
        if self.training:
            x = x * 2
        for _ in range(self.limit):
            x = self.step(x)
        return x

    def step(self, x):
        self.rate *= 0.5
        return x * self.weight + self.rate

    @jit.export
    def reset(self, calls: int = 0) -> int:
        before = self.calls
        self.calls = calls
        return before

    def not_compiled(self):
        return {1, 2}


def pair():
    module = Counting()
    return module, jit.script(Counting())


def test_a_module_gives_what_it_gives_eager():
    module, scripted = pair()
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    for name in ("first", "second"):
        one, other = module(x, name), scripted(x, name=name)
        assert one.equal(other)
    assert (scripted.calls, scripted.rate, scripted.names) == (module.calls, module.rate, module.names)
    assert scripted.seen.equal(module.seen)
    module(x).sum().backward()
    scripted(x).sum().backward()
    assert scripted.weight.grad.equal(module.weight.grad)


def test_state_is_told_by_the_graph():
    _, scripted = pair()
    states = {s.name: (s.kind, s.written) for s in scripted.graph.state}
    assert states["weight"] == ("parameter", False) and states["seen"] == ("buffer", True)
    assert states["calls"] == ("attribute", True) and states["training"] == ("attribute", False)
    assert "limit" not in states


def test_the_scripted_module_is_a_module():
    module, scripted = pair()
    assert isinstance(scripted, nn.Module) and isinstance(scripted, jit.ScriptModule)
    assert list(scripted.state_dict()) == list(module.state_dict())
    assert [n for n, _ in scripted.named_parameters()] == ["weight"]
    x = tg.ones(2)
    trained = scripted(x)
    assert not scripted.eval()(x).equal(trained)
    scripted.load_state_dict({"weight": tg.zeros(2), "seen": tg.zeros(2)})
    scripted.calls = 41
    scripted(x)
    assert scripted.calls == 42 and scripted.original_name == "Counting"


def test_tensors_are_shared_and_attributes_copied():
    module = Counting()
    scripted = jit.script(module)
    assert scripted.weight is module.weight and scripted.seen is module.seen
    scripted(tg.ones(2))
    assert scripted.calls == 1 and module.calls == 0


def test_exported_and_called_methods_are_compiled():
    _, scripted = pair()
    scripted(tg.ones(2))
    assert scripted.reset(7) == 1 and scripted.calls == 7
    assert scripted.step(tg.ones(2)).tolist() == [1.0 + 0.5**5] * 2
    with pytest.raises(jit.Error):
        scripted.not_compiled()


def test_a_copy_is_a_module_of_its_own():
    _, scripted = pair()
    scripted(tg.ones(2))
    twin = copy.deepcopy(scripted)
    with tg.no_grad():
        twin.weight.zero_()
    twin(tg.ones(2))
    assert (scripted.calls, twin.calls) == (1, 2)
    assert scripted.weight.tolist() == [1.0, 1.0]
    assert not twin(tg.ones(2)).equal(scripted(tg.ones(2)))


def test_a_shallow_copy_shares_tensors_and_has_attributes_of_its_own():
    _, scripted = pair()
    twin, x = copy.copy(scripted), tg.ones(2)
    assert twin.weight is scripted.weight and twin(x).equal(scripted(x))
    twin.calls = 7
    twin(x)
    assert (scripted.calls, twin.calls) == (1, 8)


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)])
        self.named = nn.ModuleDict({"up": nn.Linear(3, 3), "act": nn.Tanh()})
        self.tail = nn.Sequential(nn.LayerNorm(3), nn.Sequential(nn.Linear(3, 2), nn.GELU()))
        self.weights = nn.ParameterList([nn.Parameter(tg.ones(2)), nn.Parameter(tg.full((2,), 3.0))])
        self.nothing = None

    def forward(self, x, keep: bool = False) -> tuple[tg.Tensor, list[tg.Tensor]]:
        kept: list[tg.Tensor] = []
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if keep and i == 1:
                kept.append(x)
        for name, module in self.named.items():
            if name == "act":
                x = module(x) + len(self.layers)
            else:
                x = module(x)
        x = self.layers[-1](x)
        if "up" in self.named:
            x = self.named["up"](x)
        for layer in self.layers[:2]:
            x = layer(x)
        if self.nothing is None:
            x = self.tail(x)
        for w in self.weights:
            x = x * w
        return x, kept


@pytest.mark.parametrize("keep", [False, True])
def test_lists_and_dicts_of_modules_are_unrolled(keep):
    module = Blocks()
    scripted = jit.script(module)
    x = tg.randn(4, 3)
    (one, kept), (other, also) = module(x, keep), scripted(x, keep)
    assert one.equal(other) and len(kept) == len(also) == keep
    assert not any(node.op == "prim::Loop" for node in scripted.graph.walk())
    assert [type(m) for m in scripted.layers] == [jit.RecursiveScriptModule] * 3
    assert scripted.named["act"](tg.zeros(1)).item() == 0.0 and len(scripted.tail) == 2


LAYERS = {
    "linear": (lambda: nn.Linear(3, 2), (2, 3)),
    "no bias": (lambda: nn.Linear(3, 2, bias=False), (2, 3)),
    "conv1d": (lambda: nn.Conv1d(2, 3, 2, padding=1), (1, 2, 5)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3, stride=2), (1, 2, 7, 7)),
    "batchnorm": (lambda: nn.BatchNorm1d(3), (4, 3)),
    "batchnorm without momentum": (lambda: nn.BatchNorm2d(3, momentum=None), (2, 3, 2, 2)),
    "layernorm": (lambda: nn.LayerNorm(3), (4, 3)),
    "groupnorm": (lambda: nn.GroupNorm(1, 3), (4, 3)),
    "dropout": (lambda: nn.Dropout(0.0), (4, 3)),
    "maxpool": (lambda: nn.MaxPool2d(2), (1, 2, 4, 4)),
    "avgpool": (lambda: nn.AvgPool2d(2), (1, 2, 4, 4)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(1), (1, 2, 4, 4)),
    "flatten": (lambda: nn.Flatten(), (2, 2, 2)),
    "gelu": (lambda: nn.GELU(), (3,)),
    "softmax": (lambda: nn.Softmax(dim=-1), (2, 3)),
    "leaky": (lambda: nn.LeakyReLU(0.1), (3,)),
    "identity": (lambda: nn.Identity(), (3,)),
    "prelu": (lambda: nn.PReLU(), (3,)),
    "elu": (lambda: nn.ELU(), (3,)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_the_package_compile(name):
    make, shape = LAYERS[name]
    module = make()
    twin = copy.deepcopy(module)
    scripted = jit.script(twin)
    for _ in range(2):
        x = tg.randn(*shape, requires_grad=True)
        one, other = module(x), scripted(x)
        assert one.equal(other)
        (first,), (second,) = tg.autograd.grad(one.sum(), x), tg.autograd.grad(other.sum(), x)
        assert first.equal(second)
    assert all(a.equal(b) for a, b in zip(module.state_dict().values(), scripted.state_dict().values()))
    module.eval(), scripted.eval()
    assert module(x).equal(scripted(x))


class Embeds(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, words, target):
        return self.loss(self.table(words), target)


def test_embedding_and_loss():
    module = Embeds()
    words, target = tg.tensor([1, 4]), tg.tensor([0, 2])
    assert jit.script(module)(words, target).equal(module(words, target))


class Marked(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 2

    def forward(self, x, log: bool = False):
        if log:
            self.never(x)
        return x * self.by_numpy(x)

    @jit.ignore
    def by_numpy(self, x) -> int:
        return self.factor + len({*x.tolist()})

    @jit.unused
    def never(self, x):
        import numpy

        return numpy.ones(1)


def test_ignored_methods_stay_python_and_unused_ones_raise():
    scripted = jit.script(Marked())
    assert scripted(tg.ones(2)).tolist() == [3.0, 3.0]
    scripted.factor = 5
    assert scripted(tg.ones(2)).tolist() == [6.0, 6.0]
    with pytest.raises(NotImplementedError):
        scripted(tg.ones(2), log=True)


class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = jit.Attribute({"a": 1}, dict[str, int])
        self.last: int | None = None

    def forward(self, key: str) -> int:
        found = self.table.get(key)
        if found is None:
            self.table[key] = 0
            return -1
        return found


def test_attributes_with_types():
    scripted = jit.script(Typed())
    assert [scripted("a"), scripted("b"), scripted("b")] == [1, -1, 0]
    assert scripted.table == {"a": 1, "b": 0}


class Optionals(nn.Module):
    last: tg.Tensor | None

    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        last = self.last
        if last is not None:
            x = x + last
        self.last = x
        return x


def test_an_optional_attribute():
    scripted = jit.script(Optionals())
    assert [scripted(tg.ones(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]


def test_state_written_in_branches_and_loops():
    class Loops(nn.Module):
        def __init__(self):
            super().__init__()
            self.total = 0

        def add(self, n: int):
            if n % 2 == 0:
                self.total += n

        def forward(self, n: int):
            for i in range(n):
                self.add(i)
                if self.total > 10:
                    return self.total
            return -self.total

    scripted = jit.script(Loops())
    assert [scripted(4), scripted.total, scripted(20), scripted.total] == [-2, 2, 14, 14]


def test_a_function_that_closes_over_a_module():
    net = nn.Linear(2, 2)

    @jit.script
    def twice(x):
        return net(net(x))

    x = tg.ones(1, 2)
    assert twice(x).equal(net(net(x)))
    assert [s.name for s in twice.graph.state] == ["net.weight", "net.bias"]


def test_script_methods_of_a_subclass():
    class Old(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tg.ones(2))

        @jit.script_method
        def forward(self, x):
            return self.helper(x) * self.weight

        @jit.script_method
        def helper(self, x):
            return x + 1

    old = Old()
    assert old(tg.ones(2)).tolist() == [2.0, 2.0] and old.graph.state[0].name == "weight"


def test_freeze_wants_evaluation_mode():
    scripted = jit.script(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="eval"):
        jit.freeze(scripted)
    x = tg.ones(1, 2)
    assert jit.optimize_for_inference(jit.freeze(scripted.eval()))(x).equal(scripted(x))


class Shifted(Blocks):
    def forward(self, x, keep: bool = False) -> tuple[tg.Tensor, list[tg.Tensor]]:
        y, kept = super().forward(x, keep)
        return y + 1, kept


def test_super_calls_the_base():
    module = Shifted()
    x = tg.randn(4, 3)
    assert jit.script(module)(x)[0].equal(module(x)[0])


def test_annotations_in_init_are_types_of_attributes():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept: dict[int, list[int]] = {}
            self.last: int | None = None

        def forward(self, key: int) -> int:
            last = self.last
            if last is not None:
                self.kept[key] = [last]
            self.last = key
            return len(self.kept)

    scripted = jit.script(Cache())
    assert [scripted(3), scripted(4), scripted(5)] == [0, 1, 2]
    assert scripted.kept == {4: [3], 5: [4]} and scripted.last == 5
