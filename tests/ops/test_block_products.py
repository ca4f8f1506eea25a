"""Large products of float32 and float64: by own loops on Intel's processors with AVX-512, by a BLAS elsewhere."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operands import LAYOUTS, drawn, guarded, laid
from tinygrad_ext.core.loops.loop_tables import instruction_set

import tinygrad_ext as tg

F = tg.nn.functional
CPU = Path("/proc/cpuinfo")
OWN = instruction_set() == "avx512" and CPU.exists() and "GenuineIntel" in CPU.read_text()
own = pytest.mark.skipif(not OWN, reason="a BLAS computes these products here, and has its own orders")
DTYPES = [tg.float32, tg.float64]
# one strip and panel, edges of both, several stretches of the depth, several groups of columns, thin ones
SIZES = [
    ((), 160, 160, 160),
    ((), 129, 257, 145),
    ((), 16, 700, 500),
    ((), 500, 700, 17),
    ((), 33, 641, 331),
    ((), 20, 300, 1100),
    ((3,), 40, 300, 130),
    ((2, 3), 70, 330, 161),
    ((), 513, 512, 640),
    ((), 34, 1100, 520),
]
each_size = pytest.mark.parametrize(("batch", "m", "k", "n"), SIZES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def exact(x):
    return x.double().numpy()


def close(result, want, depth):
    """With the error of a sum of so many products of normal numbers."""
    bound = 8 * np.finfo(result.numpy().dtype).eps * np.sqrt(depth)
    assert (np.abs(exact(result) - want) <= bound * (4 + np.abs(want))).all()


@each_dtype
@each_size
def test_products_are_those_of_numpy(batch, m, k, n, dtype):
    a, b = drawn(*batch, m, k, dtype=dtype), drawn(*batch, k, n, dtype=dtype, seed=1)
    for x, y in itertools.product(LAYOUTS, repeat=2):
        close(laid(a, x) @ laid(b, y), exact(a) @ exact(b), k)
    out = tg.zeros(*batch, n, m, dtype=dtype).mT
    close(tg.matmul(a, b, out=out), exact(a) @ exact(b), k)
    assert tg.equal(out, a @ b)


@each_dtype
@each_size
def test_sums_start_from_what_is_added(batch, m, k, n, dtype):
    a, b = drawn(m, k, dtype=dtype), drawn(k, n, dtype=dtype, seed=1)
    bias, start = drawn(n, dtype=dtype, seed=2), drawn(m, n, dtype=dtype, seed=3)
    want = exact(a) @ exact(b)
    close(F.linear(a, b.mT, bias), want + exact(bias), k)
    close(F.linear(a, b.mT.contiguous(), bias), want + exact(bias), k)
    close(tg.addmm(start, a, b, beta=0.5, alpha=2.0), 0.5 * exact(start) + 2 * want, 4 * k)
    close(tg.addmm(start * float("nan"), a, b, beta=0), want, k)
    close(start.clone().addmm_(a, b, beta=3), 3 * exact(start) + want, k)
    x, y = drawn(3, m, k, dtype=dtype, seed=4), drawn(3, k, n, dtype=dtype, seed=5)
    close(tg.baddbmm(start, x, y, alpha=-1), exact(start) - exact(x) @ exact(y), k)


@given(m=st.integers(1, 90), k=st.integers(1, 700), n=st.integers(1, 130), wide=st.booleans(), turned=st.integers(0, 3))
@settings(max_examples=60)
def test_any_sizes_give_the_numbers_of_numpy(m, k, n, wide, turned):
    dtype = DTYPES[wide]
    a, b = drawn(m, k, dtype=dtype), drawn(k, n, dtype=dtype, seed=1)
    close(laid(a, LAYOUTS[turned % 2]) @ laid(b, LAYOUTS[turned // 2]), exact(a) @ exact(b), k)


@own
@each_dtype
@each_size
def test_bits_depend_neither_on_strides_nor_on_threads_nor_on_the_batch(batch, m, k, n, dtype):
    a, b = drawn(*batch, m, k, dtype=dtype), drawn(*batch, k, n, dtype=dtype, seed=1)
    result = a @ b
    for x, y in itertools.product(LAYOUTS, repeat=2):
        assert tg.equal(laid(a, x) @ laid(b, y), result)
    threads = tg.get_num_threads()
    try:
        for count in (1, 2, 3):
            tg.set_num_threads(count)
            assert tg.equal(a @ b, result)
    finally:
        tg.set_num_threads(threads)
    items_a, items_b = a.reshape(-1, m, k), b.reshape(-1, k, n)
    assert tg.equal(tg.stack([x @ y for x, y in zip(items_a, items_b)]).reshape(result.shape), result)
    assert tg.equal(a @ items_b[0], tg.stack([x @ items_b[0] for x in items_a]).reshape(result.shape))
    assert tg.equal(items_a[0] @ b, tg.stack([items_a[0] @ y for y in items_b]).reshape(result.shape))


@own
@each_dtype
def test_an_element_has_the_same_bits_wherever_it_stands(dtype):
    a, b = drawn(200, 700, dtype=dtype), drawn(700, 600, dtype=dtype, seed=1)
    result = a @ b
    assert tg.equal(a[37:101] @ b[:, 50:400], result[37:101, 50:400])
    assert tg.equal((b.mT @ a.mT).mT, result)


@each_dtype
def test_infinities_and_nan_reach_their_row_and_column_only(dtype):
    a, b = drawn(150, 410, dtype=dtype), drawn(410, 190, dtype=dtype, seed=1)
    a[3, 7], b[11, 5] = float("inf"), float("nan")
    odd = ~tg.isfinite(a @ b)
    assert odd[3].all() and odd[:, 5].all()
    assert int(odd.sum()) == 190 + 150 - 1


@each_dtype
def test_gradients_are_those_of_float64(dtype):
    a, b = drawn(140, 330, dtype=dtype).requires_grad_(), drawn(330, 180, dtype=dtype, seed=1).requires_grad_()
    seed = drawn(140, 180, dtype=dtype, seed=2)
    (a @ b).backward(seed)
    close(a.grad, exact(seed) @ exact(b.detach()).T, 180)
    close(b.grad, exact(a.detach()).T @ exact(seed), 140)


@own
@each_dtype
def test_nothing_is_read_outside_of_the_operands(dtype):
    for m, k, n in ((131, 259, 147), (17, 900, 255), (255, 900, 17)):
        a, b = drawn(m, k, dtype=dtype), drawn(k, n, dtype=dtype, seed=1)
        last_a, last_b = (tg.from_numpy(guarded(x.numpy())) for x in (a, b))
        turned_a, turned_b = (tg.from_numpy(guarded(x.mT.contiguous().numpy())).mT for x in (a, b))
        out = tg.from_numpy(guarded(np.zeros((m, n), a.numpy().dtype)))
        for x, y in ((last_a, last_b), (turned_a, last_b), (last_a, turned_b), (turned_a, turned_b)):
            assert tg.equal(tg.mm(x, y, out=out), a @ b)
