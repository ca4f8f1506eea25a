/* Gives up a reference; a chain in which freeing one thing frees the next takes a few frames of the C stack.
 *
 * CPython's trashcan does this for types whose own tp_dealloc says so. Here the links run through a Storage, which the
 * collector does not know, and through Tensors, where a look at two fields is all that the common case may cost. */
#ifndef TGX_LET_GO_H
#define TGX_LET_GO_H
#include <Python.h>

enum { TGX_DEEPEST = 30 };
typedef struct tgx_waiting { PyObject *object; struct tgx_waiting *next; } tgx_waiting;
/* In the static block of the thread, as its state is: see dispatch.pyx. */
#ifdef __GLIBC__
#define TGX_STATIC_TLS __attribute__((tls_model("initial-exec")))
#else
#define TGX_STATIC_TLS
#endif
TGX_STATIC_TLS static __thread int tgx_depth;
TGX_STATIC_TLS static __thread tgx_waiting *tgx_waits;

static int tgx_postpone(PyObject *o) {
    tgx_waiting *w = malloc(sizeof *w);
    if (w == NULL) return 0;
    w->object = o;
    w->next = tgx_waits;
    tgx_waits = w;
    return 1;
}

static void tgx_let_go(PyObject *o) {
    tgx_waiting *w;
    if (o == NULL) return;
    if (tgx_depth >= TGX_DEEPEST && Py_REFCNT(o) == 1 && tgx_postpone(o)) return;
    tgx_depth++;
    Py_DECREF(o);
    while (tgx_depth == 1 && (w = tgx_waits) != NULL) {
        tgx_waits = w->next;
        o = w->object;
        free(w);
        Py_DECREF(o);
    }
    tgx_depth--;
}
#endif
