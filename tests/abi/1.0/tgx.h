/* tinygrad_ext for code in C, C++ and other languages: ops with derivatives, in a library that knows no Python.
 *
 * An extension exports one datum, tgx_extension_v1, which TGX_EXTENSION writes. The loader compares it with its own table
 * before it calls anything, and then calls `init`, which registers ops:
 *
 *     #include <tgx.h>
 *
 *     static int twice(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) { ... }
 *     static int init(tgx_ctx *c) { return tgx->register_op(c, &TGX_OP(.schema = "demo::twice(Tensor x) -> Tensor",
 *                                                                     .kernel = twice)); }
 *     TGX_EXTENSION("demo", "1.0", init)
 *
 * Nothing is linked against: all that an extension may call stands in the table `tgx`. What is built with this header
 * runs on every later 1.x. */
#ifndef TINYGRAD_EXT_TGX_H
#define TINYGRAD_EXT_TGX_H
#include <stddef.h>
#include <stdint.h>

#define TGX_MAJOR 1
#define TGX_MINOR 0            /* the newest table that this header describes */
#ifndef TGX_TARGET_MINOR
#define TGX_TARGET_MINOR 0     /* the oldest that the extension runs on; define it as 1 to use what came with 1.1 */
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tgx_ctx tgx_ctx;                /* one call: its errors and its memory */
typedef struct tgx_tensor tgx_tensor;
typedef struct tgx_node tgx_node;              /* a step of the backward graph */
typedef struct tgx_op tgx_op;
typedef struct tgx_generator tgx_generator;

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A dtype is DLPack's code, bits and lanes in one number: 0 stands for none. */
typedef uint32_t tgx_dtype;
#define TGX_DTYPE(code, bits) ((tgx_dtype)((code) | (bits) << 8 | 1u << 16))
#define TGX_INT8 TGX_DTYPE(0u, 8u)
#define TGX_INT16 TGX_DTYPE(0u, 16u)
#define TGX_INT32 TGX_DTYPE(0u, 32u)
#define TGX_INT64 TGX_DTYPE(0u, 64u)
#define TGX_UINT8 TGX_DTYPE(1u, 8u)
#define TGX_FLOAT16 TGX_DTYPE(2u, 16u)
#define TGX_FLOAT32 TGX_DTYPE(2u, 32u)
#define TGX_FLOAT64 TGX_DTYPE(2u, 64u)
#define TGX_BFLOAT16 TGX_DTYPE(4u, 16u)
#define TGX_COMPLEX64 TGX_DTYPE(5u, 64u)
#define TGX_COMPLEX128 TGX_DTYPE(5u, 128u)
#define TGX_BOOL8 TGX_DTYPE(6u, 8u)

enum { TGX_CPU = 1, TGX_EXTERNAL = 12, TGX_META = -1 };        /* device types: DLPack's, and tensors without elements */

/* A window on memory, laid out as a DLTensor (little endian). Strides count elements. Good while the tensor lives. */
typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    tgx_dtype dtype;
    const int64_t *shape, *strides;
    uint64_t byte_offset;      /* 0 in what the table fills */
} tgx_view;

enum tgx_kind {
    TGX_NONE,
    TGX_TENSOR, TGX_TENSORS,   /* t; ts, of which some may be NULL */
    TGX_INT, TGX_INTS,         /* i; is */
    TGX_FLOAT, TGX_FLOATS,     /* f; fs */
    TGX_BOOL, TGX_BOOLS,       /* i; is */
    TGX_COMPLEX, TGX_COMPLEXES,/* c; fs, real and imaginary parts in turn */
    TGX_STRING, TGX_STRINGS,   /* s, count bytes and a zero; ss */
    TGX_SCALAR_TYPE,           /* d */
    TGX_DEVICE, TGX_LAYOUT, TGX_MEMORY_FORMAT,     /* s: "cpu", "strided", "channels_last" */
    TGX_GENERATOR,             /* g */
    TGX_VALUES,                /* vs: a list of anything else, or with None in it */
    TGX_DICT,                  /* vs: keys and values in turn, 2 * count of them */
    TGX_OBJECT                 /* o: a value that C cannot read, to be handed on */
};

/* An argument, or a result. A Scalar is whichever of INT, FLOAT, BOOL and COMPLEX was given. */
typedef struct tgx_value {
    uint32_t tag, count;       /* a tgx_kind; how many in a list */
    union {
        int64_t i;
        double f, c[2];
        tgx_dtype d;
        const char *s;
        tgx_tensor *t;
        tgx_tensor *const *ts;
        const int64_t *is;
        const double *fs;
        const char *const *ss;
        const struct tgx_value *vs;
        tgx_generator *g;
        void *o;
    } u;
} tgx_value;

/* Sizes and dtype of a result. */
enum { TGX_MAX_RANK = 64 };
typedef struct {
    int32_t ndim;
    tgx_dtype dtype;
    int64_t sizes[TGX_MAX_RANK];
} tgx_geometry;

/* ---- what an extension writes ------------------------------------------------------------------------------------ */

/* All of them return 0, or -1 after tgx->fail or after a function of the table failed. Arguments are borrowed. Results are
 * given away: a tensor in `out` is the core's from then on, whatever is returned; only an argument that comes back as a
 * result (what the schema declares written) is not retained for it. */

/* Compute the results, one for each return of the schema. `self` is the definition's. */
typedef int (*tgx_kernel)(tgx_ctx *, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m);
/* Say what comes out, of arguments that may have no elements. */
typedef int (*tgx_shape)(tgx_ctx *, void *self, const tgx_value *in, int32_t n, tgx_geometry *out, int32_t m);
/* Keep what backward needs: tensors by tgx->save, anything else in `state`, which starts as zeros. */
typedef int (*tgx_setup)(tgx_ctx *, void *self, tgx_node *, void *state, const tgx_value *in, int32_t n, const tgx_value *out,
                         int32_t m);
/* A gradient for each of m edges, or NULL; grads: one for each tensor that came out. They are given away like results. */
typedef int (*tgx_backward)(tgx_ctx *, tgx_node *, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                            int32_t m);
/* Tangents of the m results from those of the n arguments, NULL for zeros. */
typedef int (*tgx_jvp)(tgx_ctx *, void *self, const tgx_value *in, tgx_tensor *const *tangents, int32_t n,
                       const tgx_value *results, tgx_tensor **out, int32_t m);
/* The op for a batch: where batched[i], argument i has one more dimension, in front. So have all results. */
typedef int (*tgx_batch)(tgx_ctx *, void *self, int64_t size, const uint8_t *batched, const tgx_value *in, int32_t n,
                         tgx_value *out, int32_t m);
typedef void (*tgx_release)(void *state);      /* the node goes; called under the interpreter's lock */

enum tgx_flag {
    TGX_FILLS = 1,             /* of an op with `shape`: the kernel finds its results in `out`, and fills them */
    TGX_COMPOSITE = 2,         /* the kernel computes by tgx->call alone, so derivatives, batches and traces follow */
    TGX_OWN_HISTORY = 4,       /* the kernel makes its own node, by tgx->node_new and tgx->set_history */
    TGX_DIFFERENTIABLE = 8,    /* the backward computes by tgx->call alone, so it can be differentiated again */
    TGX_SOME_GRADS = 16,       /* the backward takes NULL for a gradient that did not arrive; else it gets zeros */
    TGX_UNLOCKED = 32,         /* of TGX_FILLS: on large results the kernel runs without the interpreter's lock. It may call
                                * view, view_mut, geometry, fail, fail_text and parallel_for, and nothing else of the table */
    TGX_DENSE = 64             /* the kernel finds tensors contiguous: of others it gets copies. Not for what it writes to */
};

/* One op. Fields that are not set are zero; the core takes as many as `size` says. */
typedef struct {
    uint32_t size, flags;
    const char *schema;        /* "demo::scale(Tensor x, float by=2.0) -> Tensor" */
    const char *doc;
    tgx_kernel kernel;
    tgx_shape shape;           /* for tensors without elements, and for TGX_FILLS */
    tgx_kernel fake;           /* the same for results that are lists: it makes tensors by empty_like() and empty() */
    tgx_setup setup;
    tgx_backward backward;
    tgx_jvp jvp;               /* else tangents follow from a backward that can be differentiated */
    tgx_batch batch;           /* else sample by sample */
    void *self;
    const char *edges;         /* "input, weight": the tensors that get gradients; NULL: all that are positional */
    uint32_t saved, state_size;        /* how many tensors setup saves; bytes of the state */
    tgx_release release;
    const char *source;        /* where it is written */
    int32_t line;
} tgx_op_def;

/* A node that a kernel makes itself. */
typedef struct {
    uint32_t size, flags;      /* TGX_DIFFERENTIABLE, TGX_SOME_GRADS */
    const char *name;          /* "RoiAlignBackward" */
    tgx_backward backward;
    tgx_release release;
    uint32_t saved, state_size;
} tgx_node_def;

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Functions that return int give 0 or -1, those that return a pointer may give NULL; the error is then pending in the call.
 * Tensors that they return belong to the caller: tgx->release. All but those named at TGX_UNLOCKED want the lock. */
typedef struct {
    uint32_t size;
    uint16_t major, minor;
    uint64_t features;         /* tgx_feature */
    const char *core_version;
    const void *(*interface)(const char *name, uint32_t major);        /* a table of its own; NULL: not there */

    /* errors: kind is the name of a Python exception, "ValueError"; the op's name is put before the text */
    int (*fail)(tgx_ctx *, const char *kind, const char *format, ...);
    int (*fail_text)(tgx_ctx *, const char *kind, const char *text);   /* for languages without varargs */

    /* ops */
    int (*register_op)(tgx_ctx *, const tgx_op_def *);                 /* while init runs */
    tgx_op *(*resolve)(tgx_ctx *, const char *name);                   /* "aten::add.Tensor"; good for ever */
    int (*call)(tgx_ctx *, tgx_op *, const tgx_value *in, int32_t n, tgx_value *out, int32_t m);

    /* tensors */
    int (*view)(tgx_ctx *, tgx_tensor *, tgx_view *);                  /* to read its elements */
    int (*view_mut)(tgx_ctx *, tgx_tensor *, tgx_view *);              /* to write to them */
    int (*geometry)(tgx_ctx *, tgx_tensor *, tgx_view *);              /* data is NULL: of any tensor */
    tgx_tensor *(*empty)(tgx_ctx *, tgx_dtype, int32_t ndim, const int64_t *sizes, tgx_tensor *beside);
    tgx_tensor *(*empty_like)(tgx_ctx *, tgx_tensor *, tgx_dtype);     /* dtype 0: its own */
    tgx_tensor *(*contiguous)(tgx_ctx *, tgx_tensor *);                /* itself where it is */
    tgx_tensor *(*strided)(tgx_ctx *, tgx_tensor *, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                           int64_t offset);                            /* a window, offset from its first element */
    tgx_tensor *(*wrap)(tgx_ctx *, const tgx_view *, tgx_release, void *owner);    /* release(owner) when the last is gone */
    tgx_tensor *(*retain)(tgx_tensor *);
    void (*release)(tgx_tensor *);
    void *(*memory)(tgx_ctx *, size_t bytes);                          /* as long as the call */

    /* autograd */
    int (*requires_grad)(tgx_ctx *, tgx_tensor *);                     /* 1 where grad mode is on and it takes part */
    tgx_node *(*node_new)(tgx_ctx *, const tgx_node_def *, tgx_tensor *const *edges, int32_t n);
    void *(*node_state)(tgx_ctx *, tgx_node *);
    int (*save)(tgx_ctx *, tgx_node *, uint32_t place, tgx_tensor *);  /* an output: after set_history */
    tgx_tensor *(*unpack)(tgx_ctx *, tgx_node *, uint32_t place);      /* NULL without an error: nothing was saved there */
    int (*needs)(tgx_ctx *, tgx_node *, int32_t edge);                 /* whether anybody wants this gradient */
    int (*set_history)(tgx_ctx *, tgx_node *, tgx_tensor *const *outputs, int32_t n);  /* gives the node away */
    uint64_t (*next_sequence)(tgx_ctx *);
    int (*no_grad_enter)(tgx_ctx *);                                   /* what no_grad_leave puts back */
    void (*no_grad_leave)(tgx_ctx *, int before);

    /* work */
    int (*parallel_for)(tgx_ctx *, int (*run)(void *, int64_t low, int64_t high), void *, int64_t count, int64_t grain);
    int (*interrupted)(tgx_ctx *);                                     /* -1 after Ctrl-C */
} tgx_api;

enum tgx_feature { TGX_HAS_OPS = 1, TGX_HAS_AUTOGRAD = 2, TGX_HAS_THREADS = 4, TGX_HAS_RANDOM = 8 };

/* What an extension exports. The loader reads it, and nothing else, before it runs any code of the extension. */
typedef struct {
    uint32_t size;
    uint16_t major, minor;     /* of the table that it needs at least */
    uint64_t needs;            /* tgx_feature */
    const char *name, *version;
    int (*init)(tgx_ctx *, const tgx_api *);
} tgx_extension;

#if defined(__GNUC__)
#define TGX_EXPORT __attribute__((visibility("default")))
#define TGX_HIDDEN __attribute__((visibility("hidden")))
#else
#define TGX_EXPORT
#define TGX_HIDDEN
#endif

#ifndef TGX_NO_TABLE           /* for the core, and for languages that keep the table elsewhere */
extern TGX_HIDDEN const tgx_api *tgx;          /* set before init is called */
extern TGX_EXPORT const tgx_extension tgx_extension_v1;

/* Once in an extension, after `static int init(tgx_ctx *)`. */
#define TGX_EXTENSION(name_, version_, init_)                                                                        \
    TGX_HIDDEN const tgx_api *tgx;                                                                                   \
    static int tgx_start_(tgx_ctx *c, const tgx_api *api) { tgx = api; return init_(c); }                            \
    const tgx_extension tgx_extension_v1 = {(uint32_t)sizeof(tgx_extension), TGX_MAJOR, TGX_TARGET_MINOR,            \
                                            TGX_HAS_OPS, name_, version_, tgx_start_};
#endif

#ifndef __cplusplus
/* A definition with its size and place: &TGX_OP(.schema = "...", .kernel = fn) */
#define TGX_OP(...) \
    ((tgx_op_def){.size = (uint32_t)sizeof(tgx_op_def), .source = __FILE__, .line = __LINE__, __VA_ARGS__})
#define TGX_NODE(...) ((tgx_node_def){.size = (uint32_t)sizeof(tgx_node_def), __VA_ARGS__})
#endif

/* ---- small things written out ------------------------------------------------------------------------------------ */

static inline int64_t tgx_count(const tgx_view *v) {
    int64_t n = 1;
    for (int32_t i = 0; i < v->ndim; i++) n *= v->shape[i];
    return n;
}
/* Whether the elements lie in row-major order without gaps. */
static inline int tgx_is_contiguous(const tgx_view *v) {
    int64_t n = 1;
    for (int32_t i = v->ndim - 1; i >= 0; i--) {
        if (v->shape[i] != 1 && v->strides[i] != n) return tgx_count(v) == 0;
        n *= v->shape[i];
    }
    return 1;
}
static inline tgx_value tgx_of_tensor(tgx_tensor *t) {
    tgx_value v = {TGX_TENSOR, 0, {0}};
    v.u.t = t;
    return v;
}
static inline tgx_value tgx_of_int(int64_t i) {
    tgx_value v = {TGX_INT, 0, {0}};
    v.u.i = i;
    return v;
}
static inline tgx_value tgx_of_float(double f) {
    tgx_value v = {TGX_FLOAT, 0, {0}};
    v.u.f = f;
    return v;
}

#ifdef __cplusplus
}
#endif
#endif
