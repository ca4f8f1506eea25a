"""Products of vectors and matrices."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.grad.rules import scaled
from tinygrad_ext.ops import batching, forward
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

NUMBERS = "int float half complex"


# ---- derivatives ---------------------------------------------------------------------------------------------------


def _adjoint(t):
    """Transpose of the last two dimensions, conjugated when complex."""
    t = t.transpose(-2, -1)
    return t.conj_physical() if t.is_complex() else t


def _conj(t):
    return t.conj_physical() if t.is_complex() else t


def _matmul_left(grad, other, self_shape):
    """Gradient of matmul by its left operand."""
    n = len(self_shape)
    if n == 2 and other.dim() == 2:
        return grad.mm(_adjoint(other))
    if other.dim() == 1:
        return grad.unsqueeze(-1) * _conj(other)
    if n == 1:
        return _conj(other).matmul(grad.unsqueeze(-1)).squeeze(-1).sum_to_size(self_shape)
    return grad.matmul(_adjoint(other)).sum_to_size(self_shape)


def _matmul_right(grad, self, other_shape):
    """Gradient of matmul by its right operand."""
    n = len(other_shape)
    if n == 2 and self.dim() == 2:
        return _adjoint(self).mm(grad)
    if self.dim() == 1:
        if n == 1:
            return grad * _conj(self)
        return (_conj(self).unsqueeze(-1) * grad.unsqueeze(-2)).sum_to_size(other_shape)
    if n <= 2:  # a single matrix or vector: one product over all rows instead of a sum over batches
        rows = _adjoint(as_rows(self))
        return rows.matmul(as_rows(grad) if n == 2 else grad.reshape(grad.numel()))
    return _adjoint(self).matmul(grad).sum_to_size(other_shape)


def as_rows(t):
    """t as a matrix of its last dimension."""
    if t.dim() == 2:
        return t
    count = 1
    for size in t.shape[:-1]:
        count *= size
    return t.reshape(count, t.shape[-1])


def _linear_input(grad, weight):
    weight = _conj(weight)
    return grad.matmul(weight) if weight.dim() == 2 else grad.unsqueeze(-1) * weight


def _linear_weight(grad, input, weight_shape):
    rows = _conj(as_rows(input))
    if len(weight_shape) == 1:
        return grad.reshape(grad.numel()).matmul(rows)
    return as_rows(grad).t().mm(rows)


def _linear_bias(grad, bias_shape):
    n = grad.dim()
    if n >= 2 and bias_shape == grad.shape[n - 1 :]:
        return grad.sum(0 if n == 2 else tuple(range(n - 1)))
    return grad.sum_to_size(bias_shape)


# ---- samples -------------------------------------------------------------------------------------------------------


def call_of(name, *shapes, **kwargs):
    """Call of the public function on zeros of these shapes, for the error samples."""

    def call():
        place = "nn.functional." if name == "linear" else ""
        return functions[place + name](*map(tg.zeros, shapes), **kwargs)

    return call


def of_shapes(*pairs):
    return lambda make: [Sample(*[make(*s, low=-2, high=2) for s in shapes]) for shapes in pairs]


_MATRICES = of_shapes(((2, 3), (3, 4)), ((1, 1), (1, 1)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((5, 4), (4, 1)))
_BATCHES = of_shapes(((2, 3, 4), (2, 4, 5)), ((1, 2, 2), (1, 2, 2)), ((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 3)))
_ALL_RANKS = of_shapes(
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3, 4)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 4)),
    ((2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((0,), (0,)),
    ((2, 0), (0, 3)),
    ((0, 2, 3), (3, 2)),
    ((1, 2, 2), (3, 2, 2)),
)


def added(*shapes):
    def samples(make):
        for s in shapes:
            yield Sample(*[make(*x, low=-2, high=2) for x in s])
        yield Sample(*[make(*x, low=-2, high=2) for x in shapes[0]], beta=2, alpha=-1)
        yield Sample(*[make(*x, low=-2, high=2) for x in shapes[0]], beta=0)
        yield Sample(*[make(*x, low=-2, high=2) for x in shapes[0]], alpha=0)

    return samples


def added_reference(self, a, b, beta=1, alpha=1):
    import numpy

    wide = int if a.dtype.kind in "iu" else a.dtype
    product = numpy.matmul(a.astype(wide), b.astype(wide))
    return (alpha * product + (beta * self.astype(wide) if beta else 0)).astype(a.dtype)


def _vecdot(x, y, dim):
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype}: convert it "
            "with .float()"
        )
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype} and y of type "
            f"{y.dtype} instead: convert one of them with .to(dtype)"
        )
    return (_conj(x) * y).sum(dim)


def _linear_samples(make):
    for x, w, b in (
        ((2, 3), (4, 3), (4,)),
        ((2, 3), (4, 3), None),
        ((3,), (2, 3), (2,)),
        ((2, 2, 3), (4, 3), (4,)),
        ((0, 3), (2, 3), (2,)),
        ((2, 3), (3,), None),
        ((2, 0), (3, 0), (3,)),
    ):
        tensors = [make(*s) for s in (x, w)]
        yield Sample(*tensors) if b is None else Sample(*tensors, make(*b))


def _linear_reference(input, weight, bias=None):
    import numpy

    out = numpy.matmul(input, weight.T)
    return out if bias is None else out + bias


# ---- records -------------------------------------------------------------------------------------------------------

op(
    "aten::matmul(Tensor self, Tensor other) -> Tensor",
    aliases="linalg.matmul",
    batch=batching.matmul,
    kernel="matmul",
    types=NUMBERS,
    variants="function method out",
    operator="matmul",
    grad={"self": _matmul_left, "other": _matmul_right},
    jvp="each",
    samples=_ALL_RANKS,
    reference="numpy.matmul",
    errors=[
        (call_of("matmul", (2, 3), (4, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        (
            call_of("matmul", (), (2,)),
            RuntimeError,
            "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
        ),
        (call_of("matmul", (3,), (4,)), RuntimeError, "inconsistent tensor size, expected tensor [3] and src [4]"),
        (call_of("matmul", (2, 3), (4,)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)"),
        (
            call_of("matmul", (2, 2, 3), (3, 3, 2)),
            RuntimeError,
            "must match the size of tensor b (3) at non-singleton dimension 0",
        ),
    ],
    doc="Product of matrices: (..., m, k) by (..., k, n) gives (..., m, n). The dimensions in front broadcast; a "
    "vector is a row on the left, a column on the right, and its added dimension leaves the result.",
)

op(
    "aten::mm(Tensor self, Tensor mat2) -> Tensor",
    batch=batching.product("mm", 2, 2),
    kernel="mm",
    types=NUMBERS,
    variants="function method out",
    grad={"self": lambda grad, mat2: grad.mm(_adjoint(mat2)), "mat2": lambda grad, self: _adjoint(self).mm(grad)},
    jvp="each",
    samples=_MATRICES,
    reference="numpy.matmul",
    errors=[
        (call_of("mm", (2, 3), (2, 3)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        (call_of("mm", (3,), (3, 2)), RuntimeError, "self must be a matrix"),
        (call_of("mm", (2, 3), (3,)), RuntimeError, "mat2 must be a matrix"),
    ],
    doc="Product of two matrices, (m, k) by (k, n), without broadcasting.",
)

op(
    "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
    batch=batching.product("bmm", 3, 3),
    kernel="bmm",
    types=NUMBERS,
    variants="function method out",
    grad={"self": lambda grad, mat2: grad.bmm(_adjoint(mat2)), "mat2": lambda grad, self: _adjoint(self).bmm(grad)},
    jvp="each",
    samples=_BATCHES,
    reference="numpy.matmul",
    errors=[
        (call_of("bmm", (2, 3), (3, 2)), RuntimeError, "batch1 must be a 3D tensor"),
        (
            call_of("bmm", (2, 2, 3), (2, 2, 3)),
            RuntimeError,
            "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2]",
        ),
    ],
    doc="Products of two batches of matrices, (b, m, k) by (b, k, n), without broadcasting.",
)

op(
    "aten::mv(Tensor self, Tensor vec) -> Tensor",
    batch=batching.product("mv", 2, 1),
    kernel="mv",
    types=NUMBERS,
    variants="function method out",
    grad={"self": lambda grad, vec: grad.unsqueeze(-1) * _conj(vec), "vec": lambda grad, self: _adjoint(self).mv(grad)},
    jvp="each",
    samples=of_shapes(((2, 3), (3,)), ((0, 2), (2,)), ((2, 0), (0,)), ((1, 4), (4,))),
    reference="numpy.matmul",
    errors=[
        (call_of("mv", (2, 3), (4,)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)"),
        (call_of("mv", (3,), (3,)), RuntimeError, "vector + matrix @ vector expected, got 1, 1, 1"),
    ],
    doc="Product of a matrix (m, k) and a vector (k,).",
)

op(
    "aten::vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    compose=_vecdot,
    types="float half complex",
    where="linalg",
    variants="function out",
    samples=lambda make: (
        [*of_shapes(((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (3,)), ((2, 1), (2, 3)), ((), ()))(make)]
        + [Sample(make(2, 3), make(2, 3), dim=0)]
    ),
    reference=lambda x, y, dim=-1: (x.conj() * y).sum(dim) if x.ndim else x.conj() * y,
    errors=[(call_of("linalg.vecdot", (2, 3), (2, 2)), RuntimeError, "must match the size of tensor b (2)")],
    doc="Sum of the products of x's elements, conjugated, and y's along dim; both broadcast. RuntimeError for integers "
    "and for two dtypes.",
)

op(
    "aten::dot(Tensor self, Tensor tensor) -> Tensor",
    batch=batching.product("dot", 1, 1),
    kernel="dot",
    types=NUMBERS,
    variants="function method out",
    grad={"self": lambda grad, tensor: grad * _conj(tensor), "tensor": lambda grad, self: grad * _conj(self)},
    jvp="each",
    samples=of_shapes(((3,), (3,)), ((0,), (0,)), ((1,), (1,))),
    reference="numpy.dot",
    errors=[
        (call_of("dot", (3,), (4,)), RuntimeError, "inconsistent tensor size, expected tensor [3] and src [4]"),
        (call_of("dot", (2, 3), (3,)), RuntimeError, "1D tensors expected, but got 2D and 1D tensors"),
    ],
    doc="Sum of the products of two vectors' elements; neither is conjugated.",
)

op(
    "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    batch=batching.added("addmm", 2, 2),
    older="beta self alpha mat1 mat2 | beta self mat1 mat2",
    kernel="addmm",
    types=NUMBERS,
    variants="function method inplace out",
    grad={
        "self": lambda grad, self_shape, beta: scaled(grad, beta).sum_to_size(self_shape),
        "mat1": lambda grad, mat2, alpha: scaled(grad.mm(_adjoint(mat2)), alpha),
        "mat2": lambda grad, mat1, alpha: scaled(_adjoint(mat1).mm(grad), alpha),
    },
    jvp=forward.addmm,
    samples=added(
        ((2, 4), (2, 3), (3, 4)),
        ((4,), (2, 3), (3, 4)),
        ((2, 1), (2, 3), (3, 4)),
        ((), (2, 0), (0, 2)),
        ((0, 2), (0, 3), (3, 2)),
    ),
    reference=added_reference,
    errors=[
        (call_of("addmm", (5,), (2, 3), (3, 4)), RuntimeError, "must match the existing size"),
        (
            call_of("addmm", (2, 4), (2, 3), (2, 4)),
            RuntimeError,
            "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)",
        ),
    ],
    doc="beta * self + alpha * (mat1 @ mat2); self broadcasts to the product and is not read when beta is 0.",
)

op(
    "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    batch=batching.added("addmv", 2, 1),
    older="beta self alpha mat vec | beta self mat vec",
    kernel="addmv",
    types=NUMBERS,
    variants="function method inplace out function_",
    grad={
        "self": in_float(lambda grad, self_shape, beta: scaled(grad, beta).sum_to_size(self_shape)),
        "mat": in_float(lambda grad, vec, alpha: scaled(grad, alpha).unsqueeze(-1) * _conj(vec)),
        "vec": in_float(lambda grad, mat, alpha: scaled(_adjoint(mat).mv(grad), alpha)),
    },
    jvp=forward.addmv,
    samples=added(((2,), (2, 3), (3,)), ((1,), (2, 3), (3,)), ((0,), (0, 2), (2,))),
    reference=added_reference,
    errors=[(call_of("addmv", (2,), (2, 3), (2,)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (2)")],
    doc="beta * self + alpha * (mat @ vec); self broadcasts to the product and is not read when beta is 0.",
)

op(
    "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    batch=batching.added("baddbmm", 3, 3),
    older="beta self alpha batch1 batch2 | beta self batch1 batch2",
    kernel="baddbmm",
    types=NUMBERS,
    variants="function method inplace out",
    grad={
        "self": lambda grad, self_shape, beta: scaled(grad, beta).sum_to_size(self_shape),
        "batch1": lambda grad, batch2, alpha: scaled(grad.bmm(_adjoint(batch2)), alpha),
        "batch2": lambda grad, batch1, alpha: scaled(_adjoint(batch1).bmm(grad), alpha),
    },
    jvp=forward.baddbmm,
    samples=added(((2, 2, 4), (2, 2, 3), (2, 3, 4)), ((4,), (2, 2, 3), (2, 3, 4)), ((0, 2, 2), (0, 2, 3), (0, 3, 2))),
    reference=added_reference,
    errors=[
        (
            call_of("baddbmm", (2, 2, 2), (2, 2, 3), (2, 2, 2)),
            RuntimeError,
            "Expected size for first two dimensions of batch2",
        )
    ],
    doc="beta * self + alpha * (batch1 @ batch2), for batches of matrices.",
)

op(
    "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    batch=batching.linear,
    kernel="linear",
    types=NUMBERS,
    variants="function out",
    where="nn.functional",
    grad={"input": _linear_input, "weight": _linear_weight, "bias": _linear_bias},
    jvp="each",
    samples=_linear_samples,
    reference=_linear_reference,
    errors=[
        (call_of("linear", (2, 3), (3, 4)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x3)")
    ],
    doc="input @ weight.T + bias, for input (..., in), weight (out, in) and bias (out,).",
)

op(
    "aten::__rmatmul__(Tensor self, Tensor other) -> Tensor",
    compose=lambda self, other: other.matmul(self),
    types=NUMBERS,
    variants="method",
    operator="rmatmul",
    samples=of_shapes(((3, 4), (2, 3)), ((3,), (3,))),
    reference=lambda self, other: other @ self,
    doc="other @ self.",
)
