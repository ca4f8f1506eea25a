"""Names of PyTorch's between public and private: masked indices, parts of layers, a hash."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.normalize import np_native_batch_norm
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped

_ALL = "bool int float half complex"


def _safe_softmax(self, dim, dtype):
    nothing = (self == float("-inf")).all(dim, True)  # taken out before: a derivative of 0 / 0 is none
    return self.masked_fill(nothing, 0).softmax(dim, dtype).masked_fill(nothing, 0)


op(
    "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    compose=_safe_softmax,
    types="float",
    variants="function",
    samples=lambda make: [Sample(make(2, 3), 1), Sample(make.of([[float("-inf")] * 2, [0.0, 1.0]]), 1)],
    doc="softmax, and zeros where all elements of a row are -inf.",
)


def _native_dropout_backward(grad_output, mask, scale):
    return grad_output * mask * scale


op(
    "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    compose=_native_dropout_backward,
    types="float",
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3), make.of([True, False, True]), 2.0)],
    doc="The gradient of dropout: that of what was kept, times scale.",
)


# ---- batch norm ----------------------------------------------------------------------------------------------------


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """What is used of running statistics is not given back."""
    out, mean, invstd = fused.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return out, mean if training else mean.new_empty(0), invstd if training else invstd.new_empty(0)


def _np_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    y, mean, invstd = np_native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps)
    return y, mean if training else mean[:0], invstd if training else invstd[:0]


def _np_batch_norm_with_update(x, weight, bias, running_mean, running_var, momentum, eps):
    import numpy

    whole = _np_batch_norm(x, weight, bias, running_mean, running_var, True, momentum, eps)
    return *whole, numpy.empty(0, numpy.uint8)


_ARGUMENTS = "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var"
op(
    f"aten::_native_batch_norm_legit({_ARGUMENTS}, bool training, float momentum, float eps) "
    "-> (Tensor out, Tensor save_mean, Tensor save_invstd)",
    compose=_batch_norm,
    types="float",
    variants="function out",
    samples=lambda make: [
        Sample(make(4, 3), make(3), make(3), make(3).detach(), make(3, low=1, high=2).detach(), False, 0.1, 1e-5)
    ],
    reference=_np_batch_norm,
    doc="native_batch_norm with running statistics, which in evaluation are not given back: two empty tensors are.",
)

op(
    "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
    "float momentum, float eps) -> (Tensor out, Tensor save_mean, Tensor save_invstd)",
    compose=lambda input, weight, bias, training, momentum, eps: _batch_norm(
        input, weight, bias, None, None, training, momentum, eps
    ),
    types="float",
    variants="function out",
    samples=lambda make: [Sample(make(4, 3), make(3), make(3), True, 0.1, 1e-5)],
    reference=lambda x, w, b, training, momentum, eps: _np_batch_norm(x, w, b, None, None, training, momentum, eps),
    doc="native_batch_norm without running statistics.",
)

op(
    f"aten::_batch_norm_with_update({_ARGUMENTS}, float momentum, float eps) "
    "-> (Tensor out, Tensor save_mean, Tensor save_invstd, Tensor reserve)",
    compose=lambda *args: (*_batch_norm(*args[:5], True, *args[5:]), args[0].new_empty(0, dtype=tg.uint8)),
    types="float",
    variants="function out",
    samples=lambda make: [Sample(make(4, 3), make(3), make(3), None, None, 0.1, 1e-5)],
    reference=_np_batch_norm_with_update,
    doc="native_batch_norm in training, and an empty tensor where PyTorch's other devices keep what they need.",
)


# ---- joining in chunks ---------------------------------------------------------------------------------------------


def _chunk_cat(tensors, dim, num_chunks):
    if len(tensors) == 0:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    first = tensors[0]
    if dim < 0:
        if any(t.dim() != first.dim() for t in tensors):
            raise RuntimeError(
                f"_chunk_cat expects non-negative dim when input tensors have different ndims, got {dim}"
            )
        dim += first.dim()
    for t in tensors:
        if not t.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensors")
        if t.dtype != first.dtype or t.device != first.device:
            raise RuntimeError(f"_chunk_cat expects tensors of one dtype and device, got {first.dtype} and {t.dtype}")
        if not 0 <= dim < t.dim():
            raise RuntimeError(
                f"_chunk_cat expects dim {dim} to be one of all tensors, got one of {t.dim()} dimensions"
            )
        if t.shape[:dim] != first.shape[:dim]:
            raise RuntimeError(
                f"_chunk_cat expects same sizes of 0,...,dim-1 dimensions, got {list(first.shape)} and {list(t.shape)}"
            )
    rows = []
    for t in tensors:
        each = (t.shape[dim] + num_chunks - 1) // num_chunks
        lacking = each * num_chunks - t.shape[dim]
        t = t.constant_pad_nd((0, 0) * (t.dim() - dim - 1) + (0, lacking))
        rows.append(t.reshape((*t.shape[:dim], num_chunks, -1)))
    return tg.cat(rows, dim + 1)


op(
    "aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
    compose=_chunk_cat,
    types=_ALL,
    variants="function out",
    samples=lambda make: [Sample([make(3, 2), make(4)], 0, 2), Sample([make(2, 3)], -1, 2)],
    errors=[
        (lambda: functions["_chunk_cat"]([], 0, 2), RuntimeError, "expects a non-empty input tensor list"),
        (lambda: functions["_chunk_cat"]([zeros(2)], 0, 0), RuntimeError, "expects positive num_chunks"),
        (lambda: functions["_chunk_cat"]([zeros(2)], 1, 2), RuntimeError, "expects dim 1 to be one of all tensors"),
    ],
    tags="casts",
    doc="Each tensor padded and cut into chunks along a dimension, which are laid flat and joined chunk by chunk.",
)


# ---- masked indices ------------------------------------------------------------------------------------------------


def _within(self, indices):
    """Indices moved into their dimensions; what lies outside is masked."""
    return [None if i is None else i.clamp(-n, n - 1) for i, n in zip(indices, self.shape)]


def _unsafe_masked_index(self, mask, indices, fill):
    if 0 in self.shape:
        return self[tuple([slice(None) if i is None else i * 0 for i in indices])].masked_fill(~mask, fill)
    found = tg.ops.aten.index(self, _within(self, indices))
    return found.masked_fill(mask.logical_not(), fill)


op(
    "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    compose=_unsafe_masked_index,
    types=_ALL,
    variants="function",
    samples=lambda make: [
        Sample(make(3, 2), make.of([True, False]), [make.of([0, 7]), make.of([1, 1])], 0),
    ],
    doc="The elements at indices where mask is True, fill elsewhere, where an index may lie outside.",
)


def _unsafe_masked_index_put_accumulate(self, mask, indices, values):
    return self.index_put(_within(self, indices), values.masked_fill(mask.logical_not(), 0), True)


op(
    "aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    compose=_unsafe_masked_index_put_accumulate,
    types=_ALL,
    variants="function",
    samples=lambda make: [
        Sample(make(3, 2), make.of([True, False]), [make.of([0, 7]), make.of([1, 1])], make(2)),
    ],
    doc="self with values added at indices where mask is True.",
)


_NATURAL = (tg.uint16, tg.uint32, tg.uint64)

# ---- a hash --------------------------------------------------------------------------------------------------------


def _hash_tensor(self, dim, keepdim, mode):
    if mode:
        raise RuntimeError(f"hash_tensor: mode must be 0, the exclusive or of all elements, got {mode}")
    if self.is_complex():
        raise NotImplementedError('"hash_tensor" not implemented for complex numbers: hash view_as_real(self)')
    if self.dtype in _NATURAL:
        self = self.long()
    rank, shape = self.dim(), self.shape
    dim = (dim,) if isinstance(dim, int) else dim or ()
    named = [wrapped(d, rank) for d in dim]
    dims = set(named) or range(rank)
    if len(named) != len(set(named)):
        twice = next(d for d in named if named.count(d) > 1)
        raise RuntimeError(f"hash_tensor: dim {twice} appears multiple times in the list of dims {list(dim)}")
    if 0 in shape:
        if not dim:
            raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0.")
        for d in dims:
            if not shape[d]:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    if len(dims) >= rank:  # of all elements
        found = self.reshape(-1)._hash_rows()
    else:
        kept = [d for d in range(rank) if d not in dims]
        count = math.prod([shape[d] for d in dims])
        found = self.permute((*kept, *dims)).reshape((*[shape[d] for d in kept], count))._hash_rows()
    return found.reshape([1 if d in dims else n for d, n in enumerate(shape)]) if keepdim else found


op(
    "aten::_hash_rows(Tensor self) -> Tensor",
    kernel="hash_rows",
    batch="leading",
    types="bool int float half",
    jvp="none",
    grad={"self": "none"},
    variants="method",
    samples=lambda make: [Sample(make(3, 2)), Sample(make(2, 0)), Sample(make(9))],
    errors=[(lambda: zeros()._hash_rows(), RuntimeError, "expected at least one dimension")],
    doc="The exclusive or of the bits of each row, as float64 or int64; uint64.",
)

op(
    "aten::hash_tensor(Tensor self, int[1]? dim=None, *, bool keepdim=False, int mode=0) -> Tensor",
    compose=_hash_tensor,
    types="bool int float half",
    jvp="none",
    variants="function method out",
    samples=lambda make: [Sample(make(3, 2)), Sample(make(2, 5), 1, keepdim=True), Sample(make())],
    errors=[
        (lambda: zeros(0).hash_tensor(), RuntimeError, "Expected reduction dim to be specified"),
        (lambda: zeros(2, 0).hash_tensor(1), IndexError, "Expected reduction dim 1 to have non-zero size"),
        (lambda: zeros(2, 3).hash_tensor((0, -2)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    ],
    doc="The exclusive or of the bits of all elements, as float64 or int64, along some dimensions or all; uint64.",
)
