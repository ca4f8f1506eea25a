"""Every type that a schema has goes to C and comes back."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import cpp_extension

from .conftest import SAMPLES

T = tg.ones(2, 3)
G = tg.Generator()
CASES = [
    ("Tensor", T, "tensor2"),
    ("Tensor?", None, "none"),
    ("Tensor[]", [T, tg.ones(())], "list2(tensor2, tensor0)"),
    ("Tensor?[]", [None, T], "list2(none, tensor2)"),
    ("int", -(2**63), "int -9223372036854775808"),
    ("int?", None, "none"),
    ("int[]", [1, -2, 3], "list3(int 1, int -2, int 3)"),
    ("int[2]", 5, "list2(int 5, int 5)"),
    ("int[]?", [], "list0()"),
    ("float", 3, "float 3"),
    ("float?", 0.5, "float 0.5"),
    ("float[]", [1, 2.5], "list2(float 1, float 2.5)"),
    ("bool", True, "bool 1"),
    ("bool[]", [True, False], "list2(bool 1, bool 0)"),
    ("bool?", False, "bool 0"),
    ("Scalar", 2, "int 2"),
    ("Scalar?", 2.5, "float 2.5"),
    ("Scalar[]", [True, 1, 2.0, 3j], "list4(bool 1, int 1, float 2, complex 0 3)"),
    ("complex", 1 + 2j, "complex 1 2"),
    ("complex[]", [1, 2j], "list2(complex 1 0, complex 0 2)"),
    ("str", "zwölf", "string 6 zwölf"),
    ("str?", None, "none"),
    ("str[]", ["a", "bc"], "list2(string 1 a, string 2 bc)"),
    ("ScalarType", tg.float64, "dtype float64"),
    ("ScalarType?", tg.int8, "dtype other"),
    ("Device", "cpu", "device cpu"),
    ("Layout", tg.strided, "layout strided"),
    ("MemoryFormat", tg.channels_last, "format channels_last"),
    ("Generator?", G, "generator"),
    ("Dict(str, int)", {"a": 1, "b": 2}, "dict2(string 1 a, int 1, string 1 b, int 2)"),
    ("Dict(str, Tensor)", {"a": T}, "dict1(string 1 a, tensor2)"),
    ("Any", [1, "x", None, 2.0], "list4(int 1, string 1 x, none, float 2)"),
    ("ScalarType[]", [tg.float64, tg.int8], "list2(dtype float64, dtype other)"),
    ("Device[]", [tg.device("cpu"), tg.device("meta")], "list2(device cpu, device meta)"),
    ("Layout[]", [tg.strided], "list1(layout strided)"),
    ("MemoryFormat[]", [tg.channels_last], "list1(format channels_last)"),
    ("Generator[]", [G, G], "list2(generator, generator)"),
    ("Dict(str, int)[]", [{"a": 1}, {}], "list2(dict1(string 1 a, int 1), dict0())"),
    ("Any[]", [1, tg.int8, {"a": [1.5]}], "list3(int 1, dtype other, dict1(string 1 a, list1(float 1.5)))"),
    ("complex?", 2j, "complex 0 2"),
    ("complex[]?", [1j], "list1(complex 0 1)"),
    ("float[]?", None, "none"),
    ("bool[]?", [True], "list1(bool 1)"),
    ("str[]?", [""], "list1(string 0 )"),
    ("Scalar[]?", [1, 2.5], "list2(int 1, float 2.5)"),
    ("Tensor[]?", [T], "list1(tensor2)"),
    ("Device?", None, "none"),
    ("Layout?", tg.strided, "layout strided"),
    ("MemoryFormat?", tg.channels_last, "format channels_last"),
    ("Dict(int, float)", {1: 2.5}, "dict1(int 1, float 2.5)"),
    ("Dict(str, str)", {"a": "b"}, "dict1(string 1 a, string 1 b)"),
    ("Dict(str, int[])", {"a": [1, 2]}, "dict1(string 1 a, list2(int 1, int 2))"),
    ("Dict(str, Any)", {"a": None, "b": T}, "dict2(string 1 a, none, string 1 b, tensor2)"),
    ("Dict(str, int)?", None, "none"),
    ("SymInt", 3, "int 3"),
    ("SymInt[]", [3, 4], "list2(int 3, int 4)"),
    ("float[2]", 1.5, "list2(float 1.5, float 1.5)"),
    ("bool[3]", [True, False, True], "list3(bool 1, bool 0, bool 1)"),
    ("Tensor[2]", [T, T], "list2(tensor2, tensor2)"),
]


@pytest.fixture
def values(_cache):
    flags = ["-Wall", "-Wextra", "-Werror", "-DTGX_TARGET_MINOR=1"]
    cpp_extension.load("values", SAMPLES / "values.c", extra_cflags=flags)
    return tg.ops.values


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case[0] for case in CASES])
def test_a_type_arrives_and_comes_back(values, number):
    spelling, given, told = CASES[number]
    tell = getattr(values, f"tell{number}")
    assert str(tell.default._schema).startswith(f"values::tell{number}({spelling} x)")
    for _ in range(10):  # watched, and not
        assert tell(given) == told
    if hasattr(values, f"echo{number}"):
        wanted = {"Device": tg.device("cpu"), "int[2]": [5, 5], "float[2]": [1.5, 1.5]}.get(spelling, given)
        assert getattr(values, f"echo{number}")(given) == wanted


def test_an_object_that_c_cannot_read_is_handed_on(values):
    o = object()
    assert values.tell31(o) == "object" and values.echo31(o) is o
    assert values.tell31(2**70) == "object" and values.echo31(2**70) == 2**70


def test_long_lists_find_room(values):
    assert values.echo6(list(range(5000))) == list(range(5000))
    assert values.echo22([str(i) for i in range(300)]) == [str(i) for i in range(300)]


def test_numbers_are_drawn_from_a_generator_of_the_program(values):
    G.manual_seed(3)
    first = values.draw(G)
    G.manual_seed(3)
    assert values.draw(G) == first and all(0 <= x < 1 for x in first[:2])
    tg.manual_seed(5)
    first = values.draw()
    tg.manual_seed(5)
    assert values.draw() == first


def test_a_surrogate_cannot_be_a_text_in_c(values):
    with pytest.raises(UnicodeEncodeError):
        values.tell20("\ud800")
