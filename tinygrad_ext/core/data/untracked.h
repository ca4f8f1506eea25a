/* Allocates the objects of one layout outside of the garbage collector's lists, and keeps the memory of freed ones.
 *
 * A freelist of Cython's would put each object into those lists, where it costs more than its allocation. */
#ifndef TGX_UNTRACKED_H
#define TGX_UNTRACKED_H
#include "tracking.h"
#include <string.h>

enum { TGX_SPARE = CYTHON_USE_FREELISTS ? 512 : 0 };

/* A type whose instances start untracked, and the memory of those that went. */
typedef struct {
    PyTypeObject *type;
    int nspare;
    PyObject *spare[TGX_SPARE + 1];
} tgx_kind;

/* Of the module that includes this. */
static tgx_link tgx_ring = {&tgx_ring, &tgx_ring};
static Py_ssize_t tgx_link_offset;
static tgx_kind tgx_kinds[4];

static tgx_kind *tgx_kind_of(PyTypeObject *type) {
    for (int i = 0; i < 4; i++)
        if (tgx_kinds[i].type == type) return &tgx_kinds[i];
    return NULL;
}

static PyObject *tgx_alloc(PyTypeObject *type, Py_ssize_t n) {
    PyObject *o;
    tgx_kind *kind = tgx_kind_of(type);
    if (kind == NULL) return PyType_GenericAlloc(type, n);      /* a subclass inherits this function */
    if (kind->nspare) {
        o = kind->spare[--kind->nspare];
        (void)PyObject_Init(o, type);
    } else {
        o = PyObject_GC_New(PyObject, type);
        if (o == NULL) return NULL;
    }
    memset((char *)o + sizeof(PyObject), 0, type->tp_basicsize - sizeof(PyObject));
    tgx_link_into(&tgx_ring, (tgx_link *)((char *)o + tgx_link_offset));
    return o;
}

static void tgx_free(void *o) {
    tgx_kind *kind = tgx_kind_of(Py_TYPE(o));
    if (kind != NULL && kind->nspare < TGX_SPARE) kind->spare[kind->nspare++] = o;
    else PyObject_GC_Del(o);
}

/* Lets instances of exactly this type start untracked. Types made in Python allocate for themselves. */
static int tgx_start_untracked(PyObject *type, Py_ssize_t link_offset) {
    PyTypeObject *t = (PyTypeObject *)type;
    int i = 0;
    while (i < 4 && tgx_kinds[i].type != NULL) i++;
    if (i == 4) {
        PyErr_SetString(PyExc_RuntimeError, "there is room for four types whose instances start untracked");
        return -1;
    }
    tgx_kinds[i].type = t;
    tgx_link_offset = link_offset;
    t->tp_alloc = tgx_alloc;
    t->tp_free = tgx_free;
    return 0;
}
#endif
