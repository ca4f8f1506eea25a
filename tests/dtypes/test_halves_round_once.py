"""Composites and derivative rules of several steps compute halves in float32, and round at the end alone."""

import pytest

import tinygrad_ext as tg

F = tg.nn.functional
HALVES = (tg.float16, tg.bfloat16)
CALLS = {
    "group_norm": (lambda x, y: F.group_norm(x, 2, y[0, :4], y[1, :4]), (3, 4, 5), (2, 5)),
    "rms_norm": (lambda x, y: F.rms_norm(x, (5,), y), (3, 5), (5,)),
    "addbmm": (lambda x, y: tg.addbmm(x[0], x, y, beta=0.3, alpha=0.7), (3, 4, 4), (3, 4, 4)),
    "interpolate": (lambda x, y: F.interpolate(x * 1, scale_factor=1.7, mode="linear") + 0 * y, (2, 3, 5), (1,)),
    "atan2": (tg.atan2, (5, 4, 3), (3,)),
    "xlogy": (lambda x, y: tg.xlogy(x, y.abs() + 1), (5, 4, 3), (3,)),
    "hypot": (tg.hypot, (5, 4, 3), (3,)),
    "division": (lambda x, y: x / (y + 3), (5, 4, 3), (3,)),
    "addcdiv": (lambda x, y: tg.addcdiv(x, x, y + 3, value=0.7), (5, 4, 3), (3,)),
    "cross_entropy": (lambda x, y: F.cross_entropy(x * 4, tg.tensor([0, 3, 1])) + 0 * y.sum(), (3, 5), (1,)),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_as_float32_rounded(name, dtype):
    fn, *shapes = CALLS[name]
    tg.manual_seed(0)
    given = [(tg.rand(shape) * 2 - 1).to(dtype) for shape in shapes]
    seed = None

    def outcome(tensors):
        nonlocal seed
        tensors = [t.clone().requires_grad_() for t in tensors]
        made = fn(*tensors)
        seed = tg.rand(made.shape).to(dtype) if seed is None else seed
        return made, *tg.autograd.grad(made, tensors, seed.to(made.dtype))

    for got, want in zip(outcome(given), outcome([t.float() for t in given])):
        assert got.dtype is dtype
        step = tg.finfo(dtype).eps
        assert tg.allclose(got.float(), want, 2 * step, 2 * step * float(want.abs().max()))


def test_forward_mode_keeps_the_dtype():
    x = tg.tensor([0.5, 2.0]).half()
    for fn in (tg.atan2, tg.hypot, tg.div, tg.xlogy):
        made, slope = tg.func.jvp(fn, (x, x + 1), (x, x))
        assert made.dtype is slope.dtype is tg.float16
