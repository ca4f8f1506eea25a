/* Lets an object whose last reference went keep its memory, to be used again by who alone knows of it. */
#ifndef TGX_SLEEP_H
#define TGX_SLEEP_H
#include <Python.h>

/* Whether nobody could notice: not in builds that look for memory used after it went. */
static inline int tgx_may_sleep(PyObject *o) {
    return CYTHON_USE_FREELISTS && *(PyObject **)((char *)o + Py_TYPE(o)->tp_weaklistoffset) == NULL;
}

/* One reference to it, the caller's. */
static inline void tgx_wake(PyObject *o) { _Py_NewReference(o); }
#endif
