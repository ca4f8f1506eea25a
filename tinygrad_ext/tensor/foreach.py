"""`torch._foreach_add` and the like: an op for each tensor of a list, as optimizers of libraries call them.

A further argument is one value for all, or a list with one for each tensor.
"""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor

PREFIX = "_foreach_"
_OPS = frozenset(
    [
        "abs",
        "acos",
        "add",
        "addcdiv",
        "addcmul",
        "asin",
        "atan",
        "ceil",
        "clamp_max",
        "clamp_min",
        "clone",
        "copy",
        "cos",
        "cosh",
        "div",
        "erf",
        "erfc",
        "exp",
        "expm1",
        "floor",
        "frac",
        "lerp",
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "max",
        "maximum",
        "minimum",
        "mm",
        "mul",
        "neg",
        "norm",
        "pow",
        "powsum",
        "reciprocal",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "sub",
        "tan",
        "tanh",
        "trunc",
        "zero",
    ]
)
_RENAMED = {"maximum": "clamp_min", "minimum": "clamp_max"}


def names():
    """All of them, those that write in place with an underscore at the end."""
    plain = _OPS - {"copy", "zero"}
    in_place = _OPS - {"clone", "max", "mm", "norm", "powsum"}
    return sorted([*(PREFIX + op for op in plain), *(f"{PREFIX}{op}_" for op in in_place)])


def _powsum(tensor, ord=2):
    return tensor.abs().pow(ord).sum()


def _norm(tensor, ord=2, dtype=None):
    return tensor.norm(ord, dtype=dtype)


def _function(op, in_place):
    """What is called with one tensor and its share of the arguments."""
    if op in ("norm", "powsum"):
        return _norm if op == "norm" else _powsum
    method = op + "_" * in_place

    def call(tensor, *args, **kwargs):
        if not isinstance(tensor, Tensor):  # a base, of pow
            return tensor ** args[0]
        # a number is the bound of clamp, and of maximum a tensor alone
        bound = op in _RENAMED and args and not isinstance(args[0], Tensor)
        name = _RENAMED[op] + "_" * in_place if bound else method
        if in_place and not hasattr(tensor, name):
            return tensor.copy_(getattr(tensor, name[:-1])(*args, **kwargs))
        return getattr(tensor, name)(*args, **kwargs)

    return call


def _column(values, count):
    """One value for each of the tensors."""
    if isinstance(values, Tensor) and values.dim() == 1 and not values.is_floating_point() | (values.numel() != count):
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        return [values] * count
    if len(values) == count:
        return values
    if len(values) > 0 and isinstance(values[0], Tensor):
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(values)}")
    raise RuntimeError(
        "Tensor list must have same number of elements as scalar list. "
        f"There are {count} tensors and {len(values)} numbers."
    )


def _factors(values, count):
    """One factor for each of the tensors; a tensor holds them all."""
    if not isinstance(values, Tensor):
        return _column(values, count)
    if values.dim() != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {values.dim()} instead.")
    if values.numel() != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got {values.numel()} instead."
        )
    return values.tolist()


def make(name):
    """The function of a name."""
    op = name[len(PREFIX) :].rstrip("_")
    in_place = name.endswith("_")
    each = _function(op, in_place)

    @boundary
    def foreach(self, *args, **kwargs):
        first = next((a for a in (self, *args) if isinstance(a, (list, tuple))), None)
        if first is None:
            raise TypeError(f"{name}(): argument 'self' must be a list of tensors, not {type(self).__name__}")
        if len(first) == 0:
            raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
        count = len(first)
        if "scalars" in kwargs:
            kwargs["value"] = _factors(kwargs.pop("scalars"), count)
        if op in ("addcdiv", "addcmul") and len(args) == 3:  # the factor is an argument by name there
            *args, factors = args
            kwargs["value"] = _factors(factors, count)
        rows = zip(*(_column(a, count) for a in (self, *args)), strict=True) if args else ((t,) for t in self)
        named = {key: _column(value, count) for key, value in kwargs.items()}
        found = [each(*row, **{key: value[i] for key, value in named.items()}) for i, row in enumerate(rows)]
        return self if in_place else tuple(found)

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"`{op}{'_' * in_place}` of each tensor of a list{', in place' * in_place}."
    return foreach
