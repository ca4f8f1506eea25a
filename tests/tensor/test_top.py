"""Functions at the top of the package that are no ops."""

import numpy as np
import pytest

import tinygrad_ext as tg


def test_dtype_shape_and_history():
    assert tg.is_signed(tg.zeros(1)) and not tg.is_signed(tg.zeros(1, dtype=tg.uint8))
    x = tg.zeros(2)
    assert tg.resize_as_(x, tg.zeros(3, 1)) is x and x.shape == (3, 1)
    y = tg.ones(2, requires_grad=True) * 2
    assert tg.detach_(y) is y and not y.requires_grad


@pytest.mark.filterwarnings("ignore:torch.range")
def test_range_has_its_end():
    assert tg.range(0, 3).tolist() == [0, 1, 2, 3] and tg.range(end=1).dtype is tg.float32
    assert tg.range(0.5, 3.2, 1, dtype=tg.int64).tolist() == [0, 1, 2, 3]
    assert tg.range(1, -1, -0.5).tolist() == [1, 0.5, 0, -0.5, -1]
    out = tg.empty(0, dtype=tg.int64)
    assert tg.range(1, 2, out=out) is out and out.tolist() == [1, 2]
    for args, fragment in (
        ((0, 3, 0), "step must be nonzero"),
        ((3, 0), "inconsistent with step sign"),
        ((0, float("inf")), "unsupported range"),
    ):
        with pytest.raises(RuntimeError, match=fragment):
            tg.range(*args)
    with pytest.raises(TypeError, match="missing 1 required"):
        tg.range(3)


def test_range_warns():
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        tg.range(0, 1)


def test_empty_permuted():
    assert tg.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    made = tg.empty_permuted((), (), dtype=tg.int8, requires_grad=False)
    assert made.shape == () and made.dtype is tg.int8
    for layout, fragment in (
        ((0, 1), "Number of dimensions in size does not match"),
        ((1,), "Dimension out of range"),
        ((-1,), "Dimension out of range"),
    ):
        with pytest.raises(RuntimeError, match=fragment):
            tg.empty_permuted((2,), layout)
    with pytest.raises(RuntimeError, match="Duplicate dim not allowed"):
        tg.empty_permuted((2, 3), (1, 1))


def test_lu_is_lu_factor():
    tg.manual_seed(0)
    A = tg.randn(2, 3, 3, dtype=tg.float64, requires_grad=True)
    LU, pivots = tg.lu(A)
    P, L, U = tg.lu_unpack(LU, pivots)
    np.testing.assert_allclose((P @ L @ U).detach().numpy(), A.detach().numpy(), atol=1e-12)
    assert LU.requires_grad and len(A.lu(get_infos=True)) == 3
    out = tg.empty(0, dtype=tg.float64), tg.empty(0, dtype=tg.int32)
    assert tg.lu(A.detach(), out=out) is out and out[0].equal(LU) and out[1].equal(pivots)
    assert tg.lu(tg.zeros(2, 2), get_infos=True)[2].item() == 1
    with pytest.raises(RuntimeError, match="U.1,1. is zero"):
        tg.lu(tg.zeros(2, 2))
    with pytest.raises(TypeError, match="expected a tuple of 3 tensors for out"):
        tg.lu(A.detach(), get_infos=True, out=out)


def test_eigenpairs_of_symmetric_matrices():
    A = tg.tensor(np.diag([5.0, 1, 3, 4]) + 0.1).requires_grad_()
    B = tg.tensor(np.diag([1.0, 2, 1, 2])) + 0.01
    values, vectors = tg.lobpcg(A, 2)
    assert np.allclose(values.detach(), np.linalg.eigvalsh(A.detach().numpy())[:1:-1])
    assert np.allclose((A @ vectors).detach(), (vectors * values).detach())
    values, vectors = tg.lobpcg(tg.stack([A, 2 * A]), B=B, X=tg.zeros(4, 3), largest=False, niter=1)
    assert values.shape == (2, 3) and bool((values.diff() > 0).all())
    assert tg.allclose(tg.stack([A, 2 * A]) @ vectors, B @ vectors * values.unsqueeze(1))
    assert tg.allclose(vectors.mT @ B @ vectors, tg.eye(3, dtype=tg.float64).expand(2, 3, 3))
    assert tg.autograd.gradcheck(lambda A: tg.lobpcg(A, 2, B)[0], A)
    assert tg.equal(tg.lobpcg(A.detach().to_sparse())[0], tg.lobpcg(A)[0])
    for bad in (lambda: tg.lobpcg(A, 5), lambda: tg.lobpcg(A, 0), lambda: tg.lobpcg(A[:3])):
        with pytest.raises(ValueError, match="lobpcg"):
            bad()


def test_storages_are_known():
    t = tg.ones(2)
    assert [tg.is_storage(x) for x in (t.untyped_storage(), t.storage(), t, [1])] == [True, True, False, False]


def test_a_class_of_old_names_the_default_dtype():
    was = tg.get_default_dtype()
    try:
        for given, dtype in ((tg.DoubleTensor, tg.float64), ("torch.HalfTensor", tg.float16)):
            with pytest.warns(UserWarning, match="deprecated"):
                tg.set_default_tensor_type(given)
            assert tg.tensor(1.0).dtype is dtype
        for bad in (tg.LongTensor, tg.Tensor, "torch.cuda.FloatTensor", "torch.Nothing", tg.float32, 3):
            with pytest.warns(UserWarning), pytest.raises(TypeError, match="type"):
                tg.set_default_tensor_type(bad)
        assert tg.get_default_dtype() is tg.float16
    finally:
        tg.set_default_dtype(was)


def test_a_number_is_its_own_transpose():
    x = tg.tensor(1 + 2j)
    assert x.mT is x and x.mH.item() == x.H.item() == 1 - 2j
    with pytest.raises(RuntimeError, match="mT is only supported on matrices"):
        tg.zeros(2).mT
