"""What a program tells of types: annotations, comments, and where a told type makes a value of another."""

import io
from typing import Any

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.jit.annotations import BroadcastingList2
from tinygrad_ext.jit.notes import check_notes


def same(function, *args):
    """What a function gives, compiled, after a look that Python gives the same."""
    scripted = jit.script(function)(*args)
    assert scripted == function(*args) and type(scripted) is type(function(*args))
    return scripted


def test_annotate_gives_a_constant_the_wider_type():
    def found(late: bool):
        x = jit.annotate(int | None, None)
        if late:
            x = 3
        return x

    assert same(found, True) == 3 and same(found, False) is None

    @jit.script
    class Leaf:
        def __init__(self):
            self.size = 1

    @jit.script
    class Branch:
        def __init__(self):
            self.leaf = jit.annotate(Leaf | None, None)

        def grow(self, leaf: Leaf) -> None:
            self.leaf = leaf

    def grown() -> bool:
        branch = Branch()
        branch.grow(Leaf())
        return branch.leaf is not None

    assert jit.script(grown)()


def test_comments_of_methods_name_classes_of_the_function_around():
    @jit.script
    class Weight:
        def __init__(self):
            self.grams = 5

    @jit.script
    class Scale:
        def __init__(self):
            self.limit = 4

        def takes(self, weight):
            # type: (Weight) -> bool
            return weight.grams <= self.limit

    def fits() -> bool:
        return Scale().takes(Weight())

    assert jit.script(fits)() is False


def test_both_ways_of_a_ternary_have_the_type_that_the_program_tells():
    def told(way: bool) -> Any:
        return "out" if way else {}

    def assigned(way: bool):
        a: str | list[int] = "a" if way else [1]
        b: dict[str, int] = {"b": 1} if way else {}
        return a, b

    class Mode(nn.Module):
        def forward(self) -> Any:
            return "train" if self.training else [1]

    for way in (True, False):
        assert same(told, way) == ("out" if way else {})
        assert same(assigned, way) == (("a", {"b": 1}) if way else ([1], {}))
        assert jit.script(Mode().train(way))() == ("train" if way else [1])


def test_zero_and_one_are_items_of_a_list_of_truths():
    def counted(items: list[bool]):
        return all(items), sum(items)

    assert jit.script(counted)([True, 1, 0]) == (False, 2)
    with pytest.raises(RuntimeError, match="but instead found"):
        jit.script(counted)([True, 2])


def test_old_names_of_tensors_with_a_dtype_are_tensors_which_is_told():
    def shape(x: tg.LongTensor) -> tg.LongTensor:
        return x

    with pytest.warns(UserWarning, match="LongTensor for Tensor"):
        scripted = jit.script(shape)
    assert scripted(tg.ones(2)).dtype is tg.float32


def test_one_item_stands_for_a_list_that_is_told_to_broadcast():
    def sizes(n: BroadcastingList2[int], k: int = 0) -> list[int]:
        return n

    def padded(x, y):
        # type: (float, BroadcastingList3[float]) -> List[float]
        return y

    scripted, pads = jit.script(sizes), jit.script(padded)
    assert scripted(3) == [3, 3] and scripted([1, 2]) == scripted((1, 2)) == [1, 2]
    assert pads(1.0, 2.0) == [2.0] * 3

    def calls():
        return scripted(3), scripted((1, 2)), pads(1.0, 2.0), pads(1.0, (1.0, 2.0, 3.0))

    assert jit.script(calls)() == ([3, 3], [1, 2], [2.0] * 3, [1.0, 2.0, 3.0])
    file = io.BytesIO()
    scripted.save(file)
    file.seek(0)
    again = jit.load(file)
    assert again(5) == [5, 5]
    for odd in (2.0, "2", 0, 7):
        program = again.program()
        program.notes["forward"] = {**program.notes["forward"], "broadcasts": {"n": odd}}
        with pytest.raises(ValueError):
            check_notes(program)
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        scripted("3")


def test_powers_and_rounded_numbers_are_floats_where_the_program_says_so():
    def half(x: float) -> float:
        return x / 2

    def powers(a: int, b: int) -> float:
        rounded: float = round(2.6)
        a **= b
        return half(a**2) + rounded

    def alone(a: int) -> float:
        return a**2

    assert same(powers, 2, 3) == 35.0
    assert type(jit.script(alone)(3)) is float
    with pytest.raises(jit.Error, match="type float but is actually of type int"):
        jit.script(no_power)


def no_power(a: int) -> float:
    return a * 2


def test_comprehensions_have_the_type_that_the_program_says():
    def holes(n: int):
        x: list[int | None] = [None for _ in range(n)]
        y: dict[str, float | None] = {str(i): None for i in range(n) if i != 1}
        maybe: list[int] | None = [i for i in range(n)]
        x.append(n)
        y["last"] = 0.5
        return x, y, maybe, jit.annotate(list[int | None], [None for _ in range(n)])

    assert same(holes, 3) == ([None] * 3 + [3], {"0": None, "2": None, "last": 0.5}, [0, 1, 2], [None] * 3)
    assert same(of_either, 2) == ["0", "1"]
    with pytest.raises(jit.Error, match="Expected a value of type 'int' for an item but instead found type 'str'"):
        jit.script(no_numbers)


def of_either(n: int):
    x: list[int] | list[str] = [str(i) for i in range(n)]
    return x


def no_numbers(n: int):
    x: list[int] = [str(i) for i in range(n)]
    return x


def test_an_optional_is_unwrapped_by_the_older_word():
    def one_more(x: int | None):
        return jit._unwrap_optional(x) + 1

    assert same(one_more, 3) == 4
    with pytest.raises(RuntimeError, match="expected a value of type int but instead got value of type NoneType"):
        jit.script(one_more)(None)
    with pytest.raises(AssertionError, match="Unwrapping null optional"):
        one_more(None)


def test_annotations_may_use_names_of_the_function_around():
    tensor_t, number_t = tg.Tensor, float

    class Scaled:
        def __init__(self, factor: number_t):
            self.factor = factor

        def of(self, x: tensor_t) -> tensor_t:
            return x * self.factor

    def called(x):
        return Scaled(3.0).of(x)

    assert jit.script(called)(tg.ones(2)).tolist() == [3, 3]


CALLED = []


def maker_of_annotate():
    CALLED.append(1)
    return lambda told, value: []


class Annotated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = self.second = jit.annotate(list[int], [])
        self.third = maker_of_annotate()(1, [2])

    def forward(self, n: int):
        self.first.append(n)
        self.second.append(n + 1)
        return len(self.first) + len(self.second)


def test_annotate_tells_the_type_of_every_target_and_nothing_is_called_to_look_for_it():
    module = Annotated()
    count = len(CALLED)
    assert jit.script(module)(3) >= 2 and len(CALLED) == count


class ToldNumber(nn.Module):
    number: int
    part: float

    def __init__(self, number, part=1, as_buffer=False):
        super().__init__()
        if as_buffer:
            self.register_buffer("number", number)
        else:
            self.number = number
        self.part = part

    def forward(self, x):
        return x * self.number + self.part


@pytest.mark.parametrize("as_buffer", [False, True])
@pytest.mark.parametrize("number", [tg.ones(2), None])
def test_an_attribute_holds_what_the_class_says(number, as_buffer):
    with pytest.raises(RuntimeError, match=f"Could not cast attribute 'number' to type int.*{type(number).__name__}"):
        jit.script(ToldNumber(number, as_buffer=as_buffer))


def test_an_attribute_told_as_a_float_may_be_whole():
    assert jit.script(ToldNumber(2))(tg.ones(2)).tolist() == [3, 3]


_size_2_t = int | tuple[int, int]  # as the file of PyTorch's layers has it


def test_a_size_of_a_layer_is_one_number_or_one_for_each_dimension():
    def area(x: _size_2_t) -> int:
        return x[0] * x[1]

    scripted = jit.script(area)
    assert scripted(4) == 16 and scripted((2, 3)) == 6 and scripted([2, 3]) == 6
