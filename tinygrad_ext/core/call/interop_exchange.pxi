# DLPack's table of functions for other libraries' C code (DLPack 1.3): tensors without a capsule or a method between. Part of
# interop.pyx. A type that has one says so by `__dlpack_c_exchange_api__`; ours is asked so, and others are asked so first.

cdef int _check_lendable(object o) except -1:
    cdef Tensor t
    if not isinstance(o, Tensor):
        raise TypeError(f"expected a Tensor, got {type(o).__name__}")
    t = <Tensor>o
    if isinstance(t, Carried):
        raise BufferError("a value that a transform or a capture carries has no memory to be lent: keep to operations on tensors "
                          f"there ({place_text(here())})")
    if needs_grad(t) and not state().no_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return _check_host(t)


cdef int _check_host(Tensor t) except -1:
    if t.device_id == META:
        raise BufferError("Can't export a meta tensor: it has no data. Make it on the cpu.")
    if flips_of(t.device_id):
        raise BufferError(f"Can't export tensors with the {flips_words(t)} bit set: resolve_conj() or resolve_neg() copies it")
    if t.tid == TGX_C32:
        return 0
    if t.device_id == CODED:
        raise BufferError(f"Can't export {dtype_of(t.tid).name}, which other libraries do not know: convert first, for example with "
                          ".float()")
    if t.device_id != 0:
        raise BufferError(f"Can't export a tensor on {t.device}: copy it first, with cpu()")
    return 0


def dlpack(Tensor self not None, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule for another library.

    ``max_version`` of (1, 0) and above gives the versioned protocol, which can say that the memory is read-only.
    Raises BufferError for tensors that require grad, that hold no data, or for another device than the cpu.
    """
    if needs_grad(self):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    _check_host(self)
    if stream is not None and type(stream) is not int:
        raise TypeError(f"__dlpack__(): stream must be int or none, got {type(stream).__name__}")
    if stream not in (None, -1):    # -1: nothing is waited for
        raise AssertionError(f"stream should be None on cpu, got {stream!r}")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"Can't export to the device {tuple(dl_device)!r}: this tensor is on the cpu, which is (1, 0)")
    if copy:
        self = self.clone()
    return export_dlpack(self, max_version is not None and max_version[0] >= 1, bool(copy))


def dlpack_device(Tensor self not None):
    """(type, number) of the device in DLPack's terms; the cpu is (1, 0)."""
    if self.device_id == META:
        raise BufferError("a meta tensor has no DLPack device: it holds no data. Make it on the cpu.")
    _check_host(self)
    return _HOST


cdef tuple _HOST = (1, 0)


cdef int _exchange_lend(void *o, DLManagedTensorVersioned **out) except -1:
    _check_lendable(<object>o)
    out[0] = _lend(<Tensor>o, False)
    return 0


cdef int _exchange_look(void *o, DLTensor *out) except -1:
    """Borrowed: good as long as the tensor is, and keeps its window."""
    cdef Tensor t
    _check_lendable(<object>o)
    t = <Tensor>o
    out.data = t.data
    out.device.device_type, out.device.device_id = DL_CPU, 0
    out.ndim = t.rank
    out.dtype.code, out.dtype.bits, out.dtype.lanes = _code_of(t.tid), <uint8_t>(8 * ITEMSIZE[t.tid]), 1
    out.shape, out.strides, out.byte_offset = t.sizes, t.strides, 0
    return 0


cdef int _exchange_take(DLManagedTensorVersioned *lent, void **out) except -1:
    t = _borrow(lent)
    Py_INCREF(t)
    out[0] = <void *>t
    return 0


cdef Tensor _borrow(DLManagedTensorVersioned *lent):
    cdef DLPackOwner owner
    if lent.version.major > 1:
        raise BufferError(f"from_dlpack: the memory is lent by DLPack {lent.version.major}.{lent.version.minor}, and version 1 is "
                          "the newest understood")
    owner = DLPackOwner.__new__(DLPackOwner)
    owner.new = lent
    return _over(&lent.dl_tensor, owner, (lent.flags & DL_READ_ONLY) != 0)


cdef int _exchange_make(DLTensor *like, DLManagedTensorVersioned **out, void *context, SetError set_error) noexcept with gil:
    """A fresh tensor; an error goes to the asker's function, since it may not know Python, nor hold its lock."""
    try:
        if like.device.device_type != DL_CPU:
            raise BufferError(f"a tensor on a device of type {like.device.device_type} was asked for; only the cpu (type 1) is there")
        if not 0 <= like.ndim <= TGX_MAX_DIMS or (like.ndim and like.shape == NULL):
            raise BufferError(f"{like.ndim} dimensions are not possible; from 0 to {TGX_MAX_DIMS} are")
        out[0] = _lend(empty(like.shape, like.ndim, _dtype_of(&like.dtype), 0), False)
        return 0
    except Exception as error:
        kind, text = type(error).__name__.encode(), str(error).encode()
        if set_error != NULL:
            set_error(context, kind, text)
        return -1


cdef int _exchange_stream(int device_type, int32_t device_id, void **out) noexcept:
    out[0] = NULL           # the cpu works in order
    return 0


cdef ExchangeAPI _exchange
_exchange.header.version.major, _exchange.header.version.minor = 1, 3
_exchange.managed_tensor_allocator = _exchange_make
_exchange.managed_tensor_from_py_object_no_sync = _exchange_lend
_exchange.managed_tensor_to_py_object_no_sync = _exchange_take
_exchange.dltensor_from_py_object_no_sync = _exchange_look
_exchange.current_work_stream = _exchange_stream
exchange_api = PyCapsule_New(&_exchange, "dlpack_exchange_api", NULL)

cdef dict _exchanges = {}       # type -> its capsule, or None


def exchanged(o):
    """A tensor over what o's type lends by its own table; None where it has none, or one that is not understood."""
    cdef ExchangeAPI *api
    cdef DLManagedTensorVersioned *lent = NULL
    cls = type(o)
    if cls not in _exchanges:
        found = getattr(cls, "__dlpack_c_exchange_api__", None)
        _exchanges[cls] = found if PyCapsule_IsValid(found, "dlpack_exchange_api") else None
    capsule = _exchanges[cls]
    if capsule is None or (not isinstance(o, Tensor) and getattr(o, "requires_grad", False)):     # its own method refuses it
        return None
    api = <ExchangeAPI *>PyCapsule_GetPointer(capsule, "dlpack_exchange_api")
    if api.header.version.major != 1 or api.managed_tensor_from_py_object_no_sync == NULL:
        return None
    if api.managed_tensor_from_py_object_no_sync(<void *>o, &lent) != 0 or lent == NULL:
        raise_pending(f"from_dlpack: {cls.__name__} lent nothing")
    if lent.dl_tensor.device.device_type != DL_CPU:
        kind = lent.dl_tensor.device.device_type
        if lent.deleter != NULL:
            lent.deleter(lent)
        raise BufferError(f"from_dlpack: the data is on a device of type {kind}; only the cpu (type 1) can be read. Move it to the "
                          "cpu in the library it comes from.")
    return _borrow(lent)


cdef int raise_pending(str otherwise) except -1:
    if PyErr_Occurred():
        return -1
    raise BufferError(otherwise)
