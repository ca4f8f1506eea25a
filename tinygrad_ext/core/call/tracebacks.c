/* Takes the library's frames off a traceback; tracebacks.h says when. */
#define TGX_PLAIN_TRACEBACKS
#include "tracebacks.h"
#include "own_tracebacks.h"

enum { CHAIN = 64 };        /* exceptions looked at along __context__ and __cause__ */

static PyObject *folder = NULL, *between = NULL;

/* Whether a frame is the library's; so is one of contextlib that a frame of ours (`after`) called. */
static int is_ours(PyTracebackObject *tb, int *after) {
    PyCodeObject *code = PyFrame_GetCode(tb->tb_frame);
    int ours = PyUnicode_Tailmatch(code->co_filename, folder, 0, PY_SSIZE_T_MAX, -1) == 1
               || (*after && PyUnicode_Tailmatch(code->co_filename, between, 0, PY_SSIZE_T_MAX, 1) == 1);
    Py_DECREF(code);
    return *after = ours;
}

/* Takes the reference to a traceback and gives one to what is left of it, which may be NULL. */
static PyTracebackObject *without_ours(PyTracebackObject *tb) {
    PyTracebackObject *next, *at;
    int after = 0;
    while (tb != NULL && is_ours(tb, &after)) {
        next = tb->tb_next;
        Py_XINCREF(next);
        Py_DECREF(tb);
        tb = next;
    }
    for (at = tb; at != NULL && (next = at->tb_next) != NULL;) {
        if (is_ours(next, &after)) {
            at->tb_next = next->tb_next;
            Py_XINCREF(at->tb_next);
            Py_DECREF(next);
        } else {
            at = next;
        }
    }
    return tb;
}

static void trim_exception(PyObject *error) {
    PyObject *tb = PyException_GetTraceback(error);
    if (tb != NULL && PyTraceBack_Check(tb)) {      /* None, where one was taken away */
        tb = (PyObject *)without_ours((PyTracebackObject *)tb);
        PyException_SetTraceback(error, tb == NULL ? Py_None : tb);
    }
    Py_XDECREF(tb);
}

/* The exceptions that this one came from: while they were handled, their frames were not passed on to any caller. */
static void trim_chain(PyObject *error) {
    Py_INCREF(error);
    for (int i = 0; i < CHAIN; i++) {
        PyObject *cause = PyException_GetCause(error);
        PyObject *before = cause != NULL ? cause : PyException_GetContext(error);
        Py_DECREF(error);
        error = before;
        if (error == NULL) return;
        trim_exception(error);
    }
    Py_DECREF(error);
}

static void trim(void) {
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *error = PyErr_GetRaisedException();
    if (error == NULL) return;
    trim_exception(error);
    trim_chain(error);
    PyErr_SetRaisedException(error);
#else
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    if (tb != NULL && PyTraceBack_Check(tb)) tb = (PyObject *)without_ours((PyTracebackObject *)tb);
    if (value != NULL && PyExceptionInstance_Check(value)) trim_chain(value);
    PyErr_Restore(type, value, tb);
#endif
}

static tgx_tracebacks table = {1, trim, NULL};

static PyObject *make_stand_in(void) {
    PyObject *type = NULL, *value = NULL, *tb = NULL, *globals = PyDict_New();
    PyObject *file = PyUnicode_FromFormat("%Ucore/tracebacks.c", folder);
    const char *text = file == NULL ? NULL : PyUnicode_AsUTF8(file);
    PyCodeObject *code = text == NULL ? NULL : PyCode_NewEmpty(text, "tinygrad_ext", 1);
    PyFrameObject *frame = globals == NULL || code == NULL ? NULL : PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    if (frame != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "");    /* tracebacks are made on exceptions only */
        PyTraceBack_Here(frame);
        PyErr_Fetch(&type, &value, &tb);
        Py_XDECREF(type);
        Py_XDECREF(value);
    }
    Py_XDECREF(frame);
    Py_XDECREF(code);
    Py_XDECREF(file);
    Py_XDECREF(globals);
    return tb;
}

int tgx_set_own_folder(PyObject *text) {
    PyObject *shared = PyInterpreterState_GetDict(PyInterpreterState_Get()), *capsule;
    if (between == NULL && (between = PyUnicode_FromString("/contextlib.py")) == NULL) return -1;
    Py_INCREF(text);
    Py_XSETREF(folder, text);
    Py_XSETREF(table.stand_in, make_stand_in());
    if (table.stand_in == NULL || shared == NULL) return -1;
    capsule = PyCapsule_New(&table, TGX_TRACEBACKS, NULL);
    if (capsule == NULL) return -1;
    int bad = PyDict_SetItemString(shared, TGX_TRACEBACKS, capsule);
    Py_DECREF(capsule);
    return bad;
}

void tgx_show_all_frames(int full) { table.full = full || folder == NULL; }
int tgx_all_frames_shown(void) { return table.full; }
