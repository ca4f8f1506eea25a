"""Running sums, products and extremes do not depend on where lines lie, and sums have fewer roundings."""

import math

import numpy as np
import pytest

import tinygrad_ext as tg


def _draw(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    return tg.tensor(x + 1j * rng.uniform(-1, 1, shape) if dtype.is_complex else 3 * x).to(dtype)


def _scan(op, x, dim):
    made = op(x, dim)
    return [m.resolve_conj().numpy().tobytes() for m in ((made,) if isinstance(made, tg.Tensor) else made)]


@pytest.mark.parametrize("dtype", [tg.uint8, tg.int64, tg.float32, tg.float64, tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (65, 66), (130, 70), (4, 65, 9), (300, 65)], ids=str)
def test_scans_have_the_bits_of_every_layout(shape, dtype):
    x = _draw(shape, dtype)
    last = len(shape) - 1
    apart = tg.stack([x, x], -1).flatten(-2)[..., ::2]
    layouts = [x.transpose(0, last).contiguous().transpose(0, last), apart, x.flip(0).contiguous().flip(0)]
    for op in (tg.cumsum, tg.cumprod) if dtype.is_complex else (tg.cumsum, tg.cumprod, tg.cummax, tg.cummin):
        for dim in range(len(shape)):
            wanted = _scan(op, x, dim)
            assert all(_scan(op, y, dim) == wanted for y in layouts)
            assert _scan(op, x[:1].expand(shape), dim) == _scan(op, x[:1].repeat(shape[0], *[1] * last), dim)


@pytest.mark.parametrize("n", [1, 4, 7, 5000])
def test_running_sums_are_exact_within_a_quarter_of_the_roundings(n):
    x = np.random.default_rng(n).uniform(0, 1, n)
    found = tg.tensor(x).cumsum(0).tolist()
    for k in range(0, n, 97):
        exact = math.fsum(x[: k + 1])
        assert abs(found[k] - exact) <= (k // 4 + 4) * 2.0**-53 * exact
