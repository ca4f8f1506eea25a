"""What elements that are not set hold while algorithms are to be deterministic: what nobody takes for a result.

The ops tagged "unset" then have kernels that fill; while the switch is off, nothing asks for it.
"""

from tinygrad_ext.core.call.op_tables import functions, ops

_wish = {"deterministic": False, "fill": True}


def told(name):
    """One of the two wishes: "deterministic" and "fill"."""
    return _wish[name]


def tell(name, value):
    """Change a wish; both together make that elements are filled."""
    before = fills()
    _wish[name] = value
    if fills() != before:
        for op in ops.values():
            if "unset" in (op.record.tags or "").split():
                op.set_kernel(op.record.kernel + "_told" * fills(), False)


def fills():
    """Whether elements that are not set are filled."""
    return _wish["deterministic"] and _wish["fill"]


def fill_from(tensor, nbytes):
    """Fill what a tensor's memory has beyond its first bytes."""
    size = tensor.element_size()
    first, last = -(-nbytes // size), tensor.untyped_storage().nbytes() // size
    if last > first and not tensor.is_meta:
        rest = tensor.detach().as_strided((last - first,), (1,), first)
        rest.copy_(functions["empty"](last - first, dtype=tensor.dtype))
