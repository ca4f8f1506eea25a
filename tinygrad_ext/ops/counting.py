"""The most frequent element, membership, running log-sums and slopes of samples."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float, rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.scan import scan_back
from tinygrad_ext.ops.shapes import wrapped

# ---- the most frequent ---------------------------------------------------------------------------------------------


def _mode(self, dim, keepdim):
    dim = wrapped(dim, self.dim())
    if not self.dim():
        return self.clone(), tg.zeros((), dtype=tg.int64, device=self.device)
    if not self.shape[dim]:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    values, indices = self.sort(stable=True, dim=dim)
    last = dim == self.dim() - 1
    longest = values._longest_run() if last else values.transpose(dim, -1)._longest_run().transpose(dim, -1)
    values, indices = values.gather(dim, longest), indices.gather(dim, longest)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


op(
    "aten::_longest_run(Tensor self) -> Tensor",
    kernel="longest_run",
    batch="leading",
    types="bool int float half",
    jvp="none",
    grad={"self": "none"},
    variants="method",
    samples=lambda make: [Sample(make.ints(0, 3, (3, 4)).sort()[0]), Sample(make(2, 1)), Sample(make.ints(0, 2, (9,)))],
    errors=[(lambda: zeros(2, 0)._longest_run(), IndexError, "rows of at least one element")],
    doc="The place where the first of the longest runs of equal elements of each row ends.",
)

op(
    "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    compose=_mode,
    refuses={"out": "expected scalar type '{wanted}' but got '{got}' for values or indices output"},
    types="bool int float half",
    variants="function method out",
    samples=lambda make: [Sample(make.distinct(3, 4)), Sample(make.distinct(2, 3), 0, True), Sample(make())],
    errors=[
        (lambda: _mode(zeros(2, 0), 1, False), IndexError, "to have non-zero size"),
        (lambda: _mode(zeros(1)[0], 1, False), IndexError, "Dimension out of range"),
    ],
    doc="The most frequent element along dim, the smallest of several, and a place of it.",
)


def _isin(elements, test_elements, assume_unique, invert):
    if not isinstance(elements, tg.Tensor):
        elements = tg.tensor(elements, device=test_elements.device)
    elif not isinstance(test_elements, tg.Tensor):
        test_elements = tg.tensor(test_elements, device=elements.device)
    for given in (elements, test_elements):
        if given.is_complex():
            raise RuntimeError(
                f"Unsupported input type encountered for isin(): {given.dtype}: complex numbers have no order; compare "
                "view_as_real() of both"
            )
    test = test_elements.reshape(-1)
    if test.shape[0] < 4 or test.shape[0] * elements.numel() < 2000:  # of more, searching costs less
        found = (elements.unsqueeze(-1) == test).any(-1)
    else:
        dtype = tg.promote_types(elements.dtype, test.dtype)
        ordered = test.to(dtype).sort()[0]
        at = tg.searchsorted(ordered, elements.to(dtype).contiguous()).clamp_max(test.shape[0] - 1)
        found = ordered[at] == elements
    return found.logical_not() if invert else found


op(
    "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor",
    compose=_isin,
    numbers="elements|test_elements",
    types="int float half",
    variants="function out",
    samples=lambda make: [
        Sample(make.distinct(3, 4), make.distinct(2, 2)),
        Sample(make.distinct(3), make.distinct(40), invert=True),
        Sample(make(0, 2), make(3)),
    ],
    reference=lambda x, y, assume_unique=False, invert=False: __import__("numpy").isin(x, y, invert=invert),
    doc="Whether each element is among test_elements, or with invert is not.",
)


# ---- running log of sums -------------------------------------------------------------------------------------------


def _np_logcumsumexp(x, dim):
    import numpy as np

    if not np.iscomplexobj(x) or not x.ndim:
        return np.logaddexp.accumulate(x, axis=dim) if x.ndim else x
    rows, sums = np.moveaxis(x, dim, 0), []
    for row in rows:
        last = sums[-1] if sums else np.full_like(row, -np.inf)
        low, high = np.where(last.real < row.real, last, row), np.where(last.real < row.real, row, last)
        sums.append(np.log(1 + np.exp(low - high)) + high if sums else row)
    return np.moveaxis(np.array(sums, x.dtype).reshape(rows.shape), 0, dim)


def _shares(self, result, dim):
    """How much of each sum its last element is, and how much the sum before; 0 where the sum is infinite."""
    endless = result.isinf()
    last = tg.cat([result.narrow(dim, 0, 1), result.narrow(dim, 0, result.shape[dim] - 1)], dim)
    return [fused.where(endless, float("-inf"), x - result).exp() for x in (self, last)]


@in_float
def _log_sums_back(grad, self, dim, result):
    if not self.dim() or not self.numel():
        return grad * 1
    own, before = _shares(self, result, dim)
    return own * scan_back(grad, before, dim)


def _log_sums_tangent(self, self_tangent, dim, result):
    if not self.dim() or not self.numel():
        return self_tangent * 1
    own, before = _shares(self, result, dim)
    return (self_tangent * own)._linear_scan(before, dim)


op(
    "aten::_log_sums(Tensor self, int dim) -> Tensor",
    kernel="log_sums",
    batch="dims",
    types="float complex",
    variants="function",
    where="_fused",
    holomorphic=True,
    grad={"self": _log_sums_back},
    jvp=_log_sums_tangent,
    samples=lambda make: [
        Sample(make(3, 4), 1),
        Sample(make(3, 4), 0),
        Sample(make(2, 70, 3), 1),
        Sample(make(), 0),
        Sample(make(2, 0), -1),
    ],
    reference=_np_logcumsumexp,
    errors=[(lambda: fused._log_sums(zeros(2), 1), IndexError, "Dimension out of range")],
    doc="logcumsumexp in double precision. The logarithm of complex sums is the branch that adding one after the other "
    "finds: from the larger of sum and element it moves less than half a turn.",
)

op(
    "aten::logcumsumexp(Tensor self, int dim) -> Tensor",
    compose=lambda self, dim: fused._log_sums(self, dim),
    refuses={"out": "expected scalar_type {wanted} but found {got}: logcumsumexp() with out="},
    types="float complex",
    variants="function method out",
    samples=lambda make: [Sample(make(3, 4), 1), Sample(make(5), 0), Sample(make(), 0), Sample(make(2, 0), -1)],
    reference=_np_logcumsumexp,
    errors=[(lambda: tg.logcumsumexp(zeros(2), 1), IndexError, "Dimension out of range")],
    doc="Running log(sum(exp)) along dim, without overflow.",
)


# ---- slopes of samples ---------------------------------------------------------------------------------------------


def _slope(self, dim, step, edge_order):
    """The derivative along one dimension: step is a distance or the coordinates."""
    n = self.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")

    def part(start, length):
        return self.narrow(dim, start, length)

    if isinstance(step, tg.Tensor):
        if step.dim() != 1 or step.shape[0] != n:
            raise RuntimeError(
                f"torch.gradient expected each element of spacing to have one dimension of the size of its "
                f"dimension, but got "
                f"{list(step.shape)} for {n}"
            )
        gaps = step.diff().reshape([-1 if i == dim else 1 for i in range(self.dim())])
    else:
        sizes = [n - 1 if i == dim else 1 for i in range(self.dim())]
        gaps = self.new_full(sizes, step, dtype=tg.result_type(self, step))
    slopes = (part(1, n - 1) - part(0, n - 1)) / gaps
    front, back = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if n == 2:
        return tg.cat([front, back], dim)
    if isinstance(step, tg.Tensor):
        h, k = gaps.narrow(dim, 0, n - 2), gaps.narrow(dim, 1, n - 2)
        left, right = slopes.narrow(dim, 0, n - 2), slopes.narrow(dim, 1, n - 2)
        inner = (left * k + right * h) / (h + k)
    else:  # the element between does not count: it may be infinite
        inner = (part(2, n - 2) - part(0, n - 2)) / (2 * step)
    if edge_order == 2:
        a, b = gaps.narrow(dim, 0, 1), gaps.narrow(dim, 1, 1)
        front = front + (front - slopes.narrow(dim, 1, 1)) * a / (a + b)
        a, b = gaps.narrow(dim, n - 2, 1), gaps.narrow(dim, n - 3, 1)
        back = back + (back - slopes.narrow(dim, n - 3, 1)) * a / (a + b)
    return tg.cat([front, inner, back], dim)


@rounded_once
def _gradient(self, spacing, dim, edge_order):
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2: got {edge_order}")
    if self.dtype == tg.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input: convert it, for example with .float()")
    x = self if self.is_floating_point() or self.is_complex() else self.to(tg.get_default_dtype())
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [wrapped(d, x.dim()) for d in dims]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"torch.gradient: dim {d} appears multiple times in the list of dims, got {dim}")
    if isinstance(spacing, (tuple, list)):
        if len(spacing) != len(dims):
            raise RuntimeError(
                f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
                f"{len(dims)}, but got a list "
                f"of length {len(spacing)}"
            )
        steps = list(spacing)
    else:
        lone = isinstance(spacing, tg.Tensor) and not spacing.dim()
        steps = [1.0 if spacing is None else spacing.item() if lone else spacing] * len(dims)
    return tuple([_slope(x, d, s, edge_order) for d, s in zip(dims, steps)])


for _overload, _type, _samples in (
    (
        "",
        "Scalar? spacing=None",
        lambda make: [Sample(make(4, 3)), Sample(make(5), spacing=0.5, edge_order=2), Sample(make(2, 4), dim=1)],
    ),
    (".tensors", "Tensor[] spacing", lambda make: [Sample(make(4), spacing=[make.of([0.0, 1.0, 1.5, 4.0])], dim=0)]),
    (".numbers", "Scalar[] spacing", lambda make: [Sample(make(4, 3), spacing=(0.5, 2.0))]),
):
    op(
        f"aten::gradient{_overload}(Tensor self, *, {_type}, Any dim=None, int edge_order=1) -> Tensor[]",
        compose=_gradient,
        types="signed float",
        variants="function",
        samples=_samples,
        errors=[
            (lambda: _gradient(zeros(3), None, None, 3), RuntimeError, "only supports edge_order=1 and edge_order=2"),
            (lambda: _gradient(zeros(3, 3), None, (1, -1), 1), RuntimeError, "dim 1 appears multiple times"),
            (lambda: _gradient(zeros(3, dtype=tg.uint8), None, None, 1), RuntimeError, "does not support uint8 input"),
        ],
        doc="The slope along each dimension, by second-order differences; spacing is a distance for all, one for each "
        "dimension, or the coordinates.",
    )


# ---- sequences and places ------------------------------------------------------------------------------------------


def _unravel(indices, shape):
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == tg.bool:
        raise TypeError(f"unravel_index(): expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = [shape] if isinstance(shape, int) else list(shape) if isinstance(shape, (tuple, list)) else [None]
    wrong = [s for s in sizes if not hasattr(s, "__index__")]
    if wrong and sizes != [None]:
        raise TypeError(
            f"unravel_index(): expected 'shape' sequence to only contain ints, but got {type(wrong[0]).__name__}"
        )
    if wrong:
        raise TypeError(
            f"unravel_index(): expected 'shape' to be int or sequence of ints, but got {type(shape).__name__}"
        )
    if any(s < 0 for s in sizes):
        raise ValueError(f"unravel_index(): 'shape' cannot have negative values, but got {tuple(sizes)}")
    found, rest = [], indices.to(tg.int64)
    for n in reversed(sizes):
        found.append(rest % n if n else rest * 0)
        rest = rest.div(n, rounding_mode="floor") if n else rest
    return tuple(found[::-1])


op(
    "aten::unravel_index(Tensor indices, Any shape) -> Tensor[]",
    compose=_unravel,
    types="int",
    variants="function",
    samples=lambda make: [Sample(make.ints(0, 12, (2, 3)), (3, 4)), Sample(make.ints(0, 5, (2,)), 5)],
    reference=lambda x, shape: __import__("numpy").unravel_index(x, shape),
    errors=[
        (lambda: _unravel(zeros(2), (2,)), TypeError, "expected 'indices' to be integer dtype"),
        (lambda: tg.unravel_index(tg.tensor([1]), (2, 2.0)), TypeError, "sequence to only contain ints, but got float"),
        (lambda: tg.unravel_index(tg.tensor([1]), tg.tensor([2.0])), TypeError, "sequence of ints, but got Tensor"),
    ],
    doc="The coordinates of places that are counted as in one row of a tensor of this shape.",
)
