"""Operands of small groups that are spread out of a few words: columns and rows, transposed ones, ends of storages."""

import os
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tests.helpers import plans
from tinygrad_ext.testing import make_tensor

DTYPES = (tg.float32, tg.float64, tg.int32, tg.int64, tg.complex64, tg.complex128, tg.float16, tg.uint8)
# Of operands with a number of elements from 1 to 17, which are 1 to 68 words.
SIZES = (
    ((4, 1), (4,)),
    ((1, 5), (3, 1)),
    ((16, 1), (1, 16)),
    ((15, 1), (17,)),
    ((2, 1, 3), (2, 1)),
    ((8, 1), (1, 8)),
    ((9, 1), (2,)),
    ((3, 1, 1), (1, 4, 1)),
    ((0, 1), (4,)),
    ((2, 1), (1, 0)),
)
GROUP = plans.graph("""\
graph group(%a: Tensor, %b: Tensor, %c: Tensor) {
  %1: Tensor = aten::mul.Tensor(%a, %b)
  %2: Tensor = aten::add.Tensor(%1, %c, 1)
  %3: Tensor = aten::sub.Tensor(%a, %c, 1)
  %4: Tensor = aten::mul.Tensor(%3, %b)
  return %2, %4
}""")


def at_the_end(sizes, dtype, step):
    """A tensor whose last element is the last of its storage, `step` elements from one to the next."""
    count = tg.Size(sizes).numel() * step
    return make_tensor(count + 3, dtype=dtype, device="cpu")[2 + step :: step].reshape(sizes)


def check(sizes, dtype):
    *batch, rows, columns = tg.broadcast_shapes(*sizes)
    c = make_tensor(*batch, columns, rows, dtype=dtype, device="cpu").mT
    for step in (1, 2):
        a, b = (at_the_end(s, dtype, step) for s in sizes)
        plans.agree(GROUP, a, b, c)
        plans.agree(GROUP, b, a, c)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_plan_agrees_with_its_steps(sizes, dtype):
    check(sizes, dtype)


@pytest.mark.parametrize("level", ["base", "avx2"])
def test_it_does_with_the_instructions_of_older_processors(level):
    text = f"from {__name__} import *\nfor s in SIZES:\n    for d in DTYPES:\n        check(s, d)"
    done = subprocess.run(
        [sys.executable, "-c", text], env=os.environ | {"TINYGRAD_EXT_ISA": level}, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
