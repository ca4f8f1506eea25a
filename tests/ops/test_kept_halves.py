"""Ops whose results over bfloat16 need no rounding: they are those of float32, in every layout, special numbers too."""

import numpy as np
import pytest

import tinygrad_ext as tg

OPS = {
    "ceil": lambda x, y: x.ceil(),
    "round": lambda x, y: x.round(),
    "trunc": lambda x, y: x.trunc(),
    "relu6": lambda x, y: tg.nn.functional.relu6(x),
    "maximum": lambda x, y: x.maximum(y),
    "fmin": lambda x, y: x.fmin(y),
    "clamp_max": lambda x, y: x.clamp_max(y),
    "clamp": lambda x, y: x.clamp(y, y + 1),
    "heaviside": lambda x, y: x.heaviside(y),
}


def _every_number():
    bits = tg.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16))
    return bits.view(tg.bfloat16).reshape(256, 256)


@pytest.mark.parametrize("name", OPS)
def test_results_that_need_no_rounding_are_those_of_float32(name):
    x = _every_number()
    y = x.flip(0).roll(7, 1)
    for a, b in ((x, y), (x.mT, y), (x[:, ::2], y[:, ::2]), (x, y[:, :1]), (x[3], y[5]), (x[:, 1:4], y[:, 2:5])):
        found = OPS[name](a, b)
        assert found.dtype is tg.bfloat16
        want = OPS[name](a.float(), b.float()) if name != "clamp" else a.float().clamp(b.float(), (b + 1).float())
        np.testing.assert_array_equal(found.float().numpy(), want.bfloat16().float().numpy())
        assert (found.signbit() == want.signbit())[~want.isnan()].all()
