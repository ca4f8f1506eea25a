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
