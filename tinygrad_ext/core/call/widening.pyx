# cython: language_level=3
"""Calls with tensors that no kernel reads as they lie in memory, for every op in one place: of dtypes of plugins, of complex32, and
those that have the conjugate or the negative bit.

The op runs on float32 copies, and what it makes in float32 is rounded once, where the operands promote to the plugin's dtype
or the call asks for it. Those of complex32 are complex64, and what is real of it is rounded to float16. What only moves elements
runs on the codes as integers, so that they arrive as they were, a NaN's too. What the op wrote into a copy goes back into the
tensor. A tensor with one of the bits is read as a copy without it, and what is made of it has none; views keep the bits, since
they read no elements. Autograd, transforms and composites stand above, and see one call.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, POINTWISE, Op, forward
from tinygrad_ext.core.call.outputs cimport note_write
from tinygrad_ext.core.data.dtype cimport dtype, dtype_of, flips_of
from tinygrad_ext.core.data.promotion cimport Promotion, promotion_add, promotion_begin, promotion_result
from tinygrad_ext.core.data.tensor cimport Tensor, version_of
from tinygrad_ext.core.data.types cimport (
    A_BOOL, A_DTYPE, A_TENSOR, TGX_BOOL, TGX_C32, TGX_F16, TGX_F32, TGX_I64, is_coded, is_inexact, wide_of,
)
from tinygrad_ext.core.loops.copy cimport bits_of, cast, clone, copy_into, of_bits


cdef bint _is_coded(object o):
    return isinstance(o, Tensor) and is_coded((<Tensor>o).tid)


cdef bint _is_flipped(object o):
    return isinstance(o, Tensor) and flips_of((<Tensor>o).device_id)


cdef bint _is_read_otherwise(object o):
    return _is_coded(o) or _is_flipped(o)


cdef bint asks_for_coded(Op op, PyObject **args) except -1:
    cdef int i
    for i in range(op.nargs):
        o = <object>args[i]
        if op.args[i].kind == A_TENSOR:
            if _is_read_otherwise(o) or (isinstance(o, (list, tuple)) and any([_is_read_otherwise(t) for t in o])):
                return True
        elif op.args[i].kind == A_DTYPE and isinstance(o, dtype) and is_coded((<dtype>o).id):
            return True
    return op.kind == POINTWISE and is_coded(_result_dtype(op, args))        # float16 with a complex number


cdef object widened(Op op, PyObject **args):
    cdef PyObject *given[MAX_ARGS + 1]
    cdef bint moves = _moves(op, args)
    cdef list held = [], copies = []
    cdef int i, to
    to = _result_dtype(op, args)
    for i in range(op.nargs):
        o = <object>args[i]
        if op.args[i].kind == A_TENSOR:
            o = _read(o, copies, moves, to)
        elif op.args[i].kind == A_DTYPE and isinstance(o, dtype) and is_coded((<dtype>o).id) and not op.is_view:
            o = dtype_of(wide_of((<dtype>o).id))
        elif i == op.options + 4 and op.options >= 0:       # requires_grad, for which the caller looks
            o = False
        held.append(o)
        given[i] = <PyObject *>o
    if op.name == "aten::clone" and to < 0 and held[1] is None:        # the copy that was made to be read
        return held[0]
    result = forward(op, given)
    for before, copy, version in copies:
        if version_of(<Tensor>copy) != version and not moves:
            copy_into(<Tensor>before, <Tensor>copy)
            note_write(<Tensor>before)
    if op.name == "aten::contiguous" and result is held[0] and not _lie_alike(<Tensor><object>args[0], <Tensor>result):
        copies.clear()          # what was given lies otherwise than its copy, which is the answer
    return _rounded(result, to, moves, copies)


cdef bint _lie_alike(Tensor a, Tensor b) noexcept:
    cdef int i
    for i in range(a.rank):
        if a.strides[i] != b.strides[i] and a.sizes[i] != 1:
            return False
    return True


cdef int _result_dtype(Op op, PyObject **args) except -2:
    """The dtype that what is computed is rounded to, or -1 where it is none of these."""
    cdef Promotion p
    cdef int i
    promotion_begin(&p)
    for i in range(op.nargs):
        o = <object>args[i]
        if op.args[i].kind == A_DTYPE and isinstance(o, dtype):
            return (<dtype>o).id if is_coded((<dtype>o).id) else -1
        if op.args[i].kind == A_TENSOR:
            for t in o if isinstance(o, (list, tuple)) else (o,):
                if is_inexact((<Tensor>t).tid) if isinstance(t, Tensor) else op.kind == POINTWISE:
                    promotion_add(&p, t)
    if op.kind == POINTWISE and op.scalars_promote:
        for i in range(op.nscalars):
            promotion_add(&p, <object>args[op.scalars[i]])
    i = promotion_result(&p)
    return i if is_coded(i) else -1


cdef bint _moves(Op op, PyObject **args) except -1:
    """Whether the op moves elements of one of these dtypes, and nothing else."""
    cdef int i, found = -1
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if _is_flipped(o) or (isinstance(o, (list, tuple)) and any([_is_flipped(t) for t in o])):
            return False
    if op.is_view:
        return True
    if "moves" not in (op.record.tags or "").split():
        return False
    for i in range(op.nargs):
        o = <object>args[i]
        if op.args[i].kind == A_TENSOR:
            for t in o if isinstance(o, (list, tuple)) else (o,):
                if t is None or (isinstance(t, Tensor) and ((<Tensor>t).tid == TGX_BOOL or (<Tensor>t).tid == TGX_I64)):
                    continue
                if not _is_coded(t) or (found >= 0 and (<Tensor>t).tid != found):
                    return False
                found = (<Tensor>t).tid
        elif op.args[i].kind == A_BOOL and o is True:       # accumulate
            return False
    return found >= 0


cdef object _read(object o, list copies, bint moves, int to):
    """An operand as the op reads it; notes what stands for what."""
    cdef Tensor copy
    if isinstance(o, (list, tuple)):
        return tuple([_read(t, copies, moves, to) for t in o])
    if _is_flipped(o) and not _is_coded(o):
        copy = clone(<Tensor>o)
    elif _is_coded(o):
        copy = bits_of(<Tensor>o) if moves else cast(<Tensor>o, wide_of((<Tensor>o).tid))
    elif to == TGX_C32 and isinstance(o, Tensor) and (<Tensor>o).tid == TGX_F16:
        copy = cast(<Tensor>o, TGX_F32)
    else:
        return o
    copies.append((o, copy, version_of(copy)))
    return copy


cdef object _rounded(object result, int to, bint moves, list copies):
    """What the op made, in the dtypes that it would have."""
    if isinstance(result, (list, tuple)):
        row = [_rounded(r, to, moves, copies) for r in result]
        return tuple(row) if isinstance(result, tuple) else row
    if not isinstance(result, Tensor):
        return result
    for before, copy, _ in copies:
        if copy is result:
            return before
    if moves:
        return of_bits(<Tensor>result, (<Tensor>copies[0][0]).tid)
    if to == TGX_C32 and (<Tensor>result).tid == TGX_F32:
        return cast(<Tensor>result, TGX_F16)
    return cast(<Tensor>result, to) if to >= 0 and (<Tensor>result).tid == wide_of(to) else result
