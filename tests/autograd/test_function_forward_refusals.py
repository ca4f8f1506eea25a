"""What happens to a Function whose forward saves, marks or returns something wrong, in both libraries."""

import pytest
from functions import Situations, check_engine, make, outcome, point, run_forward

import tinygrad_ext as tg

ROWS = Situations()


# ---- saving


@ROWS.row(TypeError, "save_for_backward can only save variables, but argument 0 is of type list")
def save_a_list(T):
    run_forward(T, lambda ctx, x: ctx.save_for_backward([x]) or x * 1)


@ROWS.row(TypeError, "save_for_backward can only save variables, but argument 1 is of type int")
def save_a_number(T):
    run_forward(T, lambda ctx, x: ctx.save_for_backward(x, 3) or x * 1)


@ROWS.row(AssertionError, "save_for_forward expects all arguments to be tensors")
def save_a_number_for_jvp(T):
    run_forward(T, lambda ctx, x: ctx.save_for_forward(3) or x * 1)


@ROWS.row(RuntimeError, "Inference tensors cannot be saved for backward")
def save_an_inference_tensor(T):
    with T.inference_mode():
        made = T.ones(2, dtype=T.float64)
    run_forward(T, lambda ctx, x: ctx.save_for_backward(made) or x * 1)


@ROWS.row(RuntimeError, "modified by an inplace operation")
def saved_tensor_written_to(T):
    x = point(T) * 1
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    x.add_(1)
    y.sum().backward()


@ROWS.row(RuntimeError, "is at version 2; expected version 1 instead")
def saved_tensor_written_to_tells_versions(T):
    x = point(T) * 1
    x.add_(1)
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    x.add_(1)
    y.sum().backward()


@ROWS.row(RuntimeError, "modified by an inplace operation")
def saved_output_written_to(T):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    y = make(T, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(point(T))
    y.detach().mul_(2)
    y.sum().backward()


@ROWS.row(IndexError, "out of range")
def saved_tensors_inside_forward(T):
    run_forward(T, lambda ctx, x: (ctx.save_for_backward(x), ctx.saved_tensors[0]))


@ROWS.row(RuntimeError, "backward through the graph a second time")
def second_backward(T):
    x = point(T)
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.sum().backward()
    y.sum().backward()


@ROWS.row(RuntimeError, "directly access saved tensors after they have already been freed")
def saved_tensors_after_backward(T):
    x = point(T)
    y = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.sum().backward()
    y.grad_fn.saved_tensors


@ROWS.row(RuntimeError, "can only be accessed once")
def cleared_saved_tensors_read_twice(T):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * ctx.saved_tensors[0]

    made = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, backward, clear_saved_tensors_on_access=True)
    made.apply(point(T)).sum().backward()


# ---- marking


@ROWS.row(None)
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


@ROWS.row(RuntimeError, "a leaf Variable that requires grad")
def dirty_leaf(T):
    make(T, lambda ctx, x: ctx.mark_dirty(x) or x.mul_(2), lambda ctx, g: g).apply(point(T))


@ROWS.row(RuntimeError, "marked as dirty")
def dirty_but_not_returned(T):
    run_forward(T, lambda ctx, x: ctx.mark_dirty(x) or x * 2)


@ROWS.row(UserWarning, "was not an input")
def dirty_but_no_input(T):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    run_forward(T, forward)


@ROWS.row(RuntimeError, "cannot return more than one Tensor")
def dirty_view_with_two_outputs(T):
    x = (point(T) * 1)[:1]
    make(T, lambda ctx, x: ctx.mark_dirty(x) or (x.mul_(2), x * 1), lambda ctx, g, h: g + h).apply(x)


@ROWS.row(RuntimeError, "mark_dirty can only accept variables, but argument ")
def dirty_number(T):
    run_forward(T, lambda ctx, x: ctx.mark_dirty(3) or x)


@ROWS.row(RuntimeError, "mark_non_differentiable only accepts variable arguments, but got ")
def non_differentiable_number(T):
    run_forward(T, lambda ctx, x: ctx.mark_non_differentiable(3) or x * 1)


@ROWS.row(UserWarning, "not an output of forward", torch=None)
def non_differentiable_input(T):
    """PyTorch ignores the mark without a word."""
    run_forward(T, lambda ctx, x: ctx.mark_non_differentiable(x) or x * 1)


@ROWS.row(TypeError, "expected (bool)", torch=(TypeError, "bool"))
def materialize_grads_of_a_number(T):
    run_forward(T, lambda ctx, x: ctx.set_materialize_grads(1) or x * 1)


# ---- outputs


@ROWS.row(RuntimeError, "is a view and is being modified inplace")
def view_of_an_input_written_to(T):
    run_forward(T, lambda ctx, x: x.view(-1)).mul_(2)


@ROWS.row(RuntimeError, "multiple views", torch=(RuntimeError, "is a view and is being modified inplace"))
def one_of_many_views_written_to(T):
    x = point(T) * 1
    made = make(T, lambda ctx, x: (x.view(-1), x.view(2)), lambda ctx, g, h: g + h)
    made.apply(x)[0].mul_(2)


@ROWS.row(TypeError, "setup_context returned int", torch=None)
def setup_context_returns_something(T):
    """PyTorch ignores it."""
    make(T, lambda x: x * 1, lambda ctx, g: g, setup_context=staticmethod(lambda ctx, inputs, output: 3)).apply(
        point(T)
    )


RETURNED = {
    "a list": lambda ctx, x: [x * 1],
    "a dict": lambda ctx, x: {"y": x * 1},
    "deep in a dict": lambda ctx, x: (x * 1, {"y": (3, [x * 2])}),
}


@pytest.mark.parametrize("name", RETURNED)
def test_tensors_in_what_is_returned_lose_their_gradient_and_a_warning_says_so(name):
    """PyTorch says nothing."""
    kind = name.split()[-1]
    with pytest.warns(UserWarning, match=f"inside a {kind}, where their gradients are lost"):
        run_forward(tg, RETURNED[name])


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (3, x), lambda x: {"a": (1, [x])}])
def test_tensors_in_an_argument_lose_their_gradient_and_a_warning_says_so(wrap):
    """The others get theirs, as in PyTorch, which says nothing."""
    x, y = point(tg), point(tg)
    function = make(tg, lambda ctx, kept, y: y * 2, lambda ctx, g: (None, g * 2))
    with pytest.warns(UserWarning, match="position 1 holds a tensor that requires grad, and its gradient is lost"):
        made = function.apply(wrap(x), y)
    made.sum().backward()
    assert x.grad is None and y.grad.tolist() == [2.0] * y.numel()


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
