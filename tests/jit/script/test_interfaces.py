"""Modules and objects behind an interface: arguments, lists, members picked when the program runs, archives."""

import io
import subprocess
import sys
from typing import Any

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.graph import Graph

Tensor = tg.Tensor


@jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass

    def weight_of(self, n: int = 2) -> float:
        pass


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(tg.tensor(2.0))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.w

    def weight_of(self, n: int = 2) -> float:
        return n * 1.5


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).relu()

    def weight_of(self, n: int = 2) -> float:
        return float(n)


class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Scale(), Dense()])
        self.named = nn.ModuleDict({"scale": Scale(), "dense": Dense()})

    def forward(self, x: Tensor, i: int, key: str) -> tuple[Tensor, float]:
        layer: Layer = self.layers[i]
        for k in range(3):
            one: Layer = self.layers[k % 2]
            x = one(x)
        other: Layer = self.named[key]
        pair = [self.layers[0], self.named["dense"]]
        last: Layer = pair[i]
        picked: Layer = self.layers[0] if i > 0 else self.layers[1]
        return layer(x) + other.forward(x) + last(x) + picked(x), layer.weight_of(i) + other.weight_of()


def loaded(program):
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    return jit.load(file)


def told(module, *args):
    for p in module.parameters():
        p.grad = None
    out, number = module(*args)
    out.sum().backward()
    return out.tolist(), number, [None if p.grad is None else p.grad.tolist() for p in module.parameters()]


@pytest.mark.parametrize("i, key", [(0, "scale"), (1, "dense"), (-1, "scale"), (-2, "dense")])
def test_one_of_several_modules_is_picked_when_the_program_runs(i, key):
    module, x = Routed(), tg.randn(3, 2)
    scripted = jit.script(module)
    expected = told(module, x, i, key)
    assert told(scripted, x, i, key) == expected == told(loaded(scripted), x, i, key)
    assert not scripted.graph.effects and Graph.parse(str(scripted.graph)) == scripted.graph


@pytest.mark.parametrize("i, key, error", [(2, "scale", IndexError), (-3, "scale", IndexError), (0, "none", KeyError)])
def test_a_key_that_is_not_there_raises_when_the_program_runs(i, key, error):
    scripted = jit.script(Routed())
    for module in (scripted, loaded(scripted)):
        with pytest.raises(error):
            module(tg.ones(1, 2), i, key)


def through(layers: list[Layer], x: Tensor, last: Layer | None = None) -> Tensor:
    for layer in layers:
        x = layer(x) * layer.weight_of(n=3)
    if last is not None:
        x = last.forward(x)
    return x


def test_functions_take_modules():
    scripted = jit.script(through)
    a, b, x = jit.script(Scale()), jit.script(Dense()), tg.randn(3, 2)
    for row in ([[a, b], x, a], [[b, b, a], x], [[], x]):
        expected = through(*row)
        assert scripted(*row).equal(expected) and loaded(scripted)(*row).equal(expected)
    assert scripted([a, loaded(b)], x).equal(through([a, b], x))
    scripted([a, b], x, a).sum().backward()
    found, a.w.grad = a.w.grad, None
    through([a, b], x, a).sum().backward()
    assert a.w.grad.equal(found)


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Scale(), Dense()

    def forward(self, x: Tensor) -> Tensor:
        rows: list[Layer] = [self.a, self.b]
        return through(rows, x) + through([self.b], x, self.a)


def test_modules_go_to_functions_that_script_calls():
    module, x = Holder(), tg.randn(2, 2)
    scripted = jit.script(module)
    assert scripted(x).equal(module(x)) and loaded(scripted)(x).equal(module(x))
    assert not scripted.graph.effects


@pytest.mark.parametrize(
    "row, words",
    [
        (lambda: [Scale()], "pass jit.script"),
        (lambda: [jit.script(nn.Linear(2, 2))], "not have method 'weight_of'"),
        (lambda: [3], "only modules"),
    ],
)
def test_what_is_not_of_the_interface_is_refused(row, words):
    with pytest.raises(RuntimeError, match=words):
        jit.script(through)(row(), tg.ones(2))


def test_other_methods_than_the_interface_says_are_refused_while_compiling():
    def wrong(layer: Layer, x):
        return layer.inner(x)

    with pytest.raises(jit.Error, match="(?s)no attribute or method 'inner'.*layer.inner.*HERE"):
        jit.script(wrong)

    class Untold(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Scale()])

        def forward(self, x, i: int):
            return self.layers[i](x)

    with pytest.raises(jit.Error, match="Annotate it with an interface"):
        jit.script(Untold())


class Swapped(nn.Module):
    part: Layer

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x)


def test_a_child_with_an_interface_is_replaced_by_another_that_has_it():
    scripted, x = jit.script(Swapped(Scale())), tg.ones(1, 2)
    assert scripted(x).tolist() == [[2.0, 2.0]]
    other = jit.script(Dense())
    scripted.part = other
    assert scripted(x).equal(other(x))
    for wrong in (Scale(), jit.script(nn.Linear(2, 2))):
        with pytest.raises(RuntimeError, match="has the interface Layer"):
            scripted.part = wrong
    with pytest.raises(jit.Error, match="(?s)not of annotated type Layer"):
        jit.script(Swapped(nn.ReLU()))


@jit.interface
class Shape:
    def area(self, unit: float) -> float:
        pass


class Box:
    def __init__(self, side: float):
        self.side = side

    def area(self, unit: float) -> float:
        return self.side * self.side * unit


class Disc:
    def __init__(self, radius: float):
        self.radius = radius

    def area(self, unit: Any) -> float:
        assert isinstance(unit, float)
        return 3.0 * self.radius * self.radius * unit


def total(shape: Shape, side: float) -> float:
    shapes: list[Shape] = [Box(side), Disc(side), shape]
    found = 0.0
    for each in shapes:
        found += each.area(2.0)
    return found


def test_objects_behind_an_interface():
    scripted = jit.script(total)
    for shape in (Box(3.0), Disc(1.0)):
        assert scripted(shape, 2.0) == total(shape, 2.0) == loaded(scripted)(shape, 2.0)
    with pytest.raises(RuntimeError, match="not have method 'area'"):
        scripted(Holder, 2.0)

    def wrong(side: float):
        found: Shape = object_of_no_shape(side)
        return found.area(1.0)

    class object_of_no_shape:
        def __init__(self, side: float):
            self.side = side

    with pytest.raises(jit.Error, match="not compatible with interface Shape"):
        jit.script(wrong)


CODE = """
import sys
import tinygrad_ext as tg
from tinygrad_ext import jit
through, scale = jit.load(sys.argv[1]), jit.load(sys.argv[2])
x = tg.ones(2, requires_grad=True)
y = through([scale, scale], x, scale)
y.sum().backward()
assert y.tolist() == [162.0, 162.0] and x.grad.tolist() == [162.0, 162.0] and scale.calls == 3
try:
    through([through], x)
    raise SystemExit("no error")
except RuntimeError as error:
    assert "no method" in str(error)
"""


def test_without_the_classes(tmp_path):
    class Full(Scale):
        @jit.export
        def weight_of(self, n: int = 2) -> float:
            return n * 1.5

    paths = [str(tmp_path / name) for name in ("through.tgx", "scale.tgx")]
    jit.save(jit.script(through), paths[0])
    jit.save(jit.script(Full()), paths[1])
    done = subprocess.run([sys.executable, "-c", CODE, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_graph_calls_compiled_methods_only():
    text = 'graph f(%m: Any) {\n  %1: Any = prim::call_method("save", %m, "x")\n  return %1\n}'
    for module in (jit.script(Scale()), loaded(jit.script(Scale()))):
        with pytest.raises(AttributeError, match="save"):
            Graph.parse(text).execute_one_by_one([module], [])
