"""Scans: running sums, products and extremes along a dimension."""

import tinygrad_ext as tg
from tinygrad_ext.ops import forward
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def before(self, dim):
    """Product of the elements before each one along dim."""
    if not self.dim():
        return self.new_ones(())
    one = self.new_ones(_edge(self, dim))
    return _cat((one, self), dim).narrow(dim, 0, self.shape[dim]).cumprod(dim)


def _edge(self, dim):
    """The shape of one slice across dim."""
    return [1 if i == dim % self.dim() else s for i, s in enumerate(self.shape)]


def _cat(tensors, dim):
    return tg.cat(tensors, dim)


def _shifted(self, dim):
    """The elements in reverse, each one place later; zero in front. The factors of a recurrence that runs backward."""
    zero = self.new_zeros(_edge(self, dim))
    return _cat((zero, self.flip(dim)), dim).narrow(dim, 0, self.shape[dim])


def scan_back(x, factors, dim):
    """s[k] = x[k] + factors[k + 1] * s[k + 1] along dim."""
    return x.flip(dim)._linear_scan(_shifted(factors, dim), dim).flip(dim)


def _cumsum_back(grad, dim):
    return grad.flip(dim).cumsum(dim).flip(dim) if grad.dim() else grad


def _cumprod_back(grad, self, dim, dtype):
    """Factors before an element times a sum over the outputs behind it; without a division, so zeros do no harm."""
    self = self if dtype is None else self.to(dtype)
    return before(self, dim) * scan_back(grad, self, dim) if self.dim() else grad


def _linear_back(grad, decay, result, dim, needs):
    """(gradient of self, gradient of decay)."""
    if not grad.dim():
        return grad, grad * 0
    back = scan_back(grad, decay, dim)
    n = result.shape[dim]
    if n == 0:
        return back, back
    return back, back * _cat((result.narrow(dim, 0, 1) * 0, result.narrow(dim, 0, n - 1)), dim)


@in_float
def _extreme_back(grad, self_shape, dim, indices):
    return grad.new_zeros(self_shape).scatter_add(dim, indices, grad) if self_shape else grad


def _lines(make):
    for shape, dim in (
        ((3, 4), 0),
        ((3, 4), 1),
        ((2, 3, 4), -2),
        ((5,), 0),
        ((), 0),
        ((), -1),
        ((0, 3), 0),
        ((3, 0), 0),
        ((2, 70), 0),
        ((13, 3), -1),
    ):
        yield Sample(make(*shape), dim)


def _zero_lines(make):
    yield from _lines(make)
    yield Sample(make.like([[2, 0, 3], [0, 0, 1], [1, 2, 3]]), 1)
    yield Sample(make.like([2, 0, 3, 4]), dim=0)


def _weighted_lines(make):
    for sample in _zero_lines(make):
        shape = tuple(sample.args[0].shape)
        yield Sample(make(*shape), *sample.args, **sample.kwargs)


def _tied_lines(make):
    for shape, dim in (((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((), 0), ((0, 3), 1), ((2, 70), 0)):
        yield Sample(make.distinct(*shape), dim)


def _reference(name):
    def reference(x, dim, dtype=None):
        import numpy

        return getattr(numpy, name)(x, axis=dim) if x.ndim else x

    return reference


def _extreme_reference(name):
    def reference(x, dim):
        import numpy

        if not x.ndim:
            return x, numpy.zeros((), int)
        values = getattr(numpy, name).accumulate(x, axis=dim)
        place = numpy.arange(x.shape[dim]).reshape([-1 if i == dim % x.ndim else 1 for i in range(x.ndim)])
        return values, numpy.maximum.accumulate(numpy.where(x == values, place, 0), axis=dim)

    return reference


def _others_reference(x, dim):
    import numpy

    if not x.ndim:
        return numpy.ones_like(x)
    lines = numpy.moveaxis(x, dim, -1)
    n = lines.shape[-1]
    found = [numpy.delete(lines, i, -1).prod(-1) for i in range(n)]
    return numpy.moveaxis(numpy.stack(found, -1), -1, dim) if n else x


def _pairs_reference(weight, x, dim):
    import numpy

    if not x.ndim:
        return numpy.zeros_like(x)
    weights, lines = numpy.moveaxis(weight, dim, -1), numpy.moveaxis(x, dim, -1)
    found, n = numpy.zeros_like(lines), lines.shape[-1]
    for i in range(n):
        for k in range(n):
            if k != i:
                found[..., i] += weights[..., k] * numpy.delete(lines, (i, k), -1).prod(-1)
    return numpy.moveaxis(found, -1, dim)


def _far(name):
    def call():
        return getattr(tg, name)(tg.zeros(2, 3), 2)

    return call, IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"


op(
    "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="cumsum",
    variants="function method inplace out",
    grad={"self": lambda grad, dim: _cumsum_back(grad, dim)},
    jvp="linear",
    samples=_lines,
    reference=_reference("cumsum"),
    errors=[_far("cumsum")],
    tags="adopts",
    doc="Running sum along dim, in int64 for integers and in double for float32.",
)

op(
    "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="cumprod",
    variants="function method inplace out",
    holomorphic=True,
    grad={"self": _cumprod_back},
    jvp=forward.cumprod,
    samples=_zero_lines,
    domain=(-2, 2),
    reference=_reference("cumprod"),
    errors=[_far("cumprod")],
    tags="adopts",
    doc="Running product along dim, in int64 for integers and in double for float32.",
)

op(
    "aten::_linear_scan(Tensor self, Tensor decay, int dim) -> Tensor",
    batch="dims",
    kernel="linear_scan",
    types="float complex",
    variants="method",
    holomorphic=True,
    grad={"self, decay": _linear_back},
    jvp=forward.linear_scan,
    samples=lambda make: [
        Sample(make(3, 4), make(3, 4), 0),
        Sample(make(3, 4), make(3, 4), -1),
        Sample(make(2, 3, 2), make(2, 3, 2), 1),
        Sample(make(), make(), 0),
        Sample(make(0, 2), make(0, 2), 0),
    ],
    domain=(-1, 1),
    doc="h[k] = self[k] + decay[k] * h[k - 1] along dim, with nothing before the first. The derivative of cumprod.",
)


def _onward(x, factors, dim):
    """s[k] = x[k + 1] + factors[k + 1] * s[k + 1] along dim: what reaches an element from behind."""
    n = x.shape[dim]
    later = _cat((x.narrow(dim, 1, n - 1), x.new_zeros(_edge(x, dim))), dim)
    return scan_back(later, factors, dim)


def _two_more(grad, grad_output, self, dim):
    """The derivative of _prod_others_backward by self: the weights of two places times the product of all but three.

    Each of the two is in front of the element or behind it, and what is in front is summed there, as in the kernel.
    """
    if not self.dim() or not self.shape[dim]:
        return grad * 0
    turned = self.flip(dim)
    front, behind = before(self, dim), before(turned, dim).flip(dim)

    def from_front(x):
        return _onward(x.flip(dim), turned, dim).flip(dim)

    def from_behind(x):
        return _onward(x, self, dim)

    first_front, other_front = from_front(grad * front), from_front(grad_output * front)
    first_behind, other_behind = from_behind(grad * behind), from_behind(grad_output * behind)
    both_front = from_front(first_front * grad_output + other_front * grad)
    both_behind = from_behind(first_behind * grad_output + other_behind * grad)
    return both_front * behind + first_front * other_behind + other_front * first_behind + both_behind * front


op(
    "aten::_prod_others(Tensor self, int dim) -> Tensor",
    batch="dims",
    kernel="prod_others",
    types="float complex",
    variants="method",
    holomorphic=True,
    grad={"self": "_prod_others_backward(grad, self, dim)"},
    jvp="symmetric",
    samples=_zero_lines,
    domain=(-2, 2),
    reference=_others_reference,
    doc="For each element the product of the others along dim: the derivative of prod. Zeros do no harm.",
)

op(
    "aten::_prod_others_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    batch="dims",
    kernel="prod_others_backward",
    types="float complex",
    variants="method",
    holomorphic=True,
    grad={
        "grad_output": "_prod_others_backward(grad, self, dim)",
        "self": _two_more,
    },
    jvp="symmetric",
    samples=_weighted_lines,
    domain=(-2, 2),
    reference=_pairs_reference,
    doc="The derivative of _prod_others: for each element the sum over the others of their gradient times the product "
    "of all but the two.",
)

for _name, _word, _numpy in (("cummax", "largest", "maximum"), ("cummin", "smallest", "minimum")):
    op(
        f"aten::{_name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        batch="dims",
        kernel=_name,
        variants="function method out",
        grad={"self": lambda grad, self_shape, dim, indices: _extreme_back(grad, self_shape, dim, indices)},
        jvp=forward.along,
        samples=_tied_lines,
        reference=_extreme_reference(_numpy),
        refuses={"out": f"expected scalar_type {{wanted}} but found {{got}}: {_name}() with out="},
        errors=[_far(_name)],
        doc=f"The {_word} element so far along dim, and its index: the last of equal ones; NaN stays.",
    )
