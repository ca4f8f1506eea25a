# cython: language_level=3
"""The dtypes that no kernel computes in: how the codes of those that plugins bring become float32 and back, and complex32 complex64.

A tensor of such a dtype stands on the device number CODED, which shows as the cpu. Whatever reads elements asks first
whether its tensors are on the cpu, so nothing reads a code for a number, and the built-in dtypes pay for none of this:
the calls that used to leave the short way for a plugin's device leave it for these too (call/widening.pyx).

Rejected: loops of each op for each such dtype (a plugin would have to be compiled against all of them), and codes in a tensor of
uint8 with a scale beside it (autograd, printing, files and promotion would all see integers).
"""
from tinygrad_ext.core.data.dtype cimport dtype_of
from tinygrad_ext.core.data.types cimport TGX_C32, TGX_CODED, TGX_MOST, int64_t, tgx_f16_to_f32, tgx_f32_to_f16, uint16_t

from array import array

from tinygrad_ext.core.data.coded_tables import facts, side_of
from tinygrad_ext.core.data.dtype import add_dtype, drop_dtype

cdef extern from "coded.h" nogil:
    int tgx_coded_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux)
    int tgx_coded_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux)

cdef list _rows = [None] * (TGX_MOST - TGX_CODED)
_STEP, _CODE, _VALUE = "f", "H", "f"


cdef class Row:
    pass


cdef Row row_of(int dtype):
    row = _rows[dtype - TGX_CODED]
    if row is None:
        raise RuntimeError(f"the dtype {dtype_of(dtype).name} is gone: what brought it was unloaded. Load it again: "
                           "plugins.enable(name), or library.register_dtype()")
    return <Row>row


cdef bint is_here(int dtype) noexcept:
    return dtype == TGX_C32 or _rows[dtype - TGX_CODED] is not None


cdef object coded_get(const char *p, int dtype):
    """The number that a code stands for."""
    cdef tgx_scalar aux
    cdef float f
    cdef char *data[2]
    cdef ptrdiff_t strides[2]
    if dtype == TGX_C32:
        return complex(tgx_f16_to_f32((<uint16_t *>p)[0]), tgx_f16_to_f32((<uint16_t *>p)[1]))
    aux = aux_of(row_of(dtype))
    data[0], data[1], strides[0], strides[1] = <char *>&f, <char *>p, 0, 0
    tgx_coded_widen(data, strides, 1, &aux)
    return f


cdef int coded_put(char *p, int dtype, double f, double im) noexcept:
    """Store a number as a code; nothing happens when the dtype is gone, which whoever made room has noticed."""
    cdef tgx_scalar aux
    cdef float one = <float>f
    cdef char *data[2]
    cdef ptrdiff_t strides[2]
    if dtype == TGX_C32:
        (<uint16_t *>p)[0], (<uint16_t *>p)[1] = tgx_f32_to_f16(one), tgx_f32_to_f16(<float>im)
        return 0
    row = _rows[dtype - TGX_CODED]
    if row is not None:
        aux = aux_of(<Row>row)
        data[0], data[1], strides[0], strides[1] = p, <char *>&one, 0, 0
        tgx_coded_narrow(data, strides, 1, &aux)
    return 0


# ---- bringing ------------------------------------------------------------------------------------------------------

def bring(str name, int itemsize, values, widen, narrow, owner):
    """Make a dtype of a name. values: of each code; widen, narrow: addresses of functions, or 0. Returns the dtype."""
    cdef Row row = Row.__new__(Row)
    row.c.itemsize = itemsize
    row.c.widen, row.c.narrow = <tgx_widen_fn><size_t>widen, <tgx_narrow_fn><size_t>narrow
    row.owner, row.kept = owner, []
    if values is None:
        values = _widened(row)
    row.c.values = <float *><size_t>_held(row, _VALUE, values)
    for side in range(2):
        steps, codes, nan = side_of(values, side)
        row.c.steps[<int>side] = <float *><size_t>_held(row, _STEP, steps)
        row.c.codes[<int>side] = <uint16_t *><size_t>_held(row, _CODE, codes)
        row.c.nsteps[<int>side], row.c.nan[<int>side] = len(steps), nan
    made = add_dtype(name, itemsize, facts(values, 8 * itemsize))
    _rows[<int>made.id - TGX_CODED] = row
    return made


def take_back(str name):
    """Undo `bring`. Tensors of the dtype keep their codes, and nobody knows any more what they stand for."""
    _rows[drop_dtype(name) - TGX_CODED] = None


def owner_of(dtype):
    """Who brought a dtype; None for a built-in one and for one that is gone."""
    row = _rows[<int>dtype.id - TGX_CODED] if dtype.id >= TGX_CODED else None
    return None if row is None else (<Row>row).owner


cdef object _held(Row row, str code, numbers):
    """The address of numbers as C has them, kept as long as the row."""
    kept = array(code, numbers)
    row.kept.append(kept)
    return kept.buffer_info()[0]


cdef list _widened(Row row):
    """What the plugin's own function makes of every code."""
    cdef int64_t n = 1 << 8 * row.c.itemsize
    codes, numbers = array("B" if row.c.itemsize == 1 else "H", range(n)), array("f", bytes(4 * n))
    row.c.widen(<void *><size_t>codes.buffer_info()[0], <float *><size_t>numbers.buffer_info()[0], n)
    return numbers.tolist()
