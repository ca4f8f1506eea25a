"""Counts of values in bins, numbers in their binary parts, and choices drawn from logits."""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_masks
from tinygrad_ext.ops.fused import fused, refusal, refused_slope, without_derivative
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _histc(self, bins, min, max):
    if bins <= 0:
        raise RuntimeError(f"bins must be > 0: histc() got {bins}")
    if float(min) > float(max):
        raise RuntimeError(f"torch.histc: max must be larger than min, got min={min} and max={max}")
    if not self.dtype.is_floating_point:
        raise NotImplementedError(f"\"histc\" not implemented for '{self.dtype}': convert the input with .float()")
    x = self.detach().reshape(-1)
    low, high = float(min), float(max)
    if low == high and x.numel():
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise RuntimeError(f"range of [{low}, {high}] is not finite: histc() needs min and max, or finite elements")
    if low > high:
        raise RuntimeError(f"max must be larger than min: histc() got min {low} and max {high}")
    if low == high:  # numbers so large that one more is the same: all in the middle, as in PyTorch
        return x.new_zeros((bins,)).index_fill(0, tg.tensor(bins // 2, device=x.device), x.numel())
    inside = (x >= low) & (x <= high)
    at = ((x - low) * (bins / (high - low))).masked_fill(~inside, 0).floor().to(tg.int64).clamp(max=bins - 1)
    return x.new_zeros((bins,)).scatter_add(0, at, inside.to(x.dtype))


def _np_histc(x, bins=100, min=0, max=0):
    import numpy

    x = x.reshape(-1)
    if min == max:
        min, max = (x.min(), x.max()) if x.size else (0, 0)
    if min == max:
        min, max = min - 1, max + 1
    return numpy.histogram(x, bins, (min, max))[0].astype(float)


op(
    "aten::_without_derivative(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    batch="leading",
    kernel="clone",
    where="_fused",
    variants="function",
    types="bool int float half complex",
    grad={"self": refusal("what counts or orders values")},
    jvp=refused_slope("what counts or orders values"),
    samples=lambda make: [Sample(make(2, 3).detach()), Sample(make(0).detach())],
    doc="A copy, behind which a gradient is refused.",
)

op(
    "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    compose=_histc,
    jvp="none",
    types="float",
    variants="function method out",
    samples=lambda make: [
        Sample(make.like([0.5, 1.5, 2.5, 2.75, 4.0, -7.0]), 4, 0, 4),
        Sample(make.like([[0.25, 1.75], [3.0, 9.0]]), 5, 0, 9),
        Sample(make(0), 3, -1, 1),
    ],
    reference=_np_histc,
    errors=[
        (lambda: zeros(2).histc(0), RuntimeError, "bins must be > 0"),
        (lambda: zeros(2).histc(2, 3, 1), RuntimeError, "max must be larger than min"),
        (lambda: tg.tensor([float("inf")]).histc(2), RuntimeError, "is not finite"),
    ],
    doc="How many elements lie in each of bins equal parts from min to max, the last one with its end; elements "
    "outside do not count. Where min equals max, they are those of the elements. There is no derivative.",
)


def _edges(x, bins, given):
    """bins + 1 borders of equal parts, of a range that is given or is that of the elements."""
    if bins <= 0:
        raise RuntimeError(f"histogram(): bins must be > 0, but got {bins}")
    if given is None:
        low, high = x.aminmax() if x.numel() else (x.new_zeros(()), x.new_ones(()))
        if x.device.type != "meta" and not hasattr(x, "level"):
            ends = low.item(), high.item()
            if not (math.isfinite(ends[0]) and math.isfinite(ends[1])):
                raise RuntimeError(
                    f"histogram(): dimension 0's range [{ends[0]}, {ends[1]}] is not finite: give range="
                )
            given = None if x.requires_grad else ends  # the borders refuse a gradient that arrives
    else:
        if len(given) != 2:
            raise RuntimeError(f"histogram(): range should have 2 elements, but got {len(given)}")
        if not all(abs(edge) < float("inf") for edge in given):
            raise RuntimeError(f"histogram(): range [{given[0]}, {given[1]}] is not finite")
        if given[0] > given[1]:
            raise RuntimeError(f"histogram(): min should not exceed max, but got min {given[0]} max {given[1]}")
    if given is not None:
        low, high = given
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        return tg.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    apart = tg.where(low == high, 0.5, 0.0).to(x.dtype)
    low, high = low - apart, high + apart
    step, at = (high - low) / bins, tg.arange(bins + 1, dtype=x.dtype, device=x.device)
    return tg.where(at < (bins + 1) // 2, low + step * at, high - step * (bins - at))


def ones(x):
    """Ones that hang on x."""
    return x.masked_fill(tg.ones_like(x, dtype=tg.bool), 1) if x.requires_grad else tg.ones_like(x)


def _histogram(self, edges, weight, density):
    if not self.dtype.is_floating_point:
        raise NotImplementedError(f"\"histogram\" not implemented for '{self.dtype}': convert the input with .float()")
    if weight is not None and (weight.shape != self.shape or weight.dtype != self.dtype):
        raise RuntimeError(
            f"histogram(): if weight tensor is provided it should have the same shape and dtype as the input tensor, "
            f"got {list(weight.shape)} of {weight.dtype} for {list(self.shape)} of {self.dtype}"
        )
    if edges.dtype != self.dtype:
        raise RuntimeError(
            f"histogram(): input tensor and bins tensors should have the same dtype, got {self.dtype} and {edges.dtype}"
        )
    if edges.dim() != 1 or edges.shape[0] < 2:
        raise RuntimeError(f"histogram(): bins must be a vector of at least 2 borders, got {list(edges.shape)}")
    found = self._count_between(edges, weight)
    return found / (found.sum() * edges.diff()) if density else found, without_derivative(edges).clone()


def _np_histogram(x, bins=100, range=None, weight=None, density=False):
    import numpy

    if range is None and not x.size:
        range = (0, 1)
    found, edges = numpy.histogram(x, bins, range, density, weight)
    return found.astype(x.dtype), edges.astype(x.dtype)


_REFUSED = refusal("what counts or orders values")

op(
    "aten::_count_between(Tensor self, Tensor edges, Tensor? weight=None) -> Tensor",
    batch=batching_masks.count_between,
    kernel="count_between",
    types="float",
    variants="method",
    grad={"self": _REFUSED, "edges": _REFUSED, "weight": _REFUSED},
    jvp=refused_slope("what counts or orders values"),
    samples=lambda make: [
        Sample(make.like([0.5, 1.5, 2.5, 2.75, 4.0, -7.0]).detach(), make.like([0.0, 1.0, 2.5, 4.0]).detach()),
        Sample(make.like([[0.25], [3.0]]).detach(), make.like([0.0, 3.0]).detach(), make.like([[2.0], [4.0]]).detach()),
    ],
    errors=[(lambda: zeros(2)._count_between(zeros(1)), RuntimeError, "at least 2 borders")],
    doc="How many elements, or the sum of their weights, lie between each two of the borders.",
)

_HISTOGRAM = {
    "jvp": "none",
    "types": "float",
    "variants": "function method out",
    "reference": _np_histogram,
    "doc": "How many elements lie in each bin, or the sum of their weights, and the borders of the bins: those given "
    "in rising order, or of so many equal parts of a range, by default that of the elements. Left borders belong to "
    "a bin, of the last one both. density: divided by the sum and the bin's width. A gradient is refused.",
}

op(
    "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> (Tensor hist, Tensor bin_edges)",
    compose=lambda self, bins, range, weight, density: _histogram(
        self, _edges(without_derivative(self), bins, range), weight, density
    ),
    samples=lambda make: [
        Sample(make.like([0.5, 1.5, 2.5, 2.75, 4.0, -7.0]).detach(), 4, range=(0.0, 4.0)),
        Sample(make.like([[0.25, 1.75], [3.0, 8.25]]).detach(), 5),
        Sample(make.like([0.5, 1.5, 1.25]).detach(), 2, weight=make.like([1.0, 2.0, 4.0]).detach(), density=True),
        Sample(make(0).detach(), 3),
    ],
    errors=[
        (lambda: zeros(2).histogram(0), RuntimeError, "bins must be > 0"),
        (lambda: zeros(2).histogram(2, range=(3.0, 1.0)), RuntimeError, "min should not exceed max"),
        (lambda: zeros(2).histogram(2, weight=zeros(3)), RuntimeError, "the same shape and dtype"),
        (lambda: zeros(2).long().histogram(2), NotImplementedError, "not implemented for"),
    ],
    **_HISTOGRAM,
)

op(
    "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor "
    "hist, Tensor bin_edges)",
    compose=_histogram,
    samples=lambda make: [
        Sample(make.like([0.5, 1.5, 2.5, 2.75, 4.0, -7.0]).detach(), make.like([0.0, 1.0, 2.5, 4.0]).detach()),
        Sample(make.like([[0.5, 1.5], [1.25, 9.0]]).detach(), make.like([1.0, 2.0, 9.0]).detach(), density=True),
    ],
    errors=[(lambda: zeros(2).histogram(zeros(2, 2)), RuntimeError, "bins must be a vector of at least 2")],
    **_HISTOGRAM,
)

op(
    "aten::isreal(Tensor self) -> Tensor",
    compose=lambda self: self.imag == 0 if self.is_complex() else tg.ones_like(self, dtype=tg.bool),
    jvp="none",
    types="bool int float half complex",
    samples=lambda make: [Sample(make(3, 4)), Sample(make()), Sample(make.of([1 + 0j, 1 + 2j]))],
    reference="numpy.isreal",
    doc="Whether the imaginary part of each element is 0.",
)


def _frexp(self):
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"frexp() only supports floating-point dtypes: got {self.dtype}; convert with .float()")
    if self.dtype in (tg.float32, tg.float64):
        return fused._frexp(self)
    mantissa, power = fused._frexp(self.float())
    return mantissa.to(self.dtype), power


def _divided(tensor, power):
    """tensor / 2 ** power: of doubles in two steps, for the power alone may overflow."""
    power = -power.to(tg.float64)
    if tensor.dtype != tg.float64:
        return (tensor.to(tg.float64) * power.exp2()).to(tensor.dtype)
    half = tg.trunc(power / 2)
    return tensor * half.exp2() * (power - half).exp2()


op(
    "aten::_frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    kernel="frexp",
    batch="leading",
    jvp=lambda self_tangent, exponent: (_divided(self_tangent, exponent), None),
    grad={"self": lambda grads, exponent: _divided(grads[0], exponent)},
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4)), Sample(make.like([1.0, 2.0, 0.5, 8.0, 0.0]).detach())],
    reference="numpy.frexp",
    doc="frexp of float32 and float64.",
)

op(
    "aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    compose=_frexp,
    types="float half",
    variants="function method out",
    samples=lambda make: [
        Sample(make(3, 4)),
        Sample(make()),
        Sample(make.like([1.0, 2.0, 0.5, 8.0, 0.0]).detach()),
        Sample(make(0, 2)),
    ],
    reference="numpy.frexp",
    errors=[(lambda: tg.tensor([1]).frexp(), RuntimeError, "frexp() only supports floating-point dtypes")],
    doc="Each element as a mantissa in [0.5, 1) times a power of two, and that power.",
)
