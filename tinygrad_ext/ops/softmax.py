"""Softmax and log_softmax."""

from tinygrad_ext.ops import batching_layers, forward
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _with_dim(make):
    yield Sample(make(3, 4), 1)
    yield Sample(make(3, 4), 0)
    yield Sample(make(2, 3, 5), -2)
    yield Sample(make(2, 70, 3), dim=1)
    yield Sample(make(), 0)
    yield Sample(make(0, 3), -1)
    yield Sample(make(2, 0), 1)


def _softmax_reference(x, dim, dtype=None):
    import scipy.special

    return scipy.special.softmax(x, axis=dim) if x.size else x


def _log_softmax_reference(x, dim, dtype=None):
    import scipy.special

    return scipy.special.log_softmax(x, axis=dim) if x.size else x


def _implied(self, dim):
    return dim if dim is not None else 0 if self.dim() in (0, 1, 3) else 1


op(
    "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="softmax",
    variants="function method out",
    samples=_with_dim,
    reference=_softmax_reference,
    grad={"self": "_softmax_backward_data(grad, result, dim, self_dtype)"},
    jvp="symmetric",
    aliases="special.softmax",
    doc="Exponentials over dim divided by their sum, shifted so that none overflows; dtype converts the input first.",
)

op(
    "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="log_softmax",
    variants="function method out",
    samples=_with_dim,
    reference=_log_softmax_reference,
    grad={"self": "_log_softmax_backward_data(grad, result, dim, self_dtype)"},
    jvp=forward.log_softmax,
    aliases="special.log_softmax",
    doc="Logarithm of softmax over dim, without the loss of precision of the two steps.",
)

op(
    "aten::softmax.functional(Tensor self, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    batch=batching_layers.softmax("softmax"),
    kernel="softmax_functional",
    variants="function",
    where="nn.functional",
    samples=_with_dim,
    reference=_softmax_reference,
    grad={
        "self": lambda grad, result, dim, self_dtype: fused._softmax_backward_data(
            grad, result, _implied(result, dim), self_dtype
        )
    },
    jvp="symmetric",
    doc="softmax over dim. Without dim it warns, and takes 0 for 0, 1 or 3 dimensions and 1 for others.",
)

op(
    "aten::log_softmax.functional(Tensor self, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    batch=batching_layers.softmax("log_softmax"),
    kernel="log_softmax_functional",
    variants="function",
    where="nn.functional",
    samples=_with_dim,
    reference=_log_softmax_reference,
    grad={
        "self": lambda grad, result, dim, self_dtype: fused._log_softmax_backward_data(
            grad, result, _implied(result, dim), self_dtype
        )
    },
    jvp=forward.log_softmax,
    doc="log_softmax over dim. Without dim it warns, and takes 0 for 0, 1 or 3 dimensions and 1 for others.",
)

op(
    "aten::softmin(Tensor self, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    compose=lambda self, dim, _stacklevel, dtype: (-self).softmax(_implied(self, dim), dtype),
    variants="function",
    where="nn.functional",
    samples=_with_dim,
    reference=lambda x, dim: _softmax_reference(-x, dim),
    doc="softmax of the negated input.",
)


def _backward_samples(make):
    yield Sample(make(3, 4), make(3, 4), 1, make.dtype)
    yield Sample(make(2, 3, 5), make(2, 3, 5), 1, make.dtype)


def _log_softmax_backward_reference(g, y, dim, dtype):
    import numpy as np

    return g - np.exp(y) * g.sum(dim, keepdims=True)


op(
    "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    batch="dims",
    kernel="_softmax_backward",
    variants="function",
    samples=_backward_samples,
    reference=lambda g, y, dim, dtype: (g - (g * y).sum(dim, keepdims=True)) * y,
    grad={
        "grad_output": "_softmax_backward_data(grad, output, dim, grad_output_dtype)",
        "output": lambda grad, grad_output, output, dim: (
            grad * (grad_output - (grad_output * output).sum(dim, keepdim=True))
            - grad_output * (grad * output).sum(dim, keepdim=True)
        ),
    },
    jvp=forward.softmax_backward,
    doc="Derivative of softmax, from the incoming gradient and its output.",
)

op(
    "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    batch="dims",
    kernel="_log_softmax_backward",
    variants="function",
    samples=_backward_samples,
    reference=_log_softmax_backward_reference,
    grad={
        "grad_output": lambda grad, output, dim: grad - (grad * output.exp()).sum(dim, keepdim=True),
        "output": lambda grad, grad_output, output, dim: -grad * output.exp() * grad_output.sum(dim, keepdim=True),
    },
    jvp=forward.log_softmax_backward,
    doc="Derivative of log_softmax, from the incoming gradient and its output.",
)
