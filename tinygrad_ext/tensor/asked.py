"""Functions at the top that ask a tensor something or write to it, as its methods do, and methods that call Python
for each element.
"""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.call.op_tables import functions as _functions
from tinygrad_ext.core.call.overridable import overridable as _overridable
from tinygrad_ext.core.data.tensor import Tensor as _Tensor

_DROPOUTS = ("dropout_", "alpha_dropout_", "feature_alpha_dropout_", "feature_dropout_")
__all__ = [
    *_DROPOUTS,
    "_assert",
    "affine_grid_generator",
    "embedding_renorm_",
    "get_device",
    "index_put_",
    "is_conj",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "native_norm",
    "to_dlpack",
    "typename",
]


@_overridable
def _assert(condition, message):
    """Refuse what is not so, with an AssertionError; a call that traces and overrides see."""
    assert condition, message


@_overridable
def is_conj(input):
    """Whether a tensor has the conjugate bit: it is a view that conjugates what it reads and what is written to it."""
    return input.is_conj()


@_overridable
def is_neg(input):
    """Whether a tensor has the negative bit: it is a view that negates what it reads and what is written to it."""
    return input.is_neg()


@_overridable
def is_nonzero(input):
    """Whether the only element is not zero; RuntimeError for more elements or none."""
    return input.is_nonzero()


@_overridable
def is_inference(input):
    """Whether the tensor was made under inference_mode."""
    return input.is_inference()


@_overridable
def is_same_size(input, other):
    """Whether two tensors have the same shape."""
    return input.shape == other.shape


@_overridable
def get_device(input):
    """The number of the tensor's device, -1 for the cpu."""
    return input.get_device()


@_overridable
def index_put_(input, indices, values, accumulate=False):
    """Write values to the places that the indices name, in place; returns the tensor."""
    return input.index_put_(indices, values, accumulate)


@_overridable
def to_dlpack(tensor):
    """The tensor's memory as a capsule of DLPack."""
    return tensor.__dlpack__()


@_overridable
def affine_grid_generator(theta, size, align_corners):
    """nn.functional.affine_grid with all arguments."""
    if len(size) not in (4, 5):
        raise RuntimeError(
            f"AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs: affine_grid_generator got {[*size]}"
        )
    return _functions["nn.functional.affine_grid"](theta, size, align_corners)


@_overridable
def embedding_renorm_(input, indices, max_norm, norm_type):
    """Shorten the rows that indices name to a norm_type-norm of at most max_norm, in place, without a gradient."""
    return input.copy_(_functions["_fused._embedding_renorm"](input.detach(), indices, max_norm, norm_type))


@_overridable
def native_norm(input, p=2, dim=(), keepdim=False, dtype=None):
    """`norm` under the name that PyTorch has for sparse tensors; no dim: over all."""
    return input.norm(2 if p is None else p, dim if isinstance(dim, int) else dim or None, keepdim, dtype=dtype)


def _in_place(name):
    def dropout_(input, p, train):
        return input.copy_(_functions[name](input, p, train))

    dropout_.__name__ = dropout_.__qualname__ = name + "_"
    dropout_.__doc__ = f"{name}, written into its argument, which is returned."
    return _overridable(dropout_)


dropout_, alpha_dropout_, feature_alpha_dropout_, feature_dropout_ = (_in_place(name[:-1]) for name in _DROPOUTS)


@_boundary
def typename(obj):
    """The name of a tensor's type, such as 'torch.FloatTensor', or of another object's type, with its module.

    >>> import tinygrad_ext as tg
    >>> tg.typename(tg.ones(1))
    'torch.FloatTensor'
    """
    if isinstance(obj, _Tensor):
        return obj.type()
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = "" if kind.__module__ in (None, "builtins") else kind.__module__ + "."
    return module + kind.__qualname__


# ---- methods -------------------------------------------------------------------------------------------------------


def _each(self, name, function, *others):
    if self.requires_grad or any(isinstance(t, _Tensor) and t.requires_grad for t in others):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead: what Python "
            "computes has no derivative"
        )
    for argument, t in zip(("x", "y") if name == "map2_" else ("other",), others):
        if not isinstance(t, _Tensor):
            raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(t).__name__}")
        if t.dtype != self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for argument '{argument}' (got {t.type()})")
    columns = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    found = [function(*row) for row in zip(*columns)]
    return self.copy_(_functions["tensor"](found, dtype=self.dtype).reshape(self.shape))


def _apply_(self, callable):
    """Replace each element by what the function makes of it; slow, and without a derivative."""
    return _each(self, "apply_", callable)


def _map_(self, tensor, callable):
    """Replace each element by what the function makes of it and of the other tensor's, which is broadcast."""
    return _each(self, "map_", callable, tensor)


def _map2_(self, x, y, callable):
    """Replace each element by what the function makes of it and of two other tensors'."""
    return _each(self, "map2_", callable, x, y)


METHODS = {
    "apply_": _apply_,
    "map_": _map_,
    "map2_": _map2_,
    "is_same_size": lambda self, other: self.shape == other.shape,
}
