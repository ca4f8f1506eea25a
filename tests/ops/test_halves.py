"""float16 and bfloat16 where no loop of their own exists: computed in float32 and rounded once."""

import numpy as np
import pytest

import tinygrad_ext as tg

F = tg.nn.functional
WAYS = {
    "exp": tg.exp,
    "sin": tg.sin,
    "pow": lambda x: x**1.5,
    "clamp": lambda x: x.clamp(0.25, 0.5),
    "gelu": F.gelu,
    "lerp": lambda x: tg.lerp(x, x * 2, 0.25),
    "cumsum": lambda x: x.cumsum(1),
    "cummax": lambda x: x.cummax(1).values,
    "amax": lambda x: x.amax(0),
    "var": lambda x: x.var(1),
    "prod": lambda x: x.prod(1),
    "norm": lambda x: x.norm(),
    "softmax": lambda x: x.softmax(1),
    "layer_norm": lambda x: F.layer_norm(x, (5,)),
    "max_pool1d": lambda x: F.max_pool1d(x[None], 2),
}


@pytest.fixture(params=["float16", "bfloat16"])
def half(request):
    return getattr(tg, request.param)


def drawn(half, *shape):
    return tg.rand(*shape, generator=tg.Generator().manual_seed(3)).add(0.1).to(half)


@pytest.mark.parametrize("name", WAYS)
def test_result_is_that_of_float32_rounded_once(name, half):
    x = drawn(half, 4, 5)
    got, want = WAYS[name](x), WAYS[name](x.float())
    assert got.dtype is half
    np.testing.assert_array_equal(got.float().numpy(), want.to(half).float().numpy())


@pytest.mark.parametrize("name", WAYS)
def test_gradient_is_near_that_of_float32(name, half):
    x = drawn(half, 4, 5).requires_grad_()
    wide = x.detach().float().requires_grad_()
    WAYS[name](x).sum().backward()
    WAYS[name](wide).sum().backward()
    assert x.grad.dtype is half
    tolerance = 2e-2 if half is tg.float16 else 1e-1
    np.testing.assert_allclose(x.grad.float().numpy(), wide.grad.numpy(), tolerance, tolerance)


def test_inplace_out_and_meta(half):
    x = drawn(half, 6)
    out, want = tg.empty(6, dtype=half), x.float().exp().to(half)
    assert tg.exp(x, out=out) is out and out.equal(want)
    room = tg.zeros(12, dtype=half)
    tg.exp(x, out=room[::2])
    assert room[::2].equal(want) and room[1::2].tolist() == [0] * 6
    assert tg.cumsum(x, 0, out=out).equal(x.cumsum(0))
    assert x.clone().exp_().equal(want) and x.clone().cumsum_(0).equal(x.float().cumsum(0).to(half))
    assert tg.empty(3, dtype=half, device="meta").exp().softmax(0).dtype is half
    every = drawn(half, 12)
    every[::2].exp_()
    assert every[::2].equal(drawn(half, 12)[::2].exp()) and every[1::2].equal(drawn(half, 12)[1::2])


def test_dtype_that_is_asked_for_decides(half):
    assert drawn(half, 4).softmax(0, dtype=tg.float32).dtype is tg.float32
    got = tg.cumsum(tg.arange(5.0), 0, dtype=half)
    assert got.dtype is half and got.tolist() == [0, 1, 3, 6, 10]


def test_large_and_strided(half):
    x = drawn(half, 300, 300).t()
    assert x.exp().equal(x.float().exp().to(half)) and x.softmax(0).equal(x.float().softmax(0).to(half))


def test_a_traced_function_gives_what_eager_gives(half):
    def model(x):
        return (x.exp() * x).softmax(0).tanh().cumsum(0)

    x = drawn(half, 7)
    traced = tg.jit.trace(model, (x,))
    for given in (x, drawn(half, 7) / 2):
        assert traced(given).dtype is half and traced(given).equal(model(given))


@pytest.mark.parametrize("wide", [False, True])
def test_running_statistics_are_moved_in_their_own_dtype(wide, half):
    """float32 statistics and weights beside a half, as PyTorch takes them, or all in the half."""
    kept = tg.float32 if wide else half
    x, weight = drawn(half, 6, 4).requires_grad_(), drawn(kept, 4).requires_grad_()
    running = tg.zeros(8, dtype=kept)[::2], tg.ones(4, dtype=kept)
    want = [r.float().clone() for r in running]
    y = F.batch_norm(x, *running, weight, training=True)
    z = F.batch_norm(x.detach().float(), *want, weight.detach().float(), training=True)
    assert y.dtype is half and y.equal(z.to(half))
    for r, w in zip(running, want):
        assert r.dtype is kept and r.equal(w.to(kept))
    y.sum().backward()
    assert x.grad.dtype is half and weight.grad.dtype is kept


def test_a_float32_input_wants_no_parameters_in_a_half(half):
    with pytest.raises(RuntimeError, match="mixed dtype"):
        F.layer_norm(tg.rand(2, 3), (3,), drawn(half, 3))


def test_dropout_draws_what_float32_draws_and_rounds_its_factor(half):
    x = drawn(half, 40)
    tg.manual_seed(5)
    y = F.dropout(x, 0.3)
    tg.manual_seed(5)
    factor = F.dropout(tg.ones(40), 0.3).to(half)
    assert y.dtype is half and y.equal(x * factor) and 0 < (y == 0).sum() < 40


def test_pairs_of_halves_are_complex_where_there_is_such_a_dtype(half):
    pairs = drawn(half, 3, 2)
    if half is tg.float16:
        assert tg.view_as_complex(pairs).dtype is tg.complex32
        return
    with pytest.raises(RuntimeError, match="view_as_complex"):
        tg.view_as_complex(pairs)


def every(half):
    """Each number there is, NaN apart by the caller."""
    return tg.arange(65536).to(tg.int32).to(tg.int16).view(half)


@pytest.mark.parametrize("name", ["neg", "abs", "relu"])
def test_what_is_done_to_bits_is_what_is_done_to_numbers(name, half):
    x = every(half)
    got, want = getattr(tg, name)(x), getattr(tg, name)(x.float()).to(half)
    real = ~x.isnan()
    assert got[real].view(tg.int16).equal(want[real].view(tg.int16))
    assert got[~real].isnan().all()


@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 33, 70])
def test_arithmetic_of_any_length_and_stride_has_the_same_bits(count, half):
    x, y = drawn(half, 2 * count), drawn(half, 3 * count)
    numbers = [lambda a, b: tg.add(a, b, alpha=0.3), lambda a, b: a * 1.7, lambda a, b: 2.5 - a]
    for way in (tg.add, tg.sub, tg.mul, tg.div, *numbers):
        got = way(x[::2], y[::3])
        assert got.equal(way(x[::2].contiguous(), y[::3].contiguous()))
        assert got.equal(tg.stack([way(a, b) for a, b in zip(x[::2], y[::3], strict=True)]))
    assert (x[::2] * y[::3]).equal((x[::2].float() * y[::3].float()).to(half))


@pytest.mark.parametrize("rows, n", [(5, 1), (700, 3), (3, 2048), (2, 4096), (2, 4097)])
def test_rows_are_those_of_float32_rounded_once(rows, n, half):
    x = drawn(half, rows, n)
    ways = [
        lambda x: x.softmax(1),
        lambda x: x.log_softmax(1),
        lambda x: F.layer_norm(x, (n,)),
        lambda x: F.layer_norm(x, (n,), x[0], x[1]),
        lambda x: tg._softmax_backward_data(x, x, 1, x.dtype),
    ]
    for way in ways:
        assert way(x).equal(way(x.float()).to(half))
    assert F.layer_norm(x, (n,), x[0].float()).equal(F.layer_norm(x, (n,), x[0]))


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (70, 3), (64, 64), (200, 17), (200, 128), (2100, 40), (1100, 64)])
def test_sums_are_near_and_the_same_in_any_layout(shape, half):
    x = drawn(half, *shape)
    turned = x.T.contiguous().T
    for dim in (0, 1, (0, 1)):
        got = x.sum(dim)
        assert got.equal(turned.sum(dim))
        np.testing.assert_allclose(got.double().numpy(), x.double().sum(dim).numpy(), tg.finfo(half).eps)


@pytest.mark.parametrize(
    "other", [0.3, -2.3, 3, 1e5, tg.tensor(0.3), tg.tensor(1 / 3, dtype=tg.float64), tg.tensor(2049)]
)
def test_a_number_beside_halves_is_not_made_one_of_them(other, half):
    x = drawn(half, 70, 33)
    ways = [
        lambda x, s: x * s,
        lambda x, s: x / s,
        lambda x, s: x // s,
        lambda x, s: tg.div(x, s, rounding_mode="trunc"),
        lambda x, s: x.clone().mul_(s),
        lambda x, s: tg.div(x, s, out=tg.empty_like(x)),
    ]
    exact = other.float() if isinstance(other, tg.Tensor) else other
    for way in ways:
        got = way(x, other)
        assert got.dtype is half
        assert got.equal(way(x.float(), exact).to(half))
        assert tg.jit.trace(lambda x, way=way: way(x, other), (x,))(x).equal(got)
        assert way(x.T, other).equal(got.T)
        assert way(x[:, ::3], other).equal(got[:, ::3])
        assert way(x.repeat(30, 20), other).equal(got.repeat(30, 20))


def test_a_number_of_a_script_beside_halves_is_none_of_them_either(half):
    scale = tg.jit.CompilationUnit("def scale(x, s: float):\n    return (x * s + x) / (s + 1)\n").scale
    x = drawn(half, 100)
    for s in (0.3, 1.7, 2.9):
        assert scale(x, s).equal((x * s + x) / (s + 1))


def test_gradients_by_a_number_keep_it_whole(half):
    x, seed = drawn(half, 100).requires_grad_(), drawn(half, 100)
    for way in (lambda x: x * 0.3, lambda x: x / 0.3):
        assert tg.autograd.grad(way(x), x, seed)[0].equal(way(seed.float()).to(half))


def test_gradients_that_are_summed_round_after_the_sum(half):
    x, w, seed = drawn(half, 6, 4, 5), drawn(half, 4), drawn(half, 6, 4, 5)
    ways = [
        lambda x, w: F.group_norm(x, 2, w, w),
        lambda x, w: F.instance_norm(x, weight=w, bias=w),
        lambda x, w: tg.lerp(w[0], x, 0.3),
    ]
    for way in ways:
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        wide = [t.detach().float().requires_grad_() for t in (a, b)]
        got = tg.autograd.grad(way(a, b), (a, b), seed)
        want = tg.autograd.grad(way(*wide), wide, seed.float())
        for g, e in zip(got, want, strict=True):
            np.testing.assert_allclose(g.double().numpy(), e.double().numpy(), tg.finfo(half).eps, 1e-4)


def test_the_exponential_of_a_matrix_of_halves_is_that_of_float32_rounded(half):
    x = drawn(half, 2, 3, 3)
    assert tg.linalg.matrix_exp(x).equal(tg.linalg.matrix_exp(x.float()).to(half))
