"""Gradients and tangents of conjugate and negative views, and through what is written to them."""

import numpy as np
import pytest

import tinygrad_ext as tg


def numbers(*shape, of=tg):
    """Complex numbers whose products and sums are exact."""
    n = int(np.prod(shape))
    data = [complex(k % 7 - 3, k % 5 - 1) for k in range(n)]
    return of.tensor(data, dtype=of.complex64).reshape(shape)


def _written_through(of, x):
    z = x * 1
    y = z.conj()
    y.mul_(1j)
    y.imag.mul_(3)
    z[0] = z[0] * 2
    return (z, y, y.imag, y.real)


@pytest.mark.parametrize("number", range(4))
def test_gradients_go_through_what_is_written_by_way_of_a_view(number):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    found = []
    for of in (tg, torch):
        x = numbers(3, of=of).requires_grad_()
        out = _written_through(of, x)[number]
        found.append(of.autograd.grad(out, x, of.ones_like(out) * (2 - 1j if out.is_complex() else 2))[0].tolist())
    assert found[0] == found[1]


def test_gradients_of_conj_and_its_view():
    x = numbers(2, 3).to(tg.complex128).requires_grad_()
    assert x.conj().grad_fn.name() == "ConjBackward0"
    for f in (
        lambda t: t.conj(),
        lambda t: t.mH @ t,
        lambda t: (t.conj().imag, t._neg_view().real),
        lambda t: _written_through(tg, t),
    ):
        assert tg.autograd.gradcheck(f, (x,)) and tg.autograd.gradgradcheck(f, (x,))
    (grad,) = tg.autograd.grad((x.conj() * (1 + 2j)).sum(), x, 1 + 0j * x.sum().detach())
    assert grad.tolist() == [[1 + 2j] * 3] * 2 and not grad.is_conj()


def test_a_view_of_a_leaf_is_not_written_to():
    x = numbers(2).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x.conj().mul_(2)
    with tg.no_grad():
        x.conj().mul_(2j)
    assert x.tolist() == (numbers(2).conj() * 2j).conj().tolist()


def test_a_saved_view_notices_a_write_to_its_tensor():
    x, w = numbers(3), numbers(3).requires_grad_()
    out = (x.conj() * w).sum().abs()
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_gradients_that_a_function_returns_as_views_are_resolved():
    class Twice(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return (grad * 2).conj()

    x = tg.nn.Parameter(numbers(3))
    Twice.apply(x).backward(tg.ones(3) * (1 + 1j))
    assert not x.grad.is_conj() and x.grad.tolist() == [2 - 2j] * 3
    x.grad = x.grad.conj()
    before = x.detach().clone()
    tg.optim.SGD([x], lr=1.0).step()
    assert x.tolist() == (before - (2 + 2j)).tolist()


@pytest.mark.parametrize("part", ["real", "imag"])
def test_gradients_go_through_a_write_to_a_part(part):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    found = []
    for of in (tg, torch):
        x = numbers(3, of=of).requires_grad_()
        z = x * 1
        shown = getattr(z, part)
        getattr(z, part).mul_(2)
        z[1] = 0
        out = (z * z.conj()).real.sum() + (shown * shown).sum()
        found.append(of.autograd.grad(out, x)[0].tolist())
    assert found[0] == found[1]


def test_gradients_go_through_a_write_to_pairs_seen_as_complex():
    def written(x):
        pairs = x * 1
        tg.view_as_complex(pairs).mul_(1 + 2j)
        z = tg.view_as_complex(pairs)
        pairs[0] = 1
        return pairs, z

    x = tg.randn(3, 2, dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradcheck(written, (x,))


def test_tangents_have_the_bits_of_their_primals():
    x, y = numbers(3), numbers(3).conj()
    for primal in (x, y):
        for tangent in (x, y):
            for f in (lambda a: a.real * 1, lambda a: a.imag * 1, lambda a: a.conj().imag * 1, lambda a: a.mul(2j)):
                want = tg.func.jvp(f, (primal.clone(),), (tangent.clone(),))
                got = tg.func.jvp(f, (primal,), (tangent,))
                assert [t.tolist() for t in got] == [t.tolist() for t in want]
                nested = tg.func.vmap(lambda p, t, f=f: tg.func.jvp(f, (p,), (t,)))(primal[None], tangent[None])
                assert [t[0].tolist() for t in nested] == [t.tolist() for t in want]


def test_what_is_written_to_a_dual_view_has_its_tangent():
    def f(a):
        a = a * 1
        y = a.conj()
        y[0] = y[1] * 2j
        y.imag.mul_(3)
        return a

    values, tangents = tg.func.jvp(f, (numbers(3),), (numbers(3),))
    assert values.tolist() == tangents.tolist() == f(numbers(3)).tolist()
