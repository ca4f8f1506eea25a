/* Lets a subclass of Tensor keep Tensor's own operator slots.
 *
 * Python gives a subclass generic slots, which look `__add__` up by name, because the methods of Tensor are not slot
 * wrappers. Then `tensor - subclass` would arrive as the subclass's `__rsub__`, and a refused operand as a TypeError
 * instead of NotImplemented. A slot is kept only where the class found no method of its own; assigning one later
 * makes Python set the generic slot again. */
#ifndef TGX_INHERIT_SLOTS_H
#define TGX_INHERIT_SLOTS_H
#include <Python.h>
#include <stddef.h>
#include <string.h>

#define TGX_SLOT_(field, ...) {offsetof(PyNumberMethods, field), {__VA_ARGS__}}
static const struct { size_t at; const char *names[2]; } tgx_number_slots[] = {
    TGX_SLOT_(nb_add, "__add__", "__radd__"), TGX_SLOT_(nb_subtract, "__sub__", "__rsub__"),
    TGX_SLOT_(nb_multiply, "__mul__", "__rmul__"), TGX_SLOT_(nb_remainder, "__mod__", "__rmod__"),
    TGX_SLOT_(nb_true_divide, "__truediv__", "__rtruediv__"), TGX_SLOT_(nb_power, "__pow__", "__rpow__"),
    TGX_SLOT_(nb_floor_divide, "__floordiv__", "__rfloordiv__"), TGX_SLOT_(nb_and, "__and__", "__rand__"),
    TGX_SLOT_(nb_or, "__or__", "__ror__"), TGX_SLOT_(nb_xor, "__xor__", "__rxor__"),
    TGX_SLOT_(nb_lshift, "__lshift__", "__rlshift__"), TGX_SLOT_(nb_rshift, "__rshift__", "__rrshift__"),
    TGX_SLOT_(nb_matrix_multiply, "__matmul__", "__rmatmul__"),
    TGX_SLOT_(nb_inplace_add, "__iadd__"), TGX_SLOT_(nb_inplace_subtract, "__isub__"),
    TGX_SLOT_(nb_inplace_multiply, "__imul__"), TGX_SLOT_(nb_inplace_remainder, "__imod__"),
    TGX_SLOT_(nb_inplace_true_divide, "__itruediv__"), TGX_SLOT_(nb_inplace_power, "__ipow__"),
    TGX_SLOT_(nb_inplace_floor_divide, "__ifloordiv__"), TGX_SLOT_(nb_inplace_and, "__iand__"),
    TGX_SLOT_(nb_inplace_or, "__ior__"), TGX_SLOT_(nb_inplace_xor, "__ixor__"),
    TGX_SLOT_(nb_inplace_lshift, "__ilshift__"), TGX_SLOT_(nb_inplace_rshift, "__irshift__"),
    TGX_SLOT_(nb_negative, "__neg__"), TGX_SLOT_(nb_positive, "__pos__"), TGX_SLOT_(nb_absolute, "__abs__"),
    TGX_SLOT_(nb_invert, "__invert__"),
};

/* 1 when cls finds for each name what base finds, 0 when it has one of its own, -1 with an error. */
static int tgx_same_methods(PyTypeObject *base, PyTypeObject *cls, const char *const *names, int n) {
    for (int i = 0; i < n && names[i] != NULL; i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        if (name == NULL) return -1;
        int same = _PyType_Lookup(base, name) == _PyType_Lookup(cls, name);
        Py_DECREF(name);
        if (!same) return 0;
    }
    return 1;
}

static int tgx_inherit_slots(PyObject *base_, PyObject *cls_) {
    static const char *const compare[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
    static const char *const item[] = {"__getitem__"};
    static const char *const items[] = {"__setitem__", "__delitem__"};
    PyTypeObject *base = (PyTypeObject *)base_, *cls = (PyTypeObject *)cls_;
    int same;
    for (size_t i = 0; i < sizeof tgx_number_slots / sizeof *tgx_number_slots; i++) {
        size_t at = tgx_number_slots[i].at;
        if ((same = tgx_same_methods(base, cls, tgx_number_slots[i].names, 2)) < 0) return -1;
        if (same) memcpy((char *)cls->tp_as_number + at, (char *)base->tp_as_number + at, sizeof(binaryfunc));
    }
    if ((same = tgx_same_methods(base, cls, compare, 6)) < 0) return -1;
    if (same) cls->tp_richcompare = base->tp_richcompare;
    if ((same = tgx_same_methods(base, cls, item, 1)) < 0) return -1;
    if (same) cls->tp_as_mapping->mp_subscript = base->tp_as_mapping->mp_subscript;
    if ((same = tgx_same_methods(base, cls, items, 2)) < 0) return -1;
    if (same) cls->tp_as_mapping->mp_ass_subscript = base->tp_as_mapping->mp_ass_subscript;
    return 0;
}
#endif
