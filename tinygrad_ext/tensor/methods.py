"""Tensor methods in Python that are no ops."""

from types import FunctionType

from tinygrad_ext.core.call.dispatched import set_dispatch
from tinygrad_ext.core.call.interop import flips
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data.dtype import by_name, sparse_csc, sparse_csr, strided
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.tensor import asked, copying, interop, legacy, of_other_kinds, sharing, top


def install():
    """Put them on Tensor."""
    for room in (asked, interop, copying, sharing, legacy, of_other_kinds):
        _METHODS.update(room.METHODS)
    for name, fn in _METHODS.items():
        if isinstance(fn, FunctionType) and fn.__qualname__ != fn.__qualname__.lstrip("<_"):
            fn.__qualname__ = name  # Python's own errors say it
        setattr(Tensor, name, fn)


def _repr(self, *, tensor_contents=None):
    """The text of a tensor; tensor_contents: text in place of its elements, for subclasses that show something else."""
    from tinygrad_ext.tensor.printing import tensor_repr  # lazy: few programs print at all

    was = set_dispatch(False)
    try:
        return tensor_repr(self, tensor_contents=tensor_contents)
    finally:
        set_dispatch(was)


def _keep_history(self):
    raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")


def _is_nonzero(self):
    """Whether the only element is not zero."""
    if self.numel() != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {'no' if self.numel() == 0 else 'more than one'} value"
            f"{'s' if self.numel() == 0 else ''} is ambiguous: is_nonzero() needs one element"
        )
    return bool(self)


def _reversed_dims(self):
    """All dimensions in the opposite order: the transpose of a matrix."""
    if self.dim() == 2:
        return self.t()
    import warnings

    warnings.warn(
        f"The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated: this "
        f"one has "
        f"{self.dim()}. Consider `x.mT` to transpose batches of matrices, or permute.",
        UserWarning,
        stacklevel=2,
    )
    return self.permute(tuple(range(self.dim() - 1, -1, -1)))


def _matrix_transpose(self):
    """The last two dimensions exchanged."""
    if self.dim() == 1:
        raise RuntimeError(
            "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor. "
            "A vector has no transpose; unsqueeze it first."
        )
    return self.transpose(-2, -1) if self.dim() else self


def _adjoint(self):
    """The last two dimensions exchanged, conjugated."""
    if self.dim() == 1:
        raise RuntimeError(
            "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor. "
            "A vector has no transpose; unsqueeze it first."
        )
    return _matrix_transpose(self).conj()


def _hermitian(self):
    """Conjugate transpose of a matrix."""
    if self.dim() not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor. For "
            f"batches of "
            "matrices use tensor.mH."
        )
    return self.transpose(0, 1).conj() if self.dim() == 2 else self.conj()


def _chalf(self, memory_format=None):
    """The tensor as complex32. Not an op: plans and devices of plugins hold no complex32."""
    options = {} if memory_format is None else {"memory_format": memory_format}
    return self.to(by_name["complex32"], **options)


def _lu(self, pivot=True, get_infos=False):
    """The function lu of the tensor."""
    return top.lu(self, pivot, get_infos)


def _to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor as one that stores the elements that are not zero."""
    made = later("sparse").from_dense
    return made(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def _to_sparse_csr(self, dense_dim=None):
    """The matrix as one that stores the elements of each row that are not zero."""
    return _to_sparse(self, layout=sparse_csr)


def _to_sparse_csc(self, dense_dim=None):
    """The matrix as one that stores the elements of each column that are not zero."""
    return _to_sparse(self, layout=sparse_csc)


def _to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor itself, which stores all its elements."""
    return self if dtype is None else self.to(dtype)


def _part(name):
    def get(self):
        return functions[name](self)

    def put(self, value):
        get(self).copy_(value)

    return property(get, put, doc=f"The {name} parts, over the same memory.")


# kinds of tensors and devices that libraries ask for, and that are not here
_OTHER_KINDS = (
    "is_cuda",
    "is_ipu",
    "is_maia",
    "is_mkldnn",
    "is_mps",
    "is_mtia",
    "is_nested",
    "is_sparse_csr",
    "is_vulkan",
    "is_xla",
    "is_xpu",
)
_METHODS = {
    "__repr__": _repr,
    "chalf": _chalf,
    "lu": _lu,
    "to_sparse": _to_sparse,
    "to_sparse_coo": _to_sparse,
    "to_sparse_csr": _to_sparse_csr,
    "to_sparse_csc": _to_sparse_csc,
    "to_dense": _to_dense,
    "T": property(_reversed_dims),
    "mT": property(_matrix_transpose),
    "mH": property(_adjoint),
    "H": property(_hermitian),
    "real": _part("real"),
    "imag": _part("imag"),
    "is_nonzero": _is_nonzero,
    "is_floating_point": lambda self: self.dtype.is_floating_point,
    "is_complex": lambda self: self.dtype.is_complex,
    "is_signed": lambda self: self.dtype.is_signed,
    "is_conj": lambda self: bool(flips(self) & 1),
    "is_neg": lambda self: bool(flips(self) & 2),
    "get_device": lambda self: -1,
    "ndimension": Tensor.dim,
    "nelement": Tensor.numel,
    "_grad": property(lambda self: self.grad, lambda self, value: setattr(self, "grad", value)),
    "_grad_fn": property(lambda self: self.grad_fn, fdel=_keep_history),
    "layout": property(lambda self: strided),
    "is_cpu": property(lambda self: self.device.type == "cpu"),
    "is_sparse": property(lambda self: False),
    "is_quantized": property(lambda self: False),
    "sparse_dim": lambda self: 0,
    "dense_dim": Tensor.dim,
    **dict.fromkeys(_OTHER_KINDS, property(lambda self: False)),
    "is_meta": property(lambda self: self.device.type == "meta"),
}
