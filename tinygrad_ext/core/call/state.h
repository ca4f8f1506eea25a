/* What a thread has switched on. One word decides whether a call may take the short way. */
#ifndef TGX_STATE_H
#define TGX_STATE_H
#include <Python.h>
#include <stdint.h>

enum {
    TGX_MODES = 1 << 0,          /* some mode sees calls */
    TGX_LEVELS = 1 << 1,         /* some level sees operations */
    TGX_NO_SUBCLASS = 1 << 8,    /* DisableTorchFunctionSubclass */
    TGX_NO_MODES = 1 << 9,       /* DisableTorchFunction: modes are off too */
    TGX_SKIP_ONE = 1 << 10,      /* redispatch_function: the next call is not asked about */
    TGX_NO_DISPATCH = 1 << 11,   /* handlers of __torch_dispatch__ are off */
};

typedef struct {
    uint32_t flags;
    uint32_t below;              /* depth inside composites and Python kernels: nobody is asked about the calls there */
    uint8_t no_grad;
    uint8_t inference;
    uint8_t anomaly;             /* 1 on, 2 on and looking for NaN */
    uint8_t in_forward;          /* inside the forward of a Function that is recorded: results are marked DERIVED */
    int32_t active;              /* how many levels of the stack, from below, see the next operation */
    PyObject *modes;             /* ModeStack, or NULL */
    PyObject *levels;            /* list of the thread's levels, or NULL: none yet */
    PyObject *task;              /* the innermost backward pass, borrowed; NULL: none */
    PyObject *saved_hooks;       /* (pack, unpack, the hooks around these or None); NULL: none */
    PyObject *saved_refusal;     /* why hooks are refused, or NULL */
    PyObject *slices;            /* the CopySlices whose node runs now, borrowed; NULL: none */
    PyObject *instead;           /* what runs in the place of the next kernel, borrowed; NULL: the kernel */
} tgx_state;
#endif
