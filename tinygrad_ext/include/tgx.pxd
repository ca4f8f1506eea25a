"""tgx.h for Cython: the table that C extensions are given, without the private declarations of the package.

    from tgx cimport *

    cdef int square(tgx_ctx *c, void *self, const tgx_value *inputs, int32_t n, tgx_value *out, int32_t m) noexcept: ...

    cdef int init(tgx_ctx *c) noexcept:
        cdef tgx_op_def d = tgx_op_of("mylib::square(Tensor x) -> Tensor")
        d.kernel = square
        return tgx.register_op(c, &d)

    tgx_start("mylib", "1.0", init)
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

cdef extern from *:
    """
    #define TGX_NO_TABLE
    #include <tgx.h>
    static const tgx_api *tgx_of_module;
    static int (*tgx_init_of_module)(tgx_ctx *);
    static int tgx_begin_module(tgx_ctx *c, const tgx_api *api) {
        tgx_of_module = api;
        return tgx_init_of_module(c);
    }
    """
    enum:
        TGX_CPU, TGX_EXTERNAL, TGX_META, TGX_NONE, TGX_TENSOR, TGX_TENSORS, TGX_INT, TGX_INTS, TGX_FLOAT, TGX_FLOATS,
        TGX_BOOL, TGX_BOOLS, TGX_COMPLEX, TGX_COMPLEXES, TGX_STRING, TGX_STRINGS, TGX_SCALAR_TYPE, TGX_DEVICE,
        TGX_LAYOUT, TGX_MEMORY_FORMAT, TGX_GENERATOR, TGX_VALUES, TGX_DICT, TGX_OBJECT, TGX_MAX_RANK, TGX_FILLS,
        TGX_COMPOSITE, TGX_OWN_HISTORY, TGX_DIFFERENTIABLE, TGX_SOME_GRADS, TGX_UNLOCKED, TGX_DENSE, TGX_HAS_OPS,
        TGX_HAS_AUTOGRAD, TGX_HAS_THREADS, TGX_HAS_RANDOM
    ctypedef uint32_t tgx_dtype
    tgx_dtype TGX_INT8, TGX_INT16, TGX_INT32, TGX_INT64, TGX_UINT8, TGX_UINT16, TGX_UINT32, TGX_UINT64, TGX_FLOAT16
    tgx_dtype TGX_FLOAT32, TGX_FLOAT64, TGX_BFLOAT16, TGX_COMPLEX64, TGX_COMPLEX128, TGX_BOOL8, TGX_BROUGHT
    ctypedef struct tgx_ctx:
        pass
    ctypedef struct tgx_tensor:
        pass
    ctypedef struct tgx_node:
        pass
    ctypedef struct tgx_op:
        pass
    ctypedef struct tgx_generator:
        pass
    ctypedef struct tgx_view:
        void *data
        int32_t device_type, device_id, ndim
        tgx_dtype dtype
        const int64_t *shape
        const int64_t *strides
        uint64_t byte_offset
    ctypedef union tgx_union:
        int64_t i
        double f
        double *c
        tgx_dtype d
        const char *s
        tgx_tensor *t
        tgx_tensor **ts
        const int64_t *xs "is"
        const double *fs
        const char **ss
        tgx_value *vs
        tgx_generator *g
        void *o
    ctypedef struct tgx_value:
        uint32_t tag, count
        tgx_union u
    ctypedef struct tgx_geometry:
        int32_t ndim
        tgx_dtype dtype
        int64_t *sizes
    ctypedef int (*tgx_kernel)(tgx_ctx *, void *, const tgx_value *, int32_t, tgx_value *, int32_t) noexcept
    ctypedef int (*tgx_shape)(tgx_ctx *, void *, const tgx_value *, int32_t, tgx_geometry *, int32_t) noexcept
    ctypedef int (*tgx_setup)(tgx_ctx *, void *, tgx_node *, void *, const tgx_value *, int32_t, const tgx_value *,
                              int32_t) noexcept
    ctypedef int (*tgx_backward)(tgx_ctx *, tgx_node *, void *, tgx_tensor *const *, int32_t, tgx_tensor **,
                                int32_t) noexcept
    ctypedef int (*tgx_jvp)(tgx_ctx *, void *, const tgx_value *, tgx_tensor *const *, int32_t, const tgx_value *,
                            tgx_tensor **, int32_t) noexcept
    ctypedef int (*tgx_batch)(tgx_ctx *, void *, int64_t, const uint8_t *, const tgx_value *, int32_t, tgx_value *,
                              int32_t) noexcept
    ctypedef void (*tgx_release)(void *) noexcept
    ctypedef struct tgx_op_def:
        uint32_t size, flags
        const char *schema
        const char *doc
        tgx_kernel kernel
        tgx_shape shape
        tgx_kernel fake
        tgx_setup setup
        tgx_backward backward
        tgx_jvp jvp
        tgx_batch batch
        void *self
        const char *edges
        uint32_t saved, state_size
        tgx_release release
        const char *source
        int32_t line
    ctypedef struct tgx_node_def:
        uint32_t size, flags
        const char *name
        tgx_backward backward
        tgx_release release
        uint32_t saved, state_size
    ctypedef struct tgx_api:
        uint32_t size
        uint16_t major, minor
        uint64_t features
        const char *core_version
        const void *(*interface)(const char *name, uint32_t major)
        int (*fail)(tgx_ctx *, const char *kind, const char *format, ...) nogil
        int (*fail_text)(tgx_ctx *, const char *kind, const char *text) nogil
        int (*register_op)(tgx_ctx *, const tgx_op_def *)
        tgx_op *(*resolve)(tgx_ctx *, const char *name)
        int (*call)(tgx_ctx *, tgx_op *, const tgx_value *inputs, int32_t n, tgx_value *out, int32_t m)
        int (*view)(tgx_ctx *, tgx_tensor *, tgx_view *) nogil
        int (*view_mut)(tgx_ctx *, tgx_tensor *, tgx_view *) nogil
        int (*geometry)(tgx_ctx *, tgx_tensor *, tgx_view *) nogil
        tgx_tensor *(*empty)(tgx_ctx *, tgx_dtype, int32_t ndim, const int64_t *sizes, tgx_tensor *beside)
        tgx_tensor *(*empty_like)(tgx_ctx *, tgx_tensor *, tgx_dtype)
        tgx_tensor *(*contiguous)(tgx_ctx *, tgx_tensor *)
        tgx_tensor *(*strided)(tgx_ctx *, tgx_tensor *, int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset)
        tgx_tensor *(*wrap)(tgx_ctx *, const tgx_view *, tgx_release, void *owner)
        tgx_tensor *(*retain)(tgx_tensor *)
        void (*release)(tgx_tensor *)
        void *(*memory)(tgx_ctx *, size_t bytes)
        int (*requires_grad)(tgx_ctx *, tgx_tensor *)
        tgx_node *(*node_new)(tgx_ctx *, const tgx_node_def *, tgx_tensor **edges, int32_t n)
        void *(*node_state)(tgx_ctx *, tgx_node *)
        int (*save)(tgx_ctx *, tgx_node *, uint32_t place, tgx_tensor *)
        tgx_tensor *(*unpack)(tgx_ctx *, tgx_node *, uint32_t place)
        int (*needs)(tgx_ctx *, tgx_node *, int32_t edge)
        int (*set_history)(tgx_ctx *, tgx_node *, tgx_tensor **outputs, int32_t n)
        uint64_t (*next_sequence)(tgx_ctx *)
        int (*no_grad_enter)(tgx_ctx *)
        void (*no_grad_leave)(tgx_ctx *, int before)
        int (*parallel_for)(tgx_ctx *, int (*run)(void *, int64_t, int64_t) noexcept nogil, void *, int64_t count, int64_t grain) nogil
        int (*interrupted)(tgx_ctx *)
        int (*random_bits)(tgx_ctx *, tgx_generator *, uint64_t *out, int64_t n)
        int (*random_uniform)(tgx_ctx *, tgx_generator *, double *out, int64_t n)
        int (*random_normal)(tgx_ctx *, tgx_generator *, double *out, int64_t n)
        void (*range_begin)(tgx_ctx *, const char *name)
        void (*range_end)(tgx_ctx *, const char *name)
    const tgx_api *tgx "tgx_of_module"
    int (*tgx_init_of_module)(tgx_ctx *) noexcept
    int tgx_begin_module(tgx_ctx *c, const tgx_api *api)
    int64_t tgx_count(const tgx_view *v) nogil
    bint tgx_is_contiguous(const tgx_view *v) nogil
    tgx_value tgx_of_tensor(tgx_tensor *t)
    tgx_value tgx_of_int(int64_t i)
    tgx_value tgx_of_float(double f)


cdef inline tgx_op_def tgx_op_of(const char *schema) noexcept:
    """A definition with its size and schema."""
    cdef tgx_op_def d
    memset(&d, 0, sizeof(tgx_op_def))
    d.size = sizeof(tgx_op_def)
    d.schema = schema
    return d


cdef inline object tgx_start(str name, str version, int (*init)(tgx_ctx *) noexcept, dict facts=None):
    """Register what init registers, for the plugin or program that calls this; what load_library returns.

    facts: name of an op -> fields of its record that are Python's: samples, reference, errors, ...
    """
    global tgx_init_of_module
    from tinygrad_ext.utils.cpp_extension import register_init
    tgx_init_of_module = init
    return register_init(name, version, <size_t>&tgx_begin_module, facts)
