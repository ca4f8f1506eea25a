# cython: language_level=3
"""What a graph is looked up by among those of one program: kind of each argument, as a tuple of numbers and words.

Of a tensor that is its dtype, rank, device, and whether it requires a gradient; sizes are values of the graph. In C, because
it is worked out at each call: in Python it costs as much as a small op for each tensor.
"""
from tinygrad_ext.core.data.tensor cimport Tensor, exact

cdef enum:
    DEEPEST = 200           # containers in each other


cdef object kind_of(object o, int depth=0):
    if exact(o):
        return kind_of_tensor(<Tensor>o)
    if type(o) is float or type(o) is int:
        return type(o)
    if isinstance(o, (tuple, list, dict)):
        if depth == DEEPEST:
            raise RecursionError(f"a graph is called with containers that stand in each other more than {DEEPEST} deep, or in "
                                 "themselves; call it with their parts")
        if isinstance(o, dict):
            return (dict, *[(name, kind_of(part, depth + 1)) for name, part in o.items()])
        return (type(o), *[kind_of(part, depth + 1) for part in o])
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


cdef object taken_apart(object o, int depth, list parts):
    """The form of a value, whose parts are added to a list; None of what is a part itself, as all below that depth is."""
    cdef tuple keys = ()
    cdef str word = "list"
    if depth and type(o) is dict:
        word, keys, inner = "dict", tuple(o), (<dict>o).values()
    elif depth and isinstance(o, tuple) and (type(o) is tuple or hasattr(o, "_fields")):
        word, inner = "tuple", o
    elif depth and type(o) is list:
        inner = o
    else:
        parts.append(o)
        return None
    return word, keys, tuple([taken_apart(x, depth - 1, parts) for x in inner])


def form_of(tuple values, list depths):
    """(form, parts) of the values of a call; depths: how deep containers are taken apart, for each of the first values.

    A form has for each value None, or the word of a container with its keys, if it is a dict, and the forms of its parts."""
    cdef Py_ssize_t i
    cdef list parts = [], form = []
    for i in range(len(depths)):
        form.append(taken_apart(values[i], depths[i], parts))
    parts += values[len(depths):]
    return tuple(form), parts
