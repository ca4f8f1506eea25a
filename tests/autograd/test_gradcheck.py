"""The checker itself: it finds wrong derivatives, lets right ones pass, and says what it cannot check."""

import sys

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, GradcheckError, gradcheck, gradgradcheck

modes = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


def leaf(*shape, dtype="float64", seed=0):
    draw = np.random.default_rng(seed).standard_normal
    values = draw(shape) + 1j * draw(shape) if dtype.startswith("complex") else draw(shape)
    return tg.from_numpy(np.asarray(values).astype(dtype)).requires_grad_()


def shifted(x):
    """The identity with a gradient that is off by 0.01."""
    y = x.clone()
    y.register_hook(lambda g: g if g is None else g + 1e-2)
    return y


# ---- verdicts ------------------------------------------------------------------------------------------------------


@modes
def test_right_derivatives_pass(fast_mode):
    assert gradcheck(lambda x: (x.sin() * x, x.exp()), (leaf(3),), fast_mode=fast_mode) is True
    assert gradgradcheck(lambda x: x.sin() * x, (leaf(3),), fast_mode=fast_mode) is True
    assert gradcheck(lambda x: x * 2, leaf(2, 2), fast_mode=fast_mode)


@modes
def test_a_cut_derivative_fails(fast_mode):
    cut = lambda x: x * x.detach()
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(cut, (leaf(3),), fast_mode=fast_mode)
    assert gradcheck(cut, (leaf(3),), raise_exception=False, fast_mode=fast_mode) is False


@modes
def test_a_wrong_second_derivative_fails(fast_mode):
    def wrong(x):
        y = x * x * x
        y.register_hook(lambda g: g if g is None else g.detach())
        return y + (x - x.detach()) * 0

    assert gradcheck(wrong, (leaf(3),), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match=r"gradient of x by grad_output\[0\]"):
        gradgradcheck(lambda x: wrong(x) * 1, (leaf(3),), fast_mode=fast_mode)


@modes
def test_complex_numbers_in_and_out(fast_mode):
    z = leaf(3, dtype="complex128")
    assert gradcheck(lambda z: (z * z.conj(), z.abs(), z * z * z), (z,), fast_mode=fast_mode)
    assert gradgradcheck(lambda z: z * z, (z,), fast_mode=fast_mode)
    assert gradcheck(lambda x: tg.complex(x, x * x), (leaf(3),), fast_mode=fast_mode)
    with pytest.raises(
        GradcheckError, match="While considering the imaginary part of complex outputs only, Jacobian mis"
    ):
        gradcheck(shifted, (z,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="While considering the real part of complex outputs only, Jacobian mis"):
        gradcheck(lambda x: tg.complex(x * x.detach(), x), (leaf(3),), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="^Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(lambda z: shifted(z.real), (z,), fast_mode=fast_mode)


@modes
def test_an_output_without_a_graph_must_be_constant(fast_mode):
    assert gradcheck(lambda x: tg.ones(2), (leaf(3),), fast_mode=fast_mode)
    for check in (gradcheck, gradgradcheck):
        with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
            check(lambda x: x.detach() * 2, (leaf(3),), fast_mode=fast_mode)
    result = gradcheck(lambda x: (x * 2, x.detach()), (leaf(3),), return_result=True, fast_mode=fast_mode)
    assert result and "output[1] does not require grad though it moves with x" in result.notes[0]


@modes
def test_backward_must_give_the_same_twice(fast_mode):
    class Noisy(Function):
        @staticmethod
        def forward(ctx, x, noise):
            ctx.noise = noise
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return Noisy.apply(g, ctx.noise) * (1 + tg.rand_like(g) * ctx.noise), None

    x = leaf(5, 5)
    assert gradcheck(lambda x: Noisy.apply(x, 0.0), (x,), fast_mode=fast_mode)
    for check in (gradcheck, gradgradcheck):
        with pytest.raises(GradcheckError, match="Backward is not reentrant.*tolerance for nondeterminism was 0.0"):
            check(lambda x: Noisy.apply(x, 1e-12), (x,), fast_mode=fast_mode)
        assert check(lambda x: Noisy.apply(x, 1e-12), (x,), nondet_tol=1e-5, fast_mode=fast_mode)


def test_nan_is_a_mismatch_and_equal_infinities_are_not():
    class Constant(Function):
        @staticmethod
        def forward(ctx, x, value):
            ctx.value = value
            return x * 0

        @staticmethod
        def backward(ctx, g):
            return g * ctx.value, None

    with pytest.raises(GradcheckError, match="analytical nan"):
        gradcheck(lambda x: Constant.apply(x, float("nan")), (leaf(2),))
    with pytest.raises(GradcheckError, match="analytical inf"):
        gradcheck(lambda x: Constant.apply(x, float("inf")), (leaf(2),))


@modes
def test_empty_tensors_pass(fast_mode):
    assert gradcheck(lambda x: x * 2, (leaf(0),), fast_mode=fast_mode)
    assert gradcheck(lambda x, y: (x.sum(), y[:0]), (leaf(0, 3), leaf(2)), fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x.mean(), (leaf(0),), fast_mode=fast_mode)


# ---- rules of backward ---------------------------------------------------------------------------------------------


@modes
def test_backward_must_be_multiplied_by_the_incoming_gradient(fast_mode):
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(shifted, (leaf(1),), atol=1e-1, fast_mode=fast_mode)


def test_masked_allows_rounding_in_place_of_exact_zeros():
    def nearly(x):
        y = x.clone()
        y.register_hook(lambda g: g if g is None else g + 1e-12)
        return y

    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(nearly, (leaf(2),))
    assert gradcheck(nearly, (leaf(2),), masked=True)


@modes
def test_missing_gradients_count_as_zeros(fast_mode):
    def refuses(x):
        y = x.clone()
        y.register_hook(lambda g: g + 0)
        return y

    class Invents(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x.clone(), y.clone()

        @staticmethod
        def backward(ctx, g, h):
            return tg.ones(2, dtype=tg.float64) if g is None and h is None else g, h

    message = "New undefined gradient support checking feature"
    with (
        pytest.warns(UserWarning, match=message),
        pytest.raises(GradcheckError, match="to handle undefined output grads"),
    ):
        gradcheck(refuses, (leaf(2),), fast_mode=fast_mode)
    assert gradcheck(refuses, (leaf(2),), check_undefined_grad=False, fast_mode=fast_mode)
    with (
        pytest.warns(UserWarning, match=message),
        pytest.raises(GradcheckError, match="to be undefined or zero when all"),
    ):
        gradcheck(Invents.apply, (leaf(2), leaf(2)), fast_mode=fast_mode)


# ---- inputs and outputs --------------------------------------------------------------------------------------------


def test_some_input_must_require_grad():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (tg.ones(2, dtype=tg.float64),))


def test_coarse_inputs_are_warned_about():
    x = tg.tensor([1.0, 3.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision") as caught:
        assert gradcheck(lambda x: x * 2, (x,), eps=1e-2, atol=1e-2)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="Input #1"), pytest.raises(GradcheckError, match="eps=1e-12 is too small"):
        gradcheck(lambda n, x: x * 2, (tg.arange(2), x), eps=1e-12)
    with pytest.warns(UserWarning), pytest.raises(TypeError, match=r"x is bfloat16.*\.double"):
        gradcheck(lambda x: x * 2, (tg.ones(2, dtype=tg.bfloat16, requires_grad=True),))


def test_elements_that_share_memory_are_refused():
    row = tg.ones(1, 3, dtype=tg.float64)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x * 2, (row.expand(2, 3).requires_grad_(),))
    with pytest.raises(RuntimeError, match="elements that share memory"):
        gradcheck(lambda x: x * 2, (tg.ones(5, dtype=tg.float64).as_strided((3, 3), (1, 1)).requires_grad_(),))
    interleaved = tg.ones(12, dtype=tg.float64).as_strided((2, 3), (3, 2)).requires_grad_()
    assert gradcheck(lambda x: x * 2, (interleaved,))  # odd strides, and yet no two elements meet


def test_any_memory_layout_works():
    x = leaf(4, 3)
    for view in (x.detach().T, x.detach()[::2], x.detach()[:, 1]):
        assert gradcheck(lambda x: x.sin(), (view.requires_grad_(),))


def test_values_are_put_back_also_after_an_exception():
    x = leaf(3)
    before, calls = x.tolist(), []

    def fails_later(x):
        calls.append(1)
        if len(calls) == 3:
            raise KeyError("mine")
        return x * 2

    with pytest.raises(KeyError, match="mine"):  # the user's own exceptions pass, also without raise_exception
        gradcheck(fails_later, (x,), raise_exception=False)
    assert x.tolist() == before and gradcheck(lambda x: x.sin(), (x,)) and x.tolist() == before


@modes
def test_outputs_that_change_their_kind_are_named(fast_mode):
    x = tg.ones(1, dtype=tg.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="return outputs with the same shape when inputs are perturbed"):
        gradcheck(lambda x: tg.cat([x, x]) if bool((x >= 1).all()) else x, (x,), fast_mode=fast_mode)
    with pytest.raises(AssertionError, match="return outputs with the same dtype when inputs are perturbed"):
        gradcheck(lambda x: x.to(tg.float32) if bool((x >= 1).all()) else x, (x,), fast_mode=fast_mode)


def test_nested_inputs_and_outputs_keywords_and_other_values():
    def model(x, options, *rest, power, scale=2.0):
        return {"a": [x * options["w"] * scale, None], "b": (rest[0] ** power, rest[1], "text")}

    inputs = (leaf(2), {"w": leaf(2, seed=1)}, leaf(2, seed=2), tg.arange(3))
    result = gradcheck(model, inputs, kwargs={"power": 3}, return_result=True)
    assert result and [p.input_name for p in result.pairs[:3]] == ["x", "options['w']", "rest[0]"]
    assert {p.output_name for p in result.pairs} == {"output['a'][0]", "output['b'][0]"}
    assert gradgradcheck(model, inputs, kwargs={"power": 3})
    with pytest.raises(TypeError, match="returned float without a tensor"):
        gradcheck(lambda x: 1.0, (leaf(2),))


@modes
def test_gradient_of_the_outputs_may_be_given(fast_mode):
    x, seed = leaf(2, 3), leaf(2, 3, seed=1)
    assert gradgradcheck(lambda x: x**3, (x,), (seed,), fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x**3, (x,), seed.detach(), fast_mode=fast_mode)
    seen = []

    class Looks(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(g.is_contiguous())
            return g * 2

    assert gradgradcheck(Looks.apply, (x,), gen_non_contig_grad_outputs=True) and not seen[0]


# ---- options -------------------------------------------------------------------------------------------------------


def test_flags_that_contradict_each_other():
    for flags, text in (
        ({"check_backward_ad": False}, "at least one of check_forward_ad or check_backward_ad"),
        ({"check_batched_grad": True, "check_backward_ad": False, "check_forward_ad": True}, "check_batched_grad=True"),
        ({"check_batched_forward_grad": True}, "requires check_forward_ad to be True"),
    ):
        with pytest.raises(AssertionError, match=text):
            gradcheck(lambda x: x, (leaf(1),), **flags)
    for flags, text in (
        ({"check_rev_over_rev": False}, "at least one of check_fwd_over_rev or check_rev_over_rev"),
        ({"check_rev_over_rev": False, "check_fwd_over_rev": True}, "check_undefined_grad=True"),
    ):
        with pytest.raises(AssertionError, match=text):
            gradgradcheck(lambda x: x, (leaf(1),), **flags)


@pytest.mark.parametrize("wrong", [{"eps": 0}, {"time_limit": 0}, {"max_columns": -1}], ids=lambda w: next(iter(w)))
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=f"gradcheck: {next(iter(wrong))} must"):
        gradcheck(lambda x: x, (leaf(1),), **wrong)


def test_the_random_stream_is_left_alone():
    tg.manual_seed(3)
    expected = tg.rand(2).tolist()
    tg.manual_seed(3)
    gradcheck(lambda x: x.sin(), (leaf(3),), fast_mode=True)
    gradgradcheck(lambda x: x.sin(), (leaf(3),), max_columns=1)
    assert tg.rand(2).tolist() == expected


def test_the_module_is_found_behind_the_function():
    from tinygrad_ext.autograd.gradcheck import GradcheckError as by_module

    assert by_module is GradcheckError and issubclass(GradcheckError, RuntimeError)
    assert tg.autograd.gradcheck is gradcheck
    assert sys.modules["tinygrad_ext.autograd.gradcheck"].gradgradcheck is gradgradcheck


def test_batched_gradients_are_compared_with_single_ones():
    x = tg.rand(2, 3, dtype=tg.float64, requires_grad=True)
    f = lambda x: (x.exp() @ x.T).tanh()
    assert gradcheck(f, (x,), check_batched_grad=True) and gradgradcheck(f, (x,), check_batched_grad=True)

    class Impure(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 if tg.is_tensor(grad) and "BatchedTensor" not in repr(grad) else grad * 3

    with pytest.raises(GradcheckError, match="Batched gradients of output 0 by x"):
        gradcheck(Impure.apply, (x,), check_batched_grad=True)

    class Leaves(Impure):
        @staticmethod
        def backward(ctx, grad):
            return tg.from_numpy(grad.numpy() * 2)

    with pytest.raises(GradcheckError, match="ran under vmap"):
        gradcheck(Leaves.apply, (x,), check_batched_grad=True)
