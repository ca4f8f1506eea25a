"""Solutions of systems with more equations than unknowns, or fewer, by the least of what remains."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import TYPES, adjoint, check_matrix, check_same, plus, regular, together
from tinygrad_ext.ops.pseudoinverse import counted, limits, np_pinv, np_rank, pinv_back, pinv_slope, singular_values
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _least_inverse(A, rcond):
    return fused._pinv(A, *limits(A, None, rcond, "torch.linalg.lstsq"), False)


def _least_back(grad_solution, A, B, rcond, needs):
    inverse = _least_inverse(A, rcond)
    by_a = pinv_back(grad_solution.matmul(adjoint(B)), A, inverse) if needs[0] else None
    return by_a, adjoint(inverse).matmul(grad_solution) if needs[1] else None


def _least_slope(A, A_tangent, B, B_tangent, rcond):
    inverse = _least_inverse(A, rcond)
    found = None if A_tangent is None else pinv_slope(A, A_tangent, inverse).matmul(B)
    return found if B_tangent is None else plus(found, inverse.matmul(B_tangent)), None


def _np_least(A, B, rcond=None):
    return np_pinv(A, None, rcond) @ B, np_rank(A, None, rcond)


op(
    "aten::_least_squares(Tensor A, Tensor B, float? rcond) -> (Tensor solution, Tensor rank)",
    batch=together("_least_squares", lambda *args: fused._least_squares(*args), (2, 2, None)),
    kernel="least_squares",
    types=TYPES,
    variants="function",
    where="_fused",
    grad={"A, B": _least_back},
    jvp=_least_slope,
    samples=lambda make: [
        Sample(regular(make, 3, 3), make(3, 2), None),
        Sample(regular(make, 2, 4, 2), make(2, 4, 1), 0.01),
        Sample(regular(make, 2, 3), make(2, 2), None),
        Sample(regular(make, 0, 2, 2), make(0, 2, 1), None),
    ],
    reference=_np_least,
    doc="The X of least norm of A X - B, and the least of several, and the rank of A.",
)


def _limit(rcond, driver, dtype):
    """rcond as LAPACK's routine of that name reads it: gels has none, and gelsd and gelss their own for some."""
    if rcond is None or driver == "gels":
        return None
    if driver == "gelsy":
        return rcond
    if rcond != rcond:
        return 0.0  # no value is left out for it
    return tg.finfo(dtype).eps if rcond < 0 or (driver == "gelsd" and not 0 < rcond < 1) else rcond


def _lstsq(self, b, rcond, driver):
    title = "torch.linalg.lstsq"
    check_matrix(self, title, "input")
    check_same(self, b, title, ("input", "other"))
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise RuntimeError(f"{title}: parameter `driver` should be one of ({', '.join(_DRIVERS)}), got {driver!r}")
    if not b.dim():
        raise RuntimeError(f"{title}: other must have at least 1 dimension, got a single number for {list(self.shape)}")
    vectors = self.dim() - 1 == b.dim() and tuple(b.shape) == tuple(self.shape[:-1])
    B = b.unsqueeze(-1) if vectors else b
    if B.dim() < 2 or B.shape[-2] != self.shape[-2]:
        raise RuntimeError(
            f"{title}: input.size(-2) should match other.size(-{1 if vectors else 2}), but input is "
            f"{list(self.shape)} and other {list(b.shape)}"
        )
    m, n = self.shape[-2:]
    rcond = _limit(rcond, driver, self.dtype)
    if driver in ("gels", "gelsy") and self.shape[:-2] == B.shape[:-2]:
        (X, rank), values = fused._least_squares(self, B, rcond), self.detach().new_zeros((0,)).abs()
    else:
        values, both = singular_values(self, False), limits(self, None, rcond, title)
        rank, X = counted(values, *both).sum(-1), fused._pinv(self, *both, False).matmul(B)
    residuals = X.flatten().narrow(0, 0, 0).abs()
    if m > n and (driver == "gels" or (driver != "gelsy" and bool((rank == n).all()))):
        residuals = (self.matmul(X) - B).abs().square().sum(-2)
    return (
        X.squeeze(-1) if vectors else X,
        residuals,
        rank if driver != "gels" else rank.new_zeros((0,)),
        values if driver in ("gelsd", "gelss") else values.new_zeros((0,)),
    )


def _np_lstsq(A, B, rcond=None, driver=None):
    import numpy

    vectors = B.ndim == A.ndim - 1
    X = np_pinv(A, None, rcond) @ (B[..., None] if vectors else B)
    off = A @ X - (B[..., None] if vectors else B)
    residuals = (abs(off) ** 2).sum(-2) if driver and A.shape[-2] > A.shape[-1] else numpy.zeros(0)
    values = numpy.linalg.svd(A, compute_uv=False) if driver in ("gelsd", "gelss") else numpy.zeros(0)
    rank = numpy.zeros(0, numpy.int64) if driver == "gels" else np_rank(A, None, rcond)
    return (X[..., 0] if vectors else X), residuals, rank, values


op(
    "aten::lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, "
    "Tensor rank, Tensor singular_values)",
    compose=_lstsq,
    types=TYPES,
    where="linalg",
    variants="function out",
    samples=lambda make: [
        Sample(regular(make, 3, 3), make(3, 2)),
        Sample(regular(make, 4, 2), make(4, 1)),
        Sample(regular(make, 2, 4, 2), make(2, 4), driver="gels"),
        Sample(regular(make, 2, 4, 2), make(2, 4)),
        Sample(regular(make, 2, 3), make(2, 2), driver="gelsd"),
    ],
    reference=_np_lstsq,
    errors=[
        (lambda: tg.linalg.lstsq(zeros(3), zeros(3)), RuntimeError, "The input tensor input must have at least 2"),
        (lambda: tg.linalg.lstsq(zeros(3, 2), zeros(2, 2)), RuntimeError, "input.size(-2) should match other.size(-2)"),
        (lambda: tg.linalg.lstsq(zeros(2, 2), zeros(2, 2), driver="gel"), RuntimeError, "parameter `driver` should be"),
    ],
    tags="casts",
    doc="The X of least norm of A X - B, and the least of several; B is (..., m, k), or (..., m). "
    "Sums of squares of what remains are there if m > n and every rank is n, but not for gelsy, the default. "
    "rank counts singular values above rcond times the largest, which gelsd and gelss return: above the last digit "
    "where rcond is negative, and for gelsd where it is 0 or from 1 on too, and above 0 where it is nan; gels and "
    "gelsy go by a QR factorisation with exchanged columns, which estimates them, and gels leaves rcond and the rank "
    "out.",
)
