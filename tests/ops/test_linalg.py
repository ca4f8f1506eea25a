"""Rules of the matrix products that the sweep over the op table cannot know."""

import subprocess
import sys

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils.flop_counter import FlopCounterMode

SIZES = ((2, 8, 4), (1, 300, 200), (200, 300, 1), (1, 5000, 1), (33, 65, 17), (130, 140, 150), (300, 40, 520))


def randn(*shape, dtype=tg.float64):
    return tg.randn(shape, dtype=dtype)


def by_hand(a, b):
    """Product by the broadcast definition, without BLAS."""
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


def strided(t):
    """t's elements at every second place of a larger tensor."""
    room = tg.zeros((2 * t.shape[0], 2 * t.shape[1]), dtype=t.dtype)
    room[::2, ::2] = t
    return room[::2, ::2]


@pytest.mark.parametrize("m, k, n", SIZES)
def test_every_size_and_layout_equals_the_definition(m, k, n):
    a, b = randn(m, k), randn(k, n)
    want = by_hand(a, b)
    for x in (a, a.t().contiguous().t(), strided(a)):
        for y in (b, b.t().contiguous().t(), strided(b)):
            assert tg.allclose(x @ y, want, rtol=1e-10, atol=1e-10)


def test_operands_with_equal_or_no_strides_are_read_right():
    row = randn(1, 40)
    b = randn(40, 30)
    assert tg.allclose(row.expand(50, 40) @ b, by_hand(row, b).expand(50, 30))
    column = randn(40, 1)
    assert tg.allclose(randn(3, 40) @ column.expand(40, 30) * 0, tg.zeros((3, 30), dtype=tg.float64))


@pytest.mark.parametrize("m, k, n", [(512, 256, 64), (64, 256, 512), (300, 300, 300), (1, 2000, 3000), (3000, 2000, 1)])
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_result_does_not_depend_on_the_number_of_threads(m, k, n, dtype):
    a, b = randn(m, k, dtype=dtype), randn(k, n, dtype=dtype)
    before = tg.get_num_threads()
    try:
        tg.set_num_threads(1)
        one = a @ b
        tg.set_num_threads(3)
        assert bool((a @ b == one).all())
    finally:
        tg.set_num_threads(before)


def test_beta_zero_does_not_read_self():
    a, b = randn(3, 40), randn(40, 3)
    start = tg.full((3, 3), float("nan"), dtype=tg.float64)
    assert tg.allclose(tg.addmm(start, a, b, beta=0), a @ b)
    assert tg.allclose(start.addmm_(a, b, beta=0), a @ b)


def test_out_may_be_strided_or_an_operand():
    a, b = randn(20, 20), randn(20, 20)
    want = a @ b
    out = tg.zeros((20, 40), dtype=tg.float64)[:, ::2]
    tg.mm(a, b, out=out)
    assert tg.allclose(out, want)
    turned = tg.zeros((20, 20), dtype=tg.float64).t()
    tg.mm(a, b, out=turned)
    assert tg.allclose(turned, want)
    tg.mm(a, b, out=a)
    assert tg.allclose(a, want)


def test_integers_wrap_instead_of_saturating():
    a = tg.full((1, 5), 100, dtype=tg.uint8)
    assert (a @ a.t()).item() == 5 * 100 * 100 % 256


def test_nan_and_infinity_pass_through_every_path():
    for n in (4, 40, 200):
        a, b = tg.ones((n, n)), tg.zeros((n, n))
        a[0, 0] = float("inf")
        assert bool(tg.isnan((a @ b)[0]).all())
        assert not bool(tg.isnan((a @ b)[1:]).any())


def test_readonly_target_is_refused():
    import numpy

    array = numpy.zeros((2, 2), numpy.float32)
    array.flags.writeable = False
    with pytest.warns(UserWarning):
        target = tg.from_numpy(array)
    if target.data_ptr() == array.ctypes.data:
        with pytest.raises(RuntimeError, match="read-only"):
            tg.mm(tg.ones((2, 2)), tg.ones((2, 2)), out=target)


def test_products_work_without_a_blas():
    code = (
        "import tinygrad_ext.core.loops.blas as b; b._candidates = lambda: []\n"
        "import tinygrad_ext as tg; a = tg.ones((40, 50)); assert (a @ a.t()).sum().item() == 40 * 40 * 50\n"
        "assert b.blas_info()['library'] is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "equation",
    [
        "bij,bjk->bki",
        "ij,jk->ki",
        "ab,cd->acbd",
        "abcd,cdef->efab",
        "i,j->ji",
        "xyz,xay->xaz",
        "ija,aklb,bmn->ijkl",
        "xab,xbcd->xadc",
    ],
)
def test_einsum_lays_its_result_out_in_the_order_of_the_output(equation):
    terms, sizes = equation.partition("->")[0].split(","), {s: 2 + i % 3 for i, s in enumerate("abcdefijklmnxyz")}
    operands = [tg.rand(*(sizes[s] for s in term)) for term in terms]
    result = tg.einsum(equation, *operands)
    assert result.is_contiguous()
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *(t.numpy() for t in operands)), rtol=1e-5)


def test_einsum_takes_operands_as_a_list_and_as_sublists():
    a, b = randn(2, 3), randn(3, 4)
    want = a @ b
    assert tg.allclose(tg.einsum("ij,jk->ik", [a, b]), want)
    assert tg.allclose(tg.einsum(a, [0, 1], b, [1, 2], [0, 2]), want)
    assert tg.allclose(tg.einsum(a, [0, 1], b, [1, 2]), want)


def test_solve_reads_matrices_of_any_strides_and_leaves_them_as_they_were():
    tg.manual_seed(0)
    wide = tg.randn(2, 3, 6) + 4 * tg.eye(6)[:3]
    for A in (wide[..., :3], wide[..., :3].mT, wide[..., :3].flip(-1), wide[:1, :, :3].expand(4, 3, 3)):
        for B in (tg.ones(3, 1), tg.randn(2, 3).t(), tg.randn(3, 4)[:, ::2], tg.ones(1).expand(3, 2)):
            kept = A.clone(), B.clone()
            x = tg.linalg.solve(A, B)
            assert x.equal(tg.linalg.solve(*kept))
            assert tg.allclose(A @ x, B.expand(x.shape), atol=1e-5)
            assert A.equal(kept[0]) and B.equal(kept[1])


def test_a_singular_matrix_is_an_error_that_can_be_caught_by_its_name_or_as_a_runtime_error():
    assert issubclass(tg.linalg.LinAlgError, RuntimeError)
    with pytest.raises(tg.linalg.LinAlgError, match=r"\(Batch element 3\)"):
        tg.linalg.solve(tg.eye(2) * tg.tensor([1.0, 2, 3, 0]).view(2, 2, 1, 1), tg.ones(2, 1))


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
def test_solve_says_what_to_convert_for_dtypes_that_it_does_not_compute_in(dtype):
    with pytest.raises(NotImplementedError, match=r"\.float\(\)"):
        tg.linalg.solve(tg.eye(2, dtype=dtype), tg.ones(2, dtype=dtype))


def test_vecdot_refuses_integers_and_two_dtypes():
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor"):
        tg.linalg.vecdot(tg.tensor([1]), tg.tensor([1]))
    with pytest.raises(RuntimeError, match="to have the same dtype"):
        tg.linalg.vecdot(tg.ones(2), tg.ones(2).double())


def test_the_dtype_of_a_norm_may_be_a_type_of_python():
    assert tg.linalg.matrix_norm(tg.ones(2, 2), dtype=float).dtype == tg.float64
    for kind in (int, bool):
        with pytest.raises(RuntimeError, match="dtype should be floating point or complex"):
            tg.linalg.matrix_norm(tg.ones(2, 2), dtype=kind)


def test_integers_are_refused_by_solve_on_every_device():
    for device in ("cpu", "meta"):
        square = tg.ones(2, 2, dtype=tg.int64, device=device)
        for solve in (tg.linalg.solve, tg.ops.aten._solve):
            with pytest.raises(RuntimeError, match="floating point"):
                solve(square, square)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_gradients_through_hermitian_matrices_are_hermitian_again(uplo):
    tg.manual_seed(0)
    A, seed = (tg.randn(4, 4, dtype=tg.complex128) for _ in range(2))
    A = (A + A.mH).requires_grad_()
    (first,) = tg.autograd.grad(tg.linalg.eigvalsh(A, uplo).exp().sum(), A, create_graph=True)
    (second,) = tg.autograd.grad(first, A, seed)
    for grad in (first.detach(), second):
        tg.testing.assert_close(grad, grad.mH)


@pytest.mark.parametrize("p", [None, "fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")])
def test_cond_of_matrices_without_elements_is_zero(p):
    assert tg.linalg.cond(tg.zeros(2, 0, 0), p).tolist() == [0, 0]
    assert tg.linalg.cond(tg.zeros(0, 0, dtype=tg.complex64), p).dtype == tg.float32


@pytest.mark.parametrize("x, N", [(tg.zeros(1), None), (tg.zeros(()), None), (tg.zeros(3), 1), (tg.zeros(2, 0), None)])
def test_vander_of_linalg_wants_two_powers(x, N):
    with pytest.raises(RuntimeError, match="N must be greater than 1"):
        tg.linalg.vander(x, N=N)


def test_solve_ex_says_its_info_of_the_matrices_that_were_given():
    A, B = tg.eye(3).repeat(2, 1, 1, 1), tg.ones(4, 3, 2)
    A[1] = 0
    solution, info = tg.linalg.solve_ex(A, B)
    assert solution.shape == (2, 4, 3, 2) and info.tolist() == [[0], [1]]
    assert tg.linalg.solve_ex(A, tg.ones(0, 3, 2)).info.shape == (2, 1)


def test_inverse_of_a_factor_wants_a_matrix():
    with pytest.raises(RuntimeError, match="cholesky_inverse: The input tensor A must have at least 2 dimensions"):
        tg.cholesky_inverse(tg.ones(()))


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_a_factor_with_a_zero_on_its_diagonal_has_no_inverse(dtype, upper):
    factors = tg.ones(2, 3, 3, dtype=dtype).tril() + tg.eye(3)
    factors[1, 1, 1] = factors[1, 2, 2] = 0
    factors = factors.mT if upper else factors
    with pytest.raises(
        tg.linalg.LinAlgError, match=r"cholesky_inverse: \(Batch element 1\): The diagonal element 2 is zero"
    ):
        factors.cholesky_inverse(upper)
    for alone in (factors[1], factors[1].contiguous()):
        with pytest.raises(tg.linalg.LinAlgError, match="cholesky_inverse: The diagonal element 2 is zero"):
            alone.cholesky_inverse(upper)
    assert factors[0].cholesky_inverse(upper).isfinite().all()
    assert factors[:, :0, :0].cholesky_inverse(upper).shape == (2, 0, 0)


@pytest.mark.parametrize("n", [25, 70])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_the_inverse_of_a_large_factor(n, dtype, upper, turned):
    factors = (randn(2, n, n) + 1j * randn(2, n, n) if dtype.is_complex else randn(2, n, n)) / n
    factors = (factors + tg.eye(n)).to(dtype)
    if dtype.is_complex and not turned:  # as factors have
        factors.imag.diagonal(0, -2, -1).zero_()
    found, half = factors.cholesky_inverse(upper), factors.triu() if upper else factors.tril()
    product = half.mH @ half if upper else half @ half.mH
    eps = tg.finfo(dtype).eps
    assert tg.allclose(found @ product, tg.eye(n).to(dtype), rtol=0, atol=100 * n * eps)
    assert found.equal(found.mH.contiguous())
    assert found[1].equal(factors[1].cholesky_inverse(upper))
    assert found[0].equal(factors[0].mT.contiguous().mT.cholesky_inverse(upper))


@pytest.mark.parametrize("n", [3, 26])
@pytest.mark.parametrize("upper", [False, True])
def test_the_gradient_of_a_cholesky_factor_is_that_of_its_product(upper, n):
    factor = randn(n, n) + (4 if n < 4 else 2 * n) * tg.eye(n, dtype=tg.float64)
    factor = (factor.triu() if upper else factor.tril()).requires_grad_()
    whole, b, weights = factor.detach().clone().requires_grad_(), randn(n, 2), randn(n, n)
    product = whole.mT @ whole if upper else whole @ whole.mT
    for found, wanted in (
        (b.cholesky_solve(factor, upper), tg.linalg.solve(product, b)),
        (factor.cholesky_inverse(upper), product.inverse()),
    ):
        w = weights[:, : found.shape[1]]
        (by_factor,) = tg.autograd.grad((found * w).sum(), factor, create_graph=True)
        (by_whole,) = tg.autograd.grad((wanted * w).sum(), whole, create_graph=True)
        assert tg.allclose(by_factor, by_whole, rtol=1e-9, atol=1e-12)
        twice = [
            tg.autograd.grad((g * weights).sum(), t, retain_graph=True)[0]
            for g, t in ((by_factor, factor), (by_whole, whole))
        ]
        assert tg.allclose(*twice, rtol=1e-8, atol=1e-11)
    tangent = weights.triu() if upper else weights.tril()
    (_, by_factor), (_, by_product) = (
        tg.func.jvp(f, (factor.detach(),), (tangent,))
        for f in (
            lambda t: t.cholesky_inverse(upper),
            lambda t: (t.mT @ t if upper else t @ t.mT).inverse(),
        )
    )
    assert tg.allclose(by_factor, by_product, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ord", [0.5, 1, 1.5, 2, 2.5, 3, float("inf")])
def test_second_derivatives_of_norms_at_zero_are_zero(ord):
    x = tg.zeros(3, dtype=tg.float64, requires_grad=True)
    (slope,) = tg.autograd.grad(tg.linalg.vector_norm(x, ord), x, create_graph=True)
    assert slope.tolist() == [0, 0, 0]
    assert tg.autograd.grad(slope.sum(), x)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("n, products", [(1, 0), (2, 1), (3, 2), (5, 3), (8, 3)])
def test_a_power_takes_no_product_that_is_not_needed(n, products):
    a = randn(6, 6)
    with FlopCounterMode(display=False) as counted:
        got = tg.linalg.matrix_power(a, n)
    assert counted.get_total_flops() == products * 2 * 6**3
    np.testing.assert_allclose(got.numpy(), np.linalg.matrix_power(a.numpy(), n), atol=1e-9, rtol=1e-9)
