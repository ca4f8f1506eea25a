"""vmap over ops of masks, searches, derivatives of views, norms and systems: as a loop over the samples."""

import pytest

import tinygrad_ext as tg
from tests.helpers.batches import as_a_loop, ints, of, same, samples
from tinygrad_ext.func import grad, looped, vmap


@pytest.fixture(autouse=True)
def no_loops():
    """No op here may run sample by sample."""
    before = dict(looped.counts)
    yield
    assert looped.counts == before


# ---- masks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, mask", [((4, 3), (4, 3)), ((4, 3), (3,)), ((3,), (4, 1)), ((), ()), ((), (3,)), ((2,), ()), ((0, 2), (2,))]
)
def test_masks(shape, mask):
    x, m = of(3, *shape), ints(3, 3, *mask) > 0
    as_a_loop(lambda x, m: x.masked_fill(m, 2), x, m)
    as_a_loop(lambda x, m, v: x.masked_fill(m, v), x, m, of(3))
    as_a_loop(lambda x, m, v: x.masked_fill(m, v), x, m, ints(9, 3))
    count = tg.broadcast_tensors(x[0], m[0])[0].numel()
    as_a_loop(lambda x, m, s: x.masked_scatter(m, s), x, m, of(3, count, 1))
    fixed = m[0]
    as_a_loop(lambda x: x.masked_select(fixed), x)


def test_masked_scatter_of_nothing_and_of_too_few():
    as_a_loop(lambda x, m, s: x.masked_scatter(m, s), of(3, 4), of(3, 4) < 0, of(3, 0))
    for source in (of(3, 0), of(3, 1)):
        with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
            vmap(lambda x, m, s: x.masked_scatter(m, s))(of(3, 4), of(3, 4) > 2, source)


def test_the_derivative_of_masked_select_under_a_mask_of_each_sample():
    m = tg.tensor([[True, False, True], [False, True, True]])
    as_a_loop(lambda g, m: g._masked_select_backward((2, 3), m), of(2, 4), m, gradients=False)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 2],
        lambda x: x.masked_select(x > 2),
        lambda x: x.nonzero(),
        lambda x: tg.argwhere(x),
        lambda x: tg.repeat_interleave(x.long()),
        lambda x: x.index_put((x > -1,), x),
    ],
)
def test_sizes_that_depend_on_the_data_are_refused(f):
    with pytest.raises(RuntimeError, match="vmap: .*depends on the data"):
        vmap(f)(of(3, 4))


# ---- searches and counts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    "rows, values", [((5,), (2, 3)), ((5,), ()), ((2, 5), (2, 3)), ((2, 1, 5), (2, 1, 0)), ((0,), (3,))]
)
def test_searchsorted(rows, values, right):
    x, order = of(3, *rows).sort(-1).values, None
    as_a_loop(lambda x, v: tg.searchsorted(x, v, right=right), x, of(3, *values), gradients=False)
    mixed = of(3, *rows)
    order = mixed.argsort(-1)
    sought = lambda x, v, o: tg.searchsorted(x, v, right=right, sorter=o)
    for in_dims in ((0, 0, 0), (0, None, 0), (None, 0, None)):
        as_one = [a if d == 0 else a[0] for a, d in zip((mixed, of(3, *values), order), in_dims)]
        want = tg.stack([sought(*samples(as_one, in_dims, k)) for k in range(3)])
        same(vmap(sought, in_dims)(*as_one), want)


def test_bucketize():
    as_a_loop(lambda v, x: tg.bucketize(v, x), of(3, 2, 2), of(3, 5).sort(-1).values, gradients=False)


def test_repeat_interleave():
    counts = tg.tensor([[2, 0, 3], [1, 1, 3], [5, 0, 0]])
    as_a_loop(lambda x, c: tg.repeat_interleave(x, c, 0, output_size=5), of(3, 3, 2), counts)
    as_a_loop(lambda c: tg.repeat_interleave(c, output_size=5), counts.int())
    with pytest.raises(RuntimeError, match="allocated size does not match"):
        vmap(lambda c: tg.repeat_interleave(c, output_size=5))(tg.tensor([[2, 2], [3, 3]]))


def test_bincount():
    counted = tg.tensor([[0, 3, 3], [3, 1, 2], [3, 3, 3]])
    as_a_loop(lambda x, w: x.bincount(w), counted, of(3, 3), gradients=False, of_shapes=False)
    as_a_loop(lambda x: x.bincount(minlength=6), counted.int(), of_shapes=False)
    assert vmap(lambda x: x.bincount(minlength=2))(tg.zeros(3, 0, dtype=tg.int64)).tolist() == [[0, 0]] * 3
    for numbers, options, words in [
        ([[0, 3], [1, 2]], {}, "vmap: bincount: .* depends on the data"),
        ([[0, 3], [-1, 3]], {}, "1-d non-negative"),
        ([[0, 3], [1, 3]], {"minlength": -1}, "minlength should be >= 0, got -1"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            vmap(lambda x, options=options: x.bincount(**options))(tg.tensor(numbers))
    with pytest.raises(RuntimeError, match="weights should be 1-d"):
        vmap(lambda x: x.bincount(tg.ones(2)))(counted)
    with pytest.raises(RuntimeError, match="vmap"):  # which the outer batch keeps from being read
        vmap(vmap(lambda x: x.bincount()))(counted[None])


# ---- derivatives of views ------------------------------------------------------------------------------------------

VIEWS = {
    "select": lambda x: x.select(0, 1),
    "select -1": lambda x: x.select(-1, -2),
    "slice": lambda x: x.narrow(1, 1, 2),
    "steps": lambda x: x[::2],
    "diagonal": lambda x: x.diagonal(1),
    "diagonal -1": lambda x: x.diagonal(0, -1, 0),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "unfold apart": lambda x: x.unfold(-1, 2, 2),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 1), 1),
    "unbind": lambda x: x.unbind(1)[1],
    "split": lambda x: x.split(2, 1)[0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_derivatives_of_views(name):
    """The rows of the Jacobian are a vmap of the derivative's ops."""
    view, x = VIEWS[name], of(3, 4)
    y = x.clone().requires_grad_()
    out = view(y)
    rows = tg.eye(out.numel(), dtype=out.dtype).reshape((out.numel(), *out.shape))
    back = lambda g: tg.autograd.grad(out, y, g, retain_graph=True)[0]
    same(vmap(back)(rows), tg.stack([back(r) for r in rows]))
    as_a_loop(lambda x: view(x * 1), tg.stack([x, x + 1]))


PUT_BACK = {
    "_select_backward": (((4,), ((3, 4), 0, 1)), ((3,), ((3, 4), -1, -2)), ((), ((4,), 0, 0)), ((), ((3, 4), 0, 1))),
    "_slice_backward": (((2, 3), ((5, 3), 0, 1, 2)), ((2,), ((4,), -1, -2, 1)), ((0,), ((4,), 0, None, 1))),
    "_diagonal_backward": (((3,), ((3, 4), 1, 0, 1)), ((2, 3), ((3, 2, 4), 0, -1, 0)), ((3,), ((3, 2, 4), 0, -1, 0))),
    "_unfold_backward": (
        ((4, 2), ((5,), 0, 2, 1)),
        ((2, 2), ((5,), -1, 2, 3)),
        ((2,), ((5,), 0, 2, 3)),
        ((1,), ((), 0, 1, 1)),
    ),
    "_rewindow": (
        ((3, 3), ((1, 1), 0, (5,), (1,), 0, False)),
        ((2, 2), ((1, 1), 0, (2, 3), (0, 1), 0, False)),
        ((2, 3), ((0, 1), 1, (2, 2), (1, 1), 0, True)),
        ((0, 2), ((1, 1), 4, (2,), (3,), 2, False)),
        ((0,), ((5,), 0, (0,), (3,), 0, False)),
        ((), ((), 2, (3,), (1,), 0, False)),
    ),
    "_basic_index_backward": (((4,), ((3, 4), 1)), ((2, 3), ((3, 3), (slice(1, None),)))),
}


@pytest.mark.parametrize("name", PUT_BACK)
def test_what_puts_a_gradient_back(name):
    for shape, args in PUT_BACK[name]:
        as_a_loop(lambda g: getattr(g, name)(*args), of(3, *shape))


def test_parts_written_in_a_copy():
    as_a_loop(lambda x, s: x.select_scatter(s, -1, 1), of(3, 2, 4), of(3, 2))
    as_a_loop(lambda x, s: x.slice_scatter(s, 1, 1, 3), of(3, 2, 4), of(3, 2, 2))
    as_a_loop(lambda x, s: x.diagonal_scatter(s, 1), of(3, 2, 4), of(3, 2))


# ---- norms and equations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ord", [2, 1, 0, 3, float("inf"), -float("inf")])
@pytest.mark.parametrize(
    "dim, keepdim", [(None, False), (None, True), (0, False), (-1, True), ((0, 1), False), ((), False)]
)
def test_vector_norm(ord, dim, keepdim):
    norm = lambda x: tg.linalg.vector_norm(x, ord, dim, keepdim)
    x = of(3, 2, 4) - 3
    assert tg.allclose(vmap(norm)(x), tg.stack([norm(r) for r in x]))
    slope = grad(lambda x: norm(x).sum())
    assert tg.allclose(vmap(slope)(x), tg.stack([slope(r) for r in x]))


def test_vector_norm_of_numbers():
    norm = lambda x: tg.linalg.vector_norm(x, 2)
    same(vmap(norm)(of(3)), of(3).abs())
    same(vmap(lambda x: tg.linalg.vector_norm(x, 2, 0))(of(3)), of(3).abs())


@pytest.mark.parametrize(
    "a, right",
    [
        ((3, 3), (3, 2)),
        ((3, 3), (3,)),
        ((2, 3, 3), (3, 2)),
        ((3, 3), (2, 3, 1)),
        ((2, 3, 3), (2, 3)),
        ((1, 1), (1, 1)),
        ((0, 0), (0, 2)),
    ],
)
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_solve(a, right, in_dims):
    tg.manual_seed(0)
    A = tg.rand(4, *a, dtype=tg.float64) + 3 * tg.eye(a[-1], dtype=tg.float64)
    B = tg.rand(4, *right, dtype=tg.float64)
    args = [x if d == 0 else x[0] for x, d in zip((A, B), in_dims)]
    f = tg.linalg.solve
    assert tg.allclose(vmap(f, in_dims)(*args), tg.stack([f(*samples(args, in_dims, k)) for k in range(4)]))
    slope = grad(lambda A, B: f(A, B).tanh().sum(), (0, 1))
    for got, want in zip(vmap(slope, in_dims)(*args), zip(*[slope(*samples(args, in_dims, k)) for k in range(4)])):
        assert tg.allclose(got, tg.stack(list(want)))
    assert vmap(f, in_dims)(*[x if d is None else x[:0] for x, d in zip(args, in_dims)]).shape[0] == 0
    twice = [x if d is None else tg.stack([x, x]) for x, d in zip(args, in_dims)]
    assert tg.allclose(vmap(vmap(f, in_dims), in_dims)(*twice)[1], vmap(f, in_dims)(*args))


# ---- samples with too few dimensions ---------------------------------------------------------------------------------

TOO_FEW = {
    "view_as_complex": (tg.view_as_complex, (), "one or more dimensions"),
    "select": (lambda x: tg.select(x, 0, 0), (), "0-dim tensor"),
    "narrow": (lambda x: tg.narrow(x, 0, 0, 0), (), "0-dim tensor"),
    "unbind": (lambda x: tg.unbind(x)[0], (), "Dimension specified as 0"),
    "tril": (tg.tril, (2,), "at least 2 dimensions"),
    "qr": (lambda x: tg.linalg.qr(x)[0], (2,), "at least 2"),
    "lu_factor": (lambda x: tg.linalg.lu_factor(x)[0], (2,), "at least 2"),
}


@pytest.mark.parametrize("name", TOO_FEW)
def test_a_sample_is_refused_as_without_a_batch(name):
    f, shape, _ = TOO_FEW[name]
    with pytest.raises((RuntimeError, IndexError)) as alone:
        f(tg.ones(shape))
    for batch in (1, 2, 3):
        with pytest.raises(type(alone.value)) as batched:
            vmap(f)(tg.ones(batch, *shape))
        assert str(batched.value).partition("\n")[0] == str(alone.value).partition("\n")[0]


def test_shapes_of_samples_are_asked_about_by_nobody():
    """What a capture or a mode sees of an op under vmap is the op alone."""
    f = vmap(lambda x: x.tril() @ x)
    x = tg.arange(12.0).reshape(3, 2, 2)
    traced = tg.jit.trace(f, (x,))
    assert tg.equal(traced(x * 2.0), f(x * 2.0)) and "empty" not in str(traced.graph)


@pytest.mark.parametrize("in_dims", [(0, None), (None, 0), (0, 0)])
def test_cat_passes_over_what_is_empty(in_dims):
    x = tg.arange(20.0).reshape(5, 2, 2) if in_dims[0] == 0 else tg.arange(4.0).reshape(2, 2)
    empty = tg.ones(5, 0) if in_dims[1] == 0 else tg.ones(0)
    found = vmap(lambda x, y: tg.cat([y, x, x], -1), in_dims)(x, empty)
    assert tg.equal(found, tg.cat([x.expand(5, 2, 2)] * 2, -1))
    assert vmap(lambda y: tg.cat([y, y]))(tg.ones(5, 0)).shape == (5, 0)
