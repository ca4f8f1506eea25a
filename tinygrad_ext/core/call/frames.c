/* CPython 3.11 to 3.13 keep interpreter frames that become Python objects only on request; reading them in place
 * costs a few nanoseconds where PyThreadState_GetFrame costs fifty. Their layout is internal, so each version has
 * its branch, and every other version takes the public, slower way. */
#include <Python.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && !defined(PYPY_VERSION)
#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#define TGX_INNER_FRAMES 1
#endif
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#define PyFrame_GetBack(f) ((PyFrameObject *)(Py_XINCREF((f)->f_back), (f)->f_back))
#endif
#include "frames.h"

static PyObject *folder = NULL;

void tgx_set_package_folder(PyObject *text) {
    Py_XINCREF(text);
    folder = text;
}

enum { SEEN_BITS = 8 };
static struct { PyObject *file; int ours; } seen[1 << SEEN_BITS];

/* Code objects repeat, so the answer is kept in a small table, with the name of the file that it is about: another code
   object may come to lie where one was. */
static int is_ours(PyCodeObject *code) {
    /* low bits of addresses collide: code objects of one module lie a few hundred bytes apart */
    size_t k = (size_t)((uint64_t)(size_t)code * 0x9E3779B97F4A7C15u >> (64 - SEEN_BITS));
    if (seen[k].file != code->co_filename) {
        int ours = folder != NULL && PyUnicode_Tailmatch(code->co_filename, folder, 0, PY_SSIZE_T_MAX, -1) == 1;
        if (PyErr_Occurred()) PyErr_Clear();
#ifdef Py_GIL_DISABLED
        return ours;            /* threads would write to the table at once */
#endif
        Py_INCREF(code->co_filename);
        Py_XSETREF(seen[k].file, code->co_filename);
        seen[k].ours = ours;
    }
    return seen[k].ours;
}

#ifdef TGX_INNER_FRAMES
static PyCodeObject *code_of(_PyInterpreterFrame *f) {
#if PY_VERSION_HEX >= 0x030D0000
    return PyCode_Check(f->f_executable) ? (PyCodeObject *)f->f_executable : NULL;
#else
    return f->f_code;
#endif
}

tgx_place tgx_here(void) {
    tgx_place place = {NULL, 0};
#if PY_VERSION_HEX >= 0x030D0000
    _PyInterpreterFrame *f = PyThreadState_GET()->current_frame;
#else
    _PyInterpreterFrame *f = PyThreadState_GET()->cframe->current_frame;
#endif
    for (int depth = 0; f != NULL && depth < 64; f = f->previous, depth++) {
#if PY_VERSION_HEX >= 0x030C0000
        if (f->owner == FRAME_OWNED_BY_CSTACK) continue;
#endif
        PyCodeObject *code = code_of(f);
        if (code == NULL || is_ours(code)) continue;
        Py_INCREF(code);
        place.code = (PyObject *)code;
        place.lasti = _PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT);
        break;
    }
    return place;
}

int tgx_stack(tgx_place *to, int most) {
    int found = 0;
#if PY_VERSION_HEX >= 0x030D0000
    _PyInterpreterFrame *f = PyThreadState_GET()->current_frame;
#else
    _PyInterpreterFrame *f = PyThreadState_GET()->cframe->current_frame;
#endif
    for (int depth = 0; f != NULL && depth < 256 && found < most; f = f->previous, depth++) {
#if PY_VERSION_HEX >= 0x030C0000
        if (f->owner == FRAME_OWNED_BY_CSTACK) continue;
#endif
        PyCodeObject *code = code_of(f);
        if (code == NULL || is_ours(code)) continue;
        to[found].code = (PyObject *)code;
        to[found++].lasti = _PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT);
    }
    return found;
}

int tgx_called_by_us(void) {
#if PY_VERSION_HEX >= 0x030D0000
    _PyInterpreterFrame *f = PyThreadState_GET()->current_frame;
#else
    _PyInterpreterFrame *f = PyThreadState_GET()->cframe->current_frame;
#endif
#if PY_VERSION_HEX >= 0x030C0000
    while (f != NULL && f->owner == FRAME_OWNED_BY_CSTACK) f = f->previous;
#endif
    return f != NULL && code_of(f) != NULL && is_ours(code_of(f));
}
#else
int tgx_called_by_us(void) {
    PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
    if (f == NULL) return 0;
    PyCodeObject *code = PyFrame_GetCode(f);
    int ours = is_ours(code);
    Py_DECREF(code);
    Py_DECREF(f);
    return ours;
}

tgx_place tgx_here(void) {
    tgx_place place = {NULL, 0};
    PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
    while (f != NULL) {
        PyCodeObject *code = PyFrame_GetCode(f);
        if (!is_ours(code)) {
            place.code = (PyObject *)code;
#if PY_VERSION_HEX >= 0x030B0000
            place.lasti = PyFrame_GetLasti(f);
#else
            place.lasti = f->f_lasti * 2;
#endif
            Py_DECREF(f);
            return place;
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    return place;
}

int tgx_stack(tgx_place *to, int most) {
    int found = 0;
    PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
    while (f != NULL && found < most) {
        PyCodeObject *code = PyFrame_GetCode(f);    /* the frame, which stays where it is, holds it too */
        if (!is_ours(code)) {
            to[found].code = (PyObject *)code;
#if PY_VERSION_HEX >= 0x030B0000
            to[found++].lasti = PyFrame_GetLasti(f);
#else
            to[found++].lasti = f->f_lasti * 2;
#endif
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    Py_XDECREF(f);
    return found;
}
#endif

int tgx_line_of(tgx_place place) { return PyCode_Addr2Line((PyCodeObject *)place.code, place.lasti); }
