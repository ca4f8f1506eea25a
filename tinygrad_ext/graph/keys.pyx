# cython: language_level=3
"""What a graph is looked up by among those of one program: kind of each argument, as a tuple of numbers and words.

Of a tensor that is its dtype, rank, device, and whether it requires a gradient; sizes are values of the graph. In C, because
it is worked out at each call: in Python it costs as much as a small op for each tensor.
"""
from tinygrad_ext.core.data.tensor cimport Tensor, exact


cdef object kind_of(object o):
    if exact(o):
        return kind_of_tensor(<Tensor>o)
    if type(o) is float or type(o) is int:
        return type(o)
    if isinstance(o, (tuple, list)):
        return (type(o), *[kind_of(part) for part in o])
    if isinstance(o, dict):
        return (dict, *[(name, kind_of(part)) for name, part in o.items()])
    if isinstance(o, Tensor):
        return type(o), o.dtype, o.dim(), o.requires_grad, o.device
    return type(o), o


cdef bint same_kind(object o, object kind) except -1:
    cdef Py_ssize_t i
    if exact(o):
        return type(kind) is int and kind_of_tensor(<Tensor>o) == <long>kind
    if type(o) is float or type(o) is int:
        return kind is type(o)
    if type(kind) is not tuple:
        return False
    if type(o) is tuple or type(o) is list:
        if (<tuple>kind)[0] is not type(o) or len(<tuple>kind) != len(o) + 1:
            return False
        for i in range(len(o)):
            if not same_kind(o[i], (<tuple>kind)[i + 1]):
                return False
        return True
    return kind_of(o) == kind


def key_of(tuple args):
    """The key of a call's arguments."""
    return tuple([kind_of(o) for o in args])
