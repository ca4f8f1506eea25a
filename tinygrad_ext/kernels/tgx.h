/* The interface of kernels: what an op's arguments and results look like in C, and how a kernel is declared.
 *
 * A kernel is a pair of functions over one tgx_call. `shape` reads geometry and attributes, checks them, and says
 * what comes out: sizes, dtype, whose memory. `run` fills the results it finds. Neither allocates, keeps state or
 * knows Python, so whoever has a tgx_call can run a kernel: the interpreter, a plan over memory laid out before, a
 * program in C. What an op does for its caller (out=, in-place targets, overlap, conversion, threads, the
 * interpreter's lock, messages) is done once, by the caller of kernels, and by no kernel.
 *
 * Rejected: kernels that take the interpreter's objects and allocate (none could run without it); sizes copied into
 * the call (a tensor's own are as good while nobody can change them, and a copy costs more than a small kernel); one
 * function per op with its own C signature (each front end would need one stub per op). */
#ifndef TGX_H
#define TGX_H
#include "types.h"

enum {
    TGX_MAX_ARGUMENTS = 24,
    TGX_TEXT = 1024,           /* bytes of a message */
    TGX_CONTIGUOUS = 2,        /* flag of a tensor: row-major without gaps */
    TGX_SMALL = 32768,         /* elements below which a second thread costs more than it gives */
};

/* A window on memory. Strides count elements. The first fields of a Tensor are one. */
typedef struct {
    char *data;
    int64_t *sizes, *strides;
    int64_t count;             /* elements */
    int32_t rank;
    int8_t dtype;
    uint8_t device;
    uint8_t flags;
} tgx_tensor;

/* What an argument holds. */
enum tgx_tag { TGX_NONE, TGX_TENSOR, TGX_TENSORS, TGX_INT, TGX_INTS, TGX_FLOAT, TGX_FLOATS, TGX_NUMBER, TGX_STRING, TGX_POINTER,
               TGX_DTYPE };

/* Kind of a Number as it was given; dtypes follow from it. */
enum tgx_number_kind { TGX_IS_BOOL, TGX_IS_INT, TGX_IS_FLOAT, TGX_IS_COMPLEX };

enum tgx_format { TGX_CONTIGUOUS_FORMAT, TGX_PRESERVE_FORMAT, TGX_CHANNELS_LAST };

/* What stands for a None in a list of numbers. */
#define TGX_NO_NUMBER INT64_MIN

/* One argument of the schema. Booleans and dtypes are ints, which a tag of their own tells from others; a lone int for int[n] is a list of n. What is
 * declared Any is an int or a list of ints and None. */
typedef struct {
    uint8_t tag;
    int8_t want;               /* for tensors: dtype that run needs, see tgx_need; -1: its own */
    uint8_t dense;             /* for tensors: run needs it contiguous */
    uint8_t kind;              /* of a Number */
    int32_t n;                 /* length of a list */
    union {
        tgx_tensor *tensor;
        tgx_tensor **tensors;  /* NULL for a None in the list */
        int64_t i;
        int64_t *ints;
        double f;
        double *floats;
        tgx_scalar *number;
        const char *text;
        void *pointer;         /* of a generator: its tgx_stream */
    };
} tgx_value;

/* Where a result's memory comes from. */
enum tgx_origin {
    TGX_FRESH,                 /* uninitialised memory of its own */
    TGX_VIEW,                  /* a window on an argument's memory; there is nothing to run */
    TGX_WRITES,                /* the argument as it is, to be changed: itself in the in-place form, else a copy */
    TGX_SAME,                  /* the argument itself, where nothing is to be done */
    TGX_ABSENT,                /* None */
    TGX_OVER,                  /* as TGX_FRESH, but in the in-place form the argument itself, in its own layout: run reads
                                * each of its elements before it writes it */
};

/* One result: said by shape, filled by run. */
typedef struct {
    uint8_t origin;
    uint8_t of;                /* which argument, for origins that name one */
    int8_t dtype;
    int8_t via;                /* dtype that run writes, converted before (TGX_WRITES) and afterwards; -1: the result's own */
    int32_t rank;
    int64_t *sizes;            /* dims, or an argument's own */
    int64_t *strides;          /* NULL: row-major. TGX_VIEW always has them */
    int64_t offset;            /* of a view, in elements of the argument's dtype */
    tgx_tensor *tensor;        /* for run */
    int64_t *dims;             /* room for what shape works out: sizes, then strides */
} tgx_output;

enum tgx_error_kind { TGX_RUNTIME_ERROR, TGX_INDEX_ERROR, TGX_TYPE_ERROR, TGX_VALUE_ERROR, TGX_NOT_IMPLEMENTED_ERROR,
                      TGX_MEMORY_ERROR };

struct tgx_blas;

/* What a kernel may ask of whoever calls it. */
typedef struct {
    /* See parallel.h. */
    int (*parallel_for)(int (*fn)(void *context, ptrdiff_t lo, ptrdiff_t hi), void *context, ptrdiff_t n, ptrdiff_t grain);
    int (*num_threads)(void);
    int (*processors)(void);   /* of the machine, not those that may be used now: what work may be cut for */
    int (*mark_region)(int inside);
    /* Copy with conversion; from broadcasts to to. */
    int (*copy)(const tgx_tensor *to, const tgx_tensor *from);
    /* For shape: elements from the start of its memory to a tensor, and the bytes there; on meta as many as can be counted. */
    int64_t (*offset)(const tgx_tensor *t, int64_t *bytes);
    /* Matrix products, see blas.h; NULL: failed, as shape or run then does. The first call looks for a library, in which Python
     * may run and change any tensor: shape makes it before it reads what it goes by. */
    const struct tgx_blas *(*blas)(void);
    int (*default_dtype)(void);        /* of floating tensors that are made without saying one */
} tgx_services;

typedef struct tgx_call {
    const tgx_services *services;
    const char *title;         /* the op in messages */
    tgx_value *args;
    const tgx_tensor *target;  /* what the caller was given for the result: out=, or argument 0 in the in-place form; else NULL */
    int32_t nargs;
    int32_t noutputs;          /* as the schema says; of a list of results shape says it, see tgx_results */
    int32_t capacity;          /* of outputs */
    int32_t room;              /* dimensions that the results of a list need at most */
    uint64_t needs;            /* arguments that must be converted before run */
    uint64_t changes;          /* arguments that run writes to, see tgx_changes */
    int64_t work;              /* elements touched; 0: as many as the largest tensor has */
    int64_t scratch_bytes;     /* shape asks, run finds `scratch`, 64-byte aligned */
    void *scratch;
    int64_t notes[4];          /* from shape to run */
    uint8_t meta;              /* there is no memory: after shape it is over */
    uint8_t error_kind;
    uint8_t warned;            /* shape is asked again after a warning, which is not repeated */
    uint8_t warning;           /* text holds a warning */
    tgx_output *outputs;
    char text[TGX_TEXT];
} tgx_call;

typedef int (*tgx_shape_fn)(tgx_call *c);      /* 0, TGX_FAILED after tgx_fail, or TGX_MORE */
typedef int (*tgx_run_fn)(tgx_call *c);        /* 0, a code of tgx_error, or TGX_FAILED */

enum {
    TGX_FAILED = -1,
    TGX_MORE = -2,             /* noutputs exceeds capacity: ask again with more */
};

enum tgx_kernel_flag {
    TGX_READS = 1,             /* shape reads the elements of its tensors, so sizes depend on them: none on meta */
    TGX_APART = 2,             /* out= that shares memory with an input is refused, not copied */
    TGX_JOINS = 4,             /* out= of a dtype that cannot take what the inputs make together is a TypeError */
    TGX_ANY_LAYOUT = 8,        /* run writes to a target whatever its strides */
    TGX_SERIAL = 16,           /* run keeps the interpreter's lock: nobody else may draw from its generator meanwhile */
    TGX_REPEATS = 128,         /* run may write to a target whose elements share memory: it writes the same to all */
    TGX_REPEATS_INPLACE = 1024, /* the same for the in-place form, which tells of it (tgx_warn_repeated): memory is read and written in turn */
    TGX_NATURAL = 512,         /* takes uint16, uint32 and uint64; kernels of windows do without it, all others refuse them */
    TGX_MIXES = 256,           /* where argument 0 is a half, others may be float32; the results but the first are then float32 */
    TGX_MAY_READ = 64,         /* as TGX_READS for some arguments only, which shape refuses on meta itself */
};

typedef struct {
    const char *name;
    tgx_shape_fn shape;
    tgx_run_fn run;            /* NULL when every result is a view */
    uint32_t flags;
} tgx_kernel;

/* Declares a kernel; the build collects all of them into one table. */
#define TGX_KERNEL(name, shape, run, flags) const tgx_kernel tgx_kernel_##name = {#name, shape, run, flags};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Note an error; returns TGX_FAILED. The op's name is not put before it. */
int tgx_fail(tgx_call *c, int kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Ask for a UserWarning before anything is run. */
void tgx_warn(tgx_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For shape of what is TGX_REPEATS_INPLACE: warn where an expanded tensor is written to. */
void tgx_warn_repeated(tgx_call *c, const char *title, const char *example);
/* Whether steps of 0 lead to several elements of t. */
int tgx_is_expanded(const tgx_tensor *t);
/* Whether 63 bits can count the elements of so many sizes; `what` begins the message. */
int tgx_check_sizes(tgx_call *c, const int64_t *sizes, int rank, const char *what);
/* "[2, 3]" in a buffer of the thread's, good for the next eight calls. */
const char *tgx_sizes_text(const int64_t *sizes, int rank);
static inline const char *tgx_shape_text(const tgx_tensor *t) { return tgx_sizes_text(t->sizes, t->rank); }
/* "Float", as messages name a dtype. */
static inline const char *tgx_dtype_title(int dtype) { return tgx_titles[dtype]; }
const char *tgx_dtype_name(int dtype);      /* "float32" */

/* What is said of two dtypes that promote to none, by their titles. */
#define TGX_NO_PROMOTION "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote %s and %s: convert one of " \
                         "them first"

/* ---- reading arguments ------------------------------------------------------------------------------------------- */

static inline tgx_tensor *tgx_in(const tgx_call *c, int i) { return c->args[i].tensor; }
static inline int tgx_given(const tgx_call *c, int i) { return c->args[i].tag != TGX_NONE; }
static inline int64_t tgx_int(const tgx_call *c, int i) { return c->args[i].i; }
static inline double tgx_float(const tgx_call *c, int i) { return c->args[i].f; }
static inline tgx_tensor *tgx_out(const tgx_call *c, int k) { return c->outputs[k].tensor; }

/* Wrap a dimension's number, also in the argument; a tensor without dimensions counts as having one. */
int tgx_dim_outside(tgx_call *c, int64_t dim, int rank);
static inline int tgx_wrap(tgx_call *c, int64_t *dim, int rank) {
    int64_t n = rank ? rank : 1;
    if (*dim < -n || *dim >= n) return tgx_dim_outside(c, *dim, rank);
    if (*dim < 0) *dim += n;
    return 0;
}
static inline int tgx_wrap_arg(tgx_call *c, int i, int rank) { return tgx_wrap(c, &c->args[i].i, rank); }

static inline int tgx_same_sizes(const tgx_tensor *a, const tgx_tensor *b) {
    if (a->rank != b->rank) return 0;
    for (int i = 0; i < a->rank; i++)
        if (a->sizes[i] != b->sizes[i]) return 0;
    return 1;
}

/* Widen `shape` (right-aligned) so that t fits: 0, or 1 + the dimension whose sizes differ and are not 1. */
int tgx_broadcast(int64_t *shape, int *rank, const tgx_tensor *t);

/* A tensor, or one without dimensions as a vector of its element. */
static inline tgx_tensor tgx_lifted(const tgx_tensor *t) {
    static int64_t one[1] = {1};
    tgx_tensor v = *t;
    if (v.rank == 0) v.rank = 1, v.sizes = one, v.strides = one;
    return v;
}

/* A number as Python writes it, in a buffer as above. */
const char *tgx_number_text(const tgx_value *v);
/* Store a number of the arguments as an element of a dtype. */
void tgx_put_number(void *to, int dtype, const tgx_scalar *number);
/* Refuse a number that a dtype cannot hold (a negative one may wrap in uint8); a complex one alone. */
int tgx_check_number(tgx_call *c, const tgx_value *v, int dtype);
int tgx_refuse_complex(tgx_call *c, const tgx_scalar *number, int dtype);

/* ---- what run will find ------------------------------------------------------------------------------------------ */

/* Let run find a tensor argument contiguous and of a dtype. */
static inline void tgx_need(tgx_call *c, int i, int dtype) {
    const tgx_tensor *t = c->args[i].tensor;
    if (t->dtype == dtype && t->flags & TGX_CONTIGUOUS) return;
    c->needs |= (uint64_t)1 << i;
    c->args[i].want = (int8_t)dtype;
    c->args[i].dense = 1;
}
static inline void tgx_need_dense(tgx_call *c, int i) { tgx_need(c, i, c->args[i].tensor->dtype); }
/* Of a dtype, in any layout. */
static inline void tgx_need_dtype(tgx_call *c, int i, int dtype) {
    if (c->args[i].tensor->dtype == dtype) return;
    c->needs |= (uint64_t)1 << i;
    c->args[i].want = (int8_t)dtype;
    c->args[i].dense = 0;
}

/* Let run write to an argument that is no result, a tensor or all tensors of a list, where it is given. The caller refuses
 * memory that may not be written to, and counts the write. */
static inline void tgx_changes(tgx_call *c, int i) {
    if (tgx_given(c, i)) c->changes |= (uint64_t)1 << i;
}

/* A fresh result of the sizes that outputs[k].dims will hold. */
static inline tgx_output *tgx_fresh(tgx_call *c, int k, int rank, int dtype) {
    tgx_output *o = &c->outputs[k];
    o->origin = TGX_FRESH, o->dtype = (int8_t)dtype, o->via = -1, o->rank = rank, o->sizes = o->dims, o->strides = 0;
    return o;
}
/* A fresh, row-major result of a tensor's sizes. */
static inline tgx_output *tgx_like(tgx_call *c, int k, const tgx_tensor *t, int dtype) {
    tgx_output *o = tgx_fresh(c, k, t->rank, dtype);
    o->sizes = t->sizes;
    return o;
}
/* A fresh result of a tensor's sizes; a dense tensor's order of dimensions is kept. */
tgx_output *tgx_like_order(tgx_call *c, int k, const tgx_tensor *t, int dtype);
/* A fresh result of the sizes in a list of the arguments; 0 or TGX_FAILED. */
int tgx_sized(tgx_call *c, int k, int arg, int dtype);
/* A result that starts as an argument and is changed. */
static inline tgx_output *tgx_writes(tgx_call *c, int k, int arg) {
    tgx_output *o = tgx_like(c, k, c->args[arg].tensor, c->args[arg].tensor->dtype);
    o->origin = TGX_WRITES, o->of = (uint8_t)arg;
    return o;
}
/* An argument itself. */
static inline tgx_output *tgx_same(tgx_call *c, int k, int arg) {
    tgx_output *o = tgx_like(c, k, c->args[arg].tensor, c->args[arg].tensor->dtype);
    o->origin = TGX_SAME, o->of = (uint8_t)arg;
    return o;
}
/* A window on an argument; sizes and strides go into o->sizes and o->strides. */
static inline tgx_output *tgx_view(tgx_call *c, int k, int arg, int rank) {
    tgx_output *o = tgx_fresh(c, k, rank, c->args[arg].tensor->dtype);
    o->origin = TGX_VIEW, o->of = (uint8_t)arg, o->strides = o->dims + rank, o->offset = 0;
    return o;
}
/* So many results in a list, none of more than `rank` dimensions; when it is not 0, shape returns it at once. */
static inline int tgx_results(tgx_call *c, int64_t n, int rank) {
    if (n > INT32_MAX) return tgx_fail(c, TGX_MEMORY_ERROR, "%s(): %lld results are more than fit in memory", c->title, (long long)n);
    c->noutputs = (int32_t)n, c->room = rank;
    return n > c->capacity ? TGX_MORE : 0;
}
static inline void tgx_absent(tgx_call *c, int k) { tgx_fresh(c, k, 0, TGX_BOOL)->origin = TGX_ABSENT; }
/* No result: run changes arguments and nothing else. */
static inline void tgx_no_results(tgx_call *c) { c->noutputs = 0, tgx_absent(c, 0); }

/* fn over [0, n), cut over threads where the work is large. */
static inline int tgx_range(tgx_call *c, int (*fn)(void *, ptrdiff_t, ptrdiff_t), void *job, ptrdiff_t n, ptrdiff_t grain) {
    if (n <= grain) return n ? fn(job, 0, n) : 0;
    return c->services->parallel_for(fn, job, n, grain);
}
/* The same in as few parts as there are threads, for an fn of which each part goes through all of another operand. */
static inline int tgx_range_once(tgx_call *c, int (*fn)(void *, ptrdiff_t, ptrdiff_t), void *job, ptrdiff_t n, ptrdiff_t grain) {
    const ptrdiff_t share = n > grain ? n / c->services->num_threads() : 0;
    return tgx_range(c, fn, job, n, grain > share ? grain : share);
}
#endif
