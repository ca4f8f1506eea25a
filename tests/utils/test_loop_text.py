"""The C text of pointwise loops."""

import re

import pytest

from tinygrad_ext.utils import loop_text


@pytest.mark.parametrize(
    "expression",
    ["x", "0", "x + y", "x * y - z", "~x", "x & y", "x == y", "!x", "(x != 0) & (y != 0)", "x ? y : z"]
    + [{"alpha == 1": "x + y", "else": "x + alpha * y"}],
)
def test_integers_with_and_without_a_sign_share_what_looks_at_bits_alone(expression):
    assert loop_text.has_no_sign(expression, None)


@pytest.mark.parametrize(
    ("expression", "returns"),
    [
        ("x < y", "bool"),
        ("x > y ? x : y", None),
        ("x >> y", None),
        ("x / y", None),
        ("NEGATE(x)", None),
        ("vm_gcd(x, y)", None),
        ("abs(x)", None),
        ("x", "float"),
        ("(x + y) == 0", "bool"),  # 255 + 1 is 256 before it is cut, -1 + 1 is 0
        ("x + y", "bool"),
        ({"alpha < 1": "x + y", "else": "x"}, None),
        ({"alpha == 1": "x + y", "else": "x / alpha"}, None),
    ],
)
def test_what_a_sign_changes_has_a_loop_for_each(expression, returns):
    assert not loop_text.has_no_sign(expression, returns)


def test_shared_loops_stand_in_the_table_once():
    fields = {"scalar": "x + y", "types": "int natural"}
    loops, listed, _ = loop_text.family([("aten::plus(Tensor self, Tensor other) -> Tensor", fields)])
    written = [re.search(r"static int (op_plus_\w+)\(", text)[1] for text in loops]
    names = re.findall(r"op_plus_\w+", listed[0])
    assert len(names) == 8 and len(written) == 4 and set(names) == {name.replace("_far", "") for name in written}


def test_what_stands_for_an_argument_is_chosen_before_the_loop():
    declared, expression = loop_text.with_defaults("", "x != x ? (has_nan ? nan : 0) : x", "float")
    assert declared == " const float nan_or = (has_nan ? nan : 0);" and expression == "x != x ? nan_or : x"


MINUS = "aten::minus(Tensor self, Tensor other) -> Tensor", {"scalar": "x - y", "types": "float"}
SCALED = (
    "aten::less(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    {"scalar": {"alpha == 1": "x - y", "else": "x - alpha * y"}, "types": "float"},
)


def test_loops_that_say_the_same_are_compiled_once():
    loops, listed, _ = loop_text.family([SCALED, MINUS])
    text = loop_text.table_of("rows", loops, listed)
    for tag in ("f32", "f64"):
        assert f"#define op_minus_{tag} op_less_{tag}_0\n" in text
        assert f" op_minus_{tag}(" not in text and f"int op_less_{tag}_0(" in text and f"int op_less_{tag}_1(" in text
        shared = text.split(f"int op_less_{tag}_0(")[1].split("\n}\n")[0]
        assert "aux[" not in shared  # a call of minus brings no scalar that could be read
    # what reads a number is no loop without one
    other = SCALED[0], {"scalar": "x - alpha * y", "types": "float"}
    assert "#define" not in loop_text.table_of("rows", *loop_text.family([other, MINUS])[:2])


def test_loops_of_functions_that_differ_in_numbers_share_one():
    found = [
        (f"aten::{name}(Tensor self) -> Tensor", {"scalar": f"exp(x * {n})"}) for name, n in (("a", 1.5), ("b", 2.5))
    ]
    loops, listed, _ = loop_text.family(found)
    text = loop_text.table_of("rows", loops, listed)
    assert text.count("int by_numbers_0_f32(") == 1 and text.count("return by_numbers_0_f32(") == 2
    assert "{{.f = 1.5}}" in text and "{{.f = 2.5}}" in text
    alone = loop_text.table_of("rows", *loop_text.family(found[:1])[:2])
    assert "by_numbers" not in alone


@pytest.mark.parametrize(
    "forms",
    [
        ("1.5 * sin(x)", "2.5 * sin(x)"),
        ("-sin(x) * 1.5", "-sin(x) * 2.5"),
        ("sin(x) * 1.5", "sin(x) * 2.5", "sin(x) + 1.5", "sin(x) + 2.5"),
        ("log1p(x) * 1.5", "log1p(x) * 2.5", "log2(x) * 1.5", "log2(x) * 2.5"),
    ],
)
def test_each_form_has_a_function_of_its_own_whatever_it_begins_with(forms):
    found = [(f"aten::f{k}(Tensor self) -> Tensor", {"scalar": form}) for k, form in enumerate(forms)]
    text = loop_text.table_of("rows", *loop_text.family(found)[:2])
    made = re.findall(r"int (by_numbers_\d+_f32)\(char", text)
    assert len(made) == len(set(made)) == len(forms) // 2 and text.count("return by_numbers_") == 2 * len(forms)
