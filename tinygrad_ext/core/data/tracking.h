/* The link by which an object that the garbage collector does not know hangs in our own ring; see tracking.pyx. */
#ifndef TGX_TRACKING_H
#define TGX_TRACKING_H
#include <Python.h>

typedef struct tgx_link { struct tgx_link *next, *before; } tgx_link;

static inline void tgx_link_into(tgx_link *ring, tgx_link *l) {
    l->next = ring;
    l->before = ring->before;
    ring->before->next = l;
    ring->before = l;
}

static inline void tgx_unlink(tgx_link *l) {
    if (l->next == NULL) return;
    l->next->before = l->before;
    l->before->next = l->next;
    l->next = NULL;
}
/* Whether the collector could know objects of this kind at all. */
static inline int tgx_is_gc(PyObject *o) { return PyType_IS_GC(Py_TYPE(o)); }
#endif
