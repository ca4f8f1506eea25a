"""Ops whose derivative is written in C: by ops, on memory, by hand, and not at all."""

import sys

import pytest

import tinygrad_ext as tg

WAYS = ["by_call", "by_memory", "by_hand", "composite"]
AGAIN = ["by_call", "by_hand", "composite"]  # differentiable more than once


@pytest.fixture
def x():
    return tg.tensor([1.0, -2.0, 3.0], dtype=tg.float64, requires_grad=True)


@pytest.mark.parametrize("way", WAYS)
def test_the_derivative_is_right_in_the_first_calls_and_later(squares, x, way):
    f = getattr(squares, way)
    for _ in range(20):
        assert f(x).tolist() == [1, 4, 9]
        assert tg.autograd.grad(f(x).sum(), x)[0].tolist() == [2, -4, 6]
    assert tg.autograd.gradcheck(f, (x,))


@pytest.mark.parametrize("way", AGAIN)
def test_a_backward_by_ops_is_differentiated_again(squares, x, way):
    assert tg.autograd.gradgradcheck(getattr(squares, way), (x,))


def test_a_backward_on_memory_says_that_it_cannot_be_differentiated_again(squares, x):
    (g,) = tg.autograd.grad(squares.by_memory(x).sum(), x, create_graph=True)
    assert g.tolist() == [2, -4, 6]
    with pytest.raises(RuntimeError, match=r"differentiate twice squares::by_memory.*TGX_DIFFERENTIABLE"):
        g.sum().backward()


@pytest.mark.parametrize("way", WAYS)
def test_levels_see_the_op_as_any_other(squares, way):
    f = getattr(squares, way)
    row = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert tg.vmap(f)(row).tolist() == [[1, 4], [9, 16]]
    assert tg.func.grad(lambda v: f(v).sum())(row).tolist() == [[2, 4], [6, 8]]
    assert tg.vmap(tg.func.grad(lambda v: f(v).sum()))(row).tolist() == [[2, 4], [6, 8]]
    assert tg.jit.trace(f, tg.ones(3))(tg.full((5,), 2.0)).tolist() == [4] * 5


@pytest.mark.parametrize("way", AGAIN)
def test_forward_mode_follows_from_a_backward_by_ops(squares, way):
    f = getattr(squares, way)
    assert tg.func.jvp(f, (tg.tensor([3.0]),), (tg.tensor([2.0]),))[1].tolist() == [12]
    assert tg.func.hessian(lambda v: f(v).sum())(tg.ones(2)).tolist() == [[2, 0], [0, 2]]


def training_step(f):

    def step(w):
        w = w.detach().requires_grad_()
        f(w).sum().backward()
        return w - 0.25 * w.grad

    return tg.jit.trace(step, tg.ones(3))


@pytest.mark.parametrize("way", ["by_call", "composite"])
def test_a_training_step_is_captured(squares, way):
    traced = training_step(getattr(squares, way))
    assert traced(tg.full((3,), 4.0)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("way, word", [("by_memory", "no memory to read"), ("by_hand", "setup and backward")])
def test_a_derivative_that_cannot_be_captured_is_refused_and_not_lost(squares, way, word):
    with pytest.raises(RuntimeError, match=word):
        training_step(getattr(squares, way))


def test_a_jvp_and_a_batch_rule_in_c_are_used(squares):
    f, before = squares.forward, squares.batches()
    assert tg.func.jvp(f, (tg.tensor([3.0]),), (tg.tensor([2.0]),))[1].tolist() == [12]
    assert tg.vmap(f)(tg.tensor([[2.0], [3.0]])).tolist() == [[4], [9]]
    assert squares.batches() == before + 1


@pytest.mark.parametrize("way", [*WAYS, "both", "plus", "forward"])
def test_what_plugins_and_custom_ops_are_checked_for_holds(squares, way):
    dtype = tg.float32 if way == "plus" else tg.float64
    x = tg.rand(3, dtype=dtype, requires_grad=way not in ("plus", "forward"))
    found = tg.library.opcheck(getattr(squares, way), (x,))
    assert set(found.values()) == {"SUCCESS"}


def test_an_op_without_a_derivative_says_so(squares):
    y = squares.plus(tg.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="backward through squares::plus but no autograd formula"):
        y.sum().backward()


def frames(f, x):
    """Names of the Python functions that a call and its derivative enter, after the first calls, which are watched."""
    for _ in range(9):
        y = f(x)
    entered, seed = [], tg.ones_like(x)
    sys.setprofile(lambda frame, event, arg: event == "call" and entered.append(frame.f_code.co_name))
    try:
        f(x)
        tg.autograd.grad(y, x, seed)
    finally:
        sys.setprofile(None)
    return entered


@pytest.mark.parametrize("way", ["by_call", "by_memory", "by_hand"])
def test_the_backward_enters_no_frame_of_python(squares, x, way):
    builtin = frames(lambda t: t * t, x)
    builtin.remove("<lambda>")
    assert frames(getattr(squares, way), x) == builtin


def test_the_node_is_shown_as_others_are(squares, x):
    y = squares.by_call(x)
    assert y.grad_fn.name() == "ByCallBackward0"
    assert y.grad_fn.next_functions[0][0].name() == "AccumulateGrad"
    assert y.grad_fn._saved_tensors[0] is x
    assert squares.by_hand(x).grad_fn.name() == "SquareByHandBackward"


def test_a_saved_tensor_that_was_written_to_is_told(squares, x):
    y = x * 1
    z = squares.by_call(y)
    with tg.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_the_second_backward_through_a_freed_graph_is_told(squares, x):
    y = squares.by_memory(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks_on_saved_tensors_see_them(squares, x):
    packed = []
    with tg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or len(packed) - 1, lambda i: packed[i]):
        y = squares.by_call(x).sum()
    y.backward()
    assert len(packed) >= 1 and x.grad.tolist() == [2, -4, 6]


def test_an_output_that_is_saved_has_its_history_and_closes_no_circle(squares, x):
    import gc
    import weakref

    y, numbers = squares.both(x)
    assert y.grad_fn is not None and numbers.grad_fn is None and numbers.tolist() == [0, 1, 2]
    saved = y.grad_fn._saved_tensors[1]
    assert saved.grad_fn is y.grad_fn and saved.tolist() == y.tolist()
    gone = weakref.ref(y)
    gc.disable()
    try:
        del y, saved
        assert gone() is None
    finally:
        gc.enable()


def test_no_grad_and_tensors_without_gradient_record_nothing(squares, x):
    with tg.no_grad():
        assert not squares.by_call(x).requires_grad and not squares.by_hand(x).requires_grad
    assert not squares.by_memory(x.detach()).requires_grad


def test_a_kernel_that_wants_its_tensors_dense_gets_copies(squares):
    x = tg.arange(6.0).reshape(2, 3)
    for _ in range(10):
        assert squares.plus(x.t(), 1.0).tolist() == [[1, 4], [2, 5], [3, 6]]
        assert squares.plus(x[:, 1], 1.0).tolist() == [2, 5]
        assert squares.plus(tg.tensor(2.0).expand(2, 2)).tolist() == [[3, 3], [3, 3]]


def test_an_op_that_writes_counts_one_mutation(squares):
    x = tg.ones(3)
    version = x._version
    assert squares.scale_(x, 3) is x
    assert x.tolist() == [3, 3, 3] and x._version == version + 1


def test_an_op_that_writes_is_differentiated(squares):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    for _ in range(3):
        squares.scale_(y, 3.0)
    (y * y).sum().backward()
    assert x.grad.tolist() == [2 * 27**2, 4 * 27**2]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        squares.scale_(x, 3.0)


def test_memory_of_a_tensor_that_is_shared_is_refused_to_writers(squares):
    import numpy as np

    a = np.ones(3, np.float32)
    a.flags.writeable = False
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="read-only|not writ"):
        squares.scale_(tg.from_numpy(a), 3.0)
