"""Values and Nodes (`ir`) as compiled code reads and makes them: by the places of their `__slots__`."""
from cpython.object cimport PyObject

cdef extern from *:
    """
    typedef struct { PyObject_HEAD PyObject *hint, *name, *node, *type; } graph_value;     /* in the order of their names, */
    typedef struct {                                                                     /* as Python lays them out */
        PyObject_HEAD PyObject *args, *blocks, *derives, *line, *op, *outputs, *owner, *seq, *version;
    } graph_node;
    """
    ctypedef struct graph_value:
        PyObject *hint
        PyObject *name
        PyObject *node
        PyObject *type
    ctypedef struct graph_node:
        PyObject *args
        PyObject *blocks
        PyObject *derives
        PyObject *line
        PyObject *op
        PyObject *outputs
        PyObject *owner
        PyObject *seq
        PyObject *version

cdef type VALUE, NODE       # the classes

cdef inline graph_node *looked_at(object node) except NULL:
    if type(node) is not NODE:
        raise TypeError(f"a block of a graph holds Nodes, not a {type(node).__name__}")
    return <graph_node *>node

cdef inline object there(PyObject *slot):
    """What stands in a slot, which somebody may have deleted."""
    if slot == NULL:
        raise AttributeError("a Node or Value of a graph lacks one of its attributes, which was deleted")
    return <object>slot

cdef inline tuple row_of(PyObject *row):
    """What stands in a node, which a pass of a plugin may have made a list of."""
    found = there(row)
    return <tuple>found if type(found) is tuple else tuple(found)

cdef inline object hint_of(object value):           # of what is known to be a Value
    return there((<graph_value *>value).hint)

cdef inline object type_of(object value):
    return there((<graph_value *>value).type) if type(value) is VALUE else value.type

cdef inline tuple args_of(object node):
    return row_of(looked_at(node).args)

cdef inline tuple outputs_of(object node):
    return row_of(looked_at(node).outputs)

cdef inline tuple blocks_of(object node):
    return row_of(looked_at(node).blocks)

cdef inline str op_of(object node):
    return <str?>there(looked_at(node).op)

cdef object new_value(object name, object type, object node, object hint)
cdef object new_node(object op, tuple args, tuple blocks, object line, object version, object owner)    # without outputs
cdef object copy_of(object node, tuple args, tuple blocks)      # such a node of the same op, line and numbers

cdef class Names:               # of the values of a graph
    cdef public set _names
    cdef public Py_ssize_t _count
    cdef object another(self, object type, object node, object hint)    # a Value of a new name
    cdef object free(self, str name)
