"""gradcheck of functions with sparse arguments, whose derivatives are those by what they hold."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import GradcheckError, gradcheck, gradgradcheck

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc"]


def _sparse(layout):
    x = tg.tensor([[0.5, 0.0, 1.5], [2.0, 0.25, 0.0]], dtype=tg.float64)
    return x.to_sparse(layout=getattr(tg, layout)).requires_grad_()


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_arguments_are_checked_by_their_elements(layout, masked, fast_mode):
    options = {"masked": masked, "fast_mode": fast_mode}
    assert gradcheck(lambda x: tg.sum(x), _sparse(layout), **options)
    assert gradcheck(lambda x: x.to_dense() ** 2, _sparse(layout), **options)
    assert gradgradcheck(lambda x: x.to_dense() ** 3, _sparse(layout), **options)


def test_beside_dense_ones():
    a, b = tg.rand(2, 3, dtype=tg.float64, requires_grad=True), _sparse("sparse_coo")
    assert gradcheck(lambda x, y: x * y.coalesce().to_dense(), (a, b), masked=True)


def test_where_not_masked_zeros_are_elements_too():
    class Seen(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * (x != 0)  # wrong by elements that are zero

    function = lambda x: Seen.apply(x.to_dense())
    assert gradcheck(function, _sparse("sparse_coo"), masked=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(function, _sparse("sparse_coo"), masked=False)


def test_sparse_tensors_have_no_bits():
    assert not _sparse("sparse_csr").is_conj() and not _sparse("sparse_coo").is_neg()
