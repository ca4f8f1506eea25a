"""Functions of the package that are no ops: `torch.is_tensor`, `torch.device`, `torch.as_tensor`."""

import tinygrad_ext as tg
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.graph.types import BOOL, DEVICE, DTYPE, STR, TENSOR

from .builtins import BUILTINS, builtin
from .values import is_constant, type_of


@builtin(tg.is_tensor)
def _is_tensor(c, args, kwargs):
    return type_of(args[0]) is TENSOR


def _asked(name):
    return lambda c, args, kwargs: c.call_method(args[0], name, [])


for _name in ("is_floating_point", "is_complex", "numel"):
    BUILTINS[getattr(tg, _name)] = _asked(_name)


@builtin(dtypes.device)
def _device(c, args, kwargs):
    if all(map(is_constant, args)):
        return dtypes.device(*args)
    return c.emit("prim::device_of", (c.value(args[0], STR),), DEVICE)


@builtin(dtypes.Size)
def _make_size(c, args, kwargs):
    return args[0]


@builtin(tg.is_grad_enabled)
def _is_grad_enabled(c, args, kwargs):
    return c.emit("prim::grad_enabled", (), BOOL)


@builtin(tg.get_default_dtype)
def _default_dtype(c, args, kwargs):
    return c.emit("prim::dtype", (c.op("aten::tensor", (0.0, None, None, False, False)),), DTYPE)


@builtin(tg.as_tensor)
def _as_tensor(c, args, kwargs):
    if type_of(args[0]) is TENSOR:
        return c.call_method(args[0], "to", list(kwargs.values())) if kwargs else args[0]
    return c.call_op("tensor", tg.tensor.candidates, args, kwargs)
