/* Tracebacks show the user's frames only.
 *
 * Cython makes a frame for each compiled function that an exception leaves: ten of them under the user's one line, of
 * files that are not installed. The build includes this header before every generated file (see setup.py), and where
 * Cython asks for the frame, the library's own frames are taken off the traceback instead: those of its Python files
 * too, which the exception passed below the compiled function. Frames of other code stay, in order. This costs less
 * than making the frame. Trimming at public entry points alone, by a wrapper around each, was the other way: it slows
 * every call and not only those that fail.
 *
 * The switch and the code stand once, in tracebacks.c; the modules find them in the interpreter's dict. */
#ifndef TGX_TRACEBACKS_H
#define TGX_TRACEBACKS_H
#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <frameobject.h>

#define TGX_TRACEBACKS "tinygrad_ext.core.tracebacks"

typedef struct {
    int full;               /* whether all frames are shown */
    void (*trim)(void);     /* takes the library's frames off the exception that is set */
    PyObject *stand_in;     /* a traceback with one frame of the library, for an exception that has none */
} tgx_tracebacks;

/* NULL while the package is being put together. */
static const tgx_tracebacks *tgx_find_tracebacks(void) {
    static const tgx_tracebacks *found = NULL;
    if (found == NULL) {
        PyObject *type, *value, *tb, *shared, *capsule;
        PyErr_Fetch(&type, &value, &tb);
        shared = PyInterpreterState_GetDict(PyInterpreterState_Get());
        capsule = shared == NULL ? NULL : PyDict_GetItemString(shared, TGX_TRACEBACKS);
        if (capsule != NULL) found = (const tgx_tracebacks *)PyCapsule_GetPointer(capsule, TGX_TRACEBACKS);
        PyErr_Restore(type, value, tb);
    }
    return found;
}

/* For code in C that an exception leaves towards the user. */
static void tgx_leave(void) {
    const tgx_tracebacks *t = tgx_find_tracebacks();
    if (t != NULL && !t->full) t->trim();
}

static PyFrameObject *tgx_new_frame(PyThreadState *ts, PyCodeObject *code, PyObject *globals, PyObject *locals) {
    const tgx_tracebacks *t = tgx_find_tracebacks();
    if (t == NULL || t->full) return PyFrame_New(ts, code, globals, locals);
    t->trim();
    return NULL;
}

/* What Cython makes of `except` counts on a traceback being there, and lets go of it without looking. */
static PyObject *tgx_stand_in(void) {
    const tgx_tracebacks *t = tgx_find_tracebacks();
    if (t == NULL) return NULL;
    Py_INCREF(t->stand_in);
    return t->stand_in;
}

#if PY_VERSION_HEX >= 0x030C0000
static PyObject *tgx_traceback_of(PyObject *error) {
    PyObject *tb = PyException_GetTraceback(error);
    return tb != NULL ? tb : tgx_stand_in();
}
#else
static void tgx_normalize(PyObject **type, PyObject **value, PyObject **tb) {
    PyErr_NormalizeException(type, value, tb);
    if (*type != NULL && *tb == NULL) *tb = tgx_stand_in();
}
#endif

#if !defined(CYTHON_TRACE) && !defined(TGX_PLAIN_TRACEBACKS)    /* line tracing has uses of its own for frames */
#define PyFrame_New tgx_new_frame
#if PY_VERSION_HEX >= 0x030C0000
#define PyException_GetTraceback tgx_traceback_of
#else
#define PyErr_NormalizeException tgx_normalize
#endif
#endif
#endif
