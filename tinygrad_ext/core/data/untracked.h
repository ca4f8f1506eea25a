/* Allocates the objects of one layout outside of the garbage collector's lists, and keeps the memory of freed ones.
 *
 * A freelist of Cython's would put each object into those lists, where it costs more than its allocation. */
#ifndef TGX_UNTRACKED_H
#define TGX_UNTRACKED_H
#include "tracking.h"
#include <string.h>

enum { TGX_SPARE = CYTHON_USE_FREELISTS ? 512 : 0 };

/* Of the module that includes this. */
static tgx_link tgx_ring = {&tgx_ring, &tgx_ring};
static Py_ssize_t tgx_link_offset;
static PyTypeObject *tgx_types[4];
static PyTypeObject *tgx_frequent;          /* the type whose memory is kept */
static PyObject *tgx_spare[TGX_SPARE + 1];
static int tgx_nspare;

static int tgx_starts_untracked(PyTypeObject *type) {
    for (int i = 0; i < 4; i++)
        if (tgx_types[i] == type) return 1;
    return 0;
}

static PyObject *tgx_alloc(PyTypeObject *type, Py_ssize_t n) {
    PyObject *o;
    if (type == tgx_frequent && tgx_nspare) {
        o = tgx_spare[--tgx_nspare];
        (void)PyObject_Init(o, type);
    } else {
        if (!tgx_starts_untracked(type)) return PyType_GenericAlloc(type, n);   /* a subclass inherits this function */
        o = PyObject_GC_New(PyObject, type);
        if (o == NULL) return NULL;
    }
    memset((char *)o + sizeof(PyObject), 0, type->tp_basicsize - sizeof(PyObject));
    tgx_link_into(&tgx_ring, (tgx_link *)((char *)o + tgx_link_offset));
    return o;
}

static void tgx_free(void *o) {
    if (Py_TYPE(o) == tgx_frequent && tgx_nspare < TGX_SPARE) tgx_spare[tgx_nspare++] = o;
    else PyObject_GC_Del(o);
}

/* Lets instances of exactly this type start untracked. Types made in Python allocate for themselves. */
static int tgx_start_untracked(PyObject *type, Py_ssize_t link_offset, int frequent) {
    PyTypeObject *t = (PyTypeObject *)type;
    int i = 0;
    while (i < 4 && tgx_types[i] != NULL) i++;
    if (i == 4) {
        PyErr_SetString(PyExc_RuntimeError, "there is room for four types whose instances start untracked");
        return -1;
    }
    tgx_types[i] = t;
    tgx_link_offset = link_offset;
    t->tp_alloc = tgx_alloc;
    t->tp_free = tgx_free;
    if (frequent) tgx_frequent = t;
    return 0;
}
#endif
