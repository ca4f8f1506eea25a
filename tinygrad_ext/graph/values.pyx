# cython: language_level=3, boundscheck=True, wraparound=True
"""Which Values stand in arguments, and others in their place: what every walk over a graph does with each node.

Compiled because of that: as generators of Python these took a fifth of deriving a graph.
"""
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from .nodes cimport VALUE, args_of, blocks_of, copy_of, graph_value, new_value, outputs_of, there


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
    collect(args_of(node), found)
    for block in blocks_of(node):
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
        made.update(outputs_of(node))
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


def read(a, dict frame):
    """An argument with what `frame` (id of a Value -> what it is) has in the place of Values; tuples become lists."""
    if type(a) is VALUE:
        return frame[id(a)]
    if type(a) is tuple:
        return [read(x, frame) for x in a]
    if type(a) is slice:
        return slice(read(a.start, frame), read(a.stop, frame), read(a.step, frame))
    return a


def read_all(args, dict frame):
    """A list of arguments, each as `read` gives it."""
    cdef list found = []
    for a in args:
        found.append(frame[id(a)] if type(a) is VALUE else read(a, frame) if type(a) is tuple or type(a) is slice else a)
    return found


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


cdef class Copy:
    """A copy that is made of a block: other Nodes and Values."""
    cdef dict mapping       # Values and their copies
    cdef object hints       # the type of Values whose hints are kept, or None

    def __cinit__(self, hints=None):
        self.mapping, self.hints = {}, hints

    def value(self, old, node=None):
        """The copy of a Value, made by `node`."""
        if type(old) is not VALUE:
            raise TypeError(f"a node or a block of a graph gives Values, not a {type(old).__name__}")
        cdef graph_value *v = <graph_value *>old
        hint = there(v.hint) if v.type == <void *>self.hints else None
        made = self.mapping[old] = new_value(there(v.name), there(v.type), node, hint)
        return made

    def fill(self, block, made):
        """Let an empty block have what another one has."""
        cdef Py_ssize_t i
        cdef tuple outputs, args
        made.inputs = [self.value(v) for v in block.inputs]
        nodes = made.nodes
        for node in block.nodes:
            args = args_of(node)
            if args:
                args = tuple([replaced(a, self.mapping) for a in args])
            new = copy_of(node, args, tuple([self.fill(inner, type(inner)()) for inner in blocks_of(node)]) if blocks_of(node) else ())
            outputs = PyTuple_New(len(outputs_of(node)))
            for i in range(len(outputs_of(node))):
                value = self.value(outputs_of(node)[i], new)
                Py_INCREF(value)
                PyTuple_SET_ITEM(outputs, i, value)
            new.outputs = outputs
            nodes.append(new)
        made.outputs = [replaced(a, self.mapping) for a in block.outputs]
        return made

    def read(self, a):
        """An argument with copies in the place of Values."""
        return replaced(a, self.mapping)
