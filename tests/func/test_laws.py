"""Laws of vmap and of its nests with derivatives, on random programs; memory of batches in chunks."""

import matrix_steps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

STEPS = (
    *matrix_steps.STEPS,
    lambda a, b: tg.nn.functional.layer_norm(a, (3,), b[0], b[1]),
    lambda a, b: a.index_select(0, tg.tensor([2, 0, 0])) + b.roll(1, 0),
    lambda a, b: a[:, tg.tensor([1, 2, 0])] * b[0],
    lambda a, b: tg.zeros_like(a * b).copy_(b) + a.amax(0),
    lambda a, b: tg.nn.functional.conv1d(a[None], b[:, :, None])[0].tanh(),
)
programs = st.lists(st.sampled_from(range(len(STEPS))), min_size=1, max_size=5)
seeds = st.integers(0, 1000)
quick = settings(max_examples=40, deadline=None)


def program(chosen):
    """A function of two 3 x 3 matrices; what a step gives is brought between -1 and 1, lest products overflow."""

    def run(a, b):
        for i in chosen:
            a, b = STEPS[i](a, b).tanh(), a
        return a

    return run


def numbers(seed, *shapes):
    generator = tg.Generator().manual_seed(seed)
    return [tg.randn(*s, dtype=tg.float64, generator=generator) for s in shapes]


def agree(got, want):
    tg.testing.assert_close(got, want, rtol=1e-8, atol=1e-9)


@quick
@given(programs, seeds)
def test_two_batches_are_one(chosen, seed):
    f = program(chosen)
    a, b = numbers(seed, (2, 4, 3, 3), (2, 4, 3, 3))
    one = vmap(f)(a.flatten(0, 1), b.flatten(0, 1)).unflatten(0, (2, 4))
    agree(vmap(vmap(f))(a, b), one)
    agree(vmap(vmap(f, -3, -3), 0, 0)(a, b), one)
    agree(vmap(vmap(f), 1, 1)(a, b), one)


@quick
@given(programs, seeds, st.permutations(range(3)), st.integers(0, 2))
def test_the_batch_may_stand_anywhere(chosen, seed, order, out):
    f = program(chosen)
    a, b = numbers(seed, (4, 3, 3), (4, 3, 3))
    want = vmap(f)(a, b)
    at = order.index(0)
    turned = a.movedim(0, at)
    agree(vmap(f, (at, 0), out)(turned, b), want.movedim(0, out))
    agree(vmap(f, (at - 3, 0), out - 3)(turned, b), want.movedim(0, out))


@quick
@given(programs, seeds)
def test_what_is_shared_may_as_well_be_repeated(chosen, seed):
    f = program(chosen)
    a, b = numbers(seed, (4, 3, 3), (3, 3))
    agree(vmap(f, (0, None))(a, b), vmap(f)(a, b.expand(4, 3, 3)))
    agree(vmap(f, (None, 0))(b, a), vmap(f)(b.repeat(4, 1, 1), a))


@quick
@given(programs, seeds, st.integers(1, 6))
def test_chunks_change_nothing(chosen, seed, size):
    f = program(chosen)
    a, b = numbers(seed, (5, 3, 3), (5, 3, 3))
    agree(vmap(f, chunk_size=size)(a, b), vmap(f)(a, b))


@quick
@given(programs, seeds)
def test_the_gradient_of_a_batch_is_the_batch_of_gradients(chosen, seed):
    f = program(chosen)
    a, b = numbers(seed, (4, 3, 3), (3, 3))
    loss = lambda a, b: f(a, b).sum()
    each = vmap(grad(loss, (0, 1)), (0, None))(a, b)
    together = grad(lambda a, b: vmap(loss, (0, None))(a, b).sum(), (0, 1))(a, b)
    agree(together[0], each[0])
    agree(together[1], each[1].sum(0))


@quick
@given(programs, seeds)
def test_products_with_a_jacobian_and_its_transpose(chosen, seed):
    f = program(chosen)
    a, b, v, w, u = numbers(seed, *[(4, 3, 3)] * 5)
    run = lambda a, b: vmap(f)(a, b)
    slope = jvp(run, (a, b), (v, w))[1]
    left, right = vjp(run, a, b)[1](u)
    agree((slope * u).sum(), (left * v).sum() + (right * w).sum())
    agree(vmap(lambda *t: jvp(f, t[:2], t[2:])[1])(a, b, v, w), slope)
    agree(jvp(run, (a, b), (2 * v, 2 * w))[1], 2 * slope)


@settings(max_examples=15, deadline=None)
@given(programs, seeds)
def test_second_derivatives_in_all_four_ways(chosen, seed):
    f = program(chosen)
    a, b = numbers(seed, (3, 3), (3, 3))
    loss = lambda a: f(a, b).sum()
    want = jacrev(jacrev(loss))(a)
    for other in (hessian(loss), jacrev(jacfwd(loss)), jacfwd(jacfwd(loss))):
        agree(other(a), want)
    rows = tg.stack([a, a * 0.5])
    agree(vmap(hessian(loss))(rows), tg.stack([hessian(loss)(r) for r in rows]))


def test_no_level_is_confused_with_another():
    x = tg.tensor(1.5, dtype=tg.float64)
    inner = lambda y: grad(lambda x: x * y)(x)  # 1.5's derivative by x is y, whatever y is carried by
    agree(grad(lambda y: inner(y) * y)(x), 2 * x)
    agree(jvp(lambda y: inner(y) * y, (x,), (tg.ones((), dtype=tg.float64),))[1], 2 * x)
    one = tg.ones((), dtype=tg.float64)
    pushed = lambda y: jvp(lambda x: x * y, (x,), (one,))[1]
    agree(grad(lambda y: pushed(y) * y)(x), 2 * x)
    agree(jvp(lambda y: pushed(y) * y, (x,), (one,))[1], 2 * x)
    rows = tg.tensor([1.0, 2.0], dtype=tg.float64)
    agree(vmap(grad(lambda y: pushed(y) * inner(y)))(rows), 2 * rows)
    agree(grad(lambda x: x * grad(lambda y: x + y)(one))(x), one)  # the inner derivative is 1, not 2


@pytest.mark.parametrize("run", [vmap, lambda f, **k: jacrev(f, **k)], ids=["vmap", "jacrev"])
def test_chunks_need_less_memory(run):
    rows = tg.rand(64, 64, dtype=tg.float64)  # a product of fewer rows may round otherwise

    def f(row):
        return (row[:, None] * row[None] if row.dim() == 1 else row @ row.T).sin().exp().sum(-1)

    def peak(**words):
        tg.empty_cache()
        tg.reset_peak_memory_stats()
        before = tg.memory_stats()["allocated"]
        result = run(f, **words)(rows)
        return tg.memory_stats()["peak"] - before, result

    whole, all_at_once = peak()
    chunks, in_parts = peak(chunk_size=4)
    agree(in_parts, all_at_once)
    assert chunks < 0.8 * whole, (chunks, whole)
