# cython: language_level=3
"""The call of an op whose kernel is a function of an extension.

It is a custom op as any other (core/grad/custom_call.pyx): bound, seen by overrides and levels, its returns judged by the
schema, its first calls watched for undeclared writes. What is written to an argument, and what levels ask for, goes that
common way. The short way, for ops that only return, enters C from the dispatcher and from the engine without a frame of
Python between.
"""
from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memset
from tinygrad_ext.core.call.dispatch cimport (
    COMPOSITE, any_away, any_needs_grad, mark_derived, run_python, state, tgx_state, uint32_t,
)
from tinygrad_ext.core.data.dtype cimport CPU
from tinygrad_ext.core.data.tensor cimport CONTIGUOUS, Tensor, alias, empty, exact, shape_text
from tinygrad_ext.core.data.types cimport A_TENSOR, int32_t, is_inexact
from tinygrad_ext.core.grad.custom cimport MAX_RETURNS, R_TENSOR, R_TENSORS
from tinygrad_ext.core.grad.custom_call cimport keep_lists
from tinygrad_ext.core.grad.guard cimport check_alias, check_hidden, checked, convert, is_new, run_guarded, trusted
from tinygrad_ext.core.grad.history cimport connect, enter, give_history
from tinygrad_ext.core.grad.node cimport reserve_outputs, set_meta
from tinygrad_ext.core.loops.copy cimport contiguous
from tinygrad_ext.extension.nodes cimport settle_error
from tinygrad_ext.extension.public cimport *
from tinygrad_ext.extension.values cimport drop, hold, number_of, pack, pack_result, take

from tinygrad_ext.core.data.dtype import device as _device_of_name

cdef enum:
    NO_RESULT = 0x7467          # in the value behind the last one, which a kernel must leave alone
    LARGE = 32768               # elements from which a kernel that may runs without the lock

_META = _device_of_name("meta")

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)
    void PyErr_Clear()


cdef class TableCall(CustomCall):
    """Such an op, as the dispatcher calls it."""

    def __init__(self, Op op, returns, Definition definition not None):
        cdef int i
        CustomCall.__init__(self, op, returns)
        self.definition, self.node_title = definition, op.node_type
        self.short = self.nwrites == 0 and not definition.row.flags & TGX_COMPOSITE
        self.plain = self.short and self.nreturns == 1 and self.returns[0].kind == R_TENSOR
        names = [a.name for a in op.schema.args if a.type == "Tensor" and not a.kwarg_only]
        if definition.row.edges != NULL:
            asked = [n.strip() for n in (<bytes>definition.row.edges).decode().split(",") if n.strip()]
            for n in asked:
                if n not in names:
                    raise TypeError(f"{op.name}: edges=\"{', '.join(asked)}\": '{n}' is no positional tensor argument; they are "
                                    f"{', '.join(names) or 'none'}")
            names = asked
        for name in names:
            for i in range(op.nargs):
                if <object>op.args[i].name == name:
                    self.edges[self.nedges] = i
                    self.nedges += 1
        self.edge_names = tuple(names)

    # ---- calls

    cdef object call(self, Op op, PyObject **args):
        """Autograd and kernel."""
        cdef tgx_state *st = state()
        cdef list _owners, _lists
        if not self.short or op.kind == COMPOSITE:
            return CustomCall.call(self, op, args)
        if self.values:
            _owners = convert(self, args)        # keeps them alive
            check_hidden(op, args)
        if not st.no_grad and any_needs_grad(op, args):
            if self.lists:
                _lists = keep_lists(self, args)
            if self.definition.row.flags & TGX_OWN_HISTORY:
                return CustomCall.call(self, op, args) if any_away(op, args) else self._run_own(args)
            if self.definition.row.backward == NULL:
                return CustomCall.call(self, op, args)
            return self._record(args)
        result = self._run_checked(args)
        if st.in_forward:
            mark_derived(op, args, result)
        return result

    cdef object _run_checked(self, PyObject **args):
        """The kernel alone, its returns judged."""
        cdef object result
        if any_away(self.op, args):
            return run_python(self.op, args)
        if self.watch or trusted():
            result = run_guarded(self, args)
            if self.definition.row.shape != NULL and not self.definition.row.flags & TGX_FILLS:
                self._check_shapes(args, result)
            return result
        result = self.compute(args)
        if self.plain and is_new(result):
            return result
        return checked(self, args, result)

    cdef object run(self, Op op, PyObject **args):
        if not self.short or op.kind == COMPOSITE or self.lists:
            return CustomCall.run(self, op, args)
        _owners = convert(self, args) if self.values else None
        return self._run_checked(args)

    cdef object compute(self, PyObject **args):
        """Call the kernel; what it gave, as Python has it."""
        cdef value_t inputs[MAX_ARGS]
        cdef value_t outputs[MAX_RETURNS + 1]
        cdef tgx_ctx c
        cdef tgx_state *st = state()
        cdef uint32_t flags = st.flags
        cdef int32_t active = st.active
        cdef unsigned char no_grad = st.no_grad
        cdef Op op = self.op
        cdef tgx_op_def *d = &self.definition.row
        cdef PyThreadState *released = NULL
        cdef int i, code, m = self.nreturns
        cdef bint done = False
        cdef object result = None
        tgx_open(&c, <PyObject *>op.name)
        for i in range(m + 1):
            outputs[i].tag, outputs[i].count, outputs[i].u.o = 0, 0, NULL
        outputs[m].tag = NO_RESULT
        try:
            for i in range(op.nargs):
                if op.args[i].single == A_TENSOR and exact(<object>args[i]):
                    inputs[i].tag, inputs[i].u.t = V_TENSOR, <tensor_t *>args[i]
                else:
                    pack(&c, &op.args[i], args[i], &inputs[i])
            if d.flags & TGX_DENSE:
                _make_dense(&c, op, inputs)
            if d.flags & TGX_FILLS:
                self._allocate(&c, args, inputs, outputs)
            if not d.flags & TGX_COMPOSITE:
                st.no_grad |= not d.flags & TGX_OWN_HISTORY
                st.flags, st.active = 0, 0
            st.below += 1
            if d.flags & TGX_UNLOCKED and _is_large(outputs, m):
                _hold_windows(&c, op, inputs)
                c.unlocked = 1
                released = PyEval_SaveThread()
                code = d.kernel(&c, d.self, inputs, op.nargs, outputs, m)
                PyEval_RestoreThread(released)
            else:
                code = d.kernel(&c, d.self, inputs, op.nargs, outputs, m)
            st.below -= 1
            st.flags, st.active, st.no_grad = flags, active, no_grad
            if code:
                settle_error(&c, code, "the kernel")
            if PyErr_Occurred():                # it took no notice of that
                PyErr_Clear()
            if outputs[m].tag != NO_RESULT:
                raise RuntimeError(f"{op.name}: the kernel wrote to a result number {m}; the schema has {m}: {op.schema}")
            if m == 1:
                result = take(&c, &outputs[0], args, op.nargs)
            elif m > 1:
                _check_apart(op, outputs, m)
                result = tuple([take(&c, &outputs[i], args, op.nargs) for i in range(m)])
            done = True
        finally:                    # (an `except` would keep the state of exceptions at each call)
            if not done:
                for i in range(m):
                    drop(&outputs[i], args, op.nargs)
            tgx_close(&c)
        return result

    @property
    def edge_places(self):
        """Numbers of the arguments that get gradients."""
        cdef int i
        return tuple([self.edges[i] for i in range(self.nedges)])

    # ---- shapes

    cdef int _allocate(self, tgx_ctx *c, PyObject **args, value_t *inputs, value_t *outputs) except -1:
        """Tensors for the kernel to fill."""
        cdef tgx_geometry shapes[MAX_RETURNS]
        cdef int i, where = _device(self.op, args)
        self.measure(c, inputs, shapes)
        for i in range(self.nreturns):
            made = empty(shapes[i].sizes, shapes[i].ndim, number_of(shapes[i].dtype), where)
            Py_INCREF(made)
            outputs[i].tag, outputs[i].u.t = V_TENSOR, <tensor_t *><PyObject *>made
        return 0

    cdef int measure(self, tgx_ctx *c, value_t *inputs, tgx_geometry *shapes) except -1:
        """What the extension's shape says."""
        cdef tgx_op_def *d = &self.definition.row
        cdef int i, code
        for i in range(self.nreturns):
            shapes[i].ndim, shapes[i].dtype = -1, 0
        code = d.shape(c, d.self, inputs, self.op.nargs, shapes, self.nreturns)
        if code:
            settle_error(c, code, "the shape")
        if PyErr_Occurred():
            PyErr_Clear()
        for i in range(self.nreturns):
            if not 0 <= shapes[i].ndim <= TGX_MAX_RANK:
                raise RuntimeError(f"{self.op.name}: shape gave result {i} {shapes[i].ndim} dimensions; from 0 to {TGX_MAX_RANK} are "
                                   "possible, and each result has to be told")
            number_of(shapes[i].dtype)
        return 0

    def meta(self, args, device):
        """Tensors of the shapes that the op gives, on a device; args: all of them."""
        cdef PyObject *row[MAX_ARGS]
        cdef value_t inputs[MAX_ARGS]
        cdef value_t outputs[MAX_RETURNS]
        cdef tgx_geometry shapes[MAX_RETURNS]
        cdef tgx_op_def *d = &self.definition.row
        cdef tgx_ctx c
        cdef int i, code, where = device.id
        cdef list made = []
        for i in range(self.op.nargs):
            row[i] = <PyObject *>args[i]
        _owners = convert(self, row) if self.values else None
        memset(outputs, 0, sizeof(outputs))
        tgx_open(&c, <PyObject *>self.op.name)
        try:
            for i in range(self.op.nargs):
                pack(&c, &self.op.args[i], row[i], &inputs[i])
            if d.shape != NULL:
                self.measure(&c, inputs, shapes)
                made = [empty(shapes[i].sizes, shapes[i].ndim, number_of(shapes[i].dtype), where) for i in range(self.nreturns)]
            else:
                code = d.fake(&c, d.self, inputs, self.op.nargs, outputs, self.nreturns)
                if code:
                    settle_error(&c, code, "the fake kernel")
                made = [take(&c, &outputs[i], row, self.op.nargs) for i in range(self.nreturns)]
        finally:
            tgx_close(&c)
        return made[0] if self.nreturns == 1 else tuple(made)

    cdef int _check_shapes(self, PyObject **args, object result) except -1:
        """In the first calls: what the kernel made is what its shape says."""
        cdef Tensor got, wanted
        said = self.meta([<object>args[i] for i in range(self.op.nargs)], _META)
        for i, (a, b) in enumerate(zip(result, said) if self.nreturns > 1 else [(result, said)]):
            if not isinstance(a, Tensor):
                continue
            got, wanted = <Tensor>a, <Tensor>b
            if got.tid != wanted.tid or shape_text(got) != shape_text(wanted):
                raise RuntimeError(f"{self.op.name}: result {i} of the kernel is {got.dtype} of shape {shape_text(got)}, but its shape "
                                   f"function says {wanted.dtype} of shape {shape_text(wanted)}")
        return 0

    # ---- autograd

    cdef object _record(self, PyObject **args):
        """Run the op as one step of the graph."""
        cdef PyObject *operands[MAX_ARGS]
        cdef tgx_op_def *d = &self.definition.row
        cdef TableNode n = TableNode.__new__(TableNode)
        cdef object result
        cdef bint wanted = False
        cdef int i
        for i in range(self.nedges):
            operands[i] = args[self.edges[i]]
        connect(n, operands, self.nedges, d.saved)
        for i in range(n.nedges):
            if n.edges[i].node != NULL:
                wanted = True
                break
        if not wanted:                  # what needs a gradient is no argument that gets one
            return self._run_checked(args)
        n.title, n.who, n.names = self.node_title, self.op.name, self.edge_names
        n.backward, n.forget, n.flags = d.backward, d.release, d.flags
        n.prepare(d.saved, d.state_size)
        result = self._run_checked(args)
        enter(n)
        if self.nreturns == 1 and isinstance(result, Tensor):
            give_history(n, 0, <Tensor>result, 1)
        else:
            _give_all(n, result if self.nreturns != 1 else (result,))
        if d.setup != NULL:
            self._set_up(n, args, result)
        return result

    cdef int _set_up(self, TableNode n, PyObject **args, object result) except -1:
        """Let the extension keep what its backward needs."""
        cdef value_t inputs[MAX_ARGS]
        cdef value_t outputs[MAX_RETURNS]
        cdef tgx_ctx c
        cdef tgx_op_def *d = &self.definition.row
        cdef tgx_state *st = state()
        cdef unsigned char no_grad = st.no_grad
        cdef int i, code
        tgx_open(&c, <PyObject *>self.op.name)
        try:
            for i in range(self.op.nargs):
                pack(&c, &self.op.args[i], args[i], &inputs[i])
            _pack_results(self, &c, result, outputs)
            st.no_grad = 1
            code = d.setup(&c, d.self, <node_t *><PyObject *>n, n.state, inputs, self.op.nargs, outputs, self.nreturns)
            st.no_grad = no_grad
            if code:
                settle_error(&c, code, "the setup")
            if PyErr_Occurred():
                PyErr_Clear()
        finally:
            tgx_close(&c)
        return 0

    def run_recorded(self, tuple args):
        """The op of a kernel that writes down its history itself, as if it were called so."""
        cdef PyObject *row[MAX_ARGS]
        cdef int i
        for i in range(self.op.nargs):
            row[i] = <PyObject *>args[i]
        _owners = convert(self, row) if self.values else None
        return self._run_own(row)

    cdef object _run_own(self, PyObject **args):
        """A kernel that writes down its history itself."""
        cdef object result
        if any_away(self.op, args):
            return run_python(self.op, args)
        result = self.compute(args)
        for i, r in enumerate(result if self.nreturns > 1 else (result,)):
            if self.returns[i].kind == R_TENSOR and isinstance(r, Tensor):
                check_alias(self, args, <Tensor>r)
            elif self.returns[i].kind != R_TENSORS or not isinstance(r, list):
                if not (r is None and self.returns[i].optional) and not isinstance(r, self.types[i]):
                    raise RuntimeError(f"{self.op.name}: result {i} of the kernel is {type(r).__name__}, but the op is declared as "
                                       f"{self.op.schema}")
        return result


include "calls_values.pxi"
