/* Gives an extension type a vectorcall slot, which Cython has no spelling for. */
#ifndef TGX_VECTORCALL_H
#define TGX_VECTORCALL_H
#include <Python.h>

static void tgx_enable_vectorcall(PyObject *type, Py_ssize_t offset, int method) {
    PyTypeObject *t = (PyTypeObject *)type;
    t->tp_vectorcall_offset = offset;
    t->tp_call = PyVectorcall_Call;
    t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    if (method) t->tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    PyType_Modified(t);
}

/* Tensor stays open as PyTorch's is: attributes can be set on the type. */
static void tgx_open_type(PyObject *type) {
#ifdef Py_TPFLAGS_IMMUTABLETYPE
    ((PyTypeObject *)type)->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
#endif
    PyType_Modified((PyTypeObject *)type);
}

/* Messages, reprs and pickles name a type by the place where users find it. `name` has to outlive the type. */
static void tgx_name_type(PyObject *type, const char *name) {
    ((PyTypeObject *)type)->tp_name = name;
    PyType_Modified((PyTypeObject *)type);
}
#endif
