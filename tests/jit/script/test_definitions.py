"""Classes and modules that cannot work are refused where they are defined or made, not where they are used first."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.jit.frontend import FrontendError
from tools.fuzz import scripts
from tools.fuzz.case import generator


class ReadsWhatIsNotThere:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.y


class SetsWhatIsNotThere:
    def __init__(self, x):
        self.x = x

    def put(self, y):
        self.y = y


class AnotherType:
    def __init__(self, x):
        self.x = x
        self.x = 10


class OneWay:
    def __init__(self, x, n: int):
        if n > 1:
            self.x = x


class InALoop:
    def __init__(self, n: int):
        for i in range(n):
            self.last = i


class WrongProperty:
    def __init__(self, n: int):
        self.n = n

    @property
    def twice(self) -> str:
        return self.n * 2


class WrongStatic:
    @staticmethod
    def make(n: int):
        return n.nope


class NoSelf:
    def nothing():
        return 1


@pytest.mark.parametrize(
    "cls, told",
    [
        (ReadsWhatIsNotThere, "'ReadsWhatIsNotThere' object has no attribute or method 'y'"),
        (SetsWhatIsNotThere, "Tried to set nonexistent attribute: y"),
        (AnotherType, "Wrong type for attribute assignment. Expected Tensor for 'x' of AnotherType but got int"),
        (OneWay, "self.x is not set on all ways through __init__"),
        (InALoop, "self.last is not set on all ways through __init__"),
        (WrongProperty, "Return value was annotated as having type str but is actually of type int"),
        (WrongStatic, "'int' object has no attribute or method 'nope'"),
        (NoSelf, "methods must have a self argument"),
    ],
)
def test_a_class_is_checked_where_it_is_scripted(cls, told):
    with pytest.raises(jit.Error) as error:
        jit.script(cls)
    assert told in str(error.value) and __file__ in str(error.value)


class Late:
    def __init__(self, x: int):
        self.x = x

    def set(self, x: int):
        self.x: int = x


def test_annotations_of_attributes_belong_into_init():
    with pytest.raises(ValueError, match="must be declared in __init__, not 'set'"):
        jit.script(Late)


def test_methods_of_a_class_may_name_it():
    @jit.script
    class Pair:
        def __init__(self, a: int, b: int):
            if a > b:
                self.a, self.b = a, b
            else:
                self.a, self.b = b, a

        def plus(self, other: "Pair") -> "Pair":
            return Pair(self.a + other.a, self.b + other.b)

        @jit.unused
        def text(self):
            return f"{self!r:>{self.a}}"

    def f():
        return Pair(1, 2).plus(Pair(3, 4)).a

    assert jit.script(f)() == 6


@jit.ignore
class OfPython:
    pass


def test_ignored_classes_make_no_objects():
    def f():
        return OfPython()

    with pytest.raises(FrontendError, match="Cannot instantiate class 'OfPython'"):
        jit.script(f)


# ---- modules -------------------------------------------------------------------------------------------------------


class Unknown(jit.ScriptModule):
    @jit.script_method
    def forward(self, x):
        return x + self.nope


class MissingArgument(jit.ScriptModule):
    @jit.script_method
    def other(self, x, y):
        return x

    @jit.script_method
    def forward(self, x):
        return self.other(x)


class MethodWithoutSelf(jit.ScriptModule):
    @jit.script_method
    def forward():
        return 1


@pytest.mark.parametrize(
    "cls, told",
    [
        (Unknown, "Module 'Unknown' has no attribute 'nope'"),
        (MissingArgument, "missing value for argument 'y'"),
        (MethodWithoutSelf, "methods must have a self argument"),
    ],
)
def test_script_methods_are_compiled_when_the_module_is_made(cls, told):
    with pytest.raises(jit.Error) as error:
        cls()
    assert told in str(error.value) and __file__ in str(error.value)


def test_a_module_has_called_the_init_of_its_base():
    class Plain(nn.Module):
        def __init__(self):
            self.x = 2

        def forward(self):
            return self.x

    class Scripted(jit.ScriptModule):
        def __init__(self):
            self.x = 2

    for make in (lambda: jit.script(Plain()), Scripted):
        with pytest.raises(RuntimeError, match=r"has not been initialized, did you forget to call 'super\(\)"):
            make()


class WithConstant(nn.Module):
    __constants__ = ["kept"]

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self):
        return 1


@pytest.mark.parametrize("value", [object(), [1, object()], (1, {}), int])
def test_constants_are_what_a_graph_can_hold(value):
    with pytest.raises(TypeError, match=r"attribute 'WithConstant.kept' is not a valid constant"):
        jit.script(WithConstant(value))


def test_a_constant_is_not_set_when_it_is_compiled_in():
    scripted = jit.script(WithConstant([1, 2]))
    with pytest.raises(RuntimeError, match="Can't set constant 'kept'"):
        scripted.kept = 3
    assert scripted.kept == [1, 2]


# ---- objects from outside ------------------------------------------------------------------------------------------


class Holder:
    def __init__(self, value):
        self.value = value


@dataclass
class Told:
    names: list[str]


class Point(NamedTuple):
    x: int
    y: tg.Tensor


def test_objects_are_what_their_classes_say():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.held = Holder("1")

        def forward(self):
            return self.held.value

    with pytest.raises(RuntimeError, match="Could not cast attribute 'value' to type Tensor"):
        jit.script(Net())

    def first(told: Told) -> str:
        return told.names[0]

    assert jit.script(first)(Told(["a"])) == "a"
    with pytest.raises(RuntimeError, match=r"Could not cast attribute 'names' to type List\[str\]"):
        jit.script(first)(Told([1]))


def test_named_tuples_are_what_their_classes_say():
    def both(p: Point):
        return p.x + p.y

    assert jit.script(both)(Point(1, tg.ones(1))).item() == 2
    with pytest.raises(RuntimeError, match=r"'y' to type Tensor: Point \(aka NamedTuple\(x, y\)\) says so"):
        jit.script(both)(Point(1, "a"))


# ---- order and length ----------------------------------------------------------------------------------------------


def test_what_has_no_order_is_not_sorted():
    def method():
        pairs = [({1: 2}, 1)]
        pairs.sort()
        return pairs

    def function(items: list[Told]):
        return sorted(items)

    for f in (method, function):
        with pytest.raises(jit.Error, match="are not sortable"):
            jit.script(f)


def test_a_range_beside_modules_needs_its_length():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.ReLU(), nn.ReLU()])

        def forward(self, x, n: int):
            for i, layer in zip(range(n), self.layers):
                x = layer(x) + i
            return x

    with pytest.raises(jit.Error, match="does not have a statically determinable length"):
        jit.script(Net())


# ---- whatever is wrong ---------------------------------------------------------------------------------------------


def test_changed_scripts_compile_or_are_refused_by_a_line():
    for number in range(30):
        scripts.case(generator("scripts", 1, number)).run()


@pytest.mark.parametrize(
    "call", ["list(1, 2)", "any()", "round()", "enumerate()", "sum()", "sorted()", "ord('a', 'b')"]
)
def test_functions_of_python_count_their_arguments(call):
    with pytest.raises(jit.Error, match=r"takes .* arguments, got \d") as error:
        jit.CompilationUnit(f"def f(x):\n    return {call}")
    assert "line 2" in str(error.value)


def test_an_annotation_may_name_a_class_of_the_function_around():
    @jit.script
    class Leaf:
        def __init__(self):
            self.x = 1

    @jit.script
    class Tree:
        def __init__(self):
            self.sum = 0

        def add(self, leaf: Leaf, others: list[Leaf]) -> None:
            self.sum += leaf.x + len(others)

    def total(n: int):
        tree, leaf = Tree(), Leaf()
        tree.add(leaf, [leaf, leaf])
        return tree.sum * n

    assert jit.script(total)(2) == 6
