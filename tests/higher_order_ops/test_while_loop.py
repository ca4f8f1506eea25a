"""`while_loop` takes as many turns as the numbers ask for, in eager mode and in graphs, and back."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, jit, nn
from tinygrad_ext.fx.experimental.proxy_tensor import make_fx
from tinygrad_ext.graph import capture
from tinygrad_ext.graph.capture import CaptureError

X = tg.arange(6.0).reshape(2, 3)
W = tg.full((3,), 0.5, requires_grad=True)
ZERO = tg.tensor(0)


def grown(x):
    return tg.while_loop(lambda i, y: (i < 40) & (y.sum() < 100), lambda i, y: (i + 1, y * 1.1 + W), (ZERO, x))


@pytest.mark.parametrize("x", [X, X * 3, -X, X * 100, tg.ones(5, 3)])
def test_a_captured_loop_takes_the_turns_of_its_numbers(x):
    compiled = tg.compile(grown, fullgraph=True)
    compiled(X)
    assert all(map(tg.equal, compiled(x), grown(x)))


@pytest.mark.parametrize("x", [X, -X, X / 50])
def test_gradients_go_back_through_all_turns(x):
    def last(x):
        return grown(x)[1]

    found = []
    for function in (last, jit.trace(last, X)):
        leaf, W.grad = x.clone().requires_grad_(), None
        function(leaf).square().sum().backward()
        found.append((leaf.grad, W.grad))
    for eager, traced in zip(*found):
        tg.testing.assert_close(traced, eager)


def test_what_needs_a_gradient_after_the_first_turn_alone_is_found():
    def program(x):
        return tg.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b * 2, b * W), (ZERO, x, x))[1]

    traced, found = jit.trace(program, X), []
    for function in (program, traced):
        W.grad = None
        function(X).sum().backward()
        found.append(W.grad)
    assert tg.equal(*found)


def test_a_loop_is_saved_and_loaded():
    file = io.BytesIO()
    jit.save(jit.trace(lambda x: grown(x)[1].detach(), X), file)
    file.seek(0)
    loaded = jit.load(file)
    assert all(tg.equal(loaded(x), grown(x)[1]) for x in (X, X * 3, -X))


def test_lists_and_numbers_are_carried_by_python():
    count, x = tg.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + 1), (0, X))
    assert count == 3 and tg.equal(x, X + 3)
    assert tg.while_loop(lambda x: x.sum() < 3, lambda x: [x + 1], [tg.zeros(2)])[0].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda x: tg.while_loop(lambda x: x, lambda x: (x,), (x,)), "single-element"),
        (lambda x: tg.while_loop(lambda x: x.sum() < 30, lambda x: x + 1, (x,)), "body_fn gives"),
        (lambda x: tg.while_loop(1, lambda x: x + 1, (x,)), "cond_fn must be callable"),
        (lambda x: tg.while_loop(lambda x: x.sum() < 30, lambda x: x + 1, x), "carried_inputs must be a tuple"),
    ],
)
def test_wrong_arguments_are_refused_in_every_mode(call, word):
    with pytest.raises(RuntimeError, match=word):
        call(X)
    with pytest.raises(RuntimeError, match=word):
        capture(call)(X)


@pytest.mark.parametrize(
    ("body", "start", "word"),
    [
        (lambda x: (x.add_(1),), (X,), "writes to a tensor that was there before"),
        (lambda x: (x + tg.rand(3, generator=tg.Generator()),), (X,), "body_fn draws random numbers"),
        (lambda x: (x.sum(),), (X,), "entry 0 is .*float32 of 2 dimensions before a turn"),
        (lambda x: (1.5,), (X,), "body_fn gives float"),
        (lambda x: (x + 1,), (1.5,), "carries tensors"),
    ],
)
def test_what_a_loop_cannot_hold_is_refused_where_it_is_captured(body, start, word):
    with pytest.raises(CaptureError, match=word):
        capture(lambda y: tg.while_loop(lambda x: y.sum() < 3, body, start))(X)


def test_a_loop_without_a_turn_gives_memory_of_its_own():
    start = X.clone()
    (found,) = tg.while_loop(lambda x: x.sum() < -1e9, lambda x: (x + 1,), (start,))
    found.add_(1)
    assert tg.equal(start, X) and tg.equal(found, X + 1)


def test_what_a_loop_hands_on_is_not_written_to():
    def program(x):
        y, _ = tg.while_loop(lambda y, z: z.sum() < 30, lambda y, z: (y, z + y * y), (x, x * 0))
        return y.add_(1)

    with pytest.raises(CaptureError, match="while_loop: what was returned lies in memory"):
        capture(program)(X.clone())


# ---- turns that draw -------------------------------------------------------------------------------------------------

OWN = tg.Generator()


def drawing(x):
    def body(i, y):
        return i + 1, y * tg.rand(3) + nn.functional.dropout(y * W, 0.5) + tg.randn(3, generator=OWN)

    return tg.while_loop(lambda i, y: (i < 5) & (y.sum() < 50), body, (ZERO, x + tg.rand(3)))[1] + tg.rand(3)


def drawing_in_a_branch(x):
    def body(i, y):
        return i + 1, tg.cond(y.sum() > 3, lambda y: y * tg.rand(3), lambda y: y + 1, (y,))

    return tg.while_loop(lambda i, y: i < 5, body, (ZERO, x))[1] * tg.rand(3)


def drawing_in_a_loop(x):
    def body(i, y):
        return i + 1, tg.while_loop(lambda z: z.sum() < 9, lambda z: (z * W + tg.rand(3),), (y,))[0] - i

    return tg.while_loop(lambda i, y: i < 3, body, (ZERO, x))[1]


def all_of(function, x):
    """Result, gradients and what is drawn next."""
    tg.manual_seed(3)
    OWN.manual_seed(4)
    x, W.grad = x.clone().requires_grad_(), None
    result = function(x)
    grads = tg.autograd.grad(result.square().sum(), (x, W), allow_unused=True, materialize_grads=True)
    return result, *grads, tg.rand(2), tg.rand(2, generator=OWN)


def handed(function):
    return tg.compile(function, fullgraph=True, backend=lambda module, inputs: module.forward)


@pytest.mark.parametrize("program", [drawing, drawing_in_a_branch, drawing_in_a_loop])
@pytest.mark.parametrize(
    "made",
    [lambda f: jit.trace(f, (X,)), lambda f: tg.compile(f, fullgraph=True), handed, lambda f: make_fx(f)(X)],
    ids=["trace", "compile", "backend", "make_fx"],
)
def test_turns_draw_the_numbers_of_eager_mode(program, made):
    run = made(program)
    for x in (X, -X, X * 100, X):
        for before, after in zip(all_of(program, x), all_of(run, x)):
            tg.testing.assert_close(after, before)


def test_turns_that_draw_are_exported_and_saved():
    class Program(nn.Module):
        def forward(self, x):
            return drawing_in_a_branch(x)

    room = io.BytesIO()
    export.save(export.export(Program(), (X,)), room)
    room.seek(0)
    module = export.load(room).module()
    for _ in range(2):
        tg.manual_seed(5)
        expected = drawing_in_a_branch(X), tg.rand(1)
        tg.manual_seed(5)
        assert all(map(tg.equal, (module(X), tg.rand(1)), expected))
        module.recompile()
