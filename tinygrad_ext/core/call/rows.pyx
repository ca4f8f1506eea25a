# cython: language_level=3
"""Calls with tensors on a device that a plugin brings.

The op's row for the device computes: a Python function of the op's arguments. What needs no kernel goes without one: views
change sizes and strides only, copies go by the device's memory (core/loops/copy), factories make their elements on the cpu, as
do views that have to copy (reshape), and an op that returns no tensor reads a copy there. Everything else is refused by
name: a device that silently computed on the cpu would hide what it lacks.

What a row returns is code of somebody else's: it is compared with what the op makes of meta tensors, and each tensor
becomes one of its own, so that history is never hung on an argument or on a tensor that the plugin keeps.
"""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t
from tinygrad_ext.core.loops.copy cimport copy_into
from tinygrad_ext.core.data.devices cimport check_here, is_of_now
from tinygrad_ext.core.call.dispatch cimport KERNEL, MAX_ARGS, Op, forward, set_on_device, state, tgx_state
from tinygrad_ext.core.data.dtype cimport CPU, META, device, device_id, device_of, dtype_of
from tinygrad_ext.core.data.tensor cimport Tensor, alias, empty_like, shape_text
from tinygrad_ext.core.data.types cimport A_DEVICE
from tinygrad_ext.core.call.widening cimport asks_for_coded, widened

from tinygrad_ext.core.data.devices import owner_of


cdef object on_device(Op op, PyObject **args, PyObject *out):
    """The result on the plugin's device that the tensors are on, or that a factory is asked for; else NotImplemented.

    A target is not written to: devices refuse it, and with dtypes of plugins (widening.pyx) whoever calls fills it.
    """
    cdef int where
    if asks_for_coded(op, args):
        return widened(op, args)
    where = _device(op, args)
    if where <= META:
        return NotImplemented
    if out != NULL:
        raise RuntimeError(f"{op.title}(): Expected out tensor to have device {device_of(where)}, but got "
                           f"{(<Tensor><object>out).device} instead")
    check_here(where)
    fn = _row(op, where)
    if fn is not None:
        return _computed(op, args, fn, where)
    if op.is_factory or op.is_view or op.any_device:        # the last two where they have to copy
        return _moved(_on(op, args, CPU), where, False)
    if op.kind == KERNEL and op.schema.returns and all([r.type != "Tensor" for r in op.schema.returns]):
        return _on(op, args, CPU)
    raise NotImplementedError(f"Could not run '{op.name}' with arguments from the '{_type(where)}' backend: {owner_of(where)}, "
                              f"which brings the device, has no kernel for it. Register one, library.impl('{op.name}', "
                              f"'{_type(where)}', function), or compute on the cpu, tensor.cpu().")


cdef str _type(int where):
    return (<device>device_of(where)).type


# ---- where ---------------------------------------------------------------------------------------------------------

cdef int _device(Op op, PyObject **args) except -1:
    cdef int i
    if op.is_factory:
        for i in range(op.nargs):
            if op.args[i].kind == A_DEVICE and args[i] != <PyObject *>None:
                return device_id(<object>args[i])
    return _common_device(op, args)


cdef int _common_device(Op op, PyObject **args) except -1:
    """RuntimeError for tensors on several; those of the cpu without dimensions go with any."""
    cdef int found = -1, i
    cdef Tensor t
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        for item in o if isinstance(o, (list, tuple)) else (o,):
            if not isinstance(item, Tensor) or ((<Tensor>item).device_id == CPU and (<Tensor>item).rank == 0):
                continue
            t = <Tensor>item
            if found >= 0 and t.device_id != found:
                raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                                   f"{device_of(found)} and {t.device}! {op.title}() takes them from one: move one, as with "
                                   f".to('{device_of(found)}')")
            found = t.device_id
    return max(found, CPU)


cdef object _row(Op op, int where):
    """The function that computes the op on a device, or on whichever has none of its own; None: there is none."""
    if op.rows is None:
        return None
    return op.rows.get(_type(where)) or op.rows.get(None)


cdef object _moved(object o, int where, bint scalars_only):
    """Tensors, alone or in a list, as copies on a device; anything else as it is."""
    cdef Tensor t, copy
    if isinstance(o, (list, tuple)):
        row = [_moved(item, where, scalars_only) for item in o]
        return tuple(row) if isinstance(o, tuple) else row
    if not isinstance(o, Tensor) or (<Tensor>o).device_id == where or (scalars_only and (<Tensor>o).rank):
        return o
    t = alias(<Tensor>o)
    t.device_id = where
    copy = empty_like(t, t.tid)
    copy_into(copy, <Tensor>o)
    return copy


cdef object _on(Op op, PyObject **args, int where):
    """The op on copies of the arguments on the cpu, or on meta."""
    cdef PyObject *given[MAX_ARGS + 1]
    cdef list copies = [_moved(<object>args[i], where, False) for i in range(op.nargs)]
    cdef int i
    for i in range(op.nargs):
        if op.args[i].kind == A_DEVICE:
            copies[i] = device_of(where)
        given[i] = <PyObject *>copies[i]
    return forward(op, given)


# ---- by a row ------------------------------------------------------------------------------------------------------

cdef object _computed(Op op, PyObject **args, object fn, int where):
    cdef list given = [_moved(<object>args[i], where, True) for i in range(op.nargs)]
    cdef object wanted = None
    for o in given:
        _check_now(op, o, where)
    if op.custom is not None or not any([r.type.startswith("Tensor") for r in op.schema.returns]):
        return _checked(op, _alone(op, fn, given), where)       # a custom op judges results by its schema itself
    try:
        wanted = _on(op, args, META)        # refuses wrong arguments, too
    except NotImplementedError:             # only the elements tell
        pass
    return _judged(op, _alone(op, fn, given), wanted, where)


cdef int _check_now(Op op, object o, int where) except -1:
    """Refuse memory that is not of what brings the device now: its kernels would read an address that is none of theirs."""
    if isinstance(o, (list, tuple)):
        for item in o:
            _check_now(op, item, where)
    elif isinstance(o, Tensor) and (<Tensor>o).device_id == where and not is_of_now((<Tensor>o).storage):
        raise RuntimeError(f"{op.title}(): a tensor was made on {device_of(where)} before the device went and came back: clone() it")
    return 0


cdef object _alone(Op op, object fn, list args):
    """fn(*args): nobody is asked about what it calls, and autograd records none of it."""
    cdef tgx_state *st = state()
    cdef uint32_t flags = st.flags
    cdef int32_t active = st.active
    cdef uint8_t no_grad = st.no_grad
    cdef int i
    keywords = {<object>op.args[i].name: args[i] for i in range(op.npositional, op.nargs)}
    st.no_grad, st.flags, st.active = 1, 0, 0
    st.below += 1
    try:
        return fn(*args[:op.npositional], **keywords)
    finally:
        st.flags, st.active, st.no_grad = flags, active, no_grad
        st.below -= 1


cdef object _checked(Op op, object result, int where):
    """A kernel's result, whose tensors are on the kernel's device."""
    for item in result if isinstance(result, (list, tuple)) else (result,):
        if isinstance(item, Tensor) and (<Tensor>item).device_id != where:
            raise RuntimeError(f"{op.name}: the kernel of the device {device_of(where)} returned a tensor on {item.device}: make "
                               f"it on the device, as with empty(..., device='{device_of(where)}')")
    return result


cdef object _judged(Op op, object result, object wanted, int where):
    """The results of a built-in op's row. `wanted`: those of meta tensors, or None."""
    cdef Py_ssize_t i, n = len(op.schema.returns)
    if n == 1:
        return _one(op, _checked(op, result, where), wanted, op.schema.returns[0].type, where)
    if not isinstance(result, (list, tuple)) or len(result) != n:
        raise _wrong(op, where, f"{n} results", result)
    result = tuple(_checked(op, result, where))
    return tuple([_one(op, result[i], None if wanted is None else wanted[i], op.schema.returns[i].type, where) for i in range(n)])


cdef object _one(Op op, object result, object wanted, str kind, int where):
    """One result as a tensor, or tensors, of its own."""
    cdef Tensor t, model
    if kind.startswith("Tensor["):
        if not isinstance(result, (list, tuple)) or (wanted is not None and len(result) != len(wanted)):
            raise _wrong(op, where, "a list of tensors" if wanted is None else f"a list of {len(wanted)} tensors", result)
        return tuple([_one(op, result[i], None if wanted is None else wanted[i], "Tensor", where) for i in range(len(result))])
    if not kind.startswith("Tensor") or (result is None and wanted is None and len(op.schema.returns) > 1):
        return result
    if not isinstance(result, Tensor):
        raise _wrong(op, where, "a tensor", result)
    t = <Tensor>result
    if isinstance(wanted, Tensor):
        model = <Tensor>wanted
        if t.tid != model.tid or shape_text(t) != shape_text(model):
            raise _wrong(op, where, f"a tensor of {dtype_of(model.tid)} and shape {shape_text(model)}", result)
    return alias(t)


cdef object _wrong(Op op, int where, str wanted, object got):
    cdef str found = f"not {type(got).__name__}"
    if isinstance(got, (list, tuple)):
        found += f" of {len(got)}"
    elif isinstance(got, Tensor):
        found = f"not one of {got.dtype} and shape {shape_text(<Tensor>got)}"
    return TypeError(f"{op.name}: the kernel of the device {device_of(where)} must return {wanted}, {found}")


set_on_device(on_device)
