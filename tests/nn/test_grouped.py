"""`nn.functional.grouped_mm`."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.nn.functional import grouped_mm


def _offs(*ends):
    return tg.tensor(ends, dtype=tg.int32)


def _random(*shape, dtype=tg.float32):
    return tg.randn(shape, generator=tg.Generator().manual_seed(sum(shape))).to(dtype).requires_grad_()


def _expected(a, b, ends):
    a, b = a.detach().double().numpy(), b.detach().double().numpy()
    if a.ndim == b.ndim == 3:
        return a @ b
    spans = list(zip([0, *ends], ends))
    if a.ndim == b.ndim == 2:
        return np.stack([a[:, s:e] @ b[s:e] for s, e in spans])
    out = np.zeros((a.shape[-2], b.shape[-1]))
    for g, (s, e) in enumerate(spans):
        if a.ndim == 2:
            out[s:e] = a[s:e] @ b[g]
        else:
            out[:, s:e] = a[g] @ b[:, s:e]
    return out


CASES = {
    "rows": ((7, 4), (3, 4, 5), (2, 2, 7)),
    "rows left over": ((7, 4), (3, 4, 5), (2, 3, 5)),
    "columns": ((3, 6, 4), (4, 7), (0, 3, 6)),
    "sums": ((5, 7), (7, 3), (1, 4, 7)),
    "batches": ((3, 5, 4), (3, 4, 2), None),
    "no rows": ((0, 4), (2, 4, 5), (0, 0)),
}


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.float16])
@pytest.mark.parametrize("name", CASES)
def test_each_group_is_multiplied_by_its_own(name, dtype):
    first, second, ends = CASES[name]
    a, b = _random(*first, dtype=dtype), _random(*second, dtype=dtype)
    offs = None if ends is None else _offs(*ends)
    got = grouped_mm(a, b, offs=offs, out_dtype=dtype)
    expected = _expected(a, b, ends)
    assert got.dtype is dtype and got.shape == expected.shape
    tolerance = 1e-5 if dtype is tg.float32 else 0.06
    np.testing.assert_allclose(got.detach().float().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["rows", "rows left over", "columns", "sums"])
def test_gradients_are_those_of_the_products(name):
    first, second, ends = CASES[name]
    a, b = _random(*first), _random(*second)
    got = grouped_mm(a, b, offs=_offs(*ends))
    weight = tg.arange(float(got.numel())).reshape(got.shape) / 10
    (got * weight).sum().backward()
    w = weight.numpy().astype(np.float64)
    for g, (s, e) in enumerate(zip([0, *ends], ends)):
        if len(first) == len(second) == 2:
            da, db = w[g] @ b.detach().numpy()[s:e].T, a.detach().numpy()[:, s:e].T @ w[g]
            pairs = [(a.grad.numpy()[:, s:e], da), (b.grad.numpy()[s:e], db)]
        elif len(first) == 2:
            da, db = w[s:e] @ b.detach().numpy()[g].T, a.detach().numpy()[s:e].T @ w[s:e]
            pairs = [(a.grad.numpy()[s:e], da), (b.grad.numpy()[g], db)]
        else:
            da, db = w[:, s:e] @ b.detach().numpy()[:, s:e].T, a.detach().numpy()[g].T @ w[:, s:e]
            pairs = [(a.grad.numpy()[g], da), (b.grad.numpy()[:, s:e], db)]
        for got, expected in pairs:
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    if name == "rows left over":
        assert not a.grad[5:].any()


@pytest.mark.parametrize("name", CASES)
def test_autocast_leaves_the_dtype(name):
    first, second, ends = CASES[name]
    a, b, offs = _random(*first), _random(*second), None if ends is None else _offs(*ends)
    with tg.autocast("cpu", dtype=tg.bfloat16):
        got = grouped_mm(a, b, offs=offs)
        assert (tg.ones(2, 2) @ tg.ones(2, 2)).dtype is tg.bfloat16  # it is on as before
    assert got.dtype is tg.float32 and tg.equal(got, grouped_mm(a, b, offs=offs))


@pytest.mark.parametrize("make", [jit.trace, lambda f, given: tg.compile(f, fullgraph=True)], ids=["trace", "compile"])
def test_a_graph_holds_for_other_offsets(make):
    for first, second, rows in (((7, 4), (3, 4, 5), (7, 9)), ((3, 5, 4), (4, 7), (7,)), ((5, 7), (7, 4), (7,))):
        program = lambda a, b, offs: grouped_mm(a, b, offs=offs)
        made = None
        for size in rows:
            a, b = _random(*[size if n == 7 else n for n in first]), _random(*[size if n == 7 else n for n in second])
            for ends in ((1, 3, 7), (2, 2, 5), (0, 0, 0), (7, 7, 7), (0, 6, 7)):
                made = made or make(program, (a, b, _offs(*ends)))
                got, expected = made(a, b, _offs(*ends)), program(a, b, _offs(*ends))
                assert got.equal(expected)
                seed = tg.rand(got.shape)
                for one, other in zip(*[tg.autograd.grad(x, (a, b), seed) for x in (got, expected)]):
                    assert one.equal(other)
        assert "1 graph" in made.explain()
        for ends in ((3, 2, 7), (1, 2, 10)):
            with pytest.raises(RuntimeError, match="offs must rise from 0 to at most the size"):
                made(a, b, _offs(*ends))


def test_over_samples():
    a, b, offs = _random(2, 7, 4).detach(), _random(3, 4, 5).detach(), _offs(1, 3, 7)
    got = tg.vmap(lambda x: grouped_mm(x, b, offs=offs))(a)
    for i in range(2):
        assert tg.allclose(got[i], grouped_mm(a[i], b, offs=offs), atol=1e-6)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"mat_a": tg.ones(7, 4, dtype=tg.float64)}, "Expected mat_a to be Float32.*got torch.float64"),
        ({"mat_b": tg.ones(3, 4, 5, dtype=tg.bfloat16)}, "same dtype, but got: torch.float32 != torch.bfloat16"),
        ({"mat_a": tg.ones(4)}, "mat_a has to be 2 or 3d, not 1d"),
        ({"offs": None}, "Have to provide offsets if there is a 2d matrix"),
        ({"mat_a": tg.ones(3, 7, 4)}, "no offset if both matrices are 3d"),
        ({"mat_b": tg.ones(3, 6, 5)}, r"contraction dimension.*must match, got \(7, 4\) and \(3, 6, 5\)"),
        ({"offs": _offs(1, 7)}, "matrix batch sizes have to match, got 2, 3"),
        ({"offs": _offs(1, 2, 7)[None]}, "offs has to be 1D, got 2D"),
        ({"offs": tg.tensor([1, 2, 7])}, "Offsets have to be int32, got 1D of torch.int64"),
        ({"offs": _offs(3, 2, 7)}, r"offs must rise from 0 to at most the size 7.*got \[3, 2, 7\]"),
        ({"offs": _offs(1, 2, 8)}, r"at most the size 7 of what it parts, got \[1, 2, 8\]"),
        ({"bias": tg.ones(5)}, "Bias not supported yet: add it to the result"),
        ({"out_dtype": tg.bfloat16}, "output dtype must match `mat_a` dtype torch.float32, got torch.bfloat16"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    given = {"mat_a": tg.ones(7, 4), "mat_b": tg.ones(3, 4, 5), "offs": _offs(1, 3, 7), **change}
    with pytest.raises(RuntimeError, match=message):
        grouped_mm(given.pop("mat_a"), given.pop("mat_b"), **given)
