"""Products of vectors and matrices that are written in others: cross, Kronecker, powers, chains."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_NUMBERS = "int float complex"


def _numpy(name, *args, **options):
    import numpy

    return getattr(numpy, name)(*args, **options)


def _linalg(name, *args):
    import numpy

    return getattr(numpy.linalg, name)(*args)


def _cross_along(self, other, dim, name):
    if self.dim() != other.dim():
        raise RuntimeError(
            f"{name}: inputs must have the same number of dimensions: got {self.dim()} and {other.dim()}"
        )
    if self.dim() and not -self.dim() <= dim < self.dim():
        within = f"[{-self.dim()}, {self.dim() - 1}]"
        raise IndexError(f"{name}: Dimension out of range (expected to be in range of {within}, but got {dim})")
    if self.dim() == 0 or self.shape[dim] != 3 or other.shape[dim] != 3:
        sizes = f"{list(self.shape)} and {list(other.shape)}"
        raise RuntimeError(f"{name}: inputs dimension {dim} must have length 3. Got {sizes}")
    a, b, c = self.unbind(dim)
    x, y, z = other.unbind(dim)
    return tg.stack([b * z - c * y, c * x - a * z, a * y - b * x], dim)


def _cross(self, other, dim):
    if dim is None:
        found = [d for d in range(self.dim()) if self.shape[d] == 3]
        if not found:
            raise RuntimeError(f"no dimension of size 3 in input: cross() got {list(self.shape)}")
        dim = found[0]
    return _cross_along(self, other, dim, "cross")


_crossed = [
    lambda make: Sample(make(4, 3), make(4, 3), dim=1),
    lambda make: Sample(make(3, 2), make(3, 2), dim=0),
    lambda make: Sample(make(2, 3), make(1, 3), dim=-1),
]

op(
    "aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    compose=_cross,
    variants="function method out",
    types=_NUMBERS,
    samples=lambda make: [*(one(make) for one in _crossed), Sample(make(3, 2), make(3, 2))],
    reference=lambda x, y, dim=None: _numpy("cross", x, y, axis=0 if dim is None else dim),
    errors=[
        (lambda: zeros(2, 2).cross(zeros(2, 2)), RuntimeError, "no dimension of size 3 in input"),
        (lambda: zeros(3, 3).cross(zeros(3, 3), dim=2), IndexError, "expected to be in range of [-2, 1], but got 2"),
    ],
    doc="Vector product of vectors of three along a dimension, without `dim` the first of size 3.",
)

op(
    "aten::cross.linalg(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    compose=lambda self, other, dim: _cross_along(self, other, dim, "linalg.cross"),
    variants="function out",
    where="linalg",
    types=_NUMBERS,
    samples=lambda make: [one(make) for one in _crossed],
    reference=lambda x, y, dim=-1: _numpy("cross", x, y, axis=dim),
    doc="Vector product of vectors of three along a dimension.",
)


def _kron(self, other):
    a, b = [*self.shape], [*other.shape]
    a, b = [1] * (len(b) - len(a)) + a, [1] * (len(a) - len(b)) + b
    left, right, made = [], [], []
    for x, y in zip(a, b):
        left += x, 1
        right += 1, y
        made.append(x * y)
    return (self.reshape(left) * other.reshape(right)).reshape(made)


op(
    "aten::kron(Tensor self, Tensor other) -> Tensor",
    compose=_kron,
    variants="function method out",
    types="bool " + _NUMBERS,
    samples=lambda make: [
        Sample(make(2, 3), make(3, 2)),
        Sample(make(2), make(2, 3)),
        Sample(make(2, 1, 2), make(3)),
        Sample(make(), make(2)),
    ],
    reference="numpy.kron",
    tags="casts",
    doc="Kronecker product: a block for each element of self, that element times other.",
)


def _vdot_of_samples(b, self, other):
    conjugate = b.wrap(b.whole(self).conj_physical()) if b.owns(self) else self.conj_physical()
    return batching.product("vdot", 1, 1)(b, conjugate, other)


op(
    "aten::_vdot(Tensor self, Tensor other) -> Tensor",
    batch=_vdot_of_samples,
    kernel="_vdot",
    where="_fused",
    variants="function",
    types="complex",
    grad={"self": lambda grad, other: grad.conj_physical() * other, "other": lambda grad, self: grad * self},
    jvp="each",
    samples=lambda make: [Sample(make(4), make(4)), Sample(make(0), make(0)), Sample(make(8)[::2], make(8)[1::2])],
    reference="numpy.vdot",
    errors=[
        (lambda: fused._vdot(tg.ones(2), tg.ones(2)), NotImplementedError, "not implemented for 'Float'"),
        (lambda: tg.vdot(tg.ones(2, 3) + 0j, tg.ones(3) + 0j), RuntimeError, "1D tensors expected, but got 2D and 1D"),
    ],
    doc="Sum of products of two complex vectors, the elements of the first conjugated.",
)

op(
    "aten::vdot(Tensor self, Tensor other) -> Tensor",
    compose=lambda self, other: fused._vdot(self, other) if self.dtype.is_complex else self.dot(other),
    variants="function method out",
    types=_NUMBERS,
    samples=lambda make: [Sample(make(4), make(4)), Sample(make(0), make(0))],
    reference="numpy.vdot",
    doc="Sum of products of two vectors, the elements of the first conjugated.",
)


def check_factors(title, dtype, **factors):
    """RuntimeError for an integer that an integral dtype does not hold, as kernels raise it."""
    if dtype.is_floating_point or dtype.is_complex or dtype == tg.bool:
        return
    most = tg.iinfo(dtype).max
    for name, n in factors.items():
        if not -most - dtype.is_signed <= n <= most:
            raise RuntimeError(
                f"{title}(): value cannot be converted to type {dtype.name} without overflow: argument {name} is {n}; "
                "convert the tensor to a wider dtype first"
            )


@rounded_once
def _addbmm(self, batch1, batch2, beta, alpha):
    product = batch1.bmm(batch2).sum(0, dtype=batch1.dtype)
    if not product.dtype.is_floating_point and not product.dtype.is_complex:
        beta, alpha = int(beta), int(alpha)
    check_factors("addbmm", product.dtype, beta=beta, alpha=alpha)
    product = product if alpha == 1 else product * alpha
    if tuple(self.shape) != tuple(product.shape):
        self = self.expand(product.shape)
    return product + (self if beta == 1 else self * beta) if beta else product


op(
    "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    compose=_addbmm,
    variants="function method out inplace",
    types="int float",
    older="beta self alpha batch1 batch2 | beta self batch1 batch2",
    samples=lambda make: [
        Sample(make(2, 3), make(4, 2, 5), make(4, 5, 3)),
        Sample(make(2, 3), make(1, 2, 2), make(1, 2, 3), beta=2, alpha=3),
        Sample(make(2, 3), make(2, 2, 2), make(2, 2, 3), beta=0),
    ],
    reference=lambda x, a, b, beta=1, alpha=1: (beta * x + alpha * (a @ b).sum(0)).astype(x.dtype),
    doc="beta times self plus alpha times the sum of the products of a batch of matrices.",
)


def _multi_dot(tensors):
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    ranks = [t.dim() for t in tensors]
    for i, rank in enumerate(ranks):
        if rank != 2 and (rank != 1 or 0 < i < n - 1):
            which = {0: "the first tensor", n - 1: "the last tensor"}.get(i, f"tensor {i}")
            wanted = "1D or 2D" if i in (0, n - 1) else "2D"
            raise RuntimeError(f"multi_dot(): {which} must be {wanted} but got {rank}D")
    row, column, chain = ranks[0] == 1, ranks[-1] == 1, list(tensors)
    if row:
        chain[0] = chain[0].unsqueeze(0)
    if column:
        chain[-1] = chain[-1].unsqueeze(1)
    found = _product_of(chain)
    found = found.squeeze(-1) if column else found
    return found.squeeze(0) if row else found


def _product_of(chain):
    """By the cheapest order of products: dynamic programming over their sizes (Cormen et al., chapter 15)."""
    n, sizes = len(chain), [chain[0].shape[0], *[t.shape[1] for t in chain]]
    if n == 2:
        return chain[0] @ chain[1]
    if n == 3:  # two orders: no table
        a, b, c, d = sizes
        first, second, third = chain
        return first @ (second @ third) if b * d * (a + c) <= a * c * (b + d) else first @ second @ third
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            ways = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(ways)

    def product(i, j):
        return chain[i] if i == j else product(i, split[i, j]) @ product(split[i, j] + 1, j)

    return product(0, n - 1)


op(
    "aten::multi_dot(Tensor[] tensors) -> Tensor",
    compose=_multi_dot,
    variants="function out",
    where="linalg",
    types="float",
    samples=lambda make: [
        Sample([make(2, 5), make(5, 3), make(3, 4)]),
        Sample([make(3), make(3, 2), make(2)]),
        Sample([make(2, 3), make(3, 2)]),
    ],
    reference=lambda tensors: _linalg("multi_dot", tensors),
    errors=[(lambda: _multi_dot([zeros(2, 2)]), RuntimeError, "expected at least 2 tensors but got 1")],
    doc="The product of a chain of matrices in the order that takes the fewest multiplications; the first and the last "
    "may be vectors.",
)


def _chain_matmul(matrices):
    for matrix in matrices:
        if matrix.dim() != 2:
            raise RuntimeError(
                f"chain_matmul(): Tensor dimension is {matrix.dim()}, expected 2 instead: linalg.multi_dot takes "
                "vectors at both ends"
            )
    if len(matrices) == 1:
        return matrices[0].clone()
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return _multi_dot(matrices)


op(
    "aten::chain_matmul(Tensor[] matrices) -> Tensor",
    compose=_chain_matmul,
    variants="function out",
    tags="varargs",
    types="float",
    samples=lambda make: [Sample([make(2, 5), make(5, 3), make(3, 4)]), Sample([make(2, 3)])],
    reference=lambda matrices: matrices[0] if len(matrices) == 1 else _linalg("multi_dot", matrices),
    errors=[
        (lambda: _chain_matmul([]), RuntimeError, "chain_matmul(): Expected one or more matrices"),
        (lambda: _chain_matmul([zeros(2), zeros(2)]), RuntimeError, "Tensor dimension is 1, expected 2 instead"),
    ],
    doc="linalg.multi_dot under its older name, of matrices as arguments.",
)


def _eye(self):
    return tg.eye(self.shape[-1], dtype=self.dtype, device=self.device).expand(self.shape)


def _matrix_power(self, n):
    if self.dim() < 2:
        raise RuntimeError(f"linalg.matrix_power: The input tensor must be at least 2-D, got {self.dim()}-D")
    if self.shape[-1] != self.shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but they are "
            f"{self.shape[-2]} by {self.shape[-1]} matrices"
        )
    if n == 0:
        always = tg.ones((), dtype=tg.bool, device=self.device)
        return fused.where(always, _eye(self), self)  # with a derivative, which is zero
    factor, found = self, None
    if n < 0:
        factor = tg.linalg.solve(self, _eye(self))
    while n := abs(n):
        if n % 2:
            found = factor if found is None else found @ factor
        n //= 2
        factor = factor @ factor if n else factor
    return found.clone() if found is self else found


op(
    "aten::matrix_power(Tensor self, int n) -> Tensor",
    compose=_matrix_power,
    variants="function method out",
    where=". linalg",
    types="float",
    samples=lambda make: [
        Sample(make(3, 3), 3),
        Sample(make(2, 2, 2), 2),
        Sample(make(3, 3), 0),
        Sample(make(2, 2), 5),
    ],
    reference=lambda x, n: _linalg("matrix_power", x, n),
    errors=[(lambda: zeros(2, 3).matrix_power(2), RuntimeError, "must be batches of square matrices")],
    tags="casts",
    doc="A square matrix times itself n times, the identity for 0, of the inverse for negative n; in about log2(n) "
    "products.",
)


def _vander(x, n, increasing):
    x, exponents = tg.atleast_1d(x), tg.arange(n, device=x.device)
    exponents = exponents if increasing else exponents.flip(0)
    return x.unsqueeze(-1) ** exponents


def _torch_vander(x, N, increasing):
    if x.dim() != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor: vander() got {x.dim()} dimensions")
    if N is not None and N < 0:
        raise RuntimeError(f"N must be non-negative: vander() got {N}")
    return _vander(x, x.shape[0] if N is None else N, increasing)


op(
    "aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    compose=_torch_vander,
    variants="function",
    types="float",
    samples=lambda make: [Sample(make(3)), Sample(make(4), 2), Sample(make(3), 4, True)],
    reference=lambda x, N=None, increasing=False: _numpy("vander", x, N, increasing),
    doc="Powers of a vector's elements as columns, the highest first, or the lowest if increasing.",
)


def _linalg_vander(x, N):
    n = N if N is not None else x.shape[-1] if x.dim() else 1
    if n <= 1:
        raise RuntimeError(f"N must be greater than 1: linalg.vander of {list(x.shape)} got {n} powers")
    return _vander(x, n, True)


op(
    "aten::vander.linalg(Tensor x, *, int? N=None) -> Tensor",
    compose=_linalg_vander,
    variants="function",
    where="linalg",
    types="float",
    samples=lambda make: [Sample(make(3)), Sample(make(2, 3), N=4)],
    reference=lambda x, N=None: x[..., None] ** _numpy("arange", x.shape[-1] if N is None else N),
    doc="Powers of vectors' elements as columns, from the 0th on.",
)
