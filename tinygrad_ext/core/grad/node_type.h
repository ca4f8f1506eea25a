/* Lets a node take on the type of its op when it is shown: both have the same fields, and a type of one's own for each
 * node from the start would cost its allocation the freelist. */
#ifndef TGX_NODE_TYPE_H
#define TGX_NODE_TYPE_H
#include <Python.h>

/* The struct that Cython makes of the class; a macro, because it is declared after this header. */
#define TGX_NODE struct __pyx_obj_12tinygrad_ext_4core_4grad_4node_Node
#define TGX_NODE_LINK ((Py_ssize_t)offsetof(TGX_NODE, link))

static void tgx_become(PyObject *o, PyObject *type) {
    PyTypeObject *before = Py_TYPE(o);
    Py_INCREF(type);
    Py_SET_TYPE(o, (PyTypeObject *)type);
    if (before->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(before);
}
#endif
