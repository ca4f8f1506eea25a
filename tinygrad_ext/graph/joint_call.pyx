# cython: language_level=3
"""The call of a graph that a gradient is asked of: its forward plan, and the node of eager autograd with its backward plan.

A `Joint` (joint.py) makes the two graphs and says what their values are; here they are called, without a frame of Python
between a program's call and the plans, since those of a small model take less time than the frames did. The node is that of a
Function: what it saves is checked for later writes, goes through hooks and is let go of, as everywhere.

What only the derivative of the gradients reads is held beside the saved tensors, unpacked: eager mode would not keep it.
"""
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.call.dispatch cimport state, tgx_state
from tinygrad_ext.core.call.places cimport WATCHED
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.tensor cimport Tensor, version_of
from tinygrad_ext.core.data.types cimport uint32_t, uint64_t
from tinygrad_ext.core.grad.apply cimport finish
from tinygrad_ext.core.grad.events cimport GRAPH, Recorder, recorders_here, watching
from tinygrad_ext.core.grad.function cimport FunctionNode
from tinygrad_ext.core.grad.node cimport zeros_for
from tinygrad_ext.core.grad.saved cimport unpack

from .primitives import GuardFailed

cdef extern from "Python.h":
    object PyObject_Vectorcall(object callable, PyObject **args, size_t n, PyObject *kwnames)
    PyObject **PySequence_Fast_ITEMS(object row)

cdef enum:
    FEW = 64                # values that find room on the stack

cdef str _FUNCTION = "function"


cdef int *_numbers(list row) except NULL:
    cdef Py_ssize_t i
    cdef int *made = <int *>PyMem_Malloc(len(row) * sizeof(int) + 1)
    if made == NULL:
        raise MemoryError()
    for i in range(len(row)):
        made[i] = row[i]
    return made


cdef object _called(dict executor, PyObject **args, Py_ssize_t n):
    """What an Executor gives; it may be another function from now on."""
    function = <object>PyDict_GetItem(executor, _FUNCTION)
    return PyObject_Vectorcall(function, args, n, NULL)


cdef class JointCall:
    """Calls of a Joint."""

    def __init__(self, joint):
        self.joint, self.flat = joint, joint.flat
        self.forward, self.backward = joint.run_forward.__dict__, joint.run_backward.__dict__
        self.generators, self.template, self.flows = joint.generators, tuple(joint.template), joint.flows
        self.own, self.written = joint.own, joint.written
        self.tensors, self.edges, self.also = _numbers(joint.tensors), _numbers(joint.edges), _numbers(joint.also)
        self.nalso = len(joint.also)
        self.nleaves, self.ntensors, self.nwanted = len(joint.inputs), len(joint.tensors), len(joint.edges)
        self.nmade = len(joint.made)
        self.nresults = self.nmade + len(self.generators) + len(joint.flags)
        self.flags = {i: self.nmade + len(self.generators) + k for k, i in enumerate(joint.flags)}
        self.all_flow = self.own is not None and not self.flags and all([self.flows[i] for i in self.own])
        self.plain, self.maybe = joint.plain, bool(joint.maybe)
        places = {"made": 0, "input": self.nmade}
        self.parts = _numbers([places[part[0]] + part[1] if part[0] in places else -1 for part in self.template])

    def __dealloc__(self):
        PyMem_Free(self.tensors)
        PyMem_Free(self.edges)
        PyMem_Free(self.parts)
        PyMem_Free(self.also)

    def __call__(self, leaves):
        """What the graph gives for its tensors, numbers and generators, as a tuple."""
        if len(leaves) != self.nleaves:
            raise TypeError(f"{len(leaves)} values for the {self.nleaves} leaves of {self.joint.graph.name}")
        return self.run(PySequence_Fast_ITEMS(leaves))

    cdef tuple run(self, PyObject **leaves):
        cdef uint64_t seq = 0
        cdef list recorders
        if not watching:
            return self._run(leaves, &seq)
        recorders = recorders_here()
        for recorder in recorders:
            (<Recorder>recorder).open(f"graph::{self.joint.graph.name}", GRAPH, 0)
        try:
            return self._run(leaves, &seq)
        finally:
            for recorder in recorders:
                (<Recorder>recorder).end_kind(GRAPH, seq)

    cdef tuple _run(self, PyObject **leaves, uint64_t *seq):
        cdef tgx_state *st = state()
        cdef unsigned char was_no_grad = st.no_grad
        cdef DerivedBackward node = DerivedBackward.__new__(DerivedBackward)
        cdef PyObject *few[FEW]
        cdef PyObject **row = few
        cdef Py_ssize_t i
        cdef bint record
        cdef tuple results, made
        node.call = self
        if self.ntensors > FEW:
            row = <PyObject **>PyMem_Malloc(self.ntensors * sizeof(PyObject *))
            if row == NULL:
                raise MemoryError()
        try:
            for i in range(self.ntensors):
                row[i] = leaves[self.tensors[i]]
            record = node.take_inputs(row, <int>self.ntensors, 0, not was_no_grad) and not was_no_grad
        finally:
            if row != few:
                PyMem_Free(row)
        st.no_grad = 1
        try:
            results = self._forward(leaves)
            self._keep_arguments(node, leaves)
            self._sort_out(node, results, leaves)
        finally:
            st.no_grad = was_no_grad
        if self.generators:
            self._draw_on(results)
        inputs = () if self.own is not None else tuple([<object>leaves[self.tensors[i]] for i in range(self.ntensors)])
        made = self._keep(node, results)
        rest = [None if i in node.own else results[i] for i in range(self.nmade)] if len(node.own) < self.nmade else None
        results = None                  # who counts references to what was made need not know of it
        given = <tuple>finish(node, inputs, made, record)
        seq[0] = node.seq
        return self._told(node, rest, given, leaves)

    cdef tuple _forward(self, PyObject **leaves):
        cdef Py_ssize_t i
        if not self.generators:
            return <tuple>_called(self.forward, leaves, self.nleaves)
        given = [<object>leaves[i] for i in range(self.nleaves)] + self.generators
        return <tuple>_called(self.forward, PySequence_Fast_ITEMS(given), len(given))

    cdef int _draw_on(self, tuple results) except -1:
        """Let the generators go on from where the graph has left them."""
        cdef Py_ssize_t i
        for i in range(len(self.generators)):
            (<Generator>self.generators[i]).mt = (<Generator>results[self.nmade + i]).mt
        return 0

    cdef int _sort_out(self, DerivedBackward node, tuple results, PyObject **leaves) except -1:
        """Which results come from the node. A loop of no turns gives what it was given."""
        cdef Py_ssize_t i
        if self.own is not None:
            node.own = self.own
            return 0
        inputs = {<size_t>leaves[self.tensors[i]] for i in range(self.ntensors)}
        node.given, node.own = {}, []
        for i in range(self.nmade):
            a = results[i]
            if not isinstance(a, Tensor):
                continue
            if <size_t><PyObject *>a in inputs:
                node.given[i] = a.new_zeros(()).expand(a.shape)
            else:
                node.own.append(i)
        return 0

    cdef tuple _keep(self, DerivedBackward node, tuple results):
        """Hand the node what it saves; the tensors that come from it."""
        cdef Py_ssize_t i
        saved = results[self.nresults:]
        if not self.plain:
            node.rest = [None if isinstance(a, Tensor) else a for a in saved]
            saved = tuple([a if isinstance(a, Tensor) else None for a in saved])
        node.to_save = saved
        if not self.all_flow:
            node.non_differentiable = tuple([results[i] for i in node.own if not self._flows(i, results)])
        return tuple([results[i] for i in node.own])

    cdef bint _flows(self, Py_ssize_t i, tuple results) except -1:
        """Whether a gradient flows through a made value, this time."""
        return self.flows[i] and (i not in self.flags or results[<Py_ssize_t>self.flags[i]])

    cdef int _keep_arguments(self, DerivedBackward node, PyObject **leaves) except -1:
        cdef Py_ssize_t i
        cdef Tensor t
        node.arguments = PyTuple_New(self.nalso)
        if self.nalso > FEW_VERSIONS:
            node.versions = <uint32_t *>PyMem_Malloc(self.nalso * sizeof(uint32_t))
            if node.versions == NULL:
                raise MemoryError()
        for i in range(self.nalso):
            value = <object>leaves[self.also[i]]
            if isinstance(value, Tensor):
                if self.also[i] in self.written:
                    value = value.clone()
                t = <Tensor>value
                node.versions[i] = version_of(t)
                if t.storage is not None:
                    t.storage.watched |= WATCHED
            elif isinstance(value, Generator):
                value = value._copy()         # it goes on
            Py_INCREF(value)
            PyTuple_SET_ITEM(node.arguments, i, value)
        return 0

    cdef tuple _told(self, DerivedBackward node, list rest, tuple made, PyObject **leaves):
        """The results as the graph names them. rest: those that do not come from the node; None where all do."""
        cdef Py_ssize_t i
        cdef int at
        cdef tuple told
        if rest is not None:
            for i in range(len(made)):
                rest[<Py_ssize_t>node.own[i]] = made[i]
        told = PyTuple_New(len(self.template))
        for i in range(len(self.template)):
            at = self.parts[i]
            if at >= self.nmade:
                value = <object>leaves[at - self.nmade]
            elif at >= 0:
                value = made[at] if rest is None else rest[at]
            elif self.template[i][0] == "constant":
                value = self.template[i][1]
            else:
                given = [<object>leaves[k] for k in range(self.nleaves)]
                value = rebuilt(self.template[i], made if rest is None else rest, given)
            Py_INCREF(value)
            PyTuple_SET_ITEM(told, i, value)
        return told


cdef class DerivedBackward(FunctionNode):
    """The node of a graph in eager autograd: its backward is a plan, or with `create_graph` the graph of the gradients."""

    def __cinit__(self):
        self.versions = self.few_versions

    def __dealloc__(self):
        if self.versions != self.few_versions:
            PyMem_Free(self.versions)

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        cdef JointCall call = self.call
        cdef PyObject *few[FEW]
        cdef PyObject **row = few           # gradients, then what was saved: references of ours
        cdef Py_ssize_t i, n = 0
        cdef int e
        if self.released:
            self._check_alive()
        if self.noutputs + self.nsaved + call.nmade > FEW:
            row = <PyObject **>PyMem_Malloc((self.noutputs + self.nsaved + call.nmade) * sizeof(PyObject *))
            if row == NULL:
                raise MemoryError()
        try:
            self._fill(grads, row, &n)
            found = self._run(row, n)
        finally:
            for i in range(n):
                Py_XDECREF(row[i])
            if row != few:
                PyMem_Free(row)
        for i in range(call.nwanted):
            e = call.edges[i]
            got = found[i]
            if got is not None and needed[e]:
                Py_INCREF(got)
                results[e] = <PyObject *>got
        return 0

    cdef int _fill(self, PyObject **grads, PyObject **row, Py_ssize_t *n) except -1:
        """The gradients of what gradients flow through, in order; an argument that is a result has its own. Then what is
        saved."""
        cdef JointCall call = self.call
        cdef Py_ssize_t i
        cdef object value
        cdef dict arrived = None if call.all_flow else self._arrived(grads)
        for i in range(self.noutputs if call.all_flow else call.nmade):
            if arrived is None:
                _put(row, n, <object>grads[i] if grads[i] != NULL else zeros_for(self, <int>i))
            elif call.flows[i]:
                _put(row, n, arrived[i])
        for i in range(self.nsaved):
            value = unpack(self, <int>i, -1, False)
            _put(row, n, value if value is not None or self.rest is None else self.rest[i])
        return 0

    cdef dict _arrived(self, PyObject **grads):
        """{number of a made value: its gradient}."""
        cdef Py_ssize_t i
        cdef dict arrived = {} if self.given is None else dict(self.given)
        for i in range(self.noutputs):
            if self.call.flows[self.own[i]]:
                arrived[self.own[i]] = <object>grads[i] if grads[i] != NULL else zeros_for(self, <int>i)
        return arrived

    cdef object _run(self, PyObject **row, Py_ssize_t n):
        """The gradients; behind them, where the graph cannot say so before, whether they are there."""
        cdef JointCall call = self.call
        found = None
        if state().no_grad:
            try:
                found = _called(call.backward, row, n)
            except GuardFailed:         # a decision of the backward pass, within a branch or a loop
                pass
        if found is None:
            given = [<object>row[i] for i in range(n)]
            seeds, kept = given[:n - self.nsaved], given[n - self.nsaved:]
            leaves = call.joint.leaves(kept, self._arguments())
            if state().no_grad:
                found = call.joint.anew(leaves, seeds)
            else:
                found, _ = call.joint.derivative_of(call.joint.whole)([*leaves, *seeds])
        return call.joint.certain(found) if call.maybe else found

    cdef tuple _arguments(self):
        """What is held of the arguments. Raises RuntimeError where the program has written to one."""
        cdef Py_ssize_t i
        for i in range(len(self.arguments)):
            value = self.arguments[i]
            if isinstance(value, Tensor) and version_of(<Tensor>value) != self.versions[i]:
                name = self.call.joint.inputs[self.call.also[i]].name
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: the "
                    f"argument {name} of a graph, of shape {list(value.shape)}, is at version {version_of(<Tensor>value)}; "
                    f"expected version {self.versions[i]} instead. Do not change it before backward, or change a clone of it.")
        return self.arguments

    def _edge_names(self):
        """Names of the arguments that edges lead from."""
        return [self.call.joint.inputs[i].name for i in self.call.joint.tensors] if self.call is not None else []


def rebuilt(tuple part, made, inputs):
    """The value that plain data of `Joint.template` stands for."""
    what, value = part[0], part[1]
    if what == "items":
        parts = [rebuilt(p, made, inputs) for p in part[3]]
        return dict(zip(part[2], parts)) if part[2] is not None else tuple(parts) if value == "Tuple" else parts
    return made[value] if what == "made" else inputs[value] if what == "input" else value


cdef void _put(PyObject **row, Py_ssize_t *n, object value) noexcept:
    Py_INCREF(value)
    row[n[0]] = <PyObject *>value
    n[0] += 1
