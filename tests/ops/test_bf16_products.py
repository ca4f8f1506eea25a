"""Products of bfloat16 matrices: by the processor's own instruction where it has one, in float32 elsewhere."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from operands import LAYOUTS, drawn, guarded, laid
from tinygrad_ext.core.loops.loop_tables import instruction_set

import tinygrad_ext as tg

F = tg.nn.functional
CPU = Path("/proc/cpuinfo")
OWN = instruction_set() == "avx512" and CPU.exists() and "avx512_bf16" in CPU.read_text()
SIZES = [
    ((), 64, 64, 64),
    ((), 65, 70, 81),
    ((), 8, 300, 200),
    ((), 100, 17, 300),
    ((), 33, 1001, 16),
    ((), 130, 1050, 50),
    ((3,), 40, 60, 130),
    ((2, 3), 70, 33, 161),
    ((), 9, 2100, 17),
    ((), 600, 96, 70),
    ((), 9, 1024, 560),
    ((), 1060, 544, 32),
    ((), 560, 1024, 9),
]
own = pytest.mark.skipif(not OWN, reason="the processor does not multiply bfloat16, and a BLAS has its own orders")
each_size = pytest.mark.parametrize(("batch", "m", "k", "n"), SIZES)


def halves(*shape, seed=0):
    return drawn(*shape, dtype=tg.bfloat16, seed=seed)


def close(result, exact, depth):
    """Rounded once, after a sum in float32."""
    error = np.abs(result.double().numpy() - exact)
    assert (error <= 2.0**-8 * np.abs(exact) + 1e-5 * np.sqrt(depth) * 8).all()


@each_size
def test_products_are_those_of_numpy(batch, m, k, n):
    a, b = halves(*batch, m, k), halves(*batch, k, n, seed=1)
    exact = a.double().numpy() @ b.double().numpy()
    for x, y in itertools.product(LAYOUTS, repeat=2):
        close(laid(a, x) @ laid(b, y), exact, k)


@each_size
def test_sums_start_from_what_is_added(batch, m, k, n):
    a, b = halves(m, k), halves(k, n, seed=1)
    exact, bias, start = a.double().numpy() @ b.double().numpy(), halves(n, seed=2), halves(m, n, seed=3)
    close(F.linear(a, b.mT, bias), exact + bias.double().numpy(), k)
    close(F.linear(a, b.mT.contiguous(), bias), exact + bias.double().numpy(), k)
    close(tg.addmm(start, a, b, beta=0.5, alpha=2.0), 0.5 * start.double().numpy() + 2 * exact, 4 * k)
    close(tg.addmm(start * float("nan"), a, b, beta=0), exact, k)
    out = tg.zeros(n, m, dtype=tg.bfloat16).mT
    close(tg.mm(a, b, out=out), exact, k)
    assert tg.equal(out, a @ b)


@own
@each_size
def test_bits_depend_neither_on_strides_nor_on_threads_nor_on_the_batch(batch, m, k, n):
    a, b = halves(*batch, m, k), halves(*batch, k, n, seed=1)
    bits = (a @ b).view(tg.int16)
    for x, y in itertools.product(LAYOUTS, repeat=2):
        assert tg.equal((laid(a, x) @ laid(b, y)).view(tg.int16), bits)
    threads = tg.get_num_threads()
    try:
        for count in (1, 2, 3):
            tg.set_num_threads(count)
            assert tg.equal((a @ b).view(tg.int16), bits)
    finally:
        tg.set_num_threads(threads)
    first_a, first_b = a.reshape(-1, m, k), b.reshape(-1, k, n)
    one_by_one = tg.stack([x @ y for x, y in zip(first_a, first_b)]).reshape(bits.shape)
    assert tg.equal(one_by_one.view(tg.int16), bits)
    assert tg.equal(a @ first_b[0], tg.stack([x @ first_b[0] for x in first_a]).reshape(bits.shape))
    assert tg.equal(first_a[0] @ b, tg.stack([first_a[0] @ y for y in first_b]).reshape(bits.shape))


@own
def test_nothing_is_read_outside_of_the_operands():
    def at_the_edge(x):
        return tg.from_numpy(guarded(x.contiguous().view(tg.int16).numpy())).view(tg.bfloat16)

    for m, k, n in ((131, 259, 147), (64, 256, 96), (17, 901, 40), (260, 64, 17)):
        a, b = halves(m, k), halves(k, n, seed=1)
        for x in (at_the_edge(a), at_the_edge(a.mT).mT):
            for y in (at_the_edge(b), at_the_edge(b.mT).mT):
                assert tg.equal(tg.mm(x, y, out=at_the_edge(tg.zeros(m, n, dtype=a.dtype))), a @ b)


def test_infinities_and_nan_reach_their_row_and_column_only():
    a, b = halves(70, 80), halves(80, 90, seed=1)
    a[3, 7], b[11, 5] = float("inf"), float("nan")
    odd = ~tg.isfinite(a @ b)
    assert odd[3].all() and odd[:, 5].all()
    assert int(odd.sum()) == 90 + 70 - 1


def test_gradients_are_those_of_float64():
    a, b = halves(64, 96).requires_grad_(), halves(96, 80, seed=1).requires_grad_()
    seed = halves(64, 80, seed=2)
    (a @ b).backward(seed)
    close(a.grad, seed.double().numpy() @ b.detach().double().numpy().T, 80)
    close(b.grad, a.detach().double().numpy().T @ seed.double().numpy(), 64)


@pytest.mark.parametrize("level", ["avx512", "avx2"])
def test_less_able_processors_are_as_exact(level):
    """With a level named tiles are left out, and with them what a machine that has them would test alone."""
    code = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1] / "helpers")!r}]
import test_bf16_products as own
for size in own.SIZES:
    own.test_products_are_those_of_numpy(*size)
    own.test_sums_start_from_what_is_added(*size)
own.test_infinities_and_nan_reach_their_row_and_column_only()
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"TINYGRAD_EXT_ISA": level})
