# cython: language_level=3
"""PyTorch's promotion: the dtype in which operands of several dtypes, ranks and kinds are computed.

Tensors with dimensions, those without and numbers are promoted each among themselves, and the three results once at the end.
Rejected: promoting operand by operand. The order would count: a float64 without dimensions and an int64 tensor give
float64, though a float32 tensor as third operand makes all of them float32.
"""
from tinygrad_ext.core.data.dtype cimport complex_of, default_id, dtype_of, promoted
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport (
    TGX_BOOL, TGX_I64, is_complex, is_float, is_integral,
)


cdef void promotion_begin(Promotion *p) noexcept:
    p.dims = p.zero = p.number = -1


cdef int promotion_add(Promotion *p, object o) except -1:
    """Take one operand (Tensor, number or None) into account."""
    cdef Tensor t
    cdef int id
    if isinstance(o, Tensor):
        t = <Tensor>o
        if t.rank > 0:
            p.dims = t.tid if p.dims < 0 else promoted(p.dims, t.tid)
        else:
            p.zero = t.tid if p.zero < 0 else promoted(p.zero, t.tid)
        return 0
    if o is None:
        return 0
    if isinstance(o, bool):
        id = TGX_BOOL
    elif isinstance(o, float):
        id = default_id()
    elif isinstance(o, int):
        id = TGX_I64
    elif isinstance(o, complex):
        id = complex_of(default_id())
    else:
        item = o.item()                         # a NumPy scalar
        if type(item) is type(o):               # numpy.longdouble is its own item
            item = complex(o) if type(o).__name__ == "clongdouble" else float(o)
        return promotion_add(p, item)
    p.number = id if p.number < 0 else promoted(p.number, id)
    return 0


cdef inline int _combine(int higher, int lower) except -2:
    """PyTorch's rule: operands of lower rank matter only when they are of a higher kind of number."""
    if higher < 0:
        return lower
    if lower < 0 or is_complex(higher):
        return higher
    if is_float(higher):
        if is_complex(lower):
            return complex_of(higher)
        return higher
    if higher == TGX_BOOL or not is_integral(lower):
        return lower if is_complex(lower) else promoted(higher, lower)
    return higher


cdef int promotion_result(Promotion *p) except -2:
    return _combine(p.dims, _combine(p.zero, p.number))


def result_type(tensor1, tensor2):
    """dtype that an operation on the two operands (tensors or numbers) computes in."""
    cdef Promotion p
    promotion_begin(&p)
    for o in (tensor1, tensor2):
        if not isinstance(o, (Tensor, int, float, complex)) and not hasattr(o, "item"):
            raise TypeError(f"result_type(): arguments must be tensors or numbers, not {type(o).__name__}")
        promotion_add(&p, o)
    return dtype_of(promotion_result(&p))
