"""What C, Cython and Python number stands in one table, and no code depends on the order of its rows."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.core.data import table

ROOT = Path(__file__).resolve().parents[3]  # these are about the sources, wherever the package is installed
PACKAGE = ROOT / "tinygrad_ext"
CODES = "|".join(row.code for row in table.DTYPES)
NUMBERS = "|".join([rf"TGX_(?:{CODES})", r"[AFP]_[A-Z]+", "TGX_(?:ARG|FLAG|RULE)_[A-Z_]+"])
# a dtype's number beside <, >, <= or >=; a cast, a pointer's arrow, a shift and an include are none of these
ORDER = re.compile(
    rf"(?<![-<>\w])(?:<=?|>=?)(?![<>=])\s*(?:<int>)?(?:{NUMBERS})\b"
    rf"|\b(?:{NUMBERS})\s*(?<![-<>])(?:<=?|>=?)(?![<>])"
    r"|[<>]=?\s*(?:\w+(?:\[\w+\])?\.|\(<Tensor>\w+\)\.)tid\b"
    r"|(?<![\w])(?:\w+(?:\[\w+\])?\.|\(<Tensor>\w+\)\.)tid\s*[<>]=?"
)
DTYPE_KIND = {"bool": "b", "unsigned": "u", "natural": "u", "signed": "i", "half": "f", "float": "f", "complex": "c"}


def sources():
    found = [p for room in ("core", "native", "kernels") for p in sorted((PACKAGE / room).rglob("*"))]
    return [p for p in found if p.suffix in (".pyx", ".pxd", ".pxi", ".c", ".h") and "_gen" not in p.name]


def code_of(path):
    """The text without comments, strings and includes, with lines as they are."""
    text = path.read_text()
    blank = lambda m: re.sub(r"[^\n]", " ", m[0])
    if path.suffix in (".c", ".h"):
        return re.sub(r"/\*.*?\*/|^\s*#\s*include[^\n]*", blank, text, flags=re.S | re.M)
    return re.sub(r'"""(?:.|\n)*?"""|"(?:[^"\n\\]|\\.)*"|\'(?:[^\'\n\\]|\\.)*\'|#[^\n]*', blank, text)


def test_no_number_of_the_table_is_compared_by_order():
    found = []
    for path in sources():
        text = code_of(path)
        found += [
            f"{path.relative_to(PACKAGE)}:{text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for m in ORDER.finditer(text)
        ]
    assert not found, "ask a predicate such as is_float:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        ("if t.tid >= TGX_F16:", True),
        ("if TGX_U8 < (<Tensor>o).tid <= TGX_I64:", True),
        ("if dtype < TGX_C64:", True),
        ("if 0 <= o.dtype < TGX_F16:", True),
        ("if a.tid > b.tid:", True),
        ("if kind <= A_INT:", True),
        ("if t.tid == TGX_F16:", False),
        ("fixed = op.loops[<int>TGX_F32] == NULL", False),
        ("x = p->tid << TGX_F16", False),
        ("x = <Tensor>o", False),
    ],
)
def test_a_comparison_by_order_is_seen(code, counts):
    assert bool(ORDER.search(code)) == counts


def generator():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import generate_table
    finally:
        sys.path.pop(0)
    return generate_table


def test_what_is_generated_is_fresh():
    for path, text in generator().files(PACKAGE).items():
        assert path.read_text() == text, f"{path.name} is not what the table says: make build"


def test_dtypes_are_the_rows_of_the_table():
    assert [(row.name, row.itemsize, row.typecode) for row in table.DTYPES] == [
        (d.name, d.itemsize, d.typecode) for d in (getattr(tg, row.name) for row in table.DTYPES)
    ]
    for i, row in enumerate(table.DTYPES):
        d = getattr(tg, row.name)
        assert d.id == i and all(getattr(tg, alias) is d for alias in row.aliases)
        if row.name != "bfloat16":
            assert np.dtype(row.name).kind == DTYPE_KIND[row.kind] and np.dtype(row.name).itemsize == row.itemsize


def test_predicates_say_of_dtypes_what_their_attributes_say():
    for row in table.DTYPES:
        d = getattr(tg, row.name)
        said = {name for name, (kinds, _) in table.PREDICATES.items() if row.kind in kinds}
        assert d.is_floating_point == ("is_float" in said) and d.is_complex == ("is_complex" in said)
        assert d.is_signed == ("is_signed" in said) and ("is_inexact" in said) != ("is_integral" in said)


def test_promotion_is_symmetric_and_keeps_the_larger():
    for a in table.DTYPES:
        for b in table.DTYPES:
            to = table.promoted(a, b)
            if to is None or {a.kind, b.kind} == {"natural", "complex"}:
                assert table.promoted(b, a) is to and "natural" in (a.kind, b.kind)
                with pytest.raises(RuntimeError, match="is not supported"):
                    tg.promote_types(getattr(tg, a.name), getattr(tg, b.name))
                continue
            assert to is table.promoted(b, a) and table.promoted(to, a) is to
            assert tg.promote_types(getattr(tg, a.name), getattr(tg, b.name)) is getattr(tg, to.name)


def test_the_table_needs_nothing_that_is_built():
    text = (PACKAGE / "core" / "data" / "table.py").read_text()
    names = [m[1] for m in re.finditer(r"^(?:from|import) (\S+)", text, re.M)]
    assert names == ["collections"]
