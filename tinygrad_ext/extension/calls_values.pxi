# What the call does with the values of a call: results, copies, memory. Part of calls.pyx.

cdef int _give_all(TableNode n, object row) except -1:
    """The results as outputs of the node, lists laid flat."""
    cdef list flat = []
    cdef int i
    for r in row:
        if isinstance(r, (list, tuple)):
            flat += r
        else:
            flat.append(r)
    if len(flat) != 1:
        reserve_outputs(n, len(flat))
    for i in range(len(flat)):
        if isinstance(flat[i], Tensor):
            if is_inexact((<Tensor>flat[i]).tid):
                give_history(n, i, <Tensor>flat[i], 2)
            else:
                set_meta(n, i, <Tensor>flat[i])
        else:
            n.metas[i].rank = -1
    return 0


cdef int _pack_results(TableCall call, tgx_ctx *c, object result, value_t *outputs) except -1:
    cdef int i
    if call.nreturns == 1 and isinstance(result, Tensor):
        outputs[0].tag, outputs[0].u.t = V_TENSOR, <tensor_t *><PyObject *>result
        return 0
    for i in range(call.nreturns):
        r = result[i] if call.nreturns > 1 else result
        pack_result(c, call.returns[i].kind == R_TENSORS, r, &outputs[i])
    return 0


cdef int _make_dense(tgx_ctx *c, Op op, value_t *inputs) except -1:
    """Copies, which live as long as the call, in the place of tensors that are not contiguous."""
    cdef tensor_t **row
    cdef uint32_t k
    cdef int i
    for i in range(op.ntensors):
        if inputs[op.tensors[i]].tag == V_TENSOR:
            inputs[op.tensors[i]].u.t = _dense(c, inputs[op.tensors[i]].u.t)
        elif inputs[op.tensors[i]].tag == V_TENSORS:
            row = <tensor_t **>inputs[op.tensors[i]].u.ts
            for k in range(inputs[op.tensors[i]].count):
                if row[k] != NULL:
                    row[k] = _dense(c, row[k])
    return 0


cdef tensor_t *_dense(tgx_ctx *c, tensor_t *t) except NULL:
    cdef Tensor made
    if (<Tensor><PyObject *>t).bits & CONTIGUOUS or (<Tensor><PyObject *>t).device_id != CPU:
        return t
    made = contiguous(<Tensor><PyObject *>t)
    hold(c, made)
    return <tensor_t *><PyObject *>made


cdef int _hold_windows(tgx_ctx *c, Op op, value_t *inputs) except -1:
    """Aliases in the place of tensors: without the lock others may give a tensor another window, and must not move this one."""
    cdef Tensor t
    cdef int i
    for i in range(op.ntensors):
        if inputs[op.tensors[i]].tag == V_TENSOR:
            t = alias(<Tensor><PyObject *>inputs[op.tensors[i]].u.t)
            hold(c, t)
            inputs[op.tensors[i]].u.t = <tensor_t *><PyObject *>t
    return 0


cdef bint _is_large(value_t *outputs, int m) noexcept:
    cdef int i
    for i in range(m):
        if outputs[i].tag == V_TENSOR and (<Tensor><object><PyObject *>outputs[i].u.t).count >= LARGE:
            return True
    return False


cdef int _check_apart(Op op, value_t *outputs, int m) except -1:
    """One reference cannot be given away twice."""
    cdef int i, k
    for i in range(m):
        for k in range(i):
            if outputs[i].tag == V_TENSOR and outputs[k].tag == V_TENSOR and outputs[i].u.t == outputs[k].u.t:
                outputs[i].tag = V_NONE
                raise RuntimeError(f"{op.name}: the kernel gave one tensor as result {k} and as result {i}; they are to be apart")
    return 0


cdef int _device(Op op, PyObject **args) noexcept:
    """Where the first tensor among the arguments is."""
    cdef int i
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if isinstance(o, Tensor):
            return (<Tensor>o).device_id
        if isinstance(o, (list, tuple)) and len(o) and isinstance(o[0], Tensor):
            return (<Tensor>o[0]).device_id
    return 0
