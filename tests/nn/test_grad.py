"""The gradients of convolutions as functions of their own."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}], ids=str)
def test_they_are_what_autograd_gives(dims, options):
    x = tg.randn(2, 4, *[7, 6, 5][:dims], dtype=tg.float64, requires_grad=True)
    w = tg.randn(6, 4 // options.get("groups", 1), *[2, 3, 2][:dims], dtype=tg.float64, requires_grad=True)
    y = getattr(F, f"conv{dims}d")(x, w, None, **options)
    grad = tg.randn_like(y).detach().requires_grad_()
    of_x, of_w = tg.autograd.grad(y, (x, w), grad)
    by_input, by_weight = (getattr(tg.nn.grad, f"conv{dims}d_{of}") for of in ("input", "weight"))
    assert tg.equal(by_input(x.shape, w, grad, **options), of_x)
    assert tg.equal(by_weight(x, w.shape, grad, **options), of_w)
    assert tg.autograd.gradcheck(lambda w, g: by_input(x.shape, w, g, **options), (w, grad), fast_mode=True)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (((1, 3, 5, 5), tg.ones(2, 3, 3, 3), tg.ones(1, 2, 9, 9)), RuntimeError, r"conv2d_input: Expected .*\[3, 3\]"),
        (((5, 5), tg.ones(2, 3, 3, 3), tg.ones(1, 2, 3, 3)), RuntimeError, "does not fit an input of 2 dimensions"),
        (((1, 3, 5, 5), 3, tg.ones(1, 2, 3, 3)), TypeError, "argument 'weight' must be Tensor, not int"),
        (((1, 3, 5, 5), tg.ones(2, 3, 3, 3), tg.ones(1, 2, 3, 3), (1, 2, 3)), RuntimeError, "a list of 2 values"),
        (((1, 3, 5, 5), tg.ones(2, 3, 3, 3), tg.ones(1, 2, 3, 3), 0), RuntimeError, "non-positive stride"),
        ((5, tg.ones(2, 3, 3, 3), tg.ones(1, 2, 3, 3)), TypeError, "argument 'input_size' must be a tuple of ints"),
        (((1, 3, 5, 5), tg.ones(2, 3, 3, 3), tg.ones(1, 2, 3, 3), "a"), TypeError, "argument 'stride' must be"),
        (((1, 3, -5, 5), tg.ones(2, 3, 3, 3), tg.ones(1, 2, 3, 3)), RuntimeError, "negative dimension -5"),
        (((1, 3, 5, 5), tg.ones(2, 3, 3, 3), tg.ones(1, 2, 3, 3), 1, 0, 0), RuntimeError, "dilation should be greater"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        tg.nn.grad.conv2d_input(*arguments)


def test_a_trace_holds_for_other_sizes():
    w = tg.randn(2, 3, 3, 3)

    def gradient(x, grad):
        return tg.nn.grad.conv2d_input(x.shape, w, grad)

    traced = tg.jit.trace(gradient, (tg.randn(1, 3, 5, 5), tg.randn(1, 2, 3, 3)))
    x, grad = tg.randn(2, 3, 6, 7), tg.randn(2, 2, 4, 5)
    assert tg.allclose(traced(x, grad), gradient(x, grad), atol=1e-5)
