"""Norms and nll_loss read halves a few at a time: the same bits as in float32, rounded once."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F

HALVES = [tg.bfloat16, tg.float16]


def drawn(dtype, *shape):
    return tg.tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")).to(dtype)


def layouts(x):
    yield x
    yield x.transpose(0, -1).contiguous().transpose(0, -1)
    yield x[:1].expand(x.shape)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape, groups", [((3, 8), 4), ((9, 64, 8, 8), 64), ((2, 4, 70, 90), 2), ((700, 16, 5), 4)])
def test_group_norm(dtype, shape, groups):
    weight, bias = drawn(dtype, shape[1]), drawn(dtype, shape[1]) * 2
    for x in layouts(drawn(dtype, *shape)):
        for w, b in ((None, None), (weight, bias), (weight, None)):
            wide = (None if t is None else t.float() for t in (w, b))
            assert tg.equal(F.group_norm(x, groups, w, b), F.group_norm(x.float(), groups, *wide).to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", [(3, 8), (4, 5000), (2, 3, 4097), (700, 16, 1, 1), (5, 6, 7, 3)])
def test_batch_norm(dtype, shape):
    p = [drawn(dtype, shape[1]).abs() + k for k in range(4)]
    for x in layouts(drawn(dtype, *shape)):
        assert tg.equal(F.batch_norm(x, *p), F.batch_norm(x.float(), *(t.float() for t in p)).to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss(dtype, reduction):
    target = tg.tensor(np.random.default_rng(0).integers(0, 5, (6, 3)))
    weight = drawn(dtype, 5).abs()
    for x in layouts(drawn(dtype, 6, 5, 3)):
        options = {"reduction": reduction, "ignore_index": 2}
        half, wide = x.detach().requires_grad_(), x.detach().float().requires_grad_()
        found, wanted = F.nll_loss(half, target, weight, **options), F.nll_loss(wide, target, weight.float(), **options)
        assert tg.equal(found, wanted.to(dtype))
        slopes = [tg.autograd.grad(t, u, tg.ones_like(t))[0] for t, u in ((found, half), (wanted, wide))]
        assert tg.equal(slopes[0], slopes[1].to(dtype))
