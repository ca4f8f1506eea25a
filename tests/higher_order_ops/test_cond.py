"""`cond` chooses a branch each time, in eager mode, in graphs, under transforms; gradients go through what ran."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, func, jit, nn
from tinygrad_ext.fx.experimental.proxy_tensor import make_fx
from tinygrad_ext.graph import capture
from tinygrad_ext.graph.capture import CaptureError

X = tg.arange(6.0).reshape(2, 3)
W = tg.full((3,), 0.5, requires_grad=True)


def either(x):
    return tg.cond(x.sum() > 1, lambda x: (x * W).sin(), lambda x: (x + W).cos(), (x,))


def gradients(function, x):
    x, W.grad = x.clone().requires_grad_(), None
    result = function(x)
    result.square().sum().backward()
    return result.detach(), x.grad, W.grad


@pytest.mark.parametrize("x", [X, -X, tg.ones(5, 3), -tg.ones(1, 3)])
def test_a_traced_choice_gives_the_bits_and_the_gradients_of_eager_mode(x):
    traced = jit.trace(either, X)
    assert all(map(tg.equal, gradients(traced, x), gradients(either, x)))


def test_a_whole_step_takes_the_branch_of_its_numbers():
    def step(x):
        loss = either(x).sum()
        loss.backward()
        return loss

    W.grad = None
    traced = jit.trace(step, (X,))
    for x in (X, -X):
        W.grad = None
        loss, W.grad = step(x), W.grad
        wanted, W.grad = W.grad, None
        assert tg.equal(traced(x), loss) and tg.equal(W.grad, wanted)


def test_an_exported_program_keeps_both_branches_in_its_file():
    class Choice(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(tg.ones(3))

        def forward(self, x):
            return tg.cond(x.sum() > 1, lambda x: x * self.w, lambda x: x - self.w, [x])

    module, file = Choice(), io.BytesIO()
    export.save(export.export(module, (X,)), file)
    file.seek(0)
    loaded = export.load(file).module()
    assert tg.equal(loaded(X), module(X)) and tg.equal(loaded(-X), module(-X))


def test_branches_use_what_was_computed_before_them_nest_and_return_containers():
    def program(x):
        y = x.sin()

        def inner():
            return tg.cond(y.sum() > 0, lambda: {"a": y + x, "b": (y,)}, lambda: {"a": y - x, "b": (x,)})

        return tg.cond(x.sum() > 10, lambda x: {"a": x * 2, "b": (x * 3,)}, lambda x: inner(), (x,))

    compiled = tg.compile(program, fullgraph=True)
    for x in (X, X / 9, -X):
        assert tg.equal(compiled(x)["a"], program(x)["a"]) and tg.equal(compiled(x)["b"][0], program(x)["b"][0])


def test_a_branch_may_write_to_what_it_made():
    def program(x):
        def first(x):
            y = x * 1
            y[0] = 5
            return y.mul_(2)

        return tg.cond(x.sum() > 1, first, lambda x: x * 3, (x,))

    compiled = tg.compile(program, fullgraph=True)
    assert tg.equal(compiled(X), program(X)) and tg.equal(compiled(-X), program(-X))


def test_a_guard_within_a_branch_says_nothing_of_what_follows():
    def program(x, n):
        def first(x):
            return x * 2 if n > 3 else x

        y = tg.cond(x.sum() > 1, first, lambda x: x * 3, (x,))
        return y + (10 if n > 3 else 20)

    compiled = tg.compile(program, fullgraph=True)
    for x, n in ((-X, 5), (-X, 1), (X, 5), (X, 1)):
        assert tg.equal(compiled(x, n), program(x, n))


def test_each_sample_has_its_branch_under_vmap():
    x = tg.arange(4.0)
    found = func.vmap(lambda x: tg.cond(x > 1, tg.sin, tg.cos, (x,)))(x)
    assert tg.equal(found, tg.where(x > 1, x.sin(), x.cos()))


def test_it_is_differentiated_by_transforms_captured_or_not():
    gradient = func.grad(lambda x: tg.cond(x.sum() > 1, tg.sin, tg.cos, (x,)).sum())
    assert tg.equal(gradient(X), X.cos())
    compiled = tg.compile(gradient, fullgraph=True)
    assert tg.equal(compiled(X), X.cos()) and tg.equal(compiled(-X), X.sin())


def test_a_truth_value_and_a_size_choose_once():
    assert tg.cond(True, lambda: 1, lambda: 2) == 1
    compiled = tg.compile(lambda x: tg.cond(x.shape[0] > 1, lambda x: x.sum(0), lambda x: x[0] * 1, (x,)))
    assert tg.equal(compiled(X), X.sum(0)) and tg.equal(compiled(X[:1]), X[0])


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda x: tg.cond(x > 1, tg.sin, tg.cos, (x,)), "single-element"),
        (lambda x: tg.cond(x.sum() > 1, 1, tg.cos, (x,)), "true_fn must be callable"),
        (lambda x: tg.cond(x.sum() > 1, tg.sin, tg.cos, x), "operands must be a tuple"),
    ],
)
def test_wrong_arguments_are_refused_in_every_mode(call, word):
    with pytest.raises(RuntimeError, match=word):
        call(X)
    with pytest.raises(RuntimeError, match=word):
        capture(call)(X)


@pytest.mark.parametrize(
    ("branch", "word"),
    [
        (lambda x: x.add_(1), "true_fn writes to a tensor that was there before"),
        (lambda x: W.detach().add_(1), "true_fn writes to a tensor that was there before"),
        (lambda x: x * tg.rand(3, generator=tg.Generator()), "true_fn draws random numbers"),
        (lambda x: (x, x), "the same structure"),
        (lambda x: x.sum(), "result 0 of true_fn is .*float32 of 0 dimensions"),
        (lambda x: x.double(), "result 0 of true_fn is .*float64 of 2 dimensions"),
    ],
)
def test_what_a_branch_cannot_hold_is_refused_where_it_is_captured(branch, word):
    with pytest.raises(CaptureError, match=word):
        capture(lambda x: tg.cond(x.sum() > 1, branch, tg.cos, (x,)))(X.clone())


def test_samples_need_one_structure_too():
    with pytest.raises(CaptureError, match="the same structure"):
        func.vmap(lambda x: tg.cond(x > 1, lambda x: (x,), tg.cos, (x,)))(tg.arange(4.0))


def test_nothing_requires_a_gradient_under_no_grad():
    with tg.no_grad():
        assert not tg.compile(either, fullgraph=True)(X).requires_grad


@pytest.mark.parametrize(
    "program",
    [
        lambda x, p: tg.cond(x.sum() > 1, lambda: p, lambda: p * 1).add_(1),
        lambda x, p: tg.cond(x.sum() > 1, lambda x: x.view(-1), lambda x: x.view(-1) * 1, (x,)) + x.mul_(0).sum(),
        lambda x, p: [t.mul_(2) for t in tg.cond(x.sum() > 1, lambda x: [x + 1] * 2, lambda x: [x, x + 1], (x,))],
    ],
)
def test_what_a_branch_shares_with_others_is_not_written_to(program):
    with pytest.raises(CaptureError, match=r"what was returned lies in memory .*Return a clone"):
        capture(program)(X.clone(), X.clone())


def test_branches_may_hand_on_what_nobody_writes_to():
    def program(x):
        return tg.cond(x.sum() > 1, lambda x: x, lambda x: x.view(-1).view(x.shape), (x,)) * 2

    compiled = tg.compile(program, fullgraph=True)
    assert tg.equal(compiled(X), program(X)) and tg.equal(compiled(-X), program(-X))


def test_branches_are_kept_under_autocast():
    def program(x):
        with tg.autocast("cpu", tg.bfloat16):
            return tg.cond(x.sum() > 1, lambda x: x @ x.mT, lambda x: x @ (x - 1).mT, (x,))

    compiled = tg.compile(program, fullgraph=True)
    for x in (X, -X):
        assert compiled(x).dtype == tg.bfloat16 and tg.equal(compiled(x), program(x))


def test_a_choice_of_one_element_gives_no_dimension_to_samples():
    found = func.vmap(lambda x, p: tg.cond(p, lambda x: x, lambda x: -x, (x,)))(tg.ones(3), tg.ones(3, 1) > 0)
    assert found.shape == (3,)


# ---- branches that draw ----------------------------------------------------------------------------------------------

OWN = tg.Generator()


def one_draws(x):
    return tg.cond(x.sum() > 1, lambda x: x * tg.rand(3), tg.cos, (x,)) + tg.rand(3)


def both_draw(x):
    return tg.cond(x.sum() > 1, lambda x: nn.functional.dropout(x, 0.5), lambda x: x * tg.randn(2, 3), (x,)) * W


def one_in_another(x):
    y = tg.cond(x.sum() > 1, lambda: (x * tg.rand(3), 1), lambda: (x - 1, 1))[0]
    return tg.cond(y.sum() > 1, lambda y: tg.cond(y[1, 1] > 2, lambda: y * tg.randn(3), lambda: y), tg.cos, (y,))


def from_a_generator(x):
    return tg.cond(x.sum() > 1, lambda x: x * tg.rand(3, generator=OWN) + tg.rand(3), tg.cos, (x,))


def drawn(function, x):
    """Result, gradient and what is drawn next."""
    tg.manual_seed(3)
    OWN.manual_seed(4)
    x = x.clone().requires_grad_()
    result = function(x)
    (grad,) = tg.autograd.grad(result.square().sum(), x)
    return result, grad, tg.rand(2), tg.rand(2, generator=OWN)


def handed(function):
    return tg.compile(function, fullgraph=True, backend=lambda module, inputs: module.forward)


def saved(function):
    room = io.BytesIO()
    jit.save(jit.trace(function, (X,)), room)
    room.seek(0)
    return jit.load(room)


@pytest.mark.parametrize("program", [one_draws, both_draw, one_in_another])
@pytest.mark.parametrize(
    "made",
    [lambda f: jit.trace(f, (X,)), lambda f: tg.compile(f, fullgraph=True), handed, saved, lambda f: make_fx(f)(X)],
    ids=["trace", "compile", "backend", "archive", "make_fx"],
)
def test_branches_draw_the_numbers_of_eager_mode(program, made):
    run = made(program)
    for x in (X, -X, X * 0.1, X):
        before, after = drawn(program, x), drawn(run, x)
        assert all(map(tg.equal, before, after)), (before, after)


def test_a_branch_draws_from_a_generator_of_the_program():
    run = jit.trace(from_a_generator, (X,))
    for x in (X, -X):
        assert all(map(tg.equal, drawn(from_a_generator, x), drawn(run, x)))


def test_an_exported_branch_draws():
    class Program(nn.Module):
        def forward(self, x):
            return one_in_another(x)

    module = export.export(Program(), (X,)).module()
    for _ in range(2):
        tg.manual_seed(5)
        expected = one_in_another(X)
        tg.manual_seed(5)
        assert tg.equal(module(X), expected)
        module.recompile()


@pytest.mark.parametrize("other", [lambda x: x.max().item(), lambda x: 2.0])
def test_a_branch_gives_what_item_gave(other):
    def called(x):
        return x * tg.cond(x.sum() > 1, lambda x: x.sum().item(), other, (x,))

    for made in (jit.trace(called, (X,)), tg.compile(called, fullgraph=True), saved(called)):
        for x in (X, -X, X * 2):
            assert tg.equal(made(x), called(x))
            y, z = x.clone().requires_grad_(), x.clone().requires_grad_()
            assert tg.equal(*(tg.autograd.grad(f(t).sum(), t)[0] for f, t in ((made, y), (called, z))))
