"""Ops that only derivatives call can be called by name, so they check their arguments like any other."""

import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg

NONSENSE = Path(__file__).parent.parent / "helpers" / "nonsense.py"
aten = tg.ops.aten


@pytest.mark.slow
def test_nonsense_ends_in_exceptions_only():
    done = subprocess.run([sys.executable, str(NONSENSE), "1", "300"], capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"ended with {done.returncode} in: {last}\n{done.stderr[-2000:]}"
    assert last.startswith("ended:")


@pytest.mark.parametrize(
    ("grad", "sizes", "dim", "start", "step"),
    [
        (tg.ones(2), [3, 3], 1, 0, 1),
        (tg.ones(1), [4], 0, 4, 2),
        (tg.ones(1), [0], 0, 0, 2**40),
        (tg.ones(3), [4], 0, 2, 1),
        (tg.ones(2), [4], 0, 0, -1),
        (tg.ones(2), [4], 0, 0, 2**62),
    ],
)
def test_a_slice_that_does_not_fit_is_refused(grad, sizes, dim, start, step):
    with pytest.raises(RuntimeError, match="_slice_backward"):
        aten._slice_backward(grad, sizes, dim, start, step)


@pytest.mark.parametrize("op", [aten._slice_backward, aten._select_backward])
def test_a_part_of_no_dimension_is_refused(op):
    step = (1,) if op is aten._slice_backward else ()
    with pytest.raises(IndexError, match="at least one dimension"):
        op(tg.ones(()), [], 0, 0, *step)


def test_masks_of_masked_select_are_bool_and_fit():
    with pytest.raises(RuntimeError, match="BoolTensor"):
        aten._masked_select_backward(tg.ones(2), [2], tg.ones(2))
    with pytest.raises(RuntimeError, match="do not broadcast"):
        aten._masked_select_backward(tg.ones(2), [2], tg.ones(3, dtype=tg.bool))
    with pytest.raises(RuntimeError, match="at most"):
        aten._masked_select_backward(tg.ones(1), [1] * 200, tg.ones(1, dtype=tg.bool))


def test_the_gradient_of_gather_is_as_large_as_its_index():
    with pytest.raises(RuntimeError, match="to be no larger size than src"):
        aten._gather_backward(tg.ones(2), [4], 0, tg.zeros(9, dtype=tg.int64))


def test_places_of_a_pool_lie_on_the_device_of_the_values():
    with pytest.raises(RuntimeError, match="same device"):
        aten._max_pool_gather(tg.ones(2, 4), tg.zeros(2, 2, dtype=tg.int64, device="meta"), 1)


def test_places_of_a_pool_lie_inside_its_planes():
    for at in (-1, 4, 2**62):
        with pytest.raises(RuntimeError, match="invalid max index"):
            aten._max_pool_gather(tg.ones(2, 4), tg.full((2, 2), at), 1)


def test_the_planes_of_a_convolution_are_given_for_each_dimension():
    with pytest.raises(RuntimeError, match="2 numbers"):
        aten._conv_window(tg.ones(1, 1, 4, 4), tg.ones(1, 1, 2, 2), [1, 1], [0, 0], [1, 1], 1, [])


def test_a_convolution_whose_taps_span_any_memory_is_refused():
    with pytest.raises(MemoryError, match="rows apart"):
        aten._conv_window(tg.ones(1, 1, 4, 256), tg.ones(1, 1, 4096, 256), [2**31, 1], [0, 0], [2**31, 1], 1, [1, 256])


def test_the_gradient_of_batch_norm_has_channels():
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        none = tg.ones(0)
        aten._batch_norm_backward(tg.ones(3), tg.ones(3), None, none, none, True, 1e-5, [True, True, True])


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128])
def test_random_integers_are_not_complex(dtype):
    for bounds in ((), (5,), (0, None), (0, 5)):
        with pytest.raises(NotImplementedError, match="random_"):
            tg.ones(3, dtype=dtype).random_(*bounds)
