# cython: language_level=3
"""Tensor: a strided window on a Storage, and its links into the autograd graph.

Shape and strides stand inline in the object up to six dimensions; a Tensor costs one allocation from a
freelist. Rejected: tuples for both, two objects more to make and numbers to unpack in each kernel. Methods are not
written here: they come from the op records (see registry) and from tinygrad_ext/tensor/methods.py; this file holds what
needs the C fields."""
cimport cython
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.complex cimport PyComplex_FromDoubles
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from tinygrad_ext.core.data.devices cimport storage_on
from tinygrad_ext.core.data.coded cimport coded_get, coded_put
from tinygrad_ext.core.data.dtype cimport CODED, CPU, META, device_for, device_of, dtype_of, flips_of, is_host, make_size
from tinygrad_ext.core.data.geometry cimport ANY_ROOM, counted, reach
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.storage cimport books, let_go, new_storage
from tinygrad_ext.core.data cimport storage as storages
from tinygrad_ext.core.data.table import DTYPES, PAIR
from tinygrad_ext.core.data.tracking cimport (
    PyObject_GC_IsTracked, PyObject_GC_UnTrack, add_ring, tgx_link_into, tgx_unlink, tgx_link, track_all,
)
from tinygrad_ext.core.data.types cimport (
    ITEMSIZE, TGX_BF16, TGX_BOOL, TGX_C128, TGX_C32, TGX_C64, TGX_CODED, TGX_F16, TGX_F32, TGX_F64, TGX_I16, TGX_I32, TGX_I64, TGX_I8,
    TGX_MAX_DIMS, TGX_U16, TGX_U32, TGX_U64, TGX_U8,
    int16_t, int32_t, is_coded, is_inexact, is_integral, tgx_bf16_to_f32, tgx_f16_to_f32, tgx_f32_to_bf16,
    tgx_f32_to_f16, uint16_t,
)


cdef extern from "Python.h":
    char *PyBytes_AS_STRING(object b)
    void *Py_TYPE(PyObject *o) noexcept
    Py_ssize_t Py_REFCNT(void *o) noexcept
    void _Py_NewReference(PyObject *o) noexcept
    int PyObject_GenericSetAttr(PyObject *o, PyObject *name, PyObject *value) except -1

ctypedef void (*destructor)(PyObject *o) noexcept

cdef extern from "own_dealloc.h":
    destructor tgx_own_dealloc(object type, destructor dealloc)
    ctypedef struct Memory "TGX_STORAGE":       # of a storage that goes with its tensor
        char *data
        size_t nbytes
        size_t block
        uint32_t version
        uint8_t readonly
        uint8_t watched
        PyObject *__weakref__

cdef extern from "tensor_type.h":
    enum:
        TGX_WHOLE
    Py_ssize_t TGX_DICT_OFFSET
    Py_ssize_t TGX_LINK_OFFSET
    void TGX_START_NULL(object self)
    Tensor TGX_OWNED(PyObject *reference)       # takes over the caller's
    int tgx_give_dict(object type, Py_ssize_t offset, void (*on_dict)(PyObject *) noexcept) except -1
    void tgx_own_clear(object type, Py_ssize_t offset)
    ctypedef struct Links "TGX_TENSOR":         # the same fields, to be taken out of an instance that goes
        void *storage
        PyObject *node
        PyObject *base
        PyObject *grad_
        void *counter
        PyObject *extra
        PyObject *room
        PyObject *attributes
        PyObject *__weakref__
        void *accumulator
        uint8_t device_id
        tgx_link link

cdef extern from "untracked.h":
    tgx_link tgx_ring
    int tgx_start_untracked(object type, Py_ssize_t link_offset) except -1


@cython.final
@cython.no_gc
cdef class VersionCounter:
    pass


cdef class Tensor:
    """An n-dimensional array of one dtype that can record how it was computed."""

    def __cinit__(self):
        self.sizes = self.dims
        self.strides = self.dims + INLINE_DIMS
        TGX_START_NULL(self)
        # a bare Tensor.__new__ leaves an empty vector, not something that could be read
        self.rank = 1
        self.tid = TGX_F32
        self.bits = CONTIGUOUS

    def __init__(self, *args, **kwargs):
        slot("new")(self, args, kwargs)

    # ---- geometry

    @property
    def shape(self):
        return make_size(self.sizes, self.rank)

    @property
    def ndim(self):
        return self.rank

    @property
    def dtype(self):
        return dtype_of(self.tid)

    @property
    def device(self):
        return shown_device(self)

    @property
    def itemsize(self):
        return ITEMSIZE[self.tid]

    @property
    def nbytes(self):
        return self.count * ITEMSIZE[self.tid]

    def dim(self):
        """Number of dimensions."""
        return self.rank

    def numel(self):
        """Number of elements."""
        return self.count

    def element_size(self):
        """Bytes of one element."""
        return ITEMSIZE[self.tid]

    def data_ptr(self):
        """Address of the first element; 0 for an empty or meta tensor."""
        return <size_t>self.data if self.count else 0

    def storage_offset(self):
        """Elements between the start of the storage and the first element."""
        return 0 if self.storage is None else (self.data - self.storage.data) // ITEMSIZE[self.tid]

    def size(self, dim=None):
        """Shape, or the size of one dimension."""
        if dim is None:
            return make_size(self.sizes, self.rank)
        return self.sizes[wrap_dim(dim, self.rank)]

    def stride(self, dim=None):
        """Strides in elements as a tuple, or the stride of one dimension."""
        if dim is None:
            return tuple([self.strides[i] for i in range(self.rank)])
        return self.strides[wrap_dim(dim, self.rank)]

    def is_contiguous(self, memory_format=None):
        """Whether the elements lie in memory without gaps, in row-major order or in that of memory_format."""
        cdef int64_t i, k, expected = 1
        if memory_format is None or not memory_format.name.startswith("channels_last"):
            return (self.bits & CONTIGUOUS) != 0
        if self.rank != (5 if memory_format.name == "channels_last_3d" else 4):
            return False
        for k in range(self.rank):      # channels first, then from the last dimension up to the examples
            i = 1 if k == 0 else self.rank - k if k < self.rank - 1 else 0
            if self.sizes[i] != 1 and self.strides[i] != expected:
                return self.count == 0
            expected *= self.sizes[i]
        return True

    # ---- buffer protocol

    def __getbuffer__(self, Py_buffer *view, int flags):
        _export(self, view, flags)

    def __releasebuffer__(self, Py_buffer *view):
        Py_XDECREF((<PyObject **>view.internal)[0])
        free(view.internal)

    # ---- autograd links

    @property
    def _version(self):
        return version_of(self)

    @property
    def _base(self):
        return self.base if self.bits & DIFF_VIEW else None

    @property
    def is_leaf(self):
        return self.node is None if not self.bits & DIFF_VIEW else slot("grad_fn")(self) is None

    @property
    def grad_fn(self):
        return None if self.node is None and not self.bits & DIFF_VIEW else slot("grad_fn")(self)

    @property
    def requires_grad(self):
        return needs_grad(self)

    @requires_grad.setter
    def requires_grad(self, value):
        if not isinstance(value, bool):
            raise RuntimeError(f"requires_grad must be a bool, not {type(value).__name__}")
        if self.grad_fn is not None:
            if value:
                return
            raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                               "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
        if value and not is_inexact(self.tid):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients: this one is "
                               f"{dtype_of(self.tid)}. Convert it first, for example with .float().")
        if value:
            self.bits |= REQUIRES_GRAD
        else:
            self.bits &= ~REQUIRES_GRAD

    def requires_grad_(self, requires_grad=True):
        """Change whether gradients are recorded for this leaf; returns it."""
        if not isinstance(requires_grad, bool):
            raise TypeError("requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                            f"{type(requires_grad).__name__}")
        self.requires_grad = requires_grad
        return self

    @property
    def grad(self):
        if self.grad_ is None and self.node is not None and not self.bits & RETAINS_GRAD:
            import warnings
            warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't "
                          "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a "
                          "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.", UserWarning, stacklevel=1)
        return self.grad_

    @grad.setter
    def grad(self, value):
        cdef Tensor g
        if value is None:
            self.grad_ = None
            return
        if not isinstance(value, Tensor):
            _refuse_value("assigned grad expected to be a Tensor or None but got grad of type", value)
        g = <Tensor>value
        if g is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if g.tid != self.tid:
            raise RuntimeError(f"attempting to assign a gradient with dtype '{dtype_of(g.tid)}' to a tensor with dtype "
                               f"'{dtype_of(self.tid)}'. Please ensure that the gradient and the tensor have the same dtype.")
        if shape_text(g) != shape_text(self):
            raise RuntimeError(f"assigned grad has data of a different size: the tensor is {shape_text(self)}, the gradient "
                               f"{shape_text(g)}")
        set_grad(self, value)

    @grad.deleter
    def grad(self):
        self.grad_ = None

    @property
    def data(self):
        cdef Tensor t = alias(self)
        if needs_grad(self):
            slot("cut")(".data", (self,))
        t.counter = VersionCounter.__new__(VersionCounter)
        return t

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            _refuse_value("Variable data has to be a tensor, but got", value)
        if not is_inexact((<Tensor>value).tid) and needs_grad(self):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        set_geometry(self, <Tensor>value)
        self.counter = None

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def __setattr__(self, name, value):
        PyObject_GenericSetAttr(<PyObject *>self, <PyObject *>name, <PyObject *>value)
        if (<Links *>self).attributes != NULL:
            expose(self)

    def __reduce_ex__(self, protocol):
        return slot("reduce")(self)

    def __deepcopy__(self, memo):
        return slot("deepcopy")(self, memo)

    @property
    def retains_grad(self):
        return (self.bits & RETAINS_GRAD) != 0

    @property
    def name(self):
        return None if self.extra is None else self.extra.get("name")

    def is_inference(self):
        """Whether the tensor was made in inference mode."""
        return (self.bits & INFERENCE) != 0

    def _is_view(self):
        return (self.bits & DIFF_VIEW) != 0

    def __hash__(self):
        return <size_t><PyObject *>self >> 4

    def __len__(self):
        if self.rank == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.sizes[0]

    def __iter__(self):
        return slot("iter")(self)

    def __contains__(self, item):
        return slot("contains")(self, item)

    def __bool__(self):
        return bool(self._only_element("Boolean value of Tensor"))

    def __int__(self):
        return int(_real(self, "int64_t"))

    def __float__(self):
        return float(_real(self, "double"))

    def __complex__(self):
        return complex(_number(self))

    def __index__(self):
        if not is_integral(self.tid) or self.count != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._only_element())

    def _only_element(self, what=None):
        if self.count != 1:
            if what is not None:
                raise RuntimeError(f"{what} with {'no' if self.count == 0 else 'more than one'} value"
                                   f"{'s' if self.count == 0 else ''} is ambiguous")
            raise RuntimeError(f"a Tensor with {self.count} elements cannot be converted to Scalar")
        if self.storage is None and self.extra is not None and "shown_device" in self.extra:
            return slot("item")(self)       # which a wrapper answers
        if self.storage is None:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no data")
        if not is_host(self.device_id):
            return self.cpu()._only_element(what)
        if flips_of(self.device_id):
            return self.clone()._only_element(what)
        return read_scalar(self.data, self.tid)


cdef object _number(Tensor t):
    """What float(), int() and complex() convert; array libraries rely on the ValueError."""
    if t.count != 1:
        raise ValueError("only one element tensors can be converted to Python scalars: this one has shape "
                         f"{shape_text(t)}. Take an element first, or use tolist().")
    return t._only_element()


cdef object _real(Tensor t, str c_type):
    cdef object v = _number(t)
    if not isinstance(v, complex):
        return v
    if v.imag != 0:
        raise RuntimeError(f"value cannot be converted to type {c_type} without overflow: {v} has an imaginary part. Take "
                           ".real or .abs() first.")
    return v.real


cdef int _refuse_value(str text, object value) except -1:
    """TypeError for what is no tensor."""
    raise TypeError(f"{text} {slot('as_words')(value)}")


cdef class Parameter(Tensor):
    """A Tensor that a Module lists among its parameters when it is assigned as an attribute."""

    def __init__(self, *args, **kwargs):
        slot("parameter")(self, *args, **kwargs)


@cython.final
cdef class Carried(Tensor):
    """What a level shows of a value that it carries; see levels.pyx."""

    def __init__(self, *args, **kwargs):
        raise TypeError("a carried value is made by the carry() of its level")


include "tensor_whole.pxi"
include "tensor_life.pxi"
include "tensor_making.pxi"
include "tensor_buffer.pxi"
include "tensor_values.pxi"
