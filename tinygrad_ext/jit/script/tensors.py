"""Methods and attributes of tensors: ops by name, and what a graph asks of a tensor, or does to it, that is no op."""

from tinygrad_ext.core.call.op_tables import methods
from tinygrad_ext.graph.primitives.tensors import ASKED, COUNTS, FLAGS, PARTS
from tinygrad_ext.graph.types import BOOL, DEVICE, DTYPE, INT, LAYOUT, STR, TENSOR, Type, list_of

from .compiler import hook
from .ops import anything, call_op
from .values import Method

_ATTRIBUTES = {
    "shape": ("prim::shape", list_of(INT)),
    "dtype": ("prim::dtype", DTYPE),
    "device": ("prim::device", DEVICE),
    "layout": ("prim::layout", LAYOUT),
    "ndim": ("prim::rank", INT),
    "grad": ("prim::tensor.grad", Type("Optional", (TENSOR,))),
    **{name: (f"prim::tensor.{name}", BOOL) for name in FLAGS},
    **{name: (f"prim::tensor.{name}", INT) for name in ("itemsize", "nbytes", "output_nr")},
    **{name: (f"prim::tensor.{name}", TENSOR) for name in ("T", "H", "mH")},
}
_VIEWS = {
    "data": ("aten::detach",),
    "real": ("aten::real",),
    "imag": ("aten::imag",),
    "mT": ("aten::transpose.int", -2, -1),
}
_QUESTIONS = {
    **dict.fromkeys(("dim", "ndimension"), ("prim::rank", INT)),
    **dict.fromkeys(("numel", "nelement"), ("prim::numel", INT)),
    **{name: (f"prim::tensor.{name}", BOOL) for name in ASKED},
    **{name: (f"prim::tensor.{name}", INT) for name in COUNTS},
    **{name: (f"prim::tensor.{name}", TENSOR) for name in PARTS},
}


@hook
def tensor_attribute(c, tensor, name):
    """tensor.name"""
    found = _ATTRIBUTES.get(name)
    if found is not None:
        return c.emit(found[0], (tensor,), found[1])
    if name in _VIEWS:
        return c.op(_VIEWS[name][0], (tensor, *_VIEWS[name][1:]))
    if name in _QUESTIONS or name in SPECIAL or name in methods:
        return Method(name, lambda c, args, kwargs: call_method(c, tensor, name, args, kwargs))
    return c.fault(f"'Tensor' object has no attribute or method '{name}' in script")


@hook
def call_method(c, tensor, name, args, kwargs=None):
    """tensor.name(*args, **kwargs)"""
    special = SPECIAL.get(name)
    if special is not None:
        return special(c, tensor, args, kwargs or {})
    question = _QUESTIONS.get(name)
    if question is not None:
        return c.emit(question[0], (tensor,), question[1])
    if name == "__getitem__" and len(args) != 1:
        c.fault(f"__getitem__() expected exactly 1 argument, got {len(args)}")
    return call_op(c, name, methods[name].candidates, [tensor, *args], kwargs or {})


def _size(c, tensor, args, kwargs):
    args = [*args, *kwargs.values()]
    if not args or args[0] is None:
        return c.emit("prim::shape", (tensor,), list_of(INT))
    return c.emit("prim::size", (tensor, c.value(args[0], INT, "a dimension")), INT)


def _stride(c, tensor, args, kwargs):
    args = [*args, *kwargs.values()]
    if not args:
        return c.emit("prim::tensor.stride", (tensor,), list_of(INT))
    return c.emit("prim::tensor.stride_of", (tensor, c.value(args[0], INT, "a dimension")), INT)


def _item(c, tensor, args, kwargs):
    return c.emit("prim::item", (tensor,), Type("Scalar"))


def _tolist(c, tensor, args, kwargs):
    return c.fault(
        "Expected type hint for result of tolist(): how deep the list is, and of what, is not known while compiling",
        "Write it: items: List[float] = x.tolist(), or annotate(List[float], x.tolist()).",
    )


def _backward(c, tensor, args, kwargs):
    c.effect("prim::tensor.backward", tensor, *[c.value(a) for a in (*args, *kwargs.values())])


def _requires_grad(c, tensor, args, kwargs):
    mode = (*args, *kwargs.values(), True)[0]
    return c.emit("prim::tensor.requires_grad_", (tensor, c.value(mode, BOOL)), TENSOR)


def _type(c, tensor, args, kwargs):
    if not args:
        return c.emit("prim::tensor.type", (tensor,), STR)
    return call_method(c, tensor, "to", args)


def _new_tensor(c, tensor, args, kwargs):
    dtype = kwargs.get("dtype") or c.emit("prim::dtype", (tensor,), DTYPE)
    return c.op("aten::tensor", (anything(c, args[0]), dtype, None, False, False))


def _set_item(c, tensor, args, kwargs):
    c.effect("prim::tensor.set_item", tensor, c.value(args[0]), c.value(args[1]))


def _resize_as(c, tensor, args, kwargs):
    """A window on the tensor: in a graph memory keeps its size, and the view tells if it would have to change."""
    return c.op("aten::view_as", (tensor, *args))


def _set(c, tensor, args, kwargs):
    if len(args) + len(kwargs) != 1:
        c.fault("set_() takes one tensor in script: a storage is no value of a graph")
    source = c.value((*args, *kwargs.values())[0], TENSOR, "the source of set_()")
    return c.emit("prim::tensor.set_", (tensor, source), TENSOR)


def _unique(name):
    flags = ["sorted"] * (name == "unique") + ["return_inverse", "return_counts", "dim"]

    def run(c, tensor, args, kwargs):
        made = call_op(c, name, methods[name].candidates, [tensor, *args], dict(kwargs))
        row = {**dict(zip(flags, args)), **kwargs}
        asked = [row.get(flag, False) for flag in ("return_inverse", "return_counts")]
        if any(type(a) is not bool for a in asked):
            return made
        count = 1 + sum(asked)
        return c.emit("prim::cast", (made,), TENSOR if count == 1 else Type("Tuple", (TENSOR,) * count))

    return run


SPECIAL = {
    "unique": _unique("unique"),
    "unique_consecutive": _unique("unique_consecutive"),
    "set_": _set,
    "size": _size,
    "resize_as_": _resize_as,
    "stride": _stride,
    "item": _item,
    "tolist": _tolist,
    "backward": _backward,
    "requires_grad_": _requires_grad,
    "type": _type,
    "new_tensor": _new_tensor,
    "__setitem__": _set_item,
}


@hook
def set_tensor_attribute(c, tensor, name, operand):
    """tensor.name = operand"""
    if name == "grad":
        c.effect("prim::tensor.set_grad", tensor, c.value(operand))
    elif name == "requires_grad":
        c.emit("prim::tensor.requires_grad_", (tensor, c.value(operand, BOOL)), TENSOR)
    else:
        c.fault(f"the attribute '{name}' of a tensor cannot be set in script")
