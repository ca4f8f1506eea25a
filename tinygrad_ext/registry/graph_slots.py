"""What the engine needs from ops: the one place that says which op does a job of the graph."""

from tinygrad_ext import registry
from tinygrad_ext.core.data.slots import set_slot
from tinygrad_ext.core.grad import gradients
from tinygrad_ext.ops.expand import sum_to


def _zeros(size, dtype, device):
    return registry.functions["zeros"](size, dtype=dtype, device=device)


def _copy_strided(grad, sizes, strides):
    """A copy of a gradient with the memory order of the tensor it belongs to."""
    return grad.new_empty_strided(sizes, strides).copy_(grad)


def _accumulate_into(total, grad):
    total.detach().add_(grad.detach())


def _window(t, sizes, strides, offset, pairs, before, after):
    """What a view shows of its base, or of the base's gradient.

    offset: in elements of the view. pairs: 2 where it shows the parts of complex numbers, -2 the reverse.
    before, after: the conjugate (1) and negative (2) bits of base and view.
    """
    t = _turned(t, before)
    if pairs > 0:
        t = registry.functions["view_as_real"](t)
    elif pairs < 0:
        sizes, strides, offset = (*sizes, 2), (*(2 * s for s in strides), 1), 2 * offset
    t = t.as_strided(sizes, strides, offset)
    return _turned(registry.functions["view_as_complex"](t) if pairs < 0 else t, after)


def _turned(t, flips):
    t = t._conj() if flips & 1 else t
    return t._neg_view() if flips & 2 else t


def _has_nan(t):
    t = t._values() if t.is_sparse else t
    return bool(t.isnan().any()) if t.dtype.is_floating_point or t.dtype.is_complex else False


def _stack():
    import traceback

    return traceback.extract_stack()[:-1]


def _explain_trace(name, stack):
    import traceback
    import warnings

    warnings.warn(
        f"Error detected in {name}. Traceback of forward call that caused the error:\n"
        + "".join(traceback.format_list(stack)),
        UserWarning,
        stacklevel=2,
    )


def fill():
    """Hand the functions to the core."""
    functions = {
        "zeros": _zeros,
        "ones_like": lambda t: registry.functions["full_like"](t.detach(), 1),
        "sum_to": sum_to,
        "stack_rows": registry.functions["stack"],
        "copy_strided": _copy_strided,
        "accumulate_into": _accumulate_into,
        "has_nan": _has_nan,
        "stack": _stack,
        "explain_trace": _explain_trace,
        "add": registry.functions["add"],
        "add_": registry.methods["add_"],
        "clone": lambda t: t.clone(),
        "detached_clone": lambda t: t.detach().clone(),
        "restride": lambda t, *a: t.as_strided(*a),
        "window": _window,
        "zero_": lambda t: t.zero_(),
        "copy_": lambda t, v: t.copy_(v),
        "real": lambda t: t.real,
        "conj": lambda t: t.conj_physical() if t.dtype.is_complex else t,
        "to_dtype": lambda t, d: t.to(d),
        "item": lambda t: t.item(),
    }
    for name, fn in functions.items():
        set_slot(name, fn)
    gradients.read_slots()
