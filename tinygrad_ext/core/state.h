/* What a thread has switched on. One word decides whether a call may take the short way. */
#ifndef TGX_STATE_H
#define TGX_STATE_H
#include <Python.h>
#include <stdint.h>

enum {
    TGX_SLOT_OVERRIDE, TGX_SLOT_TRANSFORM, TGX_SLOT_TRACER, TGX_SLOT_PROFILER, TGX_SLOT_AUTOGRAD, TGX_NSLOTS
};
enum {
    TGX_SLOT_BITS = (1 << TGX_NSLOTS) - 1,
    TGX_NO_SUBCLASS = 1 << 8,    /* DisableTorchFunctionSubclass */
    TGX_NO_MODES = 1 << 9,       /* DisableTorchFunction: the override slot is off too */
    TGX_SKIP_ONE = 1 << 10,      /* redispatch_function: the next call is not asked about */
};

typedef struct {
    uint32_t flags;
    uint32_t below;              /* depth inside composites and Python kernels: no slot sees the calls there */
    uint8_t no_grad;
    uint8_t inference;
    uint8_t anomaly;             /* 1 on, 2 on and looking for NaN */
    uint8_t in_forward;          /* inside the forward of a Function that is recorded: results are marked DERIVED */
    PyObject *handler[TGX_NSLOTS];
    PyObject *task;              /* the innermost backward pass, borrowed; NULL: none */
    PyObject *saved_hooks;       /* (pack, unpack, the hooks around these or None); NULL: none */
    PyObject *saved_refusal;     /* why hooks are refused, or NULL */
} tgx_state;
#endif
