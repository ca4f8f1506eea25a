# cython: language_level=3, boundscheck=True, wraparound=True
"""How compiled code makes and reads Values and Nodes.

A graph that is derived and optimised makes and looks at each of them dozens of times. They stay classes of Python with
`__slots__`, because the interpreter reads a slot as quickly as C does, and an attribute of a compiled class more slowly;
compiled code reads the slots by their places, where asking for the attribute by name takes ten times as long.
"""
from cpython.ref cimport Py_INCREF, PyTypeObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from .types import TENSOR

cdef extern from *:
    """
    #include <structmember.h>
    static PyObject *tgx_blank(PyTypeObject *type) { return type->tp_alloc(type, 0); }

    static int tgx_slot_at(PyObject *descriptor, Py_ssize_t at) {
        return Py_TYPE(descriptor) == &PyMemberDescr_Type && ((PyMemberDescrObject *)descriptor)->d_member->offset == at;
    }
    """
    object tgx_blank(PyTypeObject *type)
    bint tgx_slot_at(object descriptor, Py_ssize_t at)

cdef type VALUE = None
cdef type NODE = None
cdef tuple _ONE = (TENSOR,)
cdef object _ZERO = 0


def laid_out(type cls):
    """Decorator of the classes Value and Node: their slots lie where compiled code looks for them."""
    global VALUE, NODE
    cdef Py_ssize_t at = sizeof(PyObject)
    for name in sorted(cls.__slots__):
        if not tgx_slot_at(getattr(cls, name), at):
            raise ImportError(f"{cls.__name__}.{name} does not lie {at} bytes behind the head of an object")
        at += sizeof(PyObject *)
    if at == sizeof(graph_value):
        VALUE = cls
    elif at == sizeof(graph_node):
        NODE = cls
    else:
        raise ImportError(f"{cls.__name__} has other slots than compiled code knows")
    return cls


cdef inline PyObject *owned(object o):
    Py_INCREF(o)
    return <PyObject *>o


cdef object new_value(object name, object type, object node, object hint):
    made = tgx_blank(<PyTypeObject *>VALUE)
    cdef graph_value *v = <graph_value *>made
    v.name, v.type, v.node, v.hint = owned(name), owned(type), owned(node), owned(hint)
    return made


cdef object new_node(object op, tuple args, tuple blocks, object line, object version, object owner):
    made = tgx_blank(<PyTypeObject *>NODE)
    cdef graph_node *n = <graph_node *>made
    n.op, n.args, n.blocks, n.line = owned(op), owned(args), owned(blocks), owned(line)
    n.version, n.owner, n.outputs = owned(version), owned(owner), owned(())
    n.seq, n.derives = owned(_ZERO), owned(_ZERO)
    return made


cdef object copy_of(object node, tuple args, tuple blocks):
    cdef graph_node *old = looked_at(node)
    made = tgx_blank(<PyTypeObject *>NODE)
    cdef graph_node *n = <graph_node *>made
    n.op, n.args, n.blocks, n.line = owned(there(old.op)), owned(args), owned(blocks), owned(there(old.line))
    n.version, n.owner, n.outputs = owned(there(old.version)), owned(there(old.owner)), owned(())
    n.seq, n.derives = owned(there(old.seq)), owned(there(old.derives))
    return made


cdef class Names:
    """The names of a graph's values, and how nodes with new ones are made."""

    def __init__(self):
        self._names, self._count = set(), 0

    def value(self, type=TENSOR, node=None, hint=None, name=None):
        """A new Value with a name that no other has, the wanted one where it is free."""
        if name is None:
            return self.another(type, node, hint)
        if name in self._names:
            name = self.free(name)
        self._names.add(name)
        return new_value(name, type, node, hint)

    cdef object another(self, object type, object node, object hint):
        self._count += 1
        name = str(self._count)
        if name in self._names:
            name = self.free(name)
        self._names.add(name)
        return new_value(name, type, node, hint)

    cdef object free(self, str name):
        cdef Py_ssize_t number = 1
        while f"{name}.{number}" in self._names:
            number += 1
        return f"{name}.{number}"

    def know(self, value):
        """Let no new value have the name of this one, which came from elsewhere."""
        self._names.add(value.name)
        return value

    def make(self, block, op, args, types=_ONE, hints=None, blocks=(), line="", version=1, owner="tinygrad_ext"):
        """Append a node to a block; returns it, with outputs of these types."""
        cdef Py_ssize_t i, n = len(types)
        cdef tuple outputs = PyTuple_New(n)
        node = new_node(op, tuple(args), tuple(blocks), line, version, owner)
        for i in range(n):
            value = self.another(types[i], node, hints[i] if hints else None)
            Py_INCREF(value)
            PyTuple_SET_ITEM(outputs, i, value)
        node.outputs = outputs
        (<list>block.nodes).append(node)
        return node
