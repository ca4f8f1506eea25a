"""What happens to a Function whose backward or caller does something wrong, in both libraries."""

import copy
import pickle
import warnings

import pytest
from functions import Situations, check_engine, make, outcome, point, run_backward, run_forward

import tinygrad_ext as tg

ROWS = Situations()


# ---- what is missing


@ROWS.row(NotImplementedError, "must implement the forward")
def no_forward(T):
    type("Nothing", (T.autograd.Function,), {}).apply(point(T))


@ROWS.row(NotImplementedError, "either the backward or vjp")
def no_backward(T):
    y = make(T, backward=None).apply(point(T))  # the forward works
    y.sum().backward()


@ROWS.row(RuntimeError, "both 'backward' and 'vjp'")
def backward_and_vjp(T):
    make(T, None, lambda ctx, g: g, vjp=staticmethod(lambda ctx, g: g)).apply(point(T)).sum().backward()


@ROWS.row(NotImplementedError, "setup_context is not implemented")
def setup_context_of_the_base(T):
    T.autograd.Function.setup_context(None, (), None)


# ---- gradients that do not fit


@ROWS.row(RuntimeError, "an incorrect number of gradients (expected 2, got 1)")
def too_few_gradients(T):
    run_backward(T, lambda ctx, g: g, 3)


@ROWS.row(RuntimeError, "A list counts as one: return a tuple.", torch=(RuntimeError, "(expected 2, got 1)"))
def gradients_in_a_list(T):
    run_backward(T, lambda ctx, g: [g, None], 3)


@ROWS.row(RuntimeError, "an incorrect number of gradients (expected 2, got 0)")
def no_gradients(T):
    run_backward(T, lambda ctx, g: (), 3)


@ROWS.row(RuntimeError, "an incorrect number of gradients (expected 2, got 3)")
def too_many_gradients(T):
    run_backward(T, lambda ctx, g: (g, None, g), 3)


@ROWS.row(None)
def extra_trailing_none(T):
    assert run_backward(T, lambda ctx, g: (g * 2, None, None, None), 3).tolist() == [2.0, 2.0]


@ROWS.row(RuntimeError, "an invalid gradient at index 0 - got [7] but expected shape compatible with [2]")
def gradient_of_another_shape(T):
    run_backward(T, lambda ctx, g: T.ones(7, dtype=T.float64))


@ROWS.row(RuntimeError, "an invalid gradient at index 0 - got [7]")
def gradient_of_another_shape_after_a_number(T):
    """The index counts tensors."""
    x = point(T)
    made = make(T, lambda ctx, n, x: x * n, lambda ctx, g: (None, T.ones(7, dtype=T.float64)))
    made.apply(3, x).sum().backward()


@ROWS.row(RuntimeError, "but expected shape compatible with [2]")
def gradient_that_would_have_to_grow(T):
    run_backward(T, lambda ctx, g: T.ones(1, dtype=T.float64))


@ROWS.row(RuntimeError, "an invalid gradient at index 0 - expected device cpu but got meta")
def gradient_on_another_device(T):
    run_backward(T, lambda ctx, g: T.ones(2, dtype=T.float64, device="meta"))


@ROWS.row(None)
def gradient_that_sums_down(T):
    assert run_backward(T, lambda ctx, g: T.ones(3, 2, dtype=T.float64)).tolist() == [3.0, 3.0]


@ROWS.row(None)
def gradient_of_another_real_dtype(T):
    grad = run_backward(T, lambda ctx, g: T.ones(2, dtype=T.float32))
    assert grad.dtype == T.float64


@ROWS.row(RuntimeError, "a complex gradient at index 0, but the input is real", torch=(RuntimeError, "complex"))
def complex_gradient_for_a_real_input(T):
    """PyTorch's text is an internal assert with a request to report a bug."""
    run_backward(T, lambda ctx, g: g * (1 + 2j))


@ROWS.row(RuntimeError, "gradient different than None at position 2")
def gradient_for_a_number(T):
    run_backward(T, lambda ctx, g: (g, g), 3)


@ROWS.row(RuntimeError, "expected Variable or None (got list)")
def gradient_is_a_list(T):
    run_backward(T, lambda ctx, g: [1.0, 2.0])


@ROWS.row(RuntimeError, "expected Variable or None (got float)")
def gradient_is_a_number(T):
    run_backward(T, lambda ctx, g: 1.0)


@ROWS.row(RuntimeError, "'nobody', which is no argument", torch=(RuntimeError, "expected Variable or None (got dict)"))
def gradient_for_an_unknown_name(T):
    run_backward(T, lambda ctx, g: {"nobody": g})


# ---- the caller


@ROWS.row(DeprecationWarning, "should not be instantiated")
def static_function_instantiated(T):
    make(T, None, lambda ctx, g: g)()


@ROWS.row(RuntimeError, "make forward and backward plain methods", torch=(RuntimeError, "Legacy autograd function"))
def static_instance_called(T):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = make(T, None, lambda ctx, g: g)()
    made(point(T))


@ROWS.row(TypeError, "missing 1 required positional argument: 'w'")
def argument_missing(T):
    make(T, lambda ctx, x, w: x * w, lambda ctx, g: (g, g)).apply(point(T))


@ROWS.row(
    TypeError,
    "takes 1 positional argument but 2 were given",
    torch=(TypeError, "takes 2 positional arguments but 3 were given"),
)
def argument_too_many(T):
    make(T, lambda ctx, x: x * 1, lambda ctx, g: g).apply(point(T), 3)


@ROWS.row(TypeError, "unexpected keyword argument 'weight'", torch=(TypeError, "weight"))
def argument_of_unknown_name(T):
    make(T, lambda ctx, x, w=1: x * 1, lambda ctx, g: g).apply(point(T), weight=3)


@ROWS.row(TypeError, "multiple values for argument 'x'", torch=(TypeError, ""))
def argument_given_twice(T):
    make(T, lambda ctx, x, w=1: x * 1, lambda ctx, g: g).apply(point(T), x=3)


@ROWS.row(RuntimeError, "Set allow_unused=True")
def input_not_used(T):
    x, z = point(T), point(T)
    T.autograd.grad(make(T, None, lambda ctx, g: g).apply(x).sum(), z)


@ROWS.row(RuntimeError, "implicitly created only for scalar outputs")
def backward_of_many_elements(T):
    make(T, None, lambda ctx, g: g).apply(point(T)).backward()


@ROWS.row(RuntimeError, "does not require grad and does not have a grad_fn")
def nothing_requires_grad(T):
    make(T, None, lambda ctx, g: g).apply(point(T).detach()).sum().backward()


@ROWS.row(RuntimeError, "only Tensors of floating point")
def integers_require_grad(T):
    make(T, lambda ctx, x: (x * 1).long(), lambda ctx, g: g).apply(point(T)).requires_grad_()


@ROWS.row(RuntimeError, "leaf Variable that requires grad")
def leaf_written_to(T):
    point(T).add_(1)


@ROWS.row(RuntimeError, "returned nan values in its 0th output")
def nan_under_anomaly_mode(T):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with T.autograd.detect_anomaly():
            run_backward(T, lambda ctx, g: g * float("nan"))


@ROWS.row(RuntimeError, "created explicitly by the user")
def deepcopy_of_a_result(T):

    copy.deepcopy(run_forward(T, lambda ctx, x: x * 2))


@ROWS.row(TypeError, "pickle")
def pickle_of_a_node(T):

    pickle.dumps(run_forward(T, lambda ctx, x: x * 2).grad_fn)


# ---- exceptions of the user's own


@ROWS.row(ZeroDivisionError, "division")
def exception_in_forward(T):
    run_forward(T, lambda ctx, x: 1 / 0)


@ROWS.row(ZeroDivisionError, "division")
def exception_in_backward(T):
    run_backward(T, lambda ctx, g: 1 / 0)


def raising(error):
    def body(ctx, x):
        raise error("by the user")

    return body


@ROWS.row(KeyboardInterrupt, "by the user")
def keyboard_interrupt_in_forward(T):
    run_forward(T, raising(KeyboardInterrupt))


@ROWS.row(KeyboardInterrupt, "by the user")
def keyboard_interrupt_in_backward(T):
    run_backward(T, raising(KeyboardInterrupt))


@ROWS.row(SystemExit, "by the user")
def system_exit_in_forward(T):
    run_forward(T, raising(SystemExit))


@ROWS.row(SystemExit, "by the user")
def system_exit_in_backward(T):
    run_backward(T, raising(SystemExit))


@ROWS.row(ZeroDivisionError, "division")
def exception_in_setup_context(T):
    make(T, lambda x: x * 1, setup_context=staticmethod(lambda ctx, inputs, output: 1 / 0)).apply(point(T))


# ---- where PyTorch is silently wrong in backward


@ROWS.row(RuntimeError, "changed an incoming gradient in place", torch=None)
def backward_writes_to_its_gradient(T):
    """In PyTorch the tensor that the caller gave to backward() is changed without a word."""
    x, seed = point(T), T.ones(2, dtype=T.float64)
    make(T, None, lambda ctx, g: g.mul_(2)).apply(x).backward(seed)


@ROWS.row(RuntimeError, "changed an incoming gradient in place", torch=None)
def boxed_backward_writes_to_its_gradient(T):
    """As above: the list belongs to backward, the caller's tensor in it does not."""
    x, seed = point(T), T.ones(2, dtype=T.float64)
    made = make(T, None, lambda ctx, grads: grads.pop().mul_(2), boxed_grads_call=True)
    made.apply(x).backward(seed)


@ROWS.row(None)
def boxed_backward_writes_to_what_it_alone_has(T):
    x = point(T)
    made = make(T, None, lambda ctx, grads: grads.pop().mul_(2), boxed_grads_call=True)
    (made.apply(x) * T.ones(2, dtype=T.float64)).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@ROWS.row(None)
def backward_reshapes_a_view_of_its_gradient(T):
    def backward(ctx, grad):
        view = grad.unsqueeze(-1)
        view.unsqueeze_(-1).squeeze_()
        return grad * 2

    assert run_backward(T, backward).tolist() == [2.0, 2.0]


@ROWS.row(RuntimeError, "save_for_backward was called after the forward was over", torch=None)
def save_in_backward(T):
    """PyTorch keeps the tensors nowhere and says nothing."""
    run_backward(T, lambda ctx, g: ctx.save_for_backward(g) or g)


@pytest.mark.parametrize("name", ROWS)
def test_each_situation_ends_as_documented(name):
    """And the same engine differentiates afterwards."""
    kind, message = outcome(ROWS[name].run, tg)
    assert kind is ROWS[name].error and ROWS[name].fragment in message, message
    check_engine(tg)


@pytest.mark.parametrize("name", ROWS)
def test_pytorch_ends_there_too(name):
    torch = pytest.importorskip("torch")
    (kind, message), expected = outcome(ROWS[name].run, torch), ROWS[name].in_torch()
    assert kind is expected[0] and expected[1] in message, message
