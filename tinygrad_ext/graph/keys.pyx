# cython: language_level=3
"""What a graph is looked up by among those of one program: kind of each argument, as a tuple of numbers and words.

Of a tensor that is its dtype, rank, device, and whether it requires a gradient; sizes are values of the graph. In C, because
it is worked out at each call: in Python it costs as much as a small op for each tensor.
"""
from tinygrad_ext.core.data.tensor cimport Tensor, exact, needs_grad


cdef object _key(object o):
    cdef Tensor t
    if exact(o):
        t = <Tensor>o
        return (((<int>t.tid << 8 | t.rank) << 8) | t.device_id) << 1 | needs_grad(t)
    if type(o) is float or type(o) is int:
        return type(o)
    if isinstance(o, (tuple, list)):
        return (type(o), *[_key(part) for part in o])
    if isinstance(o, dict):
        return (dict, *[(name, _key(part)) for name, part in o.items()])
    if isinstance(o, Tensor):
        return type(o), o.dtype, o.dim(), o.requires_grad, o.device
    return type(o), o


def key_of(tuple args):
    """The key of a call's arguments."""
    return tuple([_key(o) for o in args])
