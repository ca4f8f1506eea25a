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
from cpython.ref cimport Py_INCREF
from tinygrad_ext.core.call.dispatch cimport state, tgx_state
from tinygrad_ext.core.call.places cimport WATCHED
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.tensor cimport Tensor, version_of
from tinygrad_ext.core.data.types cimport uint32_t
from tinygrad_ext.core.grad.apply cimport finish
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
        self.own, self.also, self.written = joint.own, joint.also, joint.written
        self.tensors, self.edges = _numbers(joint.tensors), _numbers(joint.edges)
        self.nleaves, self.ntensors, self.nwanted = len(joint.inputs), len(joint.tensors), len(joint.edges)
        self.nmade = len(joint.made)
        self.nresults = self.nmade + len(self.generators)
        self.all_flow = self.own is not None and all([self.flows[i] for i in self.own])
        self.plain, self.maybe = joint.plain, bool(joint.maybe)
        self.whole = self.own is not None and joint.template == [("made", i) for i in self.own]

    def __dealloc__(self):
        PyMem_Free(self.tensors)
        PyMem_Free(self.edges)

    def __call__(self, leaves):
        """What the graph gives for its tensors, numbers and generators, in a list."""
        if len(leaves) != self.nleaves:
            raise TypeError(f"{len(leaves)} values for the {self.nleaves} leaves of {self.joint.graph.name}")
        return self.run(PySequence_Fast_ITEMS(leaves))

    cdef list run(self, PyObject **leaves):
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
        rest = None if self.whole else [None if i in node.own else results[i] for i in range(self.nmade)]
        results = None                  # who counts references to what was made need not know of it
        made = finish(node, inputs, made, record)
        return list(made) if rest is None else self._told(node, rest, made, leaves)

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
            node.non_differentiable = tuple([results[i] for i in node.own if not self.flows[i]])
        return tuple([results[i] for i in node.own])

    cdef int _keep_arguments(self, DerivedBackward node, PyObject **leaves) except -1:
        cdef Tensor t
        node.arguments, node.versions = [], []
        for i in self.also:
            value, version = <object>leaves[<int>i], None
            if isinstance(value, Generator):
                value = value.clone_state()         # it goes on
            elif isinstance(value, Tensor):
                if i in self.written:
                    value = value.clone()
                else:
                    t = <Tensor>value
                    version = version_of(t)
                    if t.storage is not None:
                        t.storage.watched |= WATCHED
            node.arguments.append(value)
            node.versions.append(version)
        return 0

    cdef list _told(self, DerivedBackward node, list row, tuple made, PyObject **leaves):
        """The results as the graph names them."""
        cdef Py_ssize_t i
        for i in range(len(made)):
            row[<Py_ssize_t>node.own[i]] = made[i]
        given = [<object>leaves[i] for i in range(self.nleaves)]
        return [rebuilt(part, row, given) for part in self.template]


cdef class DerivedBackward(FunctionNode):
    """The node of a graph in eager autograd: its backward is a plan, or with `create_graph` the graph of the gradients."""

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        cdef JointCall call = self.call
        cdef Py_ssize_t i
        cdef int e
        if self.released:
            self._check_alive()
        found = self._run(self._seeds(grads))
        for i in range(call.nwanted):
            e = call.edges[i]
            got = found[i]
            if got is not None and needed[e]:
                Py_INCREF(got)
                results[e] = <PyObject *>got
        return 0

    cdef list _seeds(self, PyObject **grads):
        """The gradients of what gradients flow through, in order; an argument that is a result has its own."""
        cdef JointCall call = self.call
        cdef Py_ssize_t i
        cdef dict arrived
        if call.all_flow:
            return [_gradient(self, i, grads) for i in range(self.noutputs)]
        arrived = {} if self.given is None else dict(self.given)
        for i in range(self.noutputs):
            at = self.own[i]
            if call.flows[at]:
                arrived[at] = _gradient(self, i, grads)
        return [arrived[i] for i in range(call.nmade) if call.flows[i]]

    cdef object _run(self, list seeds):
        """The gradients; behind them, where the graph cannot say so before, whether they are there."""
        cdef JointCall call = self.call
        cdef Py_ssize_t i
        cdef list row, kept = []
        for i in range(self.nsaved):
            kept.append(unpack(self, i, -1, False) if self.rest is None or self.rest[i] is None else self.rest[i])
        if not state().no_grad:
            found, _ = call.joint.derivative_of(call.joint.whole)([*call.joint.leaves(kept, self._arguments()), *seeds])
        else:
            row = seeds + kept
            try:
                found = _called(call.backward, PySequence_Fast_ITEMS(row), len(row))
            except GuardFailed:         # a decision of the backward pass, within a branch or a loop
                found = call.joint.anew(call.joint.leaves(kept, self._arguments()), seeds)
        return call.joint.certain(found) if call.maybe else found

    cdef list _arguments(self):
        """What is held of the arguments. Raises RuntimeError where the program has written to one."""
        cdef Py_ssize_t i
        for i in range(len(self.arguments)):
            value, version = self.arguments[i], self.versions[i]
            if version is not None and version_of(<Tensor>value) != <uint32_t>version:
                name = self.call.joint.inputs[self.call.also[i]].name
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: the "
                    f"argument {name} of a graph, of shape {list(value.shape)}, is at version {version_of(<Tensor>value)}; "
                    f"expected version {version} instead. Do not change it before backward, or change a clone of it.")
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


cdef object _gradient(DerivedBackward node, Py_ssize_t i, PyObject **grads):
    return <object>grads[i] if grads[i] != NULL else zeros_for(node, <int>i)
