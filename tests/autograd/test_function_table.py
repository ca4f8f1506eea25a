"""What happens to a Function in each situation that can go wrong, in tinygrad_ext and in PyTorch.

Each row is run with both libraries: `fragment` is in our message, and in PyTorch's unless the row says otherwise
(`torch=None`: PyTorch raises nothing; `torch=(type, fragment)`: it raises something else). After each failure the
same engine must differentiate correctly.
"""

import warnings
from dataclasses import dataclass

import pytest

import tinygrad_ext as tg

SAME = object()


@dataclass
class Row:
    """One situation."""

    run: object
    error: type | None
    fragment: str
    torch: object = SAME


ROWS = {}


def row(error, fragment="", torch=SAME):
    """Decorator: add a situation, a function of the library."""

    def add(run):
        ROWS[run.__name__] = Row(run, error, fragment, torch)
        return run

    return add


def point(T, *values):
    return T.tensor(list(values) or [1.0, 2.0], dtype=T.float64, requires_grad=True)


def make(T, forward=None, backward=None, **body):
    """A Function of library T from two bodies."""
    body["forward"] = staticmethod(forward or (lambda ctx, x, *rest: x * 1))
    if backward is not None:
        body["backward"] = staticmethod(backward)
    return type("Made", (T.autograd.Function,), body)


def run_backward(T, backward, *rest, forward=None):
    """Apply to a point and the rest, and differentiate."""
    x = point(T)
    make(T, forward, backward).apply(x, *rest).sum().backward()
    return x.grad


def run_forward(T, forward, **body):
    """Apply to a tensor that needs a gradient and is no leaf."""
    return make(T, forward, lambda ctx, g: g, **body).apply(point(T) * 1)


def check_engine(T):
    """Modes are as before, and a Function and a plain graph still differentiate."""
    assert T.is_grad_enabled() and not T.is_inference_mode_enabled()
    x = point(T, 3.0)
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: 2 * g * ctx.saved_tensors[0]).apply(x)
    (y + x).sum().backward()
    assert x.grad.tolist() == [7.0]


# ---- what is missing


@row(NotImplementedError, "must implement the forward")
def no_forward(T):
    type("Nothing", (T.autograd.Function,), {}).apply(point(T))


@row(NotImplementedError, "either the backward or vjp")
def no_backward(T):
    y = make(T).apply(point(T))  # the forward works
    y.sum().backward()


@row(RuntimeError, "both 'backward' and 'vjp'")
def backward_and_vjp(T):
    make(T, None, lambda ctx, g: g, vjp=staticmethod(lambda ctx, g: g)).apply(point(T)).sum().backward()


@row(NotImplementedError, "setup_context is not implemented")
def setup_context_of_the_base(T):
    T.autograd.Function.setup_context(None, (), None)


# ---- gradients that do not fit


@row(RuntimeError, "an incorrect number of gradients (expected 2, got 1)")
def too_few_gradients(T):
    run_backward(T, lambda ctx, g: g, 3)


@row(RuntimeError, "an incorrect number of gradients (expected 2, got 0)")
def no_gradients(T):
    run_backward(T, lambda ctx, g: (), 3)


@row(RuntimeError, "an incorrect number of gradients (expected 2, got 3)")
def too_many_gradients(T):
    run_backward(T, lambda ctx, g: (g, None, g), 3)


@row(None)
def extra_trailing_none(T):
    assert run_backward(T, lambda ctx, g: (g * 2, None, None, None), 3).tolist() == [2.0, 2.0]


@row(RuntimeError, "an invalid gradient at index 0 - got [7] but expected shape compatible with [2]")
def gradient_of_another_shape(T):
    run_backward(T, lambda ctx, g: T.ones(7, dtype=T.float64))


@row(RuntimeError, "an invalid gradient at index 0 - got [7]")
def gradient_of_another_shape_after_a_number(T):
    """The index counts tensors."""
    x = point(T)
    made = make(T, lambda ctx, n, x: x * n, lambda ctx, g: (None, T.ones(7, dtype=T.float64)))
    made.apply(3, x).sum().backward()


@row(RuntimeError, "but expected shape compatible with [2]")
def gradient_that_would_have_to_grow(T):
    run_backward(T, lambda ctx, g: T.ones(1, dtype=T.float64))


@row(RuntimeError, "an invalid gradient at index 0 - expected device cpu but got meta")
def gradient_on_another_device(T):
    run_backward(T, lambda ctx, g: T.ones(2, dtype=T.float64, device="meta"))


@row(None)
def gradient_that_sums_down(T):
    assert run_backward(T, lambda ctx, g: T.ones(3, 2, dtype=T.float64)).tolist() == [3.0, 3.0]


@row(None)
def gradient_of_another_real_dtype(T):
    grad = run_backward(T, lambda ctx, g: T.ones(2, dtype=T.float32))
    assert grad.dtype == T.float64


@row(RuntimeError, "returned a complex gradient at index 0, but the input is real", torch=(RuntimeError, "complex"))
def complex_gradient_for_a_real_input(T):
    """PyTorch's text is an internal assert with a request to report a bug."""
    run_backward(T, lambda ctx, g: g * (1 + 2j))


@row(RuntimeError, "gradient different than None at position 2")
def gradient_for_a_number(T):
    run_backward(T, lambda ctx, g: (g, g), 3)


@row(RuntimeError, "expected Variable or None (got list)")
def gradient_is_a_list(T):
    run_backward(T, lambda ctx, g: [1.0, 2.0])


@row(RuntimeError, "expected Variable or None (got float)")
def gradient_is_a_number(T):
    run_backward(T, lambda ctx, g: 1.0)


@row(RuntimeError, "'nobody', which is no argument", torch=(RuntimeError, "expected Variable or None (got dict)"))
def gradient_for_an_unknown_name(T):
    run_backward(T, lambda ctx, g: {"nobody": g})


# ---- saving


@row(TypeError, "save_for_backward can only save variables, but argument 0 is of type list")
def save_a_list(T):
    run_forward(T, lambda ctx, x: ctx.save_for_backward([x]) or x * 1)


@row(TypeError, "save_for_backward can only save variables, but argument 1 is of type int")
def save_a_number(T):
    run_forward(T, lambda ctx, x: ctx.save_for_backward(x, 3) or x * 1)


@row(AssertionError, "save_for_forward expects all arguments to be tensors")
def save_a_number_for_jvp(T):
    run_forward(T, lambda ctx, x: ctx.save_for_forward(3) or x * 1)


@row(RuntimeError, "Inference tensors cannot be saved for backward")
def save_an_inference_tensor(T):
    with T.inference_mode():
        made = T.ones(2, dtype=T.float64)
    run_forward(T, lambda ctx, x: ctx.save_for_backward(made) or x * 1)


@row(RuntimeError, "modified by an inplace operation")
def saved_tensor_written_to(T):
    x = point(T) * 1
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    x.add_(1)
    y.sum().backward()


@row(RuntimeError, "is at version 2; expected version 1 instead")
def saved_tensor_written_to_tells_versions(T):
    x = point(T) * 1
    x.add_(1)
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    x.add_(1)
    y.sum().backward()


@row(RuntimeError, "modified by an inplace operation")
def saved_output_written_to(T):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    y = make(T, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(point(T))
    y.detach().mul_(2)
    y.sum().backward()


@row(IndexError, "out of range")
def saved_tensors_inside_forward(T):
    run_forward(T, lambda ctx, x: (ctx.save_for_backward(x), ctx.saved_tensors[0]))


@row(RuntimeError, "backward through the graph a second time")
def second_backward(T):
    x = point(T)
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.sum().backward()
    y.sum().backward()


@row(RuntimeError, "directly access saved tensors after they have already been freed")
def saved_tensors_after_backward(T):
    x = point(T)
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.sum().backward()
    y.grad_fn.saved_tensors


@row(RuntimeError, "can only be accessed once")
def cleared_saved_tensors_read_twice(T):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * ctx.saved_tensors[0]

    made = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, backward, clear_saved_tensors_on_access=True)
    made.apply(point(T)).sum().backward()


# ---- marking


@row(None)
def dirty_input_is_returned(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    x = point(T)
    y = x * 1
    made = make(T, forward, lambda ctx, g: g * 3)
    z = made.apply(y)
    assert z is y and y._version == 2 and y.grad_fn.name() == "MadeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@row(RuntimeError, "a leaf Variable that requires grad")
def dirty_leaf(T):
    make(T, lambda ctx, x: ctx.mark_dirty(x) or x.mul_(2), lambda ctx, g: g).apply(point(T))


@row(RuntimeError, "marked as dirty")
def dirty_but_not_returned(T):
    run_forward(T, lambda ctx, x: ctx.mark_dirty(x) or x * 2)


@row(UserWarning, "was not an input")
def dirty_but_no_input(T):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    run_forward(T, forward)


@row(RuntimeError, "cannot return more than one Tensor")
def dirty_view_with_two_outputs(T):
    x = (point(T) * 1)[:1]
    make(T, lambda ctx, x: ctx.mark_dirty(x) or (x.mul_(2), x * 1), lambda ctx, g, h: g + h).apply(x)


@row(RuntimeError, "mark_dirty can only accept variables, but argument ")
def dirty_number(T):
    run_forward(T, lambda ctx, x: ctx.mark_dirty(3) or x)


@row(RuntimeError, "mark_non_differentiable only accepts variable arguments, but got ")
def non_differentiable_number(T):
    run_forward(T, lambda ctx, x: ctx.mark_non_differentiable(3) or x * 1)


@row(UserWarning, "not an output of forward", torch=None)
def non_differentiable_input(T):
    """PyTorch ignores the mark without a word."""
    run_forward(T, lambda ctx, x: ctx.mark_non_differentiable(x) or x * 1)


@row(TypeError, "expected (bool)", torch=(TypeError, "bool"))
def materialize_grads_of_a_number(T):
    run_forward(T, lambda ctx, x: ctx.set_materialize_grads(1) or x * 1)


# ---- outputs


@row(RuntimeError, "is a view and is being modified inplace")
def view_of_an_input_written_to(T):
    run_forward(T, lambda ctx, x: x.view(-1)).mul_(2)


@row(RuntimeError, "multiple views", torch=(RuntimeError, "is a view and is being modified inplace"))
def one_of_many_views_written_to(T):
    x = point(T) * 1
    made = make(T, lambda ctx, x: (x.view(-1), x.view(2)), lambda ctx, g, h: g + h)
    made.apply(x)[0].mul_(2)


@row(TypeError, "inside a list", torch=None)
def list_is_returned(T):
    """PyTorch hands out the list; its tensors have no grad_fn and their gradients are lost."""
    run_forward(T, lambda ctx, x: [x * 1])


@row(TypeError, "inside a dict", torch=None)
def dict_is_returned(T):
    """As with a list."""
    run_forward(T, lambda ctx, x: {"y": x * 1})


@row(TypeError, "gradient would be lost", torch=None)
def tensors_in_a_list_argument(T):
    """PyTorch gives them no gradient and says nothing."""
    make(T, lambda ctx, xs: xs[0] * 2, lambda ctx, g: None).apply([point(T)])


@row(TypeError, "gradient would be lost", torch=None)
def tensors_deep_in_an_argument(T):
    """As with a list."""
    make(T, lambda ctx, xs: xs["a"][1][0] * 2, lambda ctx, g: None).apply({"a": (1, [point(T)])})


@row(TypeError, "setup_context returned int", torch=None)
def setup_context_returns_something(T):
    """PyTorch ignores it."""
    make(T, lambda x: x * 1, lambda ctx, g: g, setup_context=staticmethod(lambda ctx, inputs, output: 3)).apply(
        point(T)
    )


# ---- the caller


@row(DeprecationWarning, "should not be instantiated")
def static_function_instantiated(T):
    make(T, None, lambda ctx, g: g)()


@row(RuntimeError, "make forward and backward plain methods", torch=(RuntimeError, "Legacy autograd function"))
def static_instance_called(T):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = make(T, None, lambda ctx, g: g)()
    made(point(T))


@row(TypeError, "missing 1 required positional argument: 'w'")
def argument_missing(T):
    make(T, lambda ctx, x, w: x * w, lambda ctx, g: (g, g)).apply(point(T))


@row(
    TypeError,
    "takes 1 positional argument but 2 were given",
    torch=(TypeError, "takes 2 positional arguments but 3 were given"),
)
def argument_too_many(T):
    make(T, lambda ctx, x: x * 1, lambda ctx, g: g).apply(point(T), 3)


@row(TypeError, "unexpected keyword argument 'weight'", torch=(TypeError, "weight"))
def argument_of_unknown_name(T):
    make(T, lambda ctx, x, w=1: x * 1, lambda ctx, g: g).apply(point(T), weight=3)


@row(TypeError, "multiple values for argument 'x'", torch=(TypeError, ""))
def argument_given_twice(T):
    make(T, lambda ctx, x, w=1: x * 1, lambda ctx, g: g).apply(point(T), x=3)


@row(RuntimeError, "Set allow_unused=True")
def input_not_used(T):
    x, z = point(T), point(T)
    T.autograd.grad(make(T, None, lambda ctx, g: g).apply(x).sum(), z)


@row(RuntimeError, "implicitly created only for scalar outputs")
def backward_of_many_elements(T):
    make(T, None, lambda ctx, g: g).apply(point(T)).backward()


@row(RuntimeError, "does not require grad and does not have a grad_fn")
def nothing_requires_grad(T):
    make(T, None, lambda ctx, g: g).apply(point(T).detach()).sum().backward()


@row(RuntimeError, "only Tensors of floating point")
def integers_require_grad(T):
    make(T, lambda ctx, x: (x * 1).long(), lambda ctx, g: g).apply(point(T)).requires_grad_()


@row(RuntimeError, "leaf Variable that requires grad")
def leaf_written_to(T):
    point(T).add_(1)


@row(RuntimeError, "returned nan values in its 0th output")
def nan_under_anomaly_mode(T):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with T.autograd.detect_anomaly():
            run_backward(T, lambda ctx, g: g * float("nan"))


@row(RuntimeError, "created explicitly by the user")
def deepcopy_of_a_result(T):
    import copy

    copy.deepcopy(run_forward(T, lambda ctx, x: x * 2))


@row(TypeError, "pickle")
def pickle_of_a_node(T):
    import pickle

    pickle.dumps(run_forward(T, lambda ctx, x: x * 2).grad_fn)


# ---- exceptions of the user's own


@row(ZeroDivisionError, "division")
def exception_in_forward(T):
    run_forward(T, lambda ctx, x: 1 / 0)


@row(ZeroDivisionError, "division")
def exception_in_backward(T):
    run_backward(T, lambda ctx, g: 1 / 0)


def raising(error):
    def body(ctx, x):
        raise error("by the user")

    return body


@row(KeyboardInterrupt, "by the user")
def keyboard_interrupt_in_forward(T):
    run_forward(T, raising(KeyboardInterrupt))


@row(KeyboardInterrupt, "by the user")
def keyboard_interrupt_in_backward(T):
    run_backward(T, raising(KeyboardInterrupt))


@row(SystemExit, "by the user")
def system_exit_in_forward(T):
    run_forward(T, raising(SystemExit))


@row(SystemExit, "by the user")
def system_exit_in_backward(T):
    run_backward(T, raising(SystemExit))


@row(ZeroDivisionError, "division")
def exception_in_setup_context(T):
    make(T, lambda x: x * 1, setup_context=staticmethod(lambda ctx, inputs, output: 1 / 0)).apply(point(T))


# ---- where PyTorch is silently wrong in backward


@row(RuntimeError, "changed an incoming gradient in place", torch=None)
def backward_writes_to_its_gradient(T):
    """In PyTorch the tensor that the caller gave to backward() is changed without a word."""
    x, seed = point(T), T.ones(2, dtype=T.float64)
    make(T, None, lambda ctx, g: g.mul_(2)).apply(x).backward(seed)


@row(RuntimeError, "save_for_backward was called after the forward was over", torch=None)
def save_in_backward(T):
    """PyTorch keeps the tensors nowhere and says nothing."""
    run_backward(T, lambda ctx, g: ctx.save_for_backward(g) or g)


def outcome(run, T):
    """(type, message) of what a situation raises or warns."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(T)
    except BaseException as error:
        return type(error), str(error)
    return (caught[0].category, str(caught[0].message)) if caught else (None, "")


@pytest.mark.parametrize("name", ROWS)
def test_each_situation_ends_as_documented(name):
    situation = ROWS[name]
    kind, message = outcome(situation.run, tg)
    assert kind is situation.error and situation.fragment in message, message
    check_engine(tg)


@pytest.mark.parametrize("name", ROWS)
def test_pytorch_ends_there_too(name):
    torch = pytest.importorskip("torch")
    situation = ROWS[name]
    expected = (situation.error, situation.fragment) if situation.torch is SAME else situation.torch or (None, "")
    kind, message = outcome(situation.run, torch)
    assert kind is expected[0] and expected[1] in message, message
