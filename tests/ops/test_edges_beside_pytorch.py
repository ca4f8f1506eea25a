"""What ops answer at their edges: None and nothing as arguments, numbers that are missing, bounds on meta, ties."""

import math

import numpy
import pytest

import tinygrad_ext as tg

NAN, INF = math.nan, math.inf


def test_roll_takes_none_for_no_dimensions():
    x = numpy.arange(6).reshape(2, 3)
    for dims in ((None,), ((),), ()):
        assert tg.roll(tg.tensor(x), 1, *dims).tolist() == numpy.roll(x, 1).tolist()
    assert tg.tensor(x).roll(-2, dims=None).tolist() == numpy.roll(x, -2).tolist()
    with pytest.raises(RuntimeError, match="shifts and dimensions must align. shifts: 2, dims:0"):
        tg.roll(tg.tensor(x), (1, 2), None)


def test_lists_of_tensors_may_be_left_out():
    assert tg.block_diag().shape == (1, 0)
    assert list(tg.broadcast_tensors()) == []
    for call in (tg.meshgrid, lambda: tg.meshgrid(indexing="ij"), tg.cartesian_prod):
        with pytest.raises(RuntimeError, match="expects a non-empty TensorList"):
            call()
    with pytest.raises(RuntimeError, match="Expected one or more matrices"):
        tg.chain_matmul()
    assert [t.tolist() for t in tg.meshgrid(tensors=[tg.ones(1)], indexing="ij")] == [[1]]


def test_nothing_is_selected_from_an_empty_dimension():
    with pytest.raises(RuntimeError, match="self indexing axis dim should be positive"):
        tg.zeros(0, 3).index_select(0, tg.tensor([0]))
    assert tg.zeros(0, 3).index_select(0, tg.tensor([], dtype=tg.int64)).shape == (0, 3)
    with pytest.raises(IndexError, match="out of range"):
        tg.zeros(1, 3).index_select(0, tg.tensor([1]))


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_bounds_on_meta_give_a_row_on_meta(name):
    number, bound = 1.0, tg.tensor(0.0, device="meta")
    for start, end in ((bound, number), (number, bound), (bound, bound)):
        row = getattr(tg, name)(start, end, 3)
        assert row.is_meta and row.shape == (3,) and row.dtype is tg.float32


def test_slopes_of_dirichlet_samples_at_one_are_limits():
    places = tg.ones(5, dtype=tg.float64)
    alpha, total = tg.tensor([1.0, 2, 3, 0.5, 2]).double(), tg.tensor([2.0, 3, 4, 2, 2]).double()
    found = tg._dirichlet_grad(places, alpha, total)
    near = tg._dirichlet_grad(places - 1e-9, alpha, total)
    assert found[4] == 0 and tg.allclose(found[:4], near[:4], rtol=1e-6)
    assert tg.allclose(found[:3], tg.tensor([1, 1 / 2, 1 / 3]).double())


def test_distances_of_missing_numbers_by_count_are_missing():
    a, b = [[0.0, NAN], [1, 2], [INF, 1]], [[1.0, 1], [0, 2], [INF, 1]]
    want = [[NAN] * 3, [1, 1, 2], [1, 2, NAN]]
    x = tg.tensor(a, requires_grad=True)
    found = tg.cdist(x, tg.tensor(b), p=0)
    assert numpy.array_equal(found.detach().numpy(), numpy.array(want), equal_nan=True)
    found.nansum().backward()
    assert not x.grad.any()
    assert numpy.array_equal(tg.pdist(tg.tensor(a), p=0).numpy(), [NAN, NAN, 2], equal_nan=True)
    torch = pytest.importorskip("torch")
    assert numpy.array_equal(torch.cdist(torch.tensor(a), torch.tensor(b), p=0).numpy(), want, equal_nan=True)


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_of_equal_products_the_first_gets_the_gradient(reduce):
    def run(library):
        a = library.tensor([[1.0, 1, 2], [0, 3, 3], [0, 0, 0]]).to_sparse_csr()
        b = library.tensor([[1.0, 2], [1, 2], [0.5, 1]], requires_grad=True)
        found = library.sparse.mm(a, b, reduce)
        found.sum().backward()
        return found.detach().numpy(), b.grad.numpy()

    found, slope = run(tg)
    ends = {"amax": [[1, 2], [3, 6], [0, 0]], "amin": [[1, 2], [1.5, 3], [0, 0]]}[reduce]
    assert found.tolist() == ends
    first = {"amax": [[1, 1], [3, 3], [0, 0]], "amin": [[1, 1], [0, 0], [3, 3]]}[reduce]
    assert slope.tolist() == first
    torch = pytest.importorskip("torch")
    assert all(numpy.array_equal(a, b) for a, b in zip((found, slope), run(torch)))
    missing = tg.sparse.mm(tg.tensor([[0, NAN, 1], [1, 0, 1]]).to_sparse_csr(), tg.ones(3, 1), reduce)
    assert missing[0].isnan().all() and missing[1].tolist() == [1]


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_what_share_is_asked_for_has_a_gradient(name):
    def run(library, way):
        s = library.tensor([1.0, 4, 2, 8], dtype=library.float64, requires_grad=True)
        q = library.tensor([0.3, 0.6], dtype=library.float64, requires_grad=True)
        found = getattr(library, name)(s, q, interpolation=way)
        return [
            None if g is None else g.tolist() for g in library.autograd.grad(found.sum(), [s, q], allow_unused=True)
        ]

    by_numbers, by_share = run(tg, "linear")
    numpy.testing.assert_allclose(by_share, [3 * (2 - 1), 3 * (4 - 2)])
    assert run(tg, "lower")[1] is None
    torch = pytest.importorskip("torch")
    for way in ("linear", "lower", "midpoint", "nearest"):
        for ours, theirs in zip(run(tg, way), run(torch, way)):
            assert (ours is None) == (theirs is None)
            numpy.testing.assert_allclose(ours or [], theirs or [])


@pytest.mark.parametrize("make", ["complex32", "conjugate", "negative"])
def test_contiguous_of_a_part_is_contiguous(make):
    x = tg.complex(tg.arange(16.0), tg.arange(16.0) - 5).reshape(2, 2, 2, 2)
    x = {"complex32": lambda: x.to(tg.complex32), "conjugate": x.conj, "negative": lambda: x.conj().imag}[make]()
    for part in (x[:, 1], x[:, :, 1], x.transpose(0, 2), x[:, 1:, :1]):
        found = part.contiguous()
        assert not part.is_contiguous() and found.is_contiguous() and found.dtype is part.dtype
        assert found.tolist() == part.tolist()
    assert make == "negative" or x.contiguous().data_ptr() == x.data_ptr()


def test_each_of_several_farthest_coordinates_has_the_whole_slope_of_a_distance():
    torch = pytest.importorskip("torch")
    a, b = [[0.0, 0, 1], [1, 2, 3]], [[1.0, 1, 0], [1, 2, 3], [5, 2, 7]]
    found, want = [], []
    for lib, grads in ((tg, found), (torch, want)):
        x, y = (lib.tensor(rows, dtype=lib.float64, requires_grad=True) for rows in (a, b))
        weight = lib.arange(1.0, 7, dtype=lib.float64).reshape(2, 3)
        grads += lib.autograd.grad((lib.cdist(x, y, p=INF) * weight).sum(), (x, y))
    assert [t.tolist() for t in found] == [t.tolist() for t in want]
    assert found[0].tolist() == [[-1, -1 - 2, 1 - 2 - 3], [-6, 0, 4 - 6]]


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("layout", [1, 3])
def test_infinities_become_the_largest_numbers_of_their_own_dtype(dtype, layout):
    x = tg.tensor([INF, 1.5, -INF, NAN] * 12, dtype=dtype)[::layout]
    most = tg.finfo(dtype).max
    right = [{INF: most, -INF: -most}.get(v, 0.0 if v != v else v) for v in x.tolist()]
    assert x.nan_to_num().tolist() == right
    assert x.nan_to_num(posinf=2.0).tolist() == [2.0 if v == most else v for v in right]


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
def test_parts_of_complex_numbers_become_numbers_by_themselves(dtype):
    x = tg.tensor([complex(INF, NAN), complex(1, -INF), complex(NAN, 2)], dtype=dtype)
    most = tg.finfo(dtype).max
    assert x.nan_to_num().tolist() == [complex(most, 0), complex(1, -most), 2j]
    assert x.nan_to_num(7.0, 3.0, -3.0).tolist() == [3 + 7j, 1 - 3j, 7 + 2j]


def test_parts_of_complex_numbers_have_slopes_of_their_own():
    values = [complex(INF, 2), complex(1, -INF), complex(1, 2), complex(NAN, NAN)]
    x = tg.tensor(values, requires_grad=True)
    weight, right = tg.full((4,), 3 + 4j), [4j, 3, 3 + 4j, 0]
    assert tg.autograd.grad(x.nan_to_num(), x, weight)[0].tolist() == right
    assert tg.func.jvp(tg.nan_to_num, (x.detach(),), (weight,))[1].tolist() == right


@pytest.mark.parametrize("p", [1.0, 3.0, INF])
def test_distances_to_no_rows_have_no_slopes_and_those_of_nan_are_nan(p):
    x = tg.ones(3, 2, requires_grad=True)
    assert tg.autograd.grad(tg.cdist(x, tg.ones(0, 2), p=p).sum(), x)[0].tolist() == [[0, 0]] * 3
    x = tg.tensor([[NAN, 1.0], [2.0, 1.0]], requires_grad=True)
    slopes = tg.autograd.grad(tg.cdist(x, tg.zeros(1, 2), p=p).sum(), x)[0]
    assert slopes[0, 0].isnan() and slopes[1].isfinite().all()
