# cython: language_level=3
"""DLPack in both directions, and the parts that pickling and copying take a tensor apart into.

An exported capsule owns an alias of the tensor, which the consumer's call of the deleter drops; that may come from any
thread, so the deleter takes the GIL. The tensor itself would not do: it may be given other memory while the consumer reads.
An imported capsule is owned by the storage made over its memory. NumPy gets arrays by the buffer protocol; its own C
interface would make its headers a need of the build.
"""
from cpython.exc cimport PyErr_Occurred
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.data.devices cimport copy_bytes, storage_on
from tinygrad_ext.core.data.dtype cimport CODED, CPU, META, device_flipped, device_for, device_of, dtype_id, dtype_of, flips_of, is_host
from tinygrad_ext.core.data.geometry cimport ANY_ROOM, LARGEST_MEMORY, reach, read_numbers
from tinygrad_ext.core.data.storage cimport Storage, borrow_storage, new_storage
from tinygrad_ext.core.call.places cimport here, place_text
from tinygrad_ext.core.call.subclass cimport bare
from tinygrad_ext.core.loops.copy cimport clone
from tinygrad_ext.core.data.tensor cimport (
    READONLY, Carried, Parameter, Tensor, alias, blank, bump, dtype_title, empty, exact, finish, flips_words, needs_grad,
    same_sizes, set_geometry, shown_device,
)
from tinygrad_ext.core.data.types cimport (
    ITEMSIZE, TGX_BF16, TGX_BOOL, TGX_C32, TGX_MAX_DIMS, TGX_NTYPES, int32_t, int64_t, is_complex, is_integral, is_signed,
    uint16_t, uint32_t, uint64_t, uint8_t,
)

cdef extern from "dlpack.h":
    enum: DL_CPU, DL_READ_ONLY, DL_IS_COPIED, DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT, DL_COMPLEX, DL_BOOL
    ctypedef struct DLDevice:
        int32_t device_type, device_id
    ctypedef struct DLDataType:
        uint8_t code, bits
        uint16_t lanes
    ctypedef struct DLPackVersion:
        uint32_t major, minor
    ctypedef struct DLTensor:
        void *data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    ctypedef struct DLManagedTensor:
        DLTensor dl_tensor
        void *manager_ctx
        void (*deleter)(DLManagedTensor *) noexcept
    ctypedef struct DLManagedTensorVersioned:
        DLPackVersion version
        void *manager_ctx
        void (*deleter)(DLManagedTensorVersioned *) noexcept
        uint64_t flags
        DLTensor dl_tensor
    ctypedef void (*SetError "tgx_set_error")(void *context, const char *kind, const char *message) noexcept
    ctypedef struct ExchangeHeader "DLPackExchangeAPIHeader":
        DLPackVersion version
    ctypedef struct ExchangeAPI "DLPackExchangeAPI":
        ExchangeHeader header
        int (*managed_tensor_allocator)(DLTensor *, DLManagedTensorVersioned **, void *, SetError) noexcept
        int (*managed_tensor_from_py_object_no_sync)(void *, DLManagedTensorVersioned **) except -1
        int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *, void **) except -1
        int (*dltensor_from_py_object_no_sync)(void *, DLTensor *) except -1
        int (*current_work_stream)(int, int32_t, void **) noexcept

cdef extern from *:
    ctypedef PyObject *(*newfunc)(PyTypeObject *, PyObject *, PyObject *) except NULL
    ctypedef struct CType "PyTypeObject":
        newfunc tp_new

cdef int _code_of(int dtype) noexcept:
    if dtype == TGX_BOOL:
        return DL_BOOL
    if is_integral(dtype):
        return DL_INT if is_signed(dtype) else DL_UINT
    if is_complex(dtype):
        return DL_COMPLEX
    return DL_BFLOAT if dtype == TGX_BF16 else DL_FLOAT


cdef dict _CODE_NAMES = {DL_INT: "int", DL_UINT: "uint", DL_FLOAT: "float", 3: "opaque", DL_BFLOAT: "bfloat",
                         DL_COMPLEX: "complex",
                         DL_BOOL: "bool"}


# ---- export --------------------------------------------------------------------------------------------------------

cdef int _describe(DLTensor *d, Tensor t) except -1:
    """Fill d from t; its shape and strides get memory of their own, freed by `_forget`."""
    cdef int64_t *room = <int64_t *>malloc((2 * t.rank + 1) * sizeof(int64_t))
    if room == NULL:
        raise MemoryError
    memcpy(room, t.sizes, t.rank * sizeof(int64_t))
    memcpy(room + t.rank, t.strides, t.rank * sizeof(int64_t))
    d.data = t.data
    d.device.device_type, d.device.device_id = DL_CPU, 0
    d.ndim = t.rank
    d.dtype.code, d.dtype.bits, d.dtype.lanes = _code_of(t.tid), <uint8_t>(8 * ITEMSIZE[t.tid]), 1
    d.shape, d.strides, d.byte_offset = room, room + t.rank, 0
    return 0


cdef void _forget(DLTensor *d, void *owner) noexcept with gil:
    free(d.shape)
    Py_DECREF(<object>owner)


cdef void _delete_old(DLManagedTensor *m) noexcept:
    _forget(&m.dl_tensor, m.manager_ctx)
    free(m)


cdef void _delete_versioned(DLManagedTensorVersioned *m) noexcept:
    _forget(&m.dl_tensor, m.manager_ctx)
    free(m)


cdef void _unused_old(PyObject *capsule) noexcept:
    """A capsule that nobody consumed dies: free what it holds."""
    cdef DLManagedTensor *m
    if PyCapsule_IsValid(<object>capsule, "dltensor"):
        m = <DLManagedTensor *>PyCapsule_GetPointer(<object>capsule, "dltensor")
        m.deleter(m)


cdef void _unused_versioned(PyObject *capsule) noexcept:
    cdef DLManagedTensorVersioned *m
    if PyCapsule_IsValid(<object>capsule, "dltensor_versioned"):
        m = <DLManagedTensorVersioned *>PyCapsule_GetPointer(<object>capsule, "dltensor_versioned")
        m.deleter(m)


ctypedef void (*destructor)(object) noexcept


cdef DLManagedTensorVersioned *_lend(Tensor t, bint copied) except NULL:
    """What another library gives back by its deleter. An alias keeps the storage, whatever t itself changes to."""
    cdef DLManagedTensorVersioned *made = <DLManagedTensorVersioned *>malloc(sizeof(DLManagedTensorVersioned))
    if made == NULL:
        raise MemoryError
    t = alias(t)
    _describe(&made.dl_tensor, t)
    made.version.major, made.version.minor = 1, 0
    made.flags = (DL_READ_ONLY if t.bits & READONLY else 0) | (DL_IS_COPIED if copied else 0)
    made.manager_ctx, made.deleter = <void *>t, _delete_versioned
    Py_INCREF(t)
    return made


def export_dlpack(Tensor t not None, bint versioned, bint copied):
    """A capsule for another library: of protocol 1.0 if versioned, else of the one without versions."""
    cdef DLManagedTensor *old
    if versioned:
        return PyCapsule_New(_lend(t, copied), "dltensor_versioned", <destructor>_unused_versioned)
    t = alias(t)        # keeps this storage, whatever the tensor itself changes to
    if t.bits & READONLY:
        raise BufferError("the tensor is read-only, which a DLPack capsule without version cannot say: ask for one "
                          "with "
                          "max_version=(1, 0), or clone() the tensor")
    old = <DLManagedTensor *>malloc(sizeof(DLManagedTensor))
    if old == NULL:
        raise MemoryError
    _describe(&old.dl_tensor, t)
    old.manager_ctx, old.deleter = <void *>t, _delete_old
    Py_INCREF(t)
    return PyCapsule_New(old, "dltensor", <destructor>_unused_old)


include "interop_lent.pxi"
include "interop_exchange.pxi"


# ---- storages, for pickle and copy ---------------------------------------------------------------------------------

def storage_of(Tensor t not None):
    """The storage object behind t; None on meta."""
    return t.storage


def flips(Tensor t not None):
    """1 for a tensor with the conjugate bit, 2 with the negative bit, 3 with both, 0 with none."""
    return flips_of(t.device_id)


def window(object storage, dt, shape, stride, int64_t offset, bint requires_grad=False, cls=Tensor, int flips=0):
    """A leaf over a storage (on meta when that is None), with the conjugate (1) and negative (2) bits.

    RuntimeError when the window does not lie inside it, or the dtype has no such bits.
    """
    cdef Tensor t = bare(cls)
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int64_t[TGX_MAX_DIMS] strides
    cdef int rank = read_numbers(shape, sizes, "tensor", "shape")
    cdef Storage s = storage
    cdef Tensor plain
    if read_numbers(stride, strides, "tensor", "stride") != rank:
        raise RuntimeError(f"a tensor cannot have shape {tuple(shape)} and strides {tuple(stride)}: as many of each")
    plain = blank(rank)
    plain.tid = dtype_id(dt)
    memcpy(plain.sizes, sizes, rank * sizeof(int64_t))
    memcpy(plain.strides, strides, rank * sizeof(int64_t))
    reach(sizes, strides, rank, offset, ITEMSIZE[plain.tid], ANY_ROOM if s is None else s.nbytes, "tensor")
    finish(plain)
    if s is None:
        plain.device_id = META
    else:
        plain.storage, plain.data = s, s.data + offset * ITEMSIZE[plain.tid]
        plain.device_id = device_for(plain.tid, s.device_id)
        if flips:
            if not 0 < flips <= 3 or plain.device_id > META and not is_host(plain.device_id) or (
                    not is_complex(plain.tid) and (flips & 1 or plain.tid == TGX_BOOL)):
                raise RuntimeError(f"a tensor of {dt} cannot have the conjugate and negative bits {flips}")
            plain.device_id = device_flipped(plain.tid, flips)
        if s.readonly:
            plain.bits |= READONLY
    set_geometry(t, plain)
    if requires_grad:
        t.requires_grad = True
    return t


def is_readonly(Tensor t not None):
    """Whether in-place writes are refused because another library lent the memory."""
    return (t.bits & READONLY) != 0


def share_memory_from(Tensor t not None, Tensor source not None):
    """Let t be the window on memory that source is, or a wrapper that says to be where source does, keeping t's identity."""
    set_geometry(t, source)
    if source.extra is not None and "shown_device" in source.extra:
        t.extra = {**(t.extra or {}), "shown_device": source.extra["shown_device"]}
    return t


def resize(Tensor t not None, shape):
    """Change t's shape in place: row-major, over its own storage where that is large enough, else over a copy.

    A tensor that has the shape is left as it is, in whatever order its elements lie.
    """
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int rank = read_numbers(shape, sizes, "resize_", "size")
    cdef int64_t start = t.storage_offset(), room = 0
    cdef int64_t nbytes = reach(sizes, NULL, rank, 0, ITEMSIZE[t.tid], ANY_ROOM, "resize_")
    cdef Tensor fresh = blank(rank)
    fresh.tid, fresh.device_id = t.tid, t.device_id
    memcpy(fresh.sizes, sizes, rank * sizeof(int64_t))
    fill_row_strides(fresh)
    finish(fresh)
    if same_sizes(t, fresh) and (t.storage is not None or t.device_id):
        return t
    if t.storage is None and t.device_id == 0:      # a tensor of __new__, which has no memory yet
        fresh.storage = new_storage(nbytes)
        fresh.data = fresh.storage.data
    elif t.storage is None:
        fresh.storage, fresh.data = None, NULL
    else:
        room = max(0, <int64_t>t.storage.nbytes - start * ITEMSIZE[t.tid])
        fresh.storage, fresh.data = t.storage, t.data
        fresh.bits |= t.bits & READONLY
    if t.device_id > META and not is_host(t.device_id) and nbytes > room:
        fresh.storage = storage_on(t.device_id, nbytes)
        fresh.data = fresh.storage.data
        copy_bytes(fresh.storage, t.storage, t.storage.nbytes - room, room)
    elif t.storage is not None and nbytes > room:
        if t.storage.owner is not None:
            raise RuntimeError("resize_: Trying to resize storage that is not resizable: its memory was lent by "
                               "another library. "
                               "clone() the tensor first.")
        fresh.storage = new_storage(nbytes)
        fresh.data = fresh.storage.data
        memcpy(fresh.data, t.data, room)
    set_geometry(t, fresh)
    bump(t)
    return t


cdef void fill_row_strides(Tensor t) noexcept:
    """Strides of a row-major tensor; that they fit was judged before."""
    cdef int i
    cdef int64_t step = 1
    for i in range(t.rank - 1, -1, -1):
        t.strides[i] = step
        step *= max(t.sizes[i], 1)


def row_strides(shape):
    """Strides of a row-major tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


# ---- Parameter of a subclass ---------------------------------------------------------------------------------------

cdef newfunc _plain_new = (<CType *>Parameter).tp_new
cdef object _class_for = None, _carried_parameter = None


def set_parameter_class(fn, carried):
    """The functions that give the class of Parameter(data) for the class of data, and the Parameter of what a level carries."""
    global _class_for, _carried_parameter
    _class_for, _carried_parameter = fn, carried


cdef PyObject *_new_parameter(PyTypeObject *cls, PyObject *args, PyObject *kwargs) except NULL:
    """Parameter(data) keeps the class of data: the result is an instance of both."""
    if <object>cls is Parameter:
        data = (<tuple>args)[0] if len(<tuple>args) else (<dict>kwargs).get("data") if kwargs != NULL else None
        if isinstance(data, Carried):
            made = _carried_parameter(*<tuple>args, **(<dict>kwargs if kwargs != NULL else {}))
            Py_INCREF(made)
            return <PyObject *>made
        if isinstance(data, Tensor) and not exact(data):
            made = _class_for(type(data))
            return _plain_new(<PyTypeObject *>made, args, kwargs)
    return _plain_new(cls, args, kwargs)


(<CType *>Parameter).tp_new = _new_parameter


# ---- NumPy ---------------------------------------------------------------------------------------------------------

cdef object _asarray = None


def numpy(Tensor self, *, bint force=False):
    """A NumPy array over the tensor's memory; read-only where the tensor is.

    ``force=True`` detaches first.
    Raises RuntimeError for a tensor that requires grad, unless grad mode is off; TypeError for a dtype NumPy has not.
    """
    global _asarray
    if _asarray is None:
        from numpy import asarray as _asarray
    if needs_grad(self):
        if not force and not state().no_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        self = alias(self)
    if self.tid == TGX_BF16:
        raise TypeError("Got unsupported ScalarType BFloat16: NumPy has no such dtype. Convert first, for example "
                        "with .float().")
    if flips_of(self.device_id):
        if not force:
            raise RuntimeError(f"Can't call numpy() on Tensor that has {flips_words(self)} bit set. Use tensor.resolve_"
                               f"{'conj' if flips_of(self.device_id) & 1 else 'neg'}().numpy() instead.")
        self = clone(self)
    if self.device_id == CODED:
        raise TypeError(f"Got unsupported ScalarType {dtype_title(self.tid)}: NumPy has no such dtype. Convert first, for example with "
                        ".float().")
    if self.device_id != 0:
        if self.device_id == META and shown_device(self) is not device_of(META):
            raise RuntimeError(f".numpy() is not supported for tensor subclasses that wrap other tensors, as {type(self).__name__} "
                               "does: call it on what is wrapped")
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. "
                        + ("It has no data: make it on the cpu." if self.storage is None
                           else "Use Tensor.cpu() to copy the tensor to host memory first."))
    return _asarray(PyMemoryView_FromObject(self))
