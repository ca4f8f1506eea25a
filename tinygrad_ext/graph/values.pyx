# cython: language_level=3
"""Which Values stand in arguments, and others in their place: what every walk over a graph does with each node.

Compiled because of that: as generators of Python these took a fifth of deriving a graph.
"""
from .nodes cimport VALUE


cdef int collect(object args, list found) except -1:
    for a in args:
        if type(a) is VALUE:
            found.append(a)
        elif type(a) is tuple or type(a) is list:
            collect(a, found)
        elif type(a) is slice:
            collect((a.start, a.stop, a.step), found)
    return 0


def values_in(args):
    """The Values among arguments, those in lists and tuples too."""
    cdef list found = []
    collect(args, found)
    return found


def used_values(node):
    """The Values that a node uses, once each, those that only its blocks use too."""
    cdef list found = []
    collect(node.args, found)
    for block in node.blocks:
        found += outer_values(block)
    return found if len(found) < 2 else list(dict.fromkeys(found))


def outer_values(block):
    """The Values from outside that a block uses, once each."""
    cdef set made = set(block.inputs)
    cdef dict found = {}
    for node in block.nodes:
        for v in used_values(node):
            if v not in made:
                found[v] = None
        made.update(node.outputs)
    for v in values_in(block.outputs):
        if v not in made:
            found[v] = None
    return list(found)


def replaced(a, dict mapping):
    """An argument with values replaced by what `mapping` has for them."""
    if type(a) is VALUE:
        return mapping.get(a, a)
    if type(a) is tuple or type(a) is list:
        return tuple([replaced(x, mapping) for x in a])
    if type(a) is slice:
        return slice(*[replaced(x, mapping) for x in (a.start, a.stop, a.step)])
    return a


def alike(a, b):
    """Whether two arguments are written the same way: values by their names, numbers by type and digits."""
    if a is b:
        return True
    cdef type kind = type(a)
    if kind is VALUE:
        return type(b) is VALUE and a.name == b.name
    if kind is tuple or kind is list:
        if not isinstance(b, (tuple, list)) or len(a) != len(b):
            return False
        for x, y in zip(a, b):
            if not alike(x, y):
                return False
        return True
    if kind is not type(b):
        return False
    if kind is slice:
        return alike((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return repr(a) == repr(b) if kind is float or kind is complex else a == b
