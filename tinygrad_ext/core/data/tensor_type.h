/* What Cython has no spelling for in the type Tensor: its instance dict, and how an instance is freed.
 *
 * The dict is made when it is first written to.
 *
 * Cython's `cdef dict __dict__` makes a dict for every object, which doubles the cost of a small tensor. Here the
 * type gets a tp_dictoffset instead, pointing at an object member that starts as NULL. */
#ifndef TGX_TENSOR_TYPE_H
#define TGX_TENSOR_TYPE_H
#include <Python.h>

/* The struct that Cython makes of the class; a macro, because it is declared after this header. */
#define TGX_TENSOR struct __pyx_obj_12tinygrad_ext_4core_4data_6tensor_Tensor
#define TGX_DICT_OFFSET ((Py_ssize_t)offsetof(TGX_TENSOR, attributes))
#define TGX_LINK_OFFSET ((Py_ssize_t)offsetof(TGX_TENSOR, link))
#define TGX_OWNED(reference) (reference)
/* How many tensors that went are kept whole, for each size of their memory. */
enum { TGX_WHOLE = CYTHON_USE_FREELISTS ? 32 : 0 };
/* tp_new has put None there. */
#define TGX_START_NULL(self) do { \
        PyObject **place_ = &((TGX_TENSOR *)(self))->attributes; \
        Py_DECREF(*place_); \
        *place_ = NULL; \
    } while (0)

/* Whoever gets the dict, or sets it, may put anything into it: `tgx_on_dict` is told first. */
static void (*tgx_on_dict)(PyObject *);
static PyObject *tgx_get_dict(PyObject *o, void *context) {
    tgx_on_dict(o);
    return PyObject_GenericGetDict(o, context);
}
static int tgx_set_dict(PyObject *o, PyObject *value, void *context) {
    tgx_on_dict(o);
    return PyObject_GenericSetDict(o, value, context);
}

static int tgx_give_dict(PyObject *type, Py_ssize_t offset, void (*on_dict)(PyObject *)) {
    static PyGetSetDef def = {"__dict__", tgx_get_dict, tgx_set_dict, NULL, NULL};
    PyTypeObject *t = (PyTypeObject *)type;
    PyObject *descriptor = PyDescr_NewGetSet(t, &def);
    int code;
    tgx_on_dict = on_dict;
    if (descriptor == NULL) return -1;
    t->tp_dictoffset = offset;
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *dict = PyType_GetDict(t);
    code = PyDict_SetItemString(dict, "__dict__", descriptor);
    Py_DECREF(dict);
#else
    code = PyDict_SetItemString(t->tp_dict, "__dict__", descriptor);
#endif
    Py_DECREF(descriptor);
    PyType_Modified(t);
    return code;
}

/* A cleared dict must be NULL again, not the None that Cython's tp_clear leaves. */
static Py_ssize_t tgx_dict_place;
static inquiry tgx_plain_clear;
static int tgx_clear_with_dict(PyObject *o) {
    PyObject **place = (PyObject **)((char *)o + tgx_dict_place);
    int code = tgx_plain_clear(o);
    if (*place == Py_None) {
        *place = NULL;
        Py_DECREF(Py_None);
    }
    return code;
}
static void tgx_own_clear(PyObject *type, Py_ssize_t offset) {
    tgx_dict_place = offset;
    if (tgx_plain_clear == NULL) tgx_plain_clear = ((PyTypeObject *)type)->tp_clear;
    ((PyTypeObject *)type)->tp_clear = tgx_clear_with_dict;
}

#endif
