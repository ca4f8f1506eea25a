# The table of kernels is read, and the layout checked that it relies on. Part of kernel_call.pyx.

cdef Tensor _probe = Tensor.__new__(Tensor)
cdef size_t offset_of_fields = <char *>&_probe.data - <char *><PyObject *>_probe


cdef int _check_layout() except -1:
    """The fields of a Tensor must lie as those of a tgx_tensor."""
    cdef char *at = <char *>&_probe.data
    cdef tgx_tensor *t = <tgx_tensor *>at
    if (<char *>&_probe.sizes != <char *>&t.sizes or <char *>&_probe.strides != <char *>&t.strides
            or <char *>&_probe.count != <char *>&t.count or <char *>&_probe.rank != <char *>&t.rank
            or <char *>&_probe.tid != <char *>&t.dtype or <char *>&_probe.device_id != <char *>&t.device
            or <char *>&_probe.bits != <char *>&t.flags):
        raise ImportError("core/data/tensor.pxd and kernels/tgx.h disagree about the fields of a tensor: build all of the package "
                          "again")
    return 0


cdef int _load() except -1:
    cdef const tgx_kernel **row = <const tgx_kernel **>tgx_kernels
    while row[0] != NULL:
        register_pair(row[0].name.decode(), row[0])
        row += 1
    return 0


_check_layout()
_load()
set_kernel_caller(call_kernel, kernel_into)
