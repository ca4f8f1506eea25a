"""Factors L D L^T of symmetric matrices, which need not be definite, and systems with them."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused, refusal, refusals, refused_slope
from tinygrad_ext.ops.matrices import TYPES, adjoint, check_matrix, no_info, regular
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import broadcast_sizes


def _symmetric(make, *shape, hermitian=False):
    drawn = regular(make, *shape).detach()
    return drawn + (adjoint(drawn) if hermitian else drawn.mT)


def _symmetrics(make):
    for shape in ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2)):
        yield Sample(_symmetric(make, *shape))
        yield Sample(_symmetric(make, *shape, hermitian=True), hermitian=True)


def _np_factors(A, hermitian=False):
    """By elimination without exchanges, which these samples, far from singular, do without."""
    import numpy

    A, n = A.copy(), A.shape[-1]
    LD = numpy.zeros_like(A)
    for k in range(n):
        column = A[..., k:, k] / A[..., k, k, None]
        LD[..., k:, k] = column
        LD[..., k, k] = A[..., k, k]
        other = column.conj() if hermitian else column
        A[..., k:, k:] = A[..., k:, k:] - column[..., :, None] * other[..., None, :] * A[..., k, k, None, None]
    pivots = numpy.broadcast_to(numpy.arange(1, n + 1, dtype=numpy.int32), A.shape[:-1])
    return LD, pivots, no_info(A)


op(
    'aten::_ldl_factor(Tensor A, bool hermitian=False, bool check_errors=True, str title="torch.linalg.ldl_factor_ex") '
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    batch="leading",
    kernel="_ldl_factor",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A": refusals("ldl_factor")},
    jvp=refused_slope("ldl_factor"),
    samples=_symmetrics,
    reference=_np_factors,
    doc="linalg.ldl_factor_ex, whose name in messages is title.",
)

for _name, _count in (("ldl_factor", 2), ("ldl_factor_ex", 3)):
    _more = ", bool check_errors=False" if _count == 3 else ""
    op(
        f"aten::{_name}(Tensor self, *, bool hermitian=False{_more}) -> (Tensor LD, Tensor pivots"
        f"{', Tensor info' if _count == 3 else ''})",
        compose=lambda self, hermitian, check_errors=True, count=_count: tuple(
            fused._ldl_factor(self, hermitian, check_errors, "torch.linalg.ldl_factor_ex")
        )[:count],
        jvp="none",
        types=TYPES,
        where="linalg",
        variants="function out",
        samples=_symmetrics,
        reference=lambda A, hermitian=False, count=_count: _np_factors(A, hermitian)[:count],
        errors=[
            (lambda name=_name: getattr(tg.linalg, name)(zeros(3)), RuntimeError, "must have at least 2 dimensions"),
            (lambda name=_name: getattr(tg.linalg, name)(zeros(2, 3)), RuntimeError, "must be batches of square matr"),
        ],
        doc="L and D of L D L^T for each symmetric matrix, or of L D L^H with hermitian, of which the lower triangle "
        "is read: LD has D on and, for blocks of two, below its diagonal, and L below that; pivots are LAPACK's, from "
        "1 on, negative in blocks of two"
        + ("; info is the number of the first zero on the diagonal, or 0." if _count == 3 else ".")
        + " A gradient is refused.",
    )


def _ldl_solve(LD, pivots, B, hermitian):
    title = "torch.linalg.ldl_solve"
    check_matrix(LD, title, "LD", square=True)
    check_matrix(B, title, "B")
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {title}: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but each b "
            f"matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{title}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead for LD of {list(LD.shape)}"
        )
    if pivots.is_floating_point() or pivots.is_complex() or pivots.dtype == tg.bool:
        raise RuntimeError(f"{title}: Expected pivots to be integers. Got {pivots.dtype}")
    batch = broadcast_sizes(LD.shape[:-2], B.shape[:-2])
    n, k = B.shape[-2:]
    LD, pivots = LD.expand((*batch, n, n)), pivots.to(tg.int32).expand((*batch, n))
    return fused._ldl_solve(LD, pivots, B.expand((*batch, n, k)), hermitian)


def _factored(make, A, B, hermitian):
    drawn = _symmetric(make, *A, hermitian=hermitian)
    LD, pivots, _ = fused._ldl_factor(drawn.to(tg.complex128 if drawn.is_complex() else tg.float64), hermitian, False)
    return Sample(LD.to(drawn.dtype), pivots, make(*B).detach(), hermitian=hermitian)


def _np_solve(LD, pivots, B, hermitian=False):
    import numpy

    L = numpy.tril(LD, -1) + numpy.eye(LD.shape[-1])
    turned = L.swapaxes(-1, -2)
    A = numpy.matmul(L * numpy.diagonal(LD, 0, -2, -1)[..., None, :], turned.conj() if hermitian else turned)
    return numpy.matmul(numpy.linalg.inv(A), B)


def _pairs(*pairs):
    return lambda make: [_factored(make, A, B, hermitian) for A, B in pairs for hermitian in (False, True)]


_SAME = (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)), ((0, 0), (0, 2)))

op(
    "aten::_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian=False) -> Tensor",
    batch="leading",
    kernel="_ldl_solve",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"LD": refusal("ldl_solve", "LD"), "B": refusal("ldl_solve", "B")},
    jvp=refused_slope("ldl_solve"),
    samples=_pairs(*_SAME),
    reference=_np_solve,
    errors=[
        (
            lambda: fused._ldl_solve(zeros(2, 2), tg.tensor([1, -2], dtype=tg.int32), zeros(2, 1)),
            RuntimeError,
            "pivots name rows that are not there",
        )
    ],
    doc="linalg.ldl_solve of one batch.",
)

op(
    "aten::ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    compose=_ldl_solve,
    jvp="none",
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=_pairs(*_SAME, ((2, 3, 3), (3, 2))),
    reference=_np_solve,
    errors=[
        (
            lambda: tg.linalg.ldl_solve(zeros(2, 2), zeros(2), zeros(2, 1)),
            RuntimeError,
            "Expected pivots to be integers",
        ),
        (lambda: tg.linalg.ldl_solve(zeros(2, 2), zeros(3).int(), zeros(2, 1)), RuntimeError, "pivots with shape [3]"),
        (
            lambda: tg.linalg.ldl_solve(zeros(2, 2), zeros(2).int(), zeros(3, 1)),
            RuntimeError,
            "Incompatible matrix siz",
        ),
    ],
    doc="X of A X = B for A's factors that linalg.ldl_factor gave, with the same hermitian. A gradient is refused.",
)
