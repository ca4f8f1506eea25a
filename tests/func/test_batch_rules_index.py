"""vmap over ops that index: as a loop over the samples, whatever is batched and shared."""

import itertools

import pytest

import tinygrad_ext as tg
from tests.helpers.batches import as_a_loop, ints, of
from tinygrad_ext.func import looped, vmap


@pytest.fixture(autouse=True)
def no_loops():
    """No op here may run sample by sample."""
    before = dict(looped.counts)
    yield
    assert looped.counts == before


# ---- tensors of indices --------------------------------------------------------------------------------------------

N = None
READS = {
    "first": ((4, 3), lambda x, i: x[i], (4, 5)),
    "a number": ((4, 3), lambda x, i: x[i], (4,)),
    "a number behind a slice": ((4, 3), lambda x, i: x[:, i], (3,)),
    "negative": ((4, 3), lambda x, i: x[i], (4, 2), -4),
    "last": ((4, 3), lambda x, i: x[..., i], (3, 2)),
    "a matrix": ((2, 4, 3), lambda x, i: x[:, i], (4, 2, 2)),
    "middle": ((2, 4, 3), lambda x, i: x[:, i], (4, 3)),
    "none": ((2, 4, 3), lambda x, i: x[:, i], (4, 0)),
    "size 1": ((2, 1, 3), lambda x, i: x[:, i], (1, 2)),
    "of nothing": ((0, 4), lambda x, i: x[:, i], (4, 3)),
    "a view": ((4, 5), lambda x, i: x.t()[1:, i], (4, 2)),
    "a new dimension": ((4, 3), lambda x, i: x[i, None, 1:], (4, 2)),
}


@pytest.mark.parametrize("name", READS)
def test_reading_at_one_tensor(name):
    shape, f, (high, *size), *low = READS[name]
    as_a_loop(f, of(3, *shape), ints(high, 3, *size, low=low[0] if low else 0))


@pytest.mark.parametrize("first, second", list(itertools.product([(), (2,), (3, 1), (1,)], [(), (2,), (1, 2)])))
@pytest.mark.parametrize(
    "read",
    [
        lambda x, i, j: x[i, j],
        lambda x, i, j: x[i, :, j],
        lambda x, i, j: x[:, i, j],
        lambda x, i, j: x[:, :, i, j],
        lambda x, i, j: x[:, i, :, j],
        lambda x, i, j: x[j, None, ..., i],
    ],
)
def test_reading_at_two_tensors(read, first, second):
    as_a_loop(read, of(2, 2, 2, 2, 2), ints(2, 2, *first), ints(2, 2, *second, low=-2), gradients=False)


def test_gradients_of_reading_at_two_tensors():
    as_a_loop(lambda x, i, j: x[i, :, j], of(2, 3, 2, 4), ints(3, 2, 3, 1), ints(4, 2, 2))
    as_a_loop(lambda x, i, j: x[:, i, j], of(2, 3, 2, 4), ints(2, 2, 2), ints(4, 2, 2))


MASK = tg.tensor([True, False, True, True])


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x[MASK],
        lambda x: x[:, MASK[1:]],
        lambda x: x[MASK, 1],
        lambda x: x[tg.stack([MASK, ~MASK, MASK]).t()],
        lambda x: x[tg.tensor([2, 2]), :, tg.tensor([0, -1])],
        lambda x: x[MASK.to(tg.uint8)],
    ],
)
def test_reading_under_masks_that_all_samples_share(read):
    as_a_loop(read, of(2, 4, 3, 2))


def test_a_shared_mask_beside_a_batched_index():
    as_a_loop(lambda x, i: x[MASK, i], of(2, 4, 3, 2), ints(3, 2, 3))
    as_a_loop(lambda x, i: x[MASK, :, i], of(2, 4, 3, 2), ints(2, 2, 3))


def test_a_number_of_each_sample_takes_its_dimension_away_as_any_number_does():
    j = tg.tensor([[0, 1], [1, 1]])
    as_a_loop(lambda x, i: x[i, :, j], of(3, 4, 5, 2), ints(4, 3))
    as_a_loop(lambda x, i: x[j, :, i], of(3, 2, 5, 4), ints(4, 3))
    as_a_loop(lambda x, i, k: x[:, i, None, k, j], of(3, 2, 5, 4, 2), ints(5, 3), ints(4, 3), gradients=False)
    as_a_loop(lambda x, i: x[i, MASK, :, j[:, :1]], of(3, 4, 4, 2, 2), ints(4, 3), gradients=False)


@pytest.mark.parametrize("dtype", [tg.bool, tg.int8, tg.int64, tg.float16, tg.bfloat16, tg.complex64])
def test_reading_and_writing_in_any_dtype(dtype):
    x, i, v = of(3, 4, 2, dtype=tg.int64).to(dtype), ints(4, 3, 2), ints(3, 3, 2, 2).to(dtype)
    check = lambda f, *rows: [
        same_bits(vmap(f, d)(*[r if e == 0 else r[0] for r, e in zip(rows, d)]), f, rows, d)
        for d in itertools.product((0, None), repeat=len(rows))
        if 0 in d
    ]
    check(lambda x, i: x[i], x, i)
    check(lambda x, i, v: x.index_put((i,), v), x, i, v)
    check(lambda x, i, v: x.index_put((i,), v, accumulate=True), x, i, v)
    check(lambda x, i: x.index_select(0, i), x, i)
    check(lambda x, i, v: x.index_copy(0, i, v), x, i, v)
    check(lambda x, i, v: x.index_add(0, i, v), x, i, v)
    check(lambda x, i: x.index_fill(0, i, 1), x, i)
    check(lambda x, i: x.take(i), x, i)
    check(lambda x, v: x.masked_fill(x == 0, v[0, 0]), x, v)
    check(lambda x, v: x[:2].masked_scatter(v == 0, v), x, v)


def same_bits(got, f, rows, in_dims):
    want = tg.stack([f(*[r[k if d == 0 else 0] for r, d in zip(rows, in_dims)]) for k in range(3)])
    assert got.dtype == want.dtype and tg.equal(got, want)


# ---- writing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("values", [(), (1,), (3, 2), (2,), (1, 2)])
def test_index_put(accumulate, values):
    put = lambda x, i, v: x.index_put((i,), v, accumulate)
    as_a_loop(put, of(3, 5, 2), ints(5, 3, 3), of(3, *values), gradients=accumulate)


@pytest.mark.parametrize("accumulate", [False, True])
def test_values_of_more_dimensions_than_what_is_picked_are_refused_alone_and_under_vmap(accumulate):
    put = lambda x, i, v: x.index_put((i,), v, accumulate)
    x, i, v = of(3, 5, 2), ints(5, 3, 3), of(3, 1, 3, 2)
    for refused in (lambda: put(x[0], i[0], v[0]), lambda: tg.func.vmap(put)(x, i, v)):
        with pytest.raises(RuntimeError, match="cannot be broadcast to indexing result of shape"):
            refused()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "shape, index, values",
    [
        ((2, 4, 3), (N, (4, 2), N), (2, 2, 3)),
        ((2, 4, 3), (N, (4, 2)), (3,)),
        ((2, 4, 3), ((2, 2), N, (3, 2)), (2, 4)),
        ((2, 4, 3), ((2, 2), N, (3, 2)), (4,)),
        ((2, 4, 3), ((2, 2, 1), (4, 2)), (2, 2, 3)),
        ((2, 4, 3), (N, (4, 2), (3, 2, 1)), (2, 1, 1)),
        ((2, 4), ((2,), (4,)), ()),
    ],
)
def test_index_put_of_several_tensors(shape, index, values, accumulate):
    made = [ints(high, 2, *size, low=-high) for part in index if part is not None for high, *size in [part]]

    def put(x, v, *indices):
        rest = iter(indices)
        return x.index_put([None if part is None else next(rest) for part in index], v, accumulate)

    as_a_loop(put, of(2, *shape), of(2, *values), *made, gradients=accumulate)


def test_index_put_without_repeats_has_a_gradient():
    i = tg.tensor([[0, 3], [2, 1], [1, 0]])
    as_a_loop(lambda x, i, v: x.index_put((i,), v), of(3, 4, 2), i, of(3, 2, 2))


def test_one_value_under_a_mask_of_each_sample():
    m = of(3, 4) > 5
    as_a_loop(lambda x, m, v: x.index_put((m,), v), of(3, 4), m, of(3))
    as_a_loop(lambda x, m, v: x.index_put((m,), v, True), of(3, 4, 2), m, of(3, 2))
    as_a_loop(lambda x, m, v: x.index_put((None, m), v), of(3, 2, 4), m, of(3))
    as_a_loop(lambda x, m, v: x.index_put((None, m), v), of(3, 2, 4, 3), of(3, 4, 3) > 9, of(3, 2, 1))


def fresh(x, *others):
    """A copy of x that has the batches of all arguments."""
    return x + sum(0 * o.sum() for o in others)


def test_assignment():
    def at_rows(x, i, v):
        y = fresh(x, i, v)
        y[i] = v
        y[:, 1:][i[:1]] += 1
        y[..., 0][i] = 5
        return y

    as_a_loop(at_rows, of(3, 4, 3), tg.tensor([[0, 2], [3, 1], [1, 2]]), of(3, 2, 3))

    def at_a_number(x, i, v):
        y = fresh(x, i, v)
        y[i, 1:] = v
        y[i] *= 2
        return y

    as_a_loop(at_a_number, of(3, 4, 3), ints(4, 3), of(3))

    def of_another_dtype(x, i, v):
        y = fresh(x, i, v)
        y[i] = v.float()
        y[:, i - i] = 2 * i
        return y

    as_a_loop(of_another_dtype, of(3, 4, 3), ints(4, 3), of(3, 3))

    def apart(x, i, j, v):
        y = fresh(x, i, j, v)
        y[i, :, j] = v
        return y

    as_a_loop(apart, of(3, 4, 3, 2), ints(4, 3), tg.tensor([[0, 1]] * 3), of(3, 3, 2))

    def under_a_mask(x, m):
        y = fresh(x, m)
        y[m] = 0
        y[:, 1][m.to(tg.uint8)] = 7
        return y

    as_a_loop(under_a_mask, of(3, 4, 2), of(3, 4) > 6)


def test_writing_lands_in_the_memory_of_the_user():
    x = tg.zeros(3, 4)
    vmap(lambda row, i: row.index_put_((i,), tg.ones(())))(x, tg.tensor([0, 2, 3]))
    assert x.tolist() == [[1.0, 0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]


# ---- one vector along one dimension --------------------------------------------------------------------------------

ALONG = [
    ((4, 3), 0, (2,)),
    ((4, 3), -1, (4,)),
    ((2, 4, 3), 1, (0,)),
    ((2, 4, 3), -2, (3,)),
    ((4,), 0, ()),
    ((), 0, (1,)),
    ((), -1, ()),
    ((1, 3), 0, (2,)),
    ((3, 0), 0, (2,)),
]


@pytest.mark.parametrize("shape, dim, size", ALONG)
def test_one_vector_along_a_dimension(shape, dim, size):
    high = shape[dim] if shape else 1
    x, i = of(3, *shape), ints(high, 3, *size)
    length = i[0].numel()
    source = of(3, *[length if d == dim % len(shape) else s for d, s in enumerate(shape)])
    distinct = tg.arange(high).flip(0)[:length].expand(3, min(length, high)).clone()
    part = source.narrow(dim % max(len(shape), 1) + 1, 0, min(length, high)) if shape else source
    as_a_loop(lambda x, i: x.index_select(dim, i), x, i)
    as_a_loop(lambda x, i, s: x.index_add(dim, i, s), x, i, source)
    as_a_loop(lambda x, i, s: x.index_add(dim, i, s, alpha=2), x, i, source)
    as_a_loop(lambda x, i, s: x.index_copy(dim, i, s), x, i, source, gradients=False)
    as_a_loop(lambda x, i, s: x.index_copy(dim, i, s), x, distinct, part)
    as_a_loop(lambda x, i: x.index_fill(dim, i, 2), x, i)
    as_a_loop(lambda x, i, v: x.index_fill(dim, i - 1 if high > 1 else i, v), x, i, of(3))


@pytest.mark.parametrize("shape", [(2, 3), (4,), ()])
@pytest.mark.parametrize("size", [(2, 2), (3,), (), (0,)])
def test_take(shape, size):
    x = of(3, *shape)
    as_a_loop(lambda x, i: x.take(i), x, ints(x[0].numel(), 3, *size, low=-x[0].numel()))


# ---- an index as large as the result -------------------------------------------------------------------------------

LARGE = [
    ((4, 3), 0, (2, 3)),
    ((4, 3), -1, (2, 5)),
    ((2, 4, 3), 1, (1, 2, 3)),
    ((4,), 0, (0,)),
    ((), 0, ()),
    ((), 0, (1,)),
    ((3,), 0, ()),
    ((4, 1), 1, (3, 2)),
]


@pytest.mark.parametrize("shape, dim, size", LARGE)
def test_gather_and_scatter(shape, dim, size):
    high = shape[dim] if shape else 1
    x, i, s = of(3, *shape), ints(high, 3, *size), of(3, *size)
    as_a_loop(lambda x, i: x.gather(dim, i), x, i)
    as_a_loop(lambda x, i, s: x.scatter(dim, i, s), x, i, s, gradients=False)
    as_a_loop(lambda x, i: x.scatter(dim, i, 2.0), x, i)
    as_a_loop(lambda x, i, s: x.scatter_add(dim, i, s), x, i, s)
    for reduce in ("sum", "mean", "amax"):
        f = lambda x, i, s: x.scatter_reduce(dim, i, s, reduce)
        as_a_loop(f, x, i, s, gradients=reduce != "amax")
    as_a_loop(lambda x, i, s: x.scatter(dim, i, s, reduce="multiply"), x, i, s, gradients=False)


def test_take_along_dim():
    as_a_loop(lambda x, i: tg.take_along_dim(x, i, 1), of(3, 2, 4), ints(4, 3, 2, 3))
    as_a_loop(lambda x, i: tg.take_along_dim(x, i), of(3, 2, 4), ints(8, 3, 3))


# ---- errors --------------------------------------------------------------------------------------------------------

SELECT = lambda x, i: x.index_select(0, i)


@pytest.mark.parametrize(
    "f, shape, index, error, words",
    [
        (lambda x, i: x[i], (3,), [1, 5], IndexError, "5 is out of bounds for dimension 0 with size 3"),
        (lambda x, i: x[:, i], (3, 4), [[1], [-5]], IndexError, "-5 is .* dimension 1 with size 4"),
        (lambda x, i: x[i, i], (3,), [[1], [1]], IndexError, "too many indices for tensor of dimension 1"),
        (SELECT, (3,), [[1], [3]], IndexError, "index out of range in self"),
        (SELECT, (3,), [[3], [0]], IndexError, "index out of range in self"),
        (SELECT, (3,), [[-1], [0]], IndexError, "index out of range in self"),
        (SELECT, (3,), [[0], [-1]], IndexError, "index out of range in self"),
        (SELECT, (3,), [[[1]], [[1]]], IndexError, "to be a vector"),
        (SELECT, (), [[0, 0], [0, 0]], RuntimeError, "to scalar can have only 1 value"),
        (
            lambda x, i: x.index_select(0, tg.tensor([0, 0])),
            (),
            [0, 0],
            RuntimeError,
            "to scalar can have only 1 value",
        ),
        (lambda x, i: x.index_add(0, i, x[:1]), (3,), [[0], [3]], RuntimeError, "index 3 .* size 3"),
        (lambda x, i: x.index_copy(0, i, x[:1]), (3,), [[0], [-7]], IndexError, "index -7 .* size 3"),
        (lambda x, i: x.index_copy(0, i.int(), x[:1]), (3,), [[0], [1]], RuntimeError, "Expected a long tensor"),
        (lambda x, i: x.index_fill(0, i, 1), (3,), [[0], [4]], IndexError, "index 4 .* size 3"),
        (lambda x, i: x.index_fill(0, i, x), (3,), [[0], [2]], RuntimeError, "only supports a 0-dimensional value"),
        (lambda x, i: x.gather(0, i), (3,), [[0], [4]], RuntimeError, "index 4 .* dimension 0 with size 3"),
        (lambda x, i: x.gather(1, i), (3,), [[0], [1]], IndexError, r"range of \[-1, 0\], but got 1"),
        (lambda x, i: x.take(i), (3,), [0, 4], IndexError, "out of range"),
        (lambda x, i: x.masked_fill(i, 1), (3,), [0, 4], RuntimeError, "only supports boolean masks"),
        (lambda x, i: x.index_put((i,), x), (3,), [[0], [1]], RuntimeError, "shape mismatch: value tensor"),
        (lambda x, i: x.index_put((i > 0,), x[0]), (3,), [[0], [1]], IndexError, "shape of the mask .1. at index 0"),
    ],
)
def test_errors_speak_of_a_sample(f, shape, index, error, words):
    with pytest.raises(error, match=words):
        vmap(f)(of(2, *shape), tg.tensor(index))
