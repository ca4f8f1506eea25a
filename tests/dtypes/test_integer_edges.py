"""What integers do at their limits is defined, and the same in each instruction set and memory layout."""

import json
import os
import subprocess
import sys

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import tinygrad_ext as tg

PROGRAM = """
import json
import tinygrad_ext as tg

OPS = {
    "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "fmod": tg.fmod, "mul": lambda a, b: a * b,
    "trunc": lambda a, b: tg.div(a, b, rounding_mode="trunc"), "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "left": lambda a, b: a << b, "right": lambda a, b: a >> b, "gcd": tg.gcd,
}
found = {}
for name in ("int8", "int16", "int32", "int64", "uint8"):
    dtype = getattr(tg, name)
    info = tg.iinfo(dtype)
    edges = [info.min, info.max, info.min + 1, 1, 7, info.max - 1] + ([-1, -7] if info.min else [])
    a = tg.tensor([x for x in edges for _ in edges] * 5, dtype=dtype)
    b = tg.tensor([y for _ in edges for y in edges] * 5, dtype=dtype)
    b = tg.where(b == 0, tg.full_like(b, 3), b)
    for op, call in OPS.items():
        whole = call(a, b)
        assert tg.equal(whole, call(tg.stack([a, a], 1)[:, 0], tg.stack([b, b], 1)[:, 1])), (name, op)
        found[f"{name} {op}"] = whole.tolist()
    for op in ("abs", "neg") if info.min else ():
        found[f"{name} {op}"] = getattr(a, op)().tolist()
    for source in (tg.float32, tg.float64, tg.float16):
        values = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 300.5, -1.5, 65504.0]
        given = tg.tensor(values * 9, dtype=source)
        found[f"{name} of {source}"] = given.to(dtype).tolist()
print(json.dumps(found))
"""


def results(isa):
    environment = {**os.environ, "TINYGRAD_EXT_ISA": isa}
    made = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def test_all_instruction_sets_agree():
    base = results("base")
    for isa in ("avx2", "avx512"):  # a machine without one takes the next lower
        other = results(isa)
        assert [key for key in base if base[key] != other[key]] == []


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_the_least_number_wraps(name):
    least = np.iinfo(name).min
    t = tg.tensor([least], dtype=getattr(tg, name))
    assert (t // -1).item() == (-t).item() == t.abs().item() == (t * -1).item() == least
    assert (t % -1).item() == 0 and tg.fmod(t, -1).item() == 0 and (t - 1).item() == np.iinfo(name).max


def test_division_by_zero_is_refused_and_leaves_no_signal():
    for op in (lambda a: a // 0, lambda a: a % 0, lambda a: tg.fmod(a, 0)):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            op(tg.tensor([1, -(2**63)]))


def test_floats_that_no_integer_holds_become_the_least_one_or_its_low_bits():
    given = tg.tensor([float("nan"), float("inf"), 1e30, -1e30])
    assert given.long().tolist() == [-(2**63)] * 4 and given.int().tolist() == [-(2**31)] * 4
    assert given.to(tg.uint8).tolist() == given.short().tolist() == [0] * 4


def test_limits_print_as_pytorch_prints_them():
    torch = pytest.importorskip("torch")
    for name in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"):
        assert repr(tg.iinfo(getattr(tg, name))) == repr(torch.iinfo(getattr(torch, name)))


def test_integers_have_no_complex_dtype():
    for dtype in (tg.bool, tg.uint8, tg.int64):
        with pytest.raises(RuntimeError, match="Unknown Complex ScalarType"):
            dtype.to_complex()


def towards_zero(p, q):
    return abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)


@pytest.mark.parametrize("dtype", [tg.uint8, tg.int8, tg.int16, tg.int32, tg.int64], ids=str)
@hypothesis.given(st.data())
def test_quotients_and_remainders_of_any_integers(dtype, data):
    """Python's own integers say what they are; only the least one by -1 wraps around."""
    info = tg.iinfo(dtype)
    edges = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1, 1, 2, 3]
    number = st.sampled_from(edges) | st.integers(info.min, info.max) | st.integers(max(info.min, -9), 9)
    pairs = data.draw(st.lists(st.tuples(number, number.filter(bool)), min_size=1, max_size=40))
    factor = data.draw(st.integers(0, 1000))
    pairs += [(min(max(q * factor + step, info.min), info.max), q) for _, q in pairs for step in (-1, 0, 1)]

    def wrapped(v):
        return (v - info.min) % 2**info.bits + info.min

    x, y = (tg.tensor(column, dtype=dtype) for column in zip(*pairs, strict=True))
    for function, wanted in (
        (tg.floor_divide, lambda p, q: p // q),
        (tg.remainder, lambda p, q: p % q),
        (tg.fmod, lambda p, q: p - towards_zero(p, q) * q),
        (lambda a, b: tg.div(a, b, rounding_mode="trunc"), towards_zero),
    ):
        assert function(x, y).tolist() == [wrapped(wanted(p, q)) for p, q in pairs]
        q = pairs[0][1]
        assert function(x, q).tolist() == [wrapped(wanted(p, q)) for p, _ in pairs]
        y[len(y) // 2] = 0
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            function(x, y)
        y[len(y) // 2] = pairs[len(y) // 2][1]


@pytest.mark.parametrize(
    ("limits", "number", "wanted"),
    [
        (tg.finfo, float, "float64"),
        (tg.finfo, complex, "float64"),
        (tg.iinfo, int, "int64"),
        (tg.finfo, int, "Use torch.iinfo"),
        (tg.iinfo, float, "Use torch.finfo"),
        (tg.iinfo, bool, "torch.bool is not supported"),
        (tg.finfo, str, "must be dtype, not type"),
    ],
)
def test_types_of_numbers_have_the_limits_of_their_dtypes(limits, number, wanted):
    if " " in wanted:
        with pytest.raises(TypeError, match=wanted):
            limits(number)
    else:
        assert limits(number) == limits(getattr(tg, wanted))
