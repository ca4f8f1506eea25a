"""Rules of gather, scatter and their relatives that the sweep over the op table cannot know."""

import numpy as np
import pytest

import tinygrad_ext as tg

BAD = tg.tensor([[0, 7]])


def test_scatter_leaves_self_alone_when_an_index_is_outside():
    x = tg.zeros(2, 3)
    for call in (
        lambda: x.scatter_(0, BAD, 1.0),
        lambda: x.scatter_add_(0, BAD, tg.ones(1, 2)),
        lambda: x.scatter_(0, -BAD, 1.0),
    ):
        with pytest.raises(RuntimeError, match="is out of bounds for dimension 0 with size 2"):
            call()
    assert x.sum().item() == 0


def test_gather_takes_no_negative_index():
    with pytest.raises(RuntimeError, match="index -1 is out of bounds for dimension 1 with size 3"):
        tg.zeros(2, 3).gather(1, tg.tensor([[-1]]))


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda x: x.gather(0, tg.tensor([0])), "same number of dimensions as input tensor"),
        (lambda x: x.gather(0, tg.tensor([[0.0]])), "Expected dtype int32/int64 for index"),
        (
            lambda x: x.gather(0, tg.zeros(2, 9, dtype=tg.int64)),
            "to be no larger than self [2, 3] apart from dimension 0",
        ),
        (lambda x: x.scatter(0, tg.tensor([[0]]), tg.tensor([[1]])), "Expected self.dtype to be equal to src.dtype"),
        (lambda x: x.scatter(0, tg.tensor([[0, 1]]), tg.ones(1, 1)), "to be no larger size than src [1, 1]"),
        (lambda x: x.scatter(0, tg.tensor([[0]]), 1.0, reduce="sum"), "either add or multiply"),
        (lambda x: x.index_add(0, tg.tensor([0]), tg.ones(1, 2)), "source tensor shape must match self tensor shape"),
        (
            lambda x: x.index_add(0, tg.tensor([0]), tg.ones(2, 3)),
            "Number of indices (1) should be equal to source.size(dim)",
        ),
        (lambda x: x.masked_fill(x > 0, tg.ones(2)), "only supports a 0-dimensional value tensor"),
        (lambda x: x[0].masked_fill_(x > 0, 1.0), "output with shape [3] doesn't match the broadcast shape [2, 3]"),
        (lambda x: x.masked_scatter(x == 0, tg.ones(2)), "Number of elements of source < number of ones in mask"),
    ],
)
def test_refusals(call, fragment):
    with pytest.raises(RuntimeError) as raised:
        call(tg.zeros(2, 3))
    assert fragment in str(raised.value)


def test_sums_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    x, index = tg.tensor(rng.standard_normal((300, 400))), tg.tensor(rng.integers(0, 5, (300, 400)))
    results = []
    threads = tg.get_num_threads()
    for n in (1, 3):
        tg.set_num_threads(n)
        results.append(
            [tg.zeros(300, 400, dtype=tg.float64).scatter_add(d, index, x).numpy().tobytes() for d in (0, 1)]
        )
    tg.set_num_threads(threads)
    assert results[0] == results[1]


def test_large_reads_agree_with_numpy():
    rng = np.random.default_rng(1)
    a, index, rows = rng.standard_normal((300, 500)), rng.integers(0, 300, (300, 500)), rng.integers(-300, 300, 700)
    x = tg.tensor(a)
    np.testing.assert_array_equal(x.gather(0, tg.tensor(index)).numpy(), np.take_along_axis(a, index, 0))
    np.testing.assert_array_equal(x[tg.tensor(rows)].numpy(), a[rows])
    np.testing.assert_array_equal(x.T[:, tg.tensor(rows)].numpy(), a.T[:, rows])
    np.testing.assert_array_equal(x[x > 0].numpy(), a[a > 0])
    np.testing.assert_array_equal((x > 0).nonzero().numpy(), np.argwhere(a > 0))


def test_a_source_larger_than_the_index_gets_zeros():
    src = tg.ones(3, 4, dtype=tg.float64).requires_grad_()
    tg.zeros(3, 4, dtype=tg.float64).scatter(0, tg.tensor([[1, 0]]), src).sum().backward()
    assert src.grad.sum().item() == 2 and src.grad[0, :2].tolist() == [1, 1]


def test_meta_tensors_know_the_shape():
    x, i = tg.empty(3, 4, device="meta"), tg.empty(2, 5, dtype=tg.int64, device="meta")
    assert x[i].shape == (2, 5, 4) and x[:, i].shape == (3, 2, 5) and x[i, :, None].shape == (2, 5, 4, 1)
    with pytest.raises(NotImplementedError, match="how many elements a mask picks depends on its values"):
        x[tg.empty(3, dtype=tg.bool, device="meta")]


def test_rows_of_a_table_have_the_same_bits_for_two_threads():
    rng = np.random.default_rng(0)
    rows = tg.tensor(rng.integers(0, 50, 3000))
    seed = tg.tensor(rng.standard_normal((3000, 70)))
    before, found = tg.get_num_threads(), []
    try:
        for threads in (1, 2):
            tg.set_num_threads(threads)
            table = tg.tensor(np.random.default_rng(1).standard_normal((50, 70)), requires_grad=True)
            read = tg.nn.functional.embedding(rows, table, padding_idx=3)
            found.append([read, *tg.autograd.grad(read, table, seed)])
            with pytest.raises(IndexError, match="rows 0 to 49, but indices hold 5[01]"):
                tg.nn.functional.embedding(rows + 2, table)
    finally:
        tg.set_num_threads(before)
    assert all(tg.equal(a, b) for a, b in zip(*found))
    wanted = np.zeros((50, 70))
    np.add.at(wanted, rows.numpy(), seed.numpy())
    wanted[3] = 0
    np.testing.assert_allclose(found[0][1].numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "complex64"])
def test_put_writes_where_its_tensor_lies(dtype, accumulate):
    draw = np.random.default_rng(0)
    index, source = draw.integers(-60, 60, 50), draw.integers(0, 5, 50).astype(dtype)
    whole = draw.integers(0, 5, (8, 20, 6)).astype(dtype)
    t, i, s = tg.tensor(whole), tg.tensor(index), tg.tensor(source)
    layouts = {
        "rows": lambda x: x[2],
        "turned": lambda x: x[1].T,
        "steps": lambda x: x[3, ::2, ::2],
        "planes": lambda x: x[:, 3:5, 0],
    }
    for name, take in layouts.items():
        at = take(whole)
        kept = at.flatten()
        where, t0 = index % at.size, t.clone()
        if accumulate:
            np.add.at(kept, where, source)
        else:
            for k, v in zip(where, source):
                kept[k] = v
        view = take(t0)
        i = tg.tensor(where)
        assert view.put_(i, s, accumulate) is view
        np.testing.assert_array_equal(view.numpy(), kept.reshape(at.shape), name)
        np.testing.assert_array_equal(take(t).put(i - at.size, s, accumulate).numpy(), kept.reshape(at.shape), name)
        rest = t0.clone()
        take(rest).copy_(take(t))
        assert (rest == t).all(), "nothing else is written to"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16", "uint8"])
@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
def test_one_index_for_a_row_has_the_bits_of_an_index_for_each_element(dtype, how):
    tg.manual_seed(0)
    dtype = getattr(tg, dtype)
    table, source = (tg.randn(n, 37).mul(3).to(dtype) for n in (11, 200))
    if dtype.is_floating_point:
        source[::17, ::5], source[3::19, ::7], table[1, ::3] = float("nan"), float("-inf"), -0.0
    at = tg.randint(11, (200,))
    for include in (True, False):
        for columns in (37, 20):
            rows = at[:, None].expand(200, columns)
            found = table.scatter_reduce(0, rows, source, how, include_self=include)
            wanted = table.scatter_reduce(0, rows.contiguous(), source, how, include_self=include)
            assert bits(found) == bits(wanted)
            across = table.t().contiguous().scatter_reduce(1, rows.t(), source.t(), how, include_self=include)
            assert bits(across.t()) == bits(wanted)
        reduced = table.index_reduce(0, at, source, how, include_self=include) if how != "sum" else None
        assert reduced is None or reduced.shape == table.shape
    with pytest.raises(RuntimeError, match="out of bounds for dimension 0 with size 11"):
        table.scatter_reduce(0, (at + 1)[:, None].expand(200, 37), source, how)


def bits(t):
    return t.contiguous().view(tg.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("include", [True, False])
def test_scatter_reduce_takes_complex_numbers(dtype, include):
    x, index = tg.tensor([1 + 1j, 2, 3j], dtype=getattr(tg, dtype)), tg.tensor([0, 0, 2, 0])
    src = tg.tensor([1j, 2.0, 1 - 1j, 3.0], dtype=x.dtype)
    total, product = (1j + 2 + 3, 1j * 2 * 3) if not include else (1 + 1j + 1j + 5, (1 + 1j) * 6j)
    last = (1 - 1j, 1 - 1j) if not include else (1 + 2j, 3j * (1 - 1j))
    reduced = [x.scatter_reduce(0, index, src, how, include_self=include) for how in ("sum", "prod", "mean")]
    assert reduced[0].tolist() == [total, 2, last[0]] and reduced[1].tolist() == [product, 2, last[1]]
    means = [total / (3 + include), 2, last[0] / (1 + include)]
    np.testing.assert_allclose(reduced[2].numpy(), np.array(means, dtype), rtol=1e-6)
    with pytest.raises(
        NotImplementedError, match="amax not implemented for 'ComplexFloat|ComplexDouble'.*sum, prod or"
    ):
        x.scatter_reduce(0, index, src, "amax")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int16", "complex64"])
def test_means_of_scattered_elements_in_any_layout(dtype):
    rng = np.random.default_rng(4)
    index = tg.tensor(rng.integers(0, 40, (300, 5)))
    x, src = (tg.tensor(rng.integers(-90, 90, n)).to(getattr(tg, dtype)) for n in ((50, 5), (300, 5)))
    want = x.scatter_reduce(0, index, src, "mean")
    turned = x.t().contiguous().t().scatter_reduce(0, index, src, "mean")
    columns = [x[:, k].scatter_reduce(0, index[:, k], src[:, k], "mean") for k in range(5)]
    assert want.tolist() == turned.tolist() == tg.stack(columns, 1).tolist()
    rows = tg.tensor([[1], [0], [1]]).expand(3, 5)
    assert x.scatter_reduce(0, rows, src, "mean").tolist() == x.scatter_reduce(0, rows.clone(), src, "mean").tolist()


def test_a_mean_of_more_elements_than_are_counted_is_refused():
    many = tg.zeros(1, dtype=tg.int64).expand(2**32)
    with pytest.raises(NotImplementedError, match="counts up to 4294967294 elements along dim, got an index of shape"):
        tg.zeros(2).scatter_reduce(0, many, tg.zeros(1).expand(2**32), "mean")


@pytest.mark.parametrize("alpha, want", [(2.0, [6, 8, 0]), (2.5, [6, 8, 0]), (True, [3, 4, 0])])
def test_the_factor_of_index_add_is_cut_to_the_dtype_of_integers(alpha, want):
    x, source = tg.zeros(3, dtype=tg.int32), tg.tensor([3, 4], dtype=tg.int32)
    assert x.index_add(0, tg.tensor([0, 1]), source, alpha=alpha).tolist() == want
    assert x.bool().index_add(0, tg.tensor([0, 1]), source.bool(), alpha=alpha).tolist() == [True, True, False]
    with pytest.raises(RuntimeError, match="without overflow"):
        x.index_add(0, tg.tensor([0, 1]), source, alpha=1j)
