"""What the ops of linear algebra share: adjoints, checks, samples and how two batches go through vmap."""

import tinygrad_ext as tg
from tinygrad_ext.ops.batching import told, widened
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.samples import Sample

TYPES = "float complex"

# ---- derivatives ---------------------------------------------------------------------------------------------------


def adjoint(t):
    """The last two dimensions exchanged, conjugated when complex."""
    t = t.transpose(-2, -1)
    return t.conj_physical() if t.is_complex() else t


def conjugate(t):
    return t.conj_physical() if t.is_complex() else t


def identity(t, n=None):
    """Identity matrices of t's batch, dtype and last size."""
    n = t.shape[-1] if n is None else n
    return tg.eye(n, dtype=t.dtype, device=t.device).expand((*t.shape[:-2], n, n))


def plus(a, b):
    """The sum of two terms, each of which may be None for zeros."""
    return b if a is None else a if b is None else a + b


def triangular(A, B, upper, left=True, unit=False):
    """X of A X = B, or X A = B, for a triangle of A."""
    if left:
        return fused._solve_triangular(A, B, upper, unit)
    turned = fused._solve_triangular(A.transpose(-2, -1), B.transpose(-2, -1), not upper, unit)
    return turned.transpose(-2, -1)


# ---- checks --------------------------------------------------------------------------------------------------------


def check_matrix(t, title, which="A", square=False):
    """RuntimeError for what is no batch of (square) matrices of floating or complex numbers."""
    check_floating(t, title)
    if t.dim() < 2:
        raise RuntimeError(
            f"{title}: The input tensor {which} must have at least 2 dimensions. It has shape {list(t.shape)}; give it "
            "more with unsqueeze"
        )
    if square and t.shape[-1] != t.shape[-2]:
        raise RuntimeError(
            f"{title}: {which} must be batches of square matrices, but they are {t.shape[-2]} by {t.shape[-1]} matrices"
        )


def check_floating(t, title):
    if not (t.dtype.is_floating_point or t.dtype.is_complex):
        raise RuntimeError(
            f"{title}: Expected a floating point or complex tensor as input. Got {t.dtype}: convert it with .float()"
        )


def check_same(a, b, title, names=("A", "B")):
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{title}: Expected {names[0]} and {names[1]} to have the same dtype, but found {names[0]} of type "
            f"{a.dtype} and {names[1]} of type {b.dtype} instead: convert one of them with .to(dtype)"
        )


# ---- batches -------------------------------------------------------------------------------------------------------


def together(name, call, ranks):
    """A rule of vmap for tensors that hold matrices (rank 2), vectors (1) or numbers (0) behind one batch.

    call: the op of the arguments. ranks: of what each tensor argument holds, None for other arguments.
    """

    @told(name)
    def rule(b, *args):
        extra = max(a.dim() - r for a, r in zip(args, ranks) if r is not None)

        def whole(a, rank):
            return a if rank is None else widened(b.whole(a), extra + rank)

        return call(*[whole(a, r) for a, r in zip(args, [*ranks, *[None] * len(args)])])

    return rule


# ---- samples -------------------------------------------------------------------------------------------------------


def regular(make, *shape):
    """Matrices far from singular: the diagonal outweighs its row."""
    if 0 in shape:
        return make(*shape)
    drawn = make(*shape, low=-1, high=1).detach()
    return make.like((drawn + 4 * tg.eye(shape[-2], shape[-1], dtype=drawn.dtype)).tolist())


def positive(make, *shape):
    """Positive definite matrices."""
    if 0 in shape:
        return make(*shape)
    drawn = make(*shape, low=-1, high=1).detach()
    return make.like((drawn + adjoint(drawn) + 8 * tg.eye(shape[-1], dtype=drawn.dtype)).tolist())


def squares(made=regular, **options):
    """Samples of square matrices: one, batches, and without elements."""

    def samples(make):
        for shape in ((3, 3), (1, 1), (2, 3, 3), (0, 0), (0, 2, 2)):
            yield Sample(made(make, *shape), **options)

    return samples


def hermitian(A, *rest):
    """What derivative checks of ops put before them that read one triangle of a Hermitian matrix."""
    return (A + adjoint(A), *rest)


# ---- references ---------------------------------------------------------------------------------------------------


def lu_of(A):
    """LAPACK's factors of square matrices, pivots from 1 on, info."""
    import numpy
    import scipy.linalg

    shape, n = A.shape, A.shape[-1]
    found = [scipy.linalg.lu_factor(a) for a in A.reshape((-1, n, n))] if A.size else []
    factors = numpy.array([f for f, _ in found], A.dtype).reshape(shape)
    return factors, numpy.array([p + 1 for _, p in found], numpy.int32).reshape(shape[:-1])


def no_info(A):
    import numpy

    return numpy.zeros(A.shape[:-2], numpy.int32)
