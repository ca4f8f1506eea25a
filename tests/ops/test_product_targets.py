"""Products into out=: how the target lies in memory changes no bit."""

import hypothesis
import pytest
from hypothesis import strategies as st

import tinygrad_ext as tg

DTYPES = [tg.float32, tg.float64, tg.complex64, tg.complex128, tg.float16, tg.bfloat16, tg.int64]
SIZES = st.sampled_from([1, 2, 3, 5, 8, 17, 33, 70])


def drawn(*shape, dtype, seed):
    """Normal numbers, or integers up to 9."""
    numbers = tg.randn(
        *shape, generator=tg.Generator().manual_seed(seed), dtype=tg.complex128 if dtype.is_complex else tg.float64
    )
    return numbers.mul(3).to(dtype)


def targets(like):
    """Empty tensors of the shape of one, that lie by columns, with gaps and from the end of a larger one."""
    yield tg.empty_like(like.mT.contiguous()).mT
    yield tg.empty(*like.shape, 2, dtype=like.dtype)[..., 1]
    yield tg.empty(*like.shape[:-1], like.shape[-1] + 3, dtype=like.dtype)[..., 3:]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@hypothesis.given(st.integers(1, 3), SIZES, SIZES, SIZES, st.integers(0, 9))
def test_bits_do_not_depend_on_the_target(dtype, batch, m, k, n, seed):
    a, b = drawn(batch, m, k, dtype=dtype, seed=seed), drawn(batch, k, n, dtype=dtype, seed=seed + 1)
    c = drawn(batch, m, n, dtype=dtype, seed=seed + 2)
    calls = [
        lambda **out: tg.bmm(a, b, **out),
        lambda **out: tg.mm(a[0], b[0], **out),
        lambda **out: tg.addmm(c[0], a[0], b[0], alpha=2, beta=3, **out),
        lambda **out: tg.baddbmm(c, a, b, alpha=2, beta=3, **out),
    ]
    for call in calls:
        want = call()
        for target in targets(want):
            assert tg.equal(call(out=target), want)
            assert target.stride() != want.stride() or 1 in want.shape
