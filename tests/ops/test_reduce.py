"""Rules of reductions and scans that the sweep over the op table does not know."""

import math
import threading

import numpy as np
import pytest
from tinygrad_ext.core.loops.parallel import get_num_threads, set_num_threads

import tinygrad_ext as tg


@pytest.fixture
def threads():
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


def bits(t):
    return t.reshape(-1).view(tg.uint8).numpy().tobytes()


def uneven(*shape, seed=0):
    """float32 values of very different size, whose sum shows its order."""
    rng = np.random.default_rng(seed)
    return tg.tensor((rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)).astype(np.float32))


# ---- sums ----------------------------------------------------------------------------------------------------------


def test_a_long_float32_sum_is_right():
    x = tg.full((20_000_000,), 0.1)
    assert x.sum().item() == pytest.approx(20_000_000 * float(np.float32(0.1)), rel=1e-7)
    assert x.mean().item() == np.float32(0.1)
    assert x.view(-1, 4).sum(0)[0].item() == pytest.approx(5_000_000 * float(np.float32(0.1)), rel=1e-7)


SHAPES = [(3, 70_000), (70_000, 3), (5, 64, 130), (2, 9, 4, 7), (4097,), (200, 200), (17, 5), (401, 330)]
# those that are reduced without a plan, and their neighbours: one block of elements, one row of outputs, sizes of one
SHAPES += [(4, 1), (1, 8), (1, 1), (4, 16), (2048, 9), (2049, 8), (7, 130), (3, 1, 5, 1), (9, 33)]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", ["sum", "mean", "var", "logsumexp", "norm", "prod"])
def test_layout_does_not_change_the_bits(shape, op):
    x = uneven(*shape)
    if op == "prod":
        x = 1 + x / x.abs().max() / 10
    dims = [(d,) for d in range(len(shape))] + [tuple(range(len(shape)))]
    order = tuple(reversed(range(len(shape))))
    turned = x.permute(order).contiguous().permute(order)
    wide = tg.zeros(*shape[:-1], 2 * shape[-1])
    wide[..., ::2] = x
    for dim in dims:
        if op == "prod":
            run = lambda t: t.prod(dim[0]) if len(dim) == 1 else t.prod()
        elif op == "norm":
            run = lambda t: t.norm(2, dim)
        else:
            run = lambda t: getattr(t, op)(dim)
        expected = bits(run(x))
        assert bits(run(turned)) == expected, f"{op} over {dim} of a turned operand"
        assert bits(run(wide[..., ::2])) == expected, f"{op} over {dim} of every second element"


def test_threads_do_not_change_the_bits(threads):
    x = uneven(1_300_001)
    matrix = uneven(1500, 301)
    found = set()
    for n in (1, 2, 3, 7):
        threads(n)
        found.add(
            (
                bits(x.sum()),
                bits(x.var()),
                bits(matrix.sum(0)),
                bits(matrix.sum(1)),
                bits(x.cumsum(0)),
                bits(x.argmax()),
            )
        )
    assert len(found) == 1


def test_reductions_run_in_several_python_threads():
    x = uneven(300_000)
    expected, wrong = bits(x.sum()), []

    def work():
        wrong.extend(1 for _ in range(20) if bits(x.sum()) != expected)

    workers = [threading.Thread(target=work) for _ in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not wrong


def test_integers_add_up_in_int64_and_wrap_there():
    assert tg.full((300,), 127, dtype=tg.int8).sum().item() == 300 * 127
    assert tg.tensor([2**62, 2**62]).sum().item() == -(2**63)
    assert tg.ones(3, dtype=tg.bool).sum().dtype == tg.int64
    assert tg.tensor([1, 2], dtype=tg.int32).sum(dtype=tg.int32).dtype == tg.int32


def test_half_sums_do_not_stop_at_2048():
    assert tg.ones(5000, dtype=tg.float16).sum().item() == 5000
    assert tg.ones(4096, dtype=tg.bfloat16).sum().item() == 4096


# ---- NaN, ties, nothing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 70, 5000])
def test_nan_wins_and_the_first_one_is_named(n):
    values = np.arange(n, dtype=np.float32)
    values[[1, n - 1]] = math.nan
    for x in (tg.tensor(values), tg.tensor(np.stack([values] * 9, 1)).permute(1, 0)[3]):
        assert math.isnan(x.max().item()) and math.isnan(x.min().item()) and math.isnan(x.amax().item())
        assert x.argmax().item() == 1 and x.min(0).indices.item() == 1
        assert math.isnan(x.median().item())
        assert x.nanmedian().item() == np.sort(values)[(n - 3) // 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [63, 64, 65, 700, 5000])
def test_extremes_beside_infinities_and_sums_that_overflow(n, dtype):
    rng = np.random.default_rng(n)
    drawn = (rng.standard_normal(n) * (float(np.finfo(dtype).max) / 8)).astype(dtype)
    for put in ([], [np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [np.nan, np.inf, -np.inf]):
        for at in range(0, n, max(1, n // 7)):
            values = drawn.copy()
            for k, v in enumerate(put):
                values[(at + k) % n] = v
            for x in (tg.from_numpy(values), tg.from_numpy(np.repeat(values, 2)).view(n, 2)[:, 1]):
                np.testing.assert_array_equal([x.amax().item(), x.max().item()], values.max())
                np.testing.assert_array_equal([x.amin().item(), x.min().item()], values.min())
                assert x.argmax().item() == values.argmax() and x.argmin().item() == values.argmin()


def test_extremes_and_truths_of_repeated_elements():
    for dtype in (np.float32, np.int64, np.bool_):
        base = (np.random.default_rng(1).standard_normal((1, 70, 1, 90)) * 3).astype(dtype)
        x, wide = tg.from_numpy(base).expand(5, 70, 3, 90), np.broadcast_to(base, (5, 70, 3, 90))
        for dims in ((0,), (1,), (0, 2), (2, 3), (0, 1, 2), (1, 3), (0, 1, 2, 3)):
            for name, reference in (("amax", np.max), ("amin", np.min), ("any", np.any), ("all", np.all)):
                for y, z in ((x, wide), (x.permute(3, 2, 1, 0), wide.transpose(3, 2, 1, 0))):
                    assert np.array_equal(getattr(y, name)(dims).numpy(), reference(z, dims)), (name, dims)
    assert tg.ones(1).expand(0).all().item() and not tg.ones(1).expand(0).any().item()
    assert tg.zeros(1, 2).expand(0, 2).all(0).tolist() == [True, True]
    assert tg.ones(2, 1).expand(2, 0).amax(0).shape == (0,)


@pytest.mark.parametrize("n", [4, 65, 3000])
def test_the_first_of_equal_elements_is_named(n):
    x = tg.zeros(n, 10)
    x[1] = x[3] = 5
    assert x.argmax(0).tolist() == [1] * 10 and x.max(0).indices.tolist() == [1] * 10
    assert x.permute(1, 0).contiguous().argmax(1).tolist() == [1] * 10
    assert x.argmax().item() == 10
    assert x.cummax(0).indices[:4, 0].tolist() == [0, 1, 1, 3]


def test_equal_elements_share_the_gradient_of_max_and_amax():
    x = tg.tensor([[1.0, 3.0, 3.0], [3.0, 0.0, 2.0]], requires_grad=True)
    (g,) = tg.autograd.grad(x.max(), x)
    assert np.allclose(g.numpy(), [[0, 1 / 3, 1 / 3], [1 / 3, 0, 0]])
    (g,) = tg.autograd.grad(x.amax(1).sum(), x)
    assert g.tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    (g,) = tg.autograd.grad(x.max(1).values.sum(), x)
    assert g.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_norm_of_zeros_has_gradient_zero():
    for p in (2, 1, 3, math.inf, "fro"):
        x = tg.zeros(3, requires_grad=True)
        x.norm(p).backward()
        assert x.grad.tolist() == [0, 0, 0], p


def test_products_with_zeros_have_exact_gradients():
    x = tg.tensor([2.0, 0.0, 3.0], requires_grad=True)
    (g,) = tg.autograd.grad(x.prod(), x)
    assert g.tolist() == [0, 6, 0]
    (g,) = tg.autograd.grad(x.cumprod(0).sum(), x)
    assert g.tolist() == [1, 8, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_gradient_of_one_line_has_the_bits_of_several(dtype):
    for n in (1, 2, 3, 4, 5, 9, 64, 101):
        line = tg.randn(n, dtype=getattr(tg, dtype), generator=tg.Generator().manual_seed(n))
        line[n // 3] = 0 if n > 4 else 2
        product = (x := line.clone().requires_grad_()).prod()
        (one,) = tg.autograd.grad(product, x, tg.ones_like(product))
        for dim in (0, 1):
            lines = tg.stack([line] * 3, 1 - dim).requires_grad_()
            product = lines.prod(dim)
            (each,) = tg.autograd.grad(product, lines, tg.ones_like(product))
            assert all(tg.equal(part, one) for part in each.unbind(1 - dim))


def test_nothing_to_reduce():
    none = tg.zeros(0)
    assert none.sum().item() == 0 and none.prod().item() == 1 and none.all().item() and not none.any().item()
    assert math.isnan(none.mean().item()) and math.isnan(none.median().item())
    assert tg.zeros(0, 3).sum(1).shape == (0,) and tg.zeros(0, 3).argmax(1).shape == (0,)
    with pytest.raises(RuntimeError, match="max.*Expected reduction dim to be specified for input.numel"):
        none.max()
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        none.argmin(0)


def test_one_element_has_no_variance():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert math.isnan(tg.ones(1).var().item())


def test_variance_of_a_large_offset_keeps_its_digits():
    x = tg.tensor((np.arange(10_000) % 2).astype(np.float64)) + 1e8
    assert x.var(correction=0).item() == pytest.approx(0.25, rel=1e-9)
    assert x.view(100, 100).var(0, correction=0)[0].item() == 0


@pytest.mark.parametrize(
    "call, error, fragment",
    [
        (lambda x: x.sum(5), IndexError, r"expected to be in range of \[-2, 1\], but got 5"),
        (lambda x: x.sum((0, -2)), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x.mean((1, 1)), RuntimeError, "dim 1 appears multiple times"),
        (lambda x: x.cumsum(-3), IndexError, "but got -3"),
        (lambda x: x.long().mean(), RuntimeError, "could not infer output dtype.*Got: Long"),
        (lambda x: x.long().norm(), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
        (lambda x: x.norm("nuclear"), RuntimeError, "not supported"),
        (lambda x: (x + 0j).amax(), NotImplementedError, "not implemented for 'ComplexFloat'"),
        (lambda x: x.bool().median(), NotImplementedError, "\"median\" not implemented for 'Bool'"),
        (lambda x: x[:, :0].aminmax(), RuntimeError, "over an empty dimension"),
        (lambda x: x[:0].norm(math.inf), RuntimeError, "cannot compute the inf norm on an empty tensor"),
    ],
)
def test_refusals_say_what_came_and_what_is_wanted(call, error, fragment):
    with pytest.raises(error, match=fragment):
        call(tg.ones(2, 3))


def test_histc_takes_the_range_of_the_elements_where_it_has_none():
    x = tg.tensor([0.25, 1.75, 3.0, 9.0])
    assert tg.histc(x, 5).tolist() == [2, 1, 0, 0, 1]
    assert tg.histc(tg.ones(3), 2).tolist() == [0, 3] and tg.histc(tg.ones(0), 2).tolist() == [0, 0]


FLOATS = [tg.float32, tg.float64, tg.float16, tg.bfloat16, tg.complex64, tg.complex128]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("rows", [*range(1, 18), 63, 65, 200, 2100])
@pytest.mark.parametrize("columns", [20, 128, 300])
def test_sums_over_rows_have_the_bits_of_sums_of_columns(rows, columns, dtype):
    x = tg.randn(rows, columns, generator=tg.Generator().manual_seed(1), dtype=dtype)
    x[:, 3], x[0, 4], x[-1, 5] = -0.0, float("inf"), float("nan")
    sums = bits(x.sum(0))
    assert sums == bits(x.T.contiguous().sum(1))
    assert sums == bits(tg.stack([c.contiguous().sum() for c in x.T]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 255, 1000, 2047, 2048, 2049])
def test_rows_that_are_summed_together_have_the_bits_of_each_alone(n, dtype):
    x = np.random.default_rng(n).normal(0, 100, (130, n + 3)).astype(dtype)
    x[3], x[20, :1], x[21, -4:] = -0.0, np.inf, np.nan
    rows = tg.tensor(x)
    for window in (rows, rows[:, :n], rows[:, 3:], rows[5:12], rows[::3]):
        for f in (tg.sum, tg.mean):
            alone = [f(row.clone()).item() for row in window]
            assert f(window, 1).numpy().tobytes() == np.array(alone, dtype).tobytes()
            columns = f(window.t().contiguous(), 0)
            assert columns.numpy().tobytes() == np.array(alone, dtype).tobytes()


DOWN = ["sum", "mean", "nansum", "prod", "amax", "amin", "argmax", "argmin", "count_nonzero", "any", "norm", "std"]


@pytest.mark.parametrize("name", DOWN)
@pytest.mark.parametrize("shape", [(200, 8), (33, 300), (2100, 64), (3, 40, 130)])
def test_columns_a_few_elements_apart_have_the_bits_of_neighbours(name, shape):
    call = tg.linalg.vector_norm if name == "norm" else getattr(tg, name)
    few = {"dim": (0,) if name in ("norm", "std") else 0}
    for dtype in (tg.float32, tg.float64, tg.int16, tg.bfloat16):
        if name in ("mean", "nansum", "norm", "std") and not dtype.is_floating_point:
            continue
        x = uneven(*shape, seed=5)
        x = x / 1e6 + 1 if name == "prod" else x
        x[x.abs() < 1e-5] = float("nan") if name == "nansum" else 0.0
        x = x.clamp(-300, 300).to(dtype)
        want = call(x, **few)
        for step in (2, 3, 4, 5):
            wide = tg.full((*shape[:-1], step * shape[-1]), 7).to(dtype)
            wide[..., 1::step] = x
            assert bits(call(wide[..., 1::step], **few)) == bits(want), (dtype, step)


def test_rows_are_not_read_beyond_their_last_element():
    memory = np.full(64 * 301, np.nan, np.float32)
    rows = np.lib.stride_tricks.as_strided(memory, (63, 150), (1204, 8))
    rows[:] = 1
    assert tg.from_numpy(rows).sum(0).tolist() == [63.0] * 150
    assert tg.from_numpy(rows).amax(0).tolist() == [1.0] * 150


@pytest.mark.parametrize("n", [1, 17, 63, 64, 65, 200, 5000])
def test_nansum_is_the_sum_of_what_is_a_number(n):
    x = uneven(n, 9, seed=7)
    x[tg.arange(n) % 3 == 1] = float("nan")
    cleaned = x.nan_to_num(0.0)
    assert bits(x.nansum(0)) == bits(cleaned.nansum(0)) == bits(x.T.contiguous().nansum(1))
    np.testing.assert_allclose(x.nansum(0).numpy(), cleaned.double().sum(0).numpy(), rtol=1e-5, atol=1e-3)
    assert tg.full((n,), float("nan")).nansum().item() == 0


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "norm", "var", "argmax", "amin", "count_nonzero"])
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.int64, tg.bfloat16], ids=str)
def test_repeated_rows_and_small_turned_matrices_have_the_bits_of_rows(name, dtype):
    if dtype == tg.int64 and name in ("mean", "norm", "var"):
        pytest.skip("of floats alone")
    g = np.random.default_rng(3)
    for rows, columns in ((301, 1000), (70_000, 3), (2, 70_001), (41, 33), (16, 400), (300, 17), (150, 200)):
        base = tg.from_numpy(1 + g.standard_normal((rows, columns)) / 1000).to(dtype)
        row = base[:1].expand(rows, columns)
        for t in (row, base.t().contiguous().t()):
            assert getattr(t, name)().equal(getattr(t.contiguous(), name)()), (rows, columns)
