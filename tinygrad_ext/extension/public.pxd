"""include/tgx.h, and the context of a call."""
from cpython.object cimport PyObject
from tinygrad_ext.core.data.types cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "context.h" nogil:
    ctypedef struct tgx_ctx "struct tgx_ctx":
        PyObject *who
        PyObject *target
        PyObject *keep
        const unsigned char *needed
        uint8_t failed
        uint8_t unlocked
        char *kind
        char *text
    void tgx_open(tgx_ctx *c, PyObject *who)
    void *tgx_room(tgx_ctx *c, size_t nbytes)
    int tgx_api_fail(tgx_ctx *c, const char *kind, const char *format, ...)
    int tgx_api_fail_text(tgx_ctx *c, const char *kind, const char *text)

cdef extern from "context.h":
    void tgx_close(tgx_ctx *c)

cdef extern from "public.h" nogil:
    ctypedef struct tensor_t "tgxp_tensor":
        pass
    ctypedef struct node_t "tgx_node":
        pass
    ctypedef struct op_t "tgx_op":
        pass
    ctypedef struct generator_t "tgx_generator":
        pass
    ctypedef uint32_t tgx_dtype
    enum:
        TGX_MAJOR, TGX_MINOR, TGX_MAX_RANK, TGX_CPU, TGX_EXTERNAL
        TGX_FILLS, TGX_COMPOSITE, TGX_OWN_HISTORY, TGX_DIFFERENTIABLE, TGX_SOME_GRADS, TGX_UNLOCKED, TGX_DENSE
        TGX_HAS_OPS, TGX_HAS_AUTOGRAD, TGX_HAS_THREADS, TGX_HAS_RANDOM
    enum:
        ON_META "TGXP_META"
        V_NONE "TGXP_NONE"
        V_TENSOR "TGXP_TENSOR"
        V_TENSORS "TGXP_TENSORS"
        V_INT "TGXP_INT"
        V_INTS "TGXP_INTS"
        V_FLOAT "TGXP_FLOAT"
        V_FLOATS "TGXP_FLOATS"
        V_BOOL "TGXP_BOOL"
        V_BOOLS "TGX_BOOLS"
        V_COMPLEX "TGX_COMPLEX"
        V_COMPLEXES "TGX_COMPLEXES"
        V_STRING "TGXP_STRING"
        V_STRINGS "TGX_STRINGS"
        V_DTYPE "TGX_SCALAR_TYPE"
        V_DEVICE "TGX_DEVICE"
        V_LAYOUT "TGX_LAYOUT"
        V_FORMAT "TGX_MEMORY_FORMAT"
        V_GENERATOR "TGX_GENERATOR"
        V_VALUES "TGX_VALUES"
        V_DICT "TGX_DICT"
        V_OBJECT "TGX_OBJECT"
    ctypedef struct tgx_view "tgxp_view":
        void *data
        int32_t device_type, device_id, ndim
        tgx_dtype dtype
        const int64_t *shape
        const int64_t *strides
        uint64_t byte_offset
    ctypedef union Held:
        int64_t i
        double f
        double *c
        tgx_dtype d
        const char *s
        tensor_t *t
        tensor_t **ts
        const int64_t *xs "is"
        const double *fs
        const char **ss
        value_t *vs
        generator_t *g
        void *o
    ctypedef struct value_t "tgxp_value":
        uint32_t tag, count
        Held u
    ctypedef struct tgx_geometry:
        int32_t ndim
        tgx_dtype dtype
        int64_t *sizes
    ctypedef int (*kernel_t "tgxp_kernel")(tgx_ctx *, void *, const value_t *, int32_t, value_t *, int32_t)
    ctypedef int (*shape_t "tgxp_shape")(tgx_ctx *, void *, const value_t *, int32_t, tgx_geometry *, int32_t)
    ctypedef int (*tgx_setup)(tgx_ctx *, void *, node_t *, void *, const value_t *, int32_t, const value_t *, int32_t)
    ctypedef int (*tgx_backward)(tgx_ctx *, node_t *, void *, tensor_t **, int32_t, tensor_t **, int32_t)
    ctypedef int (*tgx_jvp)(tgx_ctx *, void *, const value_t *, tensor_t **, int32_t, const value_t *, tensor_t **, int32_t)
    ctypedef int (*tgx_batch)(tgx_ctx *, void *, int64_t, const uint8_t *, const value_t *, int32_t, value_t *, int32_t)
    ctypedef void (*tgx_release)(void *)
    ctypedef struct tgx_op_def:
        uint32_t size, flags
        const char *schema
        const char *doc
        kernel_t kernel
        shape_t shape
        kernel_t fake
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
    size_t SIZE_OF_1_0 "offsetof(tgx_api, random_bits)"
    ctypedef struct tgx_api:            # addresses of functions, whose types stand in the header
        uint32_t size
        uint16_t major
        uint16_t minor
        uint64_t features
        const char *core_version
        void *interface
        void *fail
        void *fail_text
        void *register_op
        void *resolve
        void *call
        void *view
        void *view_mut
        void *geometry
        void *empty
        void *empty_like
        void *contiguous
        void *strided
        void *wrap
        void *retain
        void *release
        void *memory
        void *requires_grad
        void *node_new
        void *node_state
        void *save
        void *unpack
        void *needs
        void *set_history
        void *next_sequence
        void *no_grad_enter
        void *no_grad_leave
        void *parallel_for
        void *interrupted
        void *random_bits
        void *random_uniform
        void *random_normal
        void *range_begin
        void *range_end
    ctypedef struct tgx_extension:
        uint32_t size
        uint16_t major
        uint16_t minor
        uint64_t needs
        const char *name
        const char *version
        int (*init)(tgx_ctx *, const tgx_api *)
