"""gradcheck of forward mode, and of batches of derivatives."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, GradcheckError, gradcheck, gradgradcheck


def leaf(*shape, dtype=tg.float64):
    return tg.randn(*shape, dtype=dtype, generator=tg.Generator().manual_seed(1)).requires_grad_()


def smooth(x, y):
    return (x.sin() @ y).softmax(0), x.sum(1)


class Exp(Function):
    """exp with a jvp that is off by a factor."""

    factor = 1.0

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(output)
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]

    @classmethod
    def jvp(cls, ctx, tangent):
        return tangent * ctx.saved_tensors[0] * cls.factor


class Wrong(Exp):
    factor = 1.01


class Looks(Exp):
    """exp with a jvp that looks at elements, which there are many of under vmap."""

    @classmethod
    def jvp(cls, ctx, tangent):
        return tangent * ctx.saved_tensors[0] if tangent.sum() > -99 else tangent


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_tangents_pass_and_wrong_ones_do_not(fast_mode):
    x = leaf(2, 2)
    assert gradcheck(smooth, (x, leaf(2, 3)), check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(Exp.apply, (x,), check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(Wrong.apply, (x,), fast_mode=fast_mode)
    for backward in (False, True):
        with pytest.raises(GradcheckError, match="forward mode mismatch for output 0 with respect to input 0"):
            gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=backward, fast_mode=fast_mode)


def test_backward_is_left_out_where_it_is_not_asked_for():
    class Forward(Exp):
        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    assert gradcheck(Forward.apply, (leaf(2),), check_forward_ad=True, check_backward_ad=False)


def test_complex_functions_are_checked_along_both_axes():
    x = leaf(2, dtype=tg.complex128)
    assert gradcheck(lambda z: (z * z, z.abs(), z.conj() * 2j), (x,), check_forward_ad=True)
    assert gradcheck(lambda z: (z * z, z.abs()), (x,), check_forward_ad=True, fast_mode=True)


def test_gradients_are_checked_by_forward_mode():
    x = leaf(2, 2)
    assert gradgradcheck(smooth, (x, leaf(2, 3)), check_fwd_over_rev=True)
    assert gradgradcheck(
        smooth, (x, leaf(2, 3)), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False
    )
    with pytest.raises(GradcheckError, match="forward mode mismatch"):
        gradgradcheck(
            lambda x: Wrong.apply(x) * x,
            (x,),
            check_fwd_over_rev=True,
            check_rev_over_rev=False,
            check_undefined_grad=False,
        )


def test_batches_of_derivatives_are_checked():
    x = leaf(2, 2)
    options = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(smooth, (x, leaf(2, 3)), **options)
    assert gradgradcheck(smooth, (x, leaf(2, 3)), check_batched_grad=True)
    with pytest.raises(GradcheckError, match="computing a batch of tangents by x, forward mode raised RuntimeError"):
        gradcheck(Looks.apply, (x,), **options)
