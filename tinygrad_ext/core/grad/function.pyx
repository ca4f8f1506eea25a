# cython: language_level=3
"""FunctionNode: the ctx of an autograd.Function, which is also the node of its backward.

It must not own its own outputs, or out -> node -> out would be a circle: an output that is saved or kept as an
attribute is held as a detached alias and gets its history back when it is read. A tensor made inside forward that
depends on the inputs has a derivative which nobody wrote down: it is read as the output of a DelayedError.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc
from tinygrad_ext.core.grad.delayed cimport DelayedError, delayed_error
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.grad.history cimport connect, enter, keep
from tinygrad_ext.core.grad.edges cimport hang_output
from tinygrad_ext.core.grad.node cimport FRESH, Node, hang, reserve, zeros_for
from tinygrad_ext.core.call.inplace cimport moves
from tinygrad_ext.core.call.places cimport here, place_text
from tinygrad_ext.core.grad.plan cimport backward_of
from tinygrad_ext.core.grad.saved cimport raw, unpack
from tinygrad_ext.core.data.tensor cimport DERIVED, Tensor, alias, needs_grad, version_of
from tinygrad_ext.core.data.types cimport is_inexact, uint32_t, uint64_t

import weakref

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(PyObject *o, PyObject *name, PyObject *value) except -1

cdef enum Origin:               # of a saved tensor that is no output
    ELSEWHERE = -1              # an input, or made of nothing that needs a gradient
    INTERMEDIATE = -2           # made inside forward from an input that needs a gradient


cdef class FunctionNode(Node):
    """ctx of a Function's forward, and the node of its backward."""

    def __cinit__(self):
        self.materialize_grads = True
        self.inputs = self.few_inputs

    def __dealloc__(self):
        if self.inputs != self.few_inputs:
            free(self.inputs)
        Py_XDECREF(self.save_place.code)

    cdef bint take_inputs(self, PyObject **args, int n, int nothing, bint record) except -1:
        """Note what forward is given, and connect the tensors among it; whether some of them needs a gradient.

        nothing: so many edges that lead nowhere come after those of the tensors.
        """
        cdef PyObject *few[FEW_INPUTS]
        cdef PyObject **row = few
        cdef int i, e = 0
        cdef bint needed = False
        self._make_room(n)
        if n + nothing > FEW_INPUTS:
            row = <PyObject **>malloc((n + nothing) * sizeof(PyObject *))
            if row == NULL:
                raise MemoryError()
        for i in range(n):
            if isinstance(<object>args[i], Tensor):
                self.inputs[i] = IS_TENSOR
                if needs_grad(<Tensor>args[i]):
                    self.inputs[i] |= NEEDS_GRAD
                    needed = True
                row[e] = args[i]
                e += 1
        for i in range(e, e + nothing):
            row[i] = <PyObject *>None
        e += nothing
        try:
            if record and needed:
                connect(self, row, e, 0)
            else:
                reserve(self, e, 1, 0)
        finally:
            if row != few:
                free(row)
        return needed

    cdef int _make_room(self, int n) except -1:
        cdef int i
        if n > FEW_INPUTS:
            self.inputs = <unsigned char *>malloc(n)
            if self.inputs == NULL:
                raise MemoryError()
        for i in range(n):
            self.inputs[i] = 0
        self.ninputs = n
        return 0

    # ---- what forward and setup_context call

    def save_for_backward(self, *tensors):
        """Keep tensors (or None) for backward: checked there for later writes. A second call replaces the first."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}. "
                                "Keep other values as attributes of ctx, and pass a list as save_for_backward(*tensors).")
        self._check_in_forward("save_for_backward")
        self.to_save = tensors
        Py_XDECREF(self.save_place.code)
        self.save_place = here()

    def save_for_forward(self, *tensors):
        """Keep tensors for jvp."""
        for t in tensors:
            assert t is None or isinstance(t, Tensor), (
                "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.")
        self._check_in_forward("save_for_forward")
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        """Name the inputs that forward wrote to; they must be returned."""
        self._check_in_forward("mark_dirty")
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Name the outputs that carry no gradient."""
        self._check_in_forward("mark_non_differentiable")
        self.non_differentiable = tensors

    def mark_shared_storage(self, *pairs):
        """Do nothing: shared memory is always tracked."""
        import warnings
        warnings.warn("mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that calls "
                      "to `set_()` are not tracked", FutureWarning, stacklevel=2)

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (True) or None (False) for outputs that received no gradient."""
        if not isinstance(value, bool):
            raise TypeError(f"set_materialize_grads(): expected (bool), got ({type(value).__name__})")
        self.materialize_grads = value

    def asked_in_forward(self):
        """(tensors kept for jvp or else for backward, those written to, those without gradient, whether zeros are made)."""
        shared = self.to_save if self.saved_for_forward is None else self.saved_for_forward
        return shared or (), self.dirty or (), self.non_differentiable or (), self.materialize_grads

    def _check_in_forward(self, what):
        if self.over:
            raise RuntimeError(f"{self.name()}: {what} was called after the forward was over, where it has no effect. Call it in "
                               "forward or setup_context.")

    @property
    def needs_input_grad(self):
        """For each argument of forward, whether it needs a gradient."""
        cdef int i
        if self.needs_input_grad_ is None:
            self.needs_input_grad_ = tuple([(self.inputs[i] & NEEDS_GRAD) != 0 for i in range(self.ninputs)])
        return self.needs_input_grad_

    @needs_input_grad.setter
    def needs_input_grad(self, value):
        self.needs_input_grad_ = value

    # ---- saved tensors

    @property
    def saved_tensors(self):
        """What save_for_backward was given."""
        cdef int i
        cdef bint once = self.plan is not None and self.plan.function.clear_saved_tensors_on_access
        self._check_alive(" (or directly access saved tensors after they have already been freed)")
        if once and self.accessed:
            raise RuntimeError(f"{self.name()}: saved tensors can only be accessed once when clear_saved_tensors_on_access is set")
        result = tuple([self._unpacked(i) for i in range(self.nsaved)])
        if once and self.nsaved:
            self.accessed = True
            for i in range(self.nsaved):
                Py_XDECREF(self.saved[i])
                self.saved[i] = NULL
        return result

    @property
    def saved_variables(self):
        """The old name of saved_tensors."""
        import warnings
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def maybe_clear_saved_tensors(self):
        """Let go of the saved tensors now, where the class asked for that."""
        if self.plan is not None and self.plan.function.clear_saved_tensors_on_access:
            self.release()

    def _check_alive(self, also=""):
        if self.released:
            raise RuntimeError(f"Trying to backward through the graph a second time{also}: {self.name()} let go of its saved "
                               "tensors in the first backward. Specify retain_graph=True in the first call if you need to "
                               "backward twice or to read saved tensors after calling backward.")

    def _unpacked(self, int i):
        t = unpack(self, i, ELSEWHERE, False)
        return None if t is None else self._with_history(<Tensor>t, self.output_of[i], f"saved tensor number {i}", True)

    @property
    def _raw_saved_tensors(self):
        """The saved tensors as handles, on which pack and unpack hooks can be registered."""
        self._check_alive(" (or directly access saved tensors after they have already been freed)")
        return tuple([raw(self, i, self.output_of[i]) for i in range(self.nsaved)])

    def _with_history(self, Tensor t, int origin, what, bint saved):
        """A kept tensor as its reader should see it: an output with its history, an intermediate with a refusal."""
        cdef Tensor fresh
        if origin == ELSEWHERE or (origin == INTERMEDIATE and state().no_grad):
            return t
        fresh = alias(t)
        if origin >= 0:
            hang_output(fresh, self, origin)
        else:
            hang(fresh, self._refusal(what, saved), 0, FRESH)
        return fresh

    def _refusal(self, what, bint saved):
        """The node of an intermediate: its derivative was not written down."""
        cdef DelayedError n
        where = ""
        if saved and self.save_place.code != NULL:
            where = f" at {place_text(self.save_place)}"
        n = delayed_error(self, f"{self.name()}: {what} was made inside forward from an input that needs a gradient, and is "
                          f"neither an input nor an output, so the second derivative through it is not known. It was kept{where}. "
                          "Return it from forward as a further output, or compute it anew in backward from the saved inputs; "
                          "if it is a constant, keep a detach() of it; if nobody needs the second derivative, mark backward with "
                          "@once_differentiable.", [], 1)
        return n

    cdef int seal(self, bint record) except -1:
        """The forward is over: take its place in the graph, and what it asked to keep."""
        if record:
            enter(self)
            self.keep_saved()
            self.keep_attributes()
        self.over = True
        # (jvp, which reads what was saved for it, belongs to the call: kept longer, an output would close a circle)
        self.to_save = self.dirty = self.non_differentiable = self.saved_for_forward = None
        return 0

    cdef int keep_saved(self) except -1:
        """Move what save_for_backward was given into the node."""
        cdef int i, n, nedges = self.nedges, noutputs = self.noutputs
        cdef Tensor t
        cdef tuple kept = self.to_save          # a pack hook may save something else meanwhile
        if kept is None:
            return 0
        n = len(kept)
        self.nedges = self.noutputs = 0         # reserve() must not touch them
        reserve(self, 0, 0, n)
        self.nedges, self.noutputs = nedges, noutputs
        self.output_of = [ELSEWHERE] * n
        for i in range(n):
            if kept[i] is None:
                continue
            t = <Tensor>kept[i]
            self.output_of[i] = self._origin(t)
            keep(self, i, t if self.output_of[i] >= 0 else self._apart(t, ELSEWHERE), self.output_of[i])
        return 0

    # ---- attributes that hold tensors

    cdef int _origin(self, Tensor t) noexcept:
        """Which output t is, or where it comes from."""
        if t.node is not None:
            return t.output_nr if t.node is self else ELSEWHERE
        if t.bits & DERIVED and is_inexact(t.tid) and not needs_grad(t):
            return INTERMEDIATE
        return ELSEWHERE

    cdef Tensor _apart(self, Tensor t, int origin):
        """t itself, or an alias where t would hold this node."""
        if origin >= 0 or (t.base is not None and (<Tensor>t.base).node is self):
            return alias(t)
        return t

    def __setattr__(self, name, value):
        if self.kept is not None:
            self.kept.pop(name, None)
        if isinstance(value, Tensor):
            if self.over:
                if (<Tensor>value).node is self:
                    self._keep(name, value, (<Tensor>value).output_nr)
                    return
            elif self.tensor_names is None:
                self.tensor_names = [name]
            else:
                self.tensor_names.append(name)
        PyObject_GenericSetAttr(<PyObject *>self, <PyObject *>name, <PyObject *>value)

    def __delattr__(self, name):
        if self.kept is not None and name in self.kept:
            del self.kept[name]
        else:
            PyObject_GenericSetAttr(<PyObject *>self, <PyObject *>name, NULL)

    def __getattr__(self, name):
        if self.kept is None or name not in self.kept:
            raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")
        t, origin, reference = self.kept[name]
        itself = reference() if reference is not None else None
        return itself if itself is not None else self._with_history(t, origin, f"attribute '{name}' of ctx", False)

    def _edge_names(self):
        """Names of the arguments that edges lead from: the tensors."""
        cdef int i
        if self.plan is None:                   # a ctx that nobody applied
            return []
        names = self.plan.names_of(self.ninputs, self.extra_names)
        return [names[i] for i in range(self.ninputs) if self.inputs[i] & IS_TENSOR]

    def attributes(self):
        """What hangs on ctx besides the saved tensors."""
        return [*self.__dict__.values(), *[t for t, _, _ in (self.kept or {}).values()]]

    cdef int _keep(self, name, Tensor t, int origin) except -1:
        if self.kept is None:
            self.kept = {}
        self.kept[name] = (self._apart(t, origin), origin, weakref.ref(t) if origin >= 0 else None)
        return 0

    cdef int keep_attributes(self) except -1:
        """After the forward: take care of the attributes that are outputs or intermediates."""
        cdef Tensor t
        if self.tensor_names is None:
            return 0
        attributes = self.__dict__
        for name in self.tensor_names:
            value = attributes.get(name)
            if not isinstance(value, Tensor):
                continue
            t = <Tensor>value
            origin = self._origin(t)
            if origin != ELSEWHERE:
                del attributes[name]
                self._keep(name, t, origin)
            else:
                attributes[name] = self._apart(t, origin)
        self.tensor_names = None
        return 0

    def name(self):
        """Name as PyTorch shows it: MyCubeBackward."""
        return type(self).__name__

    # ---- backward

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        cdef int i, e = 0
        self._check_alive()
        got = _call_backward(self, grads)
        got = self.plan.row(got, self.name(), self.ninputs, self.nwanted, self.extra_names)
        for i in range(self.ninputs):
            g = got[i]
            if g is None:
                e += self.inputs[i] & IS_TENSOR
                continue
            if not self.inputs[i] & IS_TENSOR:
                raise RuntimeError(f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                                   f"corresponding forward input was not a Variable "
                                   f"({self.plan.argument(i, self.ninputs, self.extra_names)})")
            if not isinstance(g, Tensor):
                raise RuntimeError(f"function {self.name()}: expected Variable or None (got {type(g).__name__}) as gradient of "
                                   f"{self.plan.argument(i, self.ninputs, self.extra_names)}")
            if needed[e]:
                Py_INCREF(g)
                results[e] = <PyObject *>g
            e += 1
        return 0


include "function_backward.pxi"
