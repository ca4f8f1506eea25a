/* Gives an extension type a tp_dealloc of its own, and returns the one it had. The new one ends with that, or, where it
 * lets go of all fields that the type adds to its base, with the base's: TGX_DEALLOC(base)(o). */
#ifndef TGX_OWN_DEALLOC_H
#define TGX_OWN_DEALLOC_H
#include <Python.h>

/* The struct that Cython makes of the class; a macro, because it is declared after this header. */
#define TGX_STORAGE struct __pyx_obj_12tinygrad_ext_4core_4data_7storage_Storage

#define TGX_DEALLOC(type) (((PyTypeObject *)(type))->tp_dealloc)

static destructor tgx_own_dealloc(PyObject *type, destructor dealloc) {
    destructor before = ((PyTypeObject *)type)->tp_dealloc;
    ((PyTypeObject *)type)->tp_dealloc = dealloc;
    return before;
}
#endif
