# cython: language_level=3
"""What a kernel from elsewhere is given, and must keep to: it returns what the schema says, new tensors, and writes to
nothing else.

Returns are checked at each call: a few comparisons of pointers. Whether an argument was written to without being
declared is found by comparing versions and bytes before and after, in the first calls of a kernel only: versions alone,
which cost nothing, miss NumPy, which writes behind them, and bytes at every call cost a pass over each argument.
"""
from cpython.object cimport PyObject
from libc.string cimport memcmp
from tinygrad_ext.core.loops.copy cimport clone
from tinygrad_ext.core.grad.custom cimport Custom, R_TENSOR, R_TENSORS, ReturnSpec
from tinygrad_ext.core.call.dispatch cimport ArgSpec, Op, run_python, state
from tinygrad_ext.core.data.dtype cimport device
from tinygrad_ext.core.data.tensor cimport Tensor, alias, bump, needs_grad, version_of
from tinygrad_ext.core.data.types cimport (
    A_ANY, A_DEVICE, A_DICT, A_FLOAT, A_INT, A_TENSOR, F_LIST, ITEMSIZE, int64_t, uint32_t,
)

cdef enum:
    LARGEST = 1 << 24           # bytes of an argument whose contents are compared; of larger ones only the version

cdef int _trusting = 0


class trusting:
    """`with trusting():` kernels are not checked, in any thread: for who checks them better, such as a test."""

    def __enter__(self):
        global _trusting
        _trusting += 1

    def __exit__(self, *exc):
        global _trusting
        _trusting -= 1


cdef bint trusted() noexcept:
    return _trusting != 0


cdef object run_guarded(Custom c, PyObject **args):
    """Run the kernel and check what it returned."""
    cdef object result
    if _trusting:
        return run_python(c.op, args)
    if c.watch:
        result = _run_watched(c, args)
    else:
        result = run_python(c.op, args)
    return checked(c, args, result)


# ---- what it is given ----------------------------------------------------------------------------------------------

cdef list convert(Custom c, PyObject **args):
    """Replace what bound to its type by being alike: an int for a float, "cpu", one int for int[2]. Returns the owners."""
    cdef list owners = []
    cdef ArgSpec *s
    cdef int i
    for i in range(c.op.nargs):
        s = &c.op.args[i]
        o = <object>args[i]
        if s.kind == A_TENSOR or o is None or (not s.size and (type(o) is float or (type(o) is int and s.kind != A_FLOAT))):
            continue
        if s.flags & F_LIST:
            if isinstance(o, (list, tuple)):
                continue
            o = [o] * s.size
        elif s.kind == A_FLOAT:
            o = float(o)
        elif s.kind == A_DEVICE:
            o = device(o)
        elif s.kind == A_INT:
            o = int(o)
        else:
            continue
        owners.append(o)
        args[i] = <PyObject *>o
    return owners


cdef int check_hidden(Op op, PyObject **args) except -1:
    """Tensors in arguments that are declared as something else take no part in autograd: refuse those that should."""
    cdef int i
    if state().no_grad:
        return 0
    for i in range(op.nargs):
        o = <object>args[i]
        if op.args[i].kind == A_DICT and o is not None:
            o = [t for d in (o if isinstance(o, (list, tuple)) else (o,)) if d is not None for t in (<dict>d).values()]
        elif op.args[i].kind != A_ANY:
            continue
        for t in o if isinstance(o, (tuple, list)) else (o,):
            if isinstance(t, Tensor) and needs_grad(<Tensor>t):
                raise TypeError(f"{op.title}(): argument '{<object>op.args[i].name}' ({op.schema.args[i].spelling}) holds a tensor "
                                "that requires grad, and its gradient would be lost. Declare it as Tensor or Tensor[], or pass a "
                                "detach().")
    return 0


# ---- what it returned ----------------------------------------------------------------------------------------------

cdef object checked(Custom c, PyObject **args, object result):
    """The result; tensors that bring a history of their own are replaced by aliases without one."""
    cdef int i
    if c.nreturns == 1:
        return _checked_one(c, args, 0, result)
    if c.nreturns == 0:
        if result is not None:
            raise RuntimeError(f"{c.op.name}: the kernel returned {_described(result)}, but the op returns nothing: "
                               f"{c.op.schema}")
        return None
    if not isinstance(result, (tuple, list)) or len(result) != c.nreturns:
        raise RuntimeError(f"{c.op.name}: the kernel returned {_described(result)}, but the op returns a tuple of {c.nreturns}: "
                           f"{c.op.schema}")
    row = tuple([_checked_one(c, args, i, result[i]) for i in range(c.nreturns)])
    for i in range(1, c.nreturns):
        _check_apart(c, row, i)
    return row


cdef object _checked_one(Custom c, PyObject **args, int nr, object result):
    cdef ReturnSpec *r = &c.returns[nr]
    if r.kind == R_TENSOR and isinstance(result, Tensor):
        if r.written >= 0:
            if <PyObject *>result != args[r.written]:
                raise _not_the_written(c, nr, r.written)
            return result
        check_alias(c, args, <Tensor>result)
        return alias(<Tensor>result) if needs_grad(<Tensor>result) else result
    if result is None and r.optional:
        return None
    if r.kind == R_TENSORS and isinstance(result, (list, tuple)):
        if r.written >= 0:
            if <PyObject *>result != args[r.written]:
                raise _not_the_written(c, nr, r.written)
            return result
        return [_checked_element(c, args, nr, t) for t in result]
    if r.kind == R_TENSOR or r.kind == R_TENSORS or not isinstance(result, c.types[nr]):
        raise _wrong_return(c, nr, result)
    return result


cdef object _checked_element(Custom c, PyObject **args, int nr, object t):
    if not isinstance(t, Tensor):
        raise _wrong_return(c, nr, t)
    check_alias(c, args, <Tensor>t)
    return alias(<Tensor>t) if needs_grad(<Tensor>t) else t


cdef object _wrong_return(Custom c, int nr, object result):
    which = f"return {nr}" if c.nreturns > 1 else "the return"
    return RuntimeError(f"{c.op.name}: {which} of the kernel must be {c.op.schema.returns[nr].spelling}, but it is "
                        f"{_described(result)}. The op is declared as {c.op.schema}")


cdef object _not_the_written(Custom c, int nr, int at):
    name = <object>c.op.args[at].name
    return RuntimeError(f"{c.op.name}: the schema says that return {nr} is argument '{name}' itself ({c.op.schema}), but the "
                        f"kernel returned another object. Write the result into '{name}' and return it.")


cdef str _described(object o):
    if isinstance(o, (tuple, list)):
        return f"a {type(o).__name__} of {len(o)}"
    return "None" if o is None else f"a {type(o).__name__}"


cdef inline bint _same_memory(Tensor a, Tensor b) noexcept:
    """Whether two tensors live in one block, be it through two storages (numpy() and back)."""
    if a.storage is None or b.storage is None:
        return False
    return a.storage is b.storage or (a.storage.data == b.storage.data and a.storage.nbytes > 0 and b.storage.nbytes > 0)


cdef int check_alias(Custom c, PyObject **args, Tensor t) except -1:
    cdef int i
    cdef object o
    for i in range(c.op.ntensors):
        o = <object>args[c.op.tensors[i]]
        if isinstance(o, Tensor):
            if _same_memory(t, <Tensor>o):
                _refuse_alias(c, <object>c.op.args[c.op.tensors[i]].name)
        elif isinstance(o, (list, tuple)):
            for item in o:
                if isinstance(item, Tensor) and _same_memory(t, <Tensor>item):
                    _refuse_alias(c, <object>c.op.args[c.op.tensors[i]].name)
    return 0


cdef int _check_apart(Custom c, tuple row, int nr) except -1:
    """Return nr shares no memory with the ones before it."""
    cdef int i
    if c.returns[nr].kind != R_TENSOR or c.returns[nr].written >= 0 or row[nr] is None:
        return 0
    for i in range(nr):
        if c.returns[i].kind == R_TENSOR and row[i] is not None and _same_memory(<Tensor>row[nr], <Tensor>row[i]):
            _refuse_alias(c, None)
    return 0


cdef int _refuse_alias(Custom c, name) except -1:
    what = f"a return shares its memory with argument '{name}'" if name is not None else "two returns share their memory"
    raise RuntimeError(f"{c.op.name} (kernel {_place(c)}): The output of this custom operator (1) must not also be an input to "
                       "this custom operator and (2) may not alias any inputs to this custom operator or other returns. "
                       f"Here {what}. Return a clone of it, y.clone(); an op that is to return a view is written as a composite, "
                       "with Library.impl(..., 'CompositeImplicitAutograd').")


cdef str _place(Custom c):
    code = getattr(c.op.python, "__code__", None)
    return f"at {code.co_filename}:{code.co_firstlineno}" if code is not None else repr(c.op.python)


# ---- what it wrote to ----------------------------------------------------------------------------------------------

cdef list _watched(Custom c, PyObject **args):
    """(argument number, tensor, version, copy or None) of all tensors that the schema calls unwritten."""
    cdef Op op = c.op
    cdef list rows = [], written = []
    cdef int i, k
    for i in range(c.nwrites):
        o = <object>args[c.writes[i]]
        written += o if isinstance(o, (list, tuple)) else [o]
    for i in range(op.ntensors):
        k = op.tensors[i]
        o = <object>args[k]
        for t in o if isinstance(o, (list, tuple)) else (o,):
            if isinstance(t, Tensor) and (<Tensor>t).device_id == 0 and not _written_too(<Tensor>t, written):
                copy = clone(<Tensor>t) if (<Tensor>t).count * ITEMSIZE[(<Tensor>t).tid] <= LARGEST else None
                rows.append((k, t, version_of(<Tensor>t), copy))
    return rows


cdef bint _written_too(Tensor t, list written) noexcept:
    for w in written:
        if w is t or (isinstance(w, Tensor) and _same_memory(t, <Tensor>w)):
            return True
    return False


cdef object _run_watched(Custom c, PyObject **args):
    cdef list rows = _watched(c, args)
    result = run_python(c.op, args)
    for k, t, version, copy in rows:
        if version_of(<Tensor>t) != <uint32_t>version:
            _refuse_write(c, k)
        if copy is not None and not _equal_bytes(<Tensor>copy, clone(<Tensor>t)):
            bump(<Tensor>t)
            _refuse_write(c, k)
    c.watch -= 1
    return result


cdef bint _equal_bytes(Tensor a, Tensor b) noexcept:
    """Both are clones of one tensor, so their elements lie in the same order without gaps."""
    cdef int64_t nbytes = a.count * ITEMSIZE[a.tid]
    return b.count == a.count and (nbytes == 0 or memcmp(a.data, b.data, nbytes) == 0)


cdef int _refuse_write(Custom c, int k) except -1:
    names = [a.name for a in c.op.schema.args if a.is_write]
    name = <object>c.op.args[k].name
    names = ", ".join([f"'{n}'" for n in (*names, name)])
    raise RuntimeError(f"{c.op.name}: the kernel {_place(c)} wrote to argument '{name}', which the op does not declare as "
                       f"mutated: {c.op.schema}. Declare it, mutates_args=({names},) or 'Tensor(a!) {name}' in the schema, or let "
                       f"the kernel work on {name}.clone().")
