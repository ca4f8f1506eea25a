"""Derivatives of products of scattered elements of which some are zero, and of segments."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import gradcheck, gradgradcheck


def doubles(values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    "self, src",
    [
        ([2.0, 3.0], [0.0, 1.5, -2.0, 4.0]),
        ([0.0, 3.0], [2.5, 1.5, -2.0, 4.0]),
        ([0.0, 3.0], [0.0, 1.5, -2.0, 0.0]),
        ([2.0, 0.0], [0.0, 1.5, 0.0, 4.0]),
    ],
)
def test_a_factor_of_zero_has_second_derivatives(self, src, include_self):
    index = tg.tensor([0, 1, 0, 1])

    def product(a, b):
        return a.scatter_reduce(0, index, b, "prod", include_self=include_self)

    assert gradcheck(product, (doubles(self), doubles(src)))
    assert gradgradcheck(product, (doubles(self), doubles(src)))


@pytest.mark.parametrize("initial", [None, 2.0])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments_are_pytorchs(reduce, initial):
    torch = pytest.importorskip("torch")
    data = torch.tensor([[1.0, 5.0], [3.0, 0.0], [3.0, -2.0], [0.5, 7.0]], dtype=torch.float64, requires_grad=True)
    ours = tg.from_numpy(data.detach().numpy().copy()).requires_grad_()
    for given in ({"lengths": [2, 0, 2]}, {"offsets": [0, 1, 1, 4]}):
        want = torch.segment_reduce(data, reduce, **{k: torch.tensor(v) for k, v in given.items()}, initial=initial)
        got = tg.segment_reduce(ours, reduce, **{k: tg.tensor(v) for k, v in given.items()}, initial=initial)
        assert str(got.tolist()) == str(want.tolist())
        kept = [0, 2] if reduce == "mean" else [0, 1, 2]
        (a,), (b,) = torch.autograd.grad(want[kept].sum(), data), tg.autograd.grad(got[kept].sum(), ours)
        assert tg.allclose(b, tg.from_numpy(a.numpy()), rtol=1e-12, atol=1e-12)


def test_segments_beyond_the_data_are_refused():
    for given in ({"offsets": [0, 9]}, {"offsets": [-1, 2]}, {"offsets": [2, 1]}, {"lengths": [5]}):
        with pytest.raises(RuntimeError, match="segment_reduce"):
            tg.segment_reduce(tg.ones(3), "sum", **{k: tg.tensor(v) for k, v in given.items()})
    unsafe = tg.segment_reduce(tg.ones(3), "sum", lengths=tg.tensor([2, 9]), unsafe=True)
    assert unsafe.tolist() == [2, 1]


@pytest.mark.parametrize(("name", "other"), [("min", "amin"), ("max", "amax")])
@pytest.mark.parametrize("include_self", [True, False])
def test_extremes_have_a_short_name_too(name, other, include_self):
    index = tg.tensor([0, 1, 0, 2])
    rows = [tg.randn(n, dtype=tg.float64, requires_grad=True) for n in (3, 4)]

    def run(how):
        result = rows[0].scatter_reduce(0, index, rows[1], how, include_self=include_self)
        return result, *tg.autograd.grad(result.sum(), rows)

    assert all(a.equal(b) for a, b in zip(run(name), run(other), strict=True))
