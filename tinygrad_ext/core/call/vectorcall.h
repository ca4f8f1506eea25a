/* Gives an extension type a vectorcall slot, which Cython has no spelling for. */
#ifndef TGX_VECTORCALL_H
#define TGX_VECTORCALL_H
#include <Python.h>

/* Python looks for `__call__` where it asks whether something can be called: unittest.mock for one. The slot came after the
 * type was made, so its wrapper is made by hand, from the one that functions have. */
static void tgx_show_call(PyTypeObject *t) {
    PyObject *function = PyObject_GetAttrString((PyObject *)&PyFunction_Type, "__call__");
    if (function && Py_TYPE(function) == &PyWrapperDescr_Type) {
        PyObject *own = PyDescr_NewWrapper(t, ((PyWrapperDescrObject *)function)->d_base, (void *)t->tp_call);
        if (own) PyDict_SetItemString(t->tp_dict, "__call__", own);
        Py_XDECREF(own);
    }
    Py_XDECREF(function);
    PyErr_Clear();
}

static void tgx_enable_vectorcall(PyObject *type, Py_ssize_t offset, int method) {
    PyTypeObject *t = (PyTypeObject *)type;
    t->tp_vectorcall_offset = offset;
    t->tp_call = PyVectorcall_Call;
    t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    if (method) t->tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    tgx_show_call(t);
    PyType_Modified(t);
}

/* Tensor and Parameter stay open as PyTorch's are: attributes can be set on the types. */
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
