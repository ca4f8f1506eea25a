"""What the records of reductions share: gradients brought back to the operand's shape, samples."""

from tinygrad_ext.ops.samples import Sample


def _reduced(rank, dim):
    """The dimensions that a reduction goes along: all for None or an empty list, none of a single element."""
    if dim is None or dim == () or dim == []:
        return range(rank)
    if not rank:
        return ()
    return dim if isinstance(dim, (tuple, list)) else (dim,)


def kept(shape, dim):
    """`shape` with size 1 in place of the reduced dimensions."""
    sizes = list(shape)
    for d in _reduced(len(sizes), dim):
        sizes[d] = 1
    return tuple(sizes)


def unfold(t, shape, dim, keepdim):
    """A reduced tensor with its reduced dimensions back at size 1."""
    return t if keepdim else t.view(kept(shape, dim))


def spread(grad, shape, dim, keepdim):
    """A gradient of a reduction, repeated to the operand's shape."""
    return unfold(grad, shape, dim, keepdim).expand(shape)


def reduced_count(shape, dim):
    """How many elements go into one result."""
    n = 1
    for d in _reduced(len(shape), dim):
        n *= shape[d]
    return n


def divisor(shape, dim):
    """What a mean is divided by: 1 where there are no elements."""
    n = reduced_count(shape, dim)
    return n.computed("max", n, 1) if hasattr(n, "computed") else max(n, 1)


def ratio(a, n):
    """a / n, nan where n is not positive. Either may be a number of a program that is captured."""
    return n.computed("ratio", a, n) if hasattr(n, "computed") else divided(a, n)


def divided(a, n):
    """a / n, nan where n is not positive."""
    return a / n if n > 0 else float("nan")


# ---- samples and references ----------------------------------------------------------------------------------------


def whole(make):
    """No dim: every rank, and no elements."""
    for shape in ((3, 4), (5,), (), (0, 3), (2, 1, 3), (40, 67)):
        yield Sample(make(*shape))


def filled(make):
    """No dim, at least one element, no ties."""
    for shape in ((3, 4), (5,), (), (2, 1, 3), (40, 3)):
        yield Sample(make.distinct(*shape))


def one_dim(make):
    """A single dim with and without keepdim."""
    for shape, dim in (((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((), 0), ((), -1), ((0, 3), 1), ((5,), 0)):
        yield Sample(make.distinct(*shape), dim)
        yield Sample(make.distinct(*shape), dim, keepdim=True)
    yield Sample(make.distinct(70, 3), dim=0)


def some_dims(make):
    """A dim, lists of dims, none."""
    yield from one_dim(make)
    for shape, dim in (
        ((2, 3, 4), (0, 2)),
        ((2, 3, 4), [-1, 0]),
        ((2, 3, 4), (0, 1, 2)),
        ((2, 3), ()),
        ((2, 1, 20), (0, 1)),
    ):
        yield Sample(make(*shape), dim)
        yield Sample(make(*shape), dim, True)


def sized_dims(make):
    """Dims that may be empty, for reductions that have a neutral element."""
    yield from some_dims(make)
    yield Sample(make(0, 3), 0)
    yield Sample(make(2, 3), None, True)


def numpy_axis(x, dim):
    """PyTorch's dim as NumPy's axis."""
    if isinstance(dim, (tuple, list)):
        return tuple(dim) or None
    return dim if x.ndim else None


def by_numpy(name):
    """NumPy's reduction of that name, under PyTorch's argument names."""

    def reference(x, dim=None, keepdim=False, dtype=None):
        import numpy

        return getattr(numpy, name)(x, axis=numpy_axis(x, dim), keepdims=keepdim)

    return reference
