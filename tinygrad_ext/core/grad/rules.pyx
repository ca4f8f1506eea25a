# cython: language_level=3
"""RuleNode: the history node of an op, whose gradients come from the rules of its record.

A class of its own and no part of Node, which so need not know how saved values are read (saved.pyx stands above node.pyx).
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, MAX_SAVED, Op, Rule, TGX_NO_SUBCLASS, call_below, state, tgx_state
from tinygrad_ext.core.grad.node cimport start_untracked, zeros_for
from tinygrad_ext.core.grad.saved cimport freed_error, raw, unpack
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.tensor cimport Tensor, exact
from tinygrad_ext.core.data.types cimport P_GRAD, P_GRADS, P_INPUT, P_NEEDS, P_RESULT, P_SHAPE, is_complex, uint32_t

cdef extern from "Python.h":
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)


cdef object _one = 1                # of which there is one object


cdef class RuleNode(Node):
    """A step of an op."""          # no field of its own: it is freed as its base class is

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        """Gradients of the inputs from those of the outputs: results[e] for edge e, where needed[e]."""
        cdef Op op = self.op
        cdef int r, k, e, first
        cdef bint wanted
        cdef Rule *rule
        cdef object got
        cdef bint passes
        cdef dict unpacked = None       # a hook is called once for all rules of the node
        if self.released:
            raise freed_error(self)
        if not op.nrules and needed[0]:     # the op wrote over its operand, and no slope leads back
            got = zeros_for(self, 0)
            Py_INCREF(got)
            results[0] = <PyObject *>got
        if self.packed:
            unpacked = {op.saved[k]: unpack(self, k, op.saved[k] & 0xff if op.saved[k] & 0xff00 == P_RESULT else -1,
                                            not state().no_grad) for k in range(op.nsaved) if self.saved[k] != NULL}
        for r in range(op.nrules):
            rule = &op.rules[r]
            if rule.ntargets == 1 and self.counts == NULL:      # as most are
                e = rule.targets[0]
                if needed[e]:
                    passes = rule.identity or (rule.factor >= 0 and self.saved[rule.factor] == <PyObject *>_one)
                    if passes and grads[0] == NULL:
                        continue
                    got = <object>grads[0] if passes else self._call_rule(rule, grads, needed, unpacked)
                    if got is not None:
                        Py_INCREF(got)
                        results[e] = <PyObject *>got
                continue
            wanted = False
            for k in range(rule.ntargets):
                first = self.first_edge(rule.targets[k])
                for e in range(first, first + self.edge_count(rule.targets[k])):
                    if needed[e]:
                        wanted = True
            if not wanted or (rule.identity and grads[0] == NULL):
                continue
            if rule.identity:
                got = <object>grads[0]
            else:
                got = self._call_rule(rule, grads, needed, unpacked)
            if rule.ntargets == 1:
                self._deliver(rule.targets[0], got, results, needed)
            else:
                if not isinstance(got, (tuple, list)) or len(got) != rule.ntargets:
                    raise RuntimeError(f"{self.name()}: the derivative rule of {op.name} must return {rule.ntargets} "
                                       f"gradients, got {type(got).__name__}")
                for k in range(rule.ntargets):
                    self._deliver(rule.targets[k], got[k], results, needed)
        return 0

    cdef int first_edge(self, int tensor) noexcept:
        cdef int i, at = 0
        if self.counts == NULL:
            return tensor
        for i in range(tensor):
            at += self.counts[i]
        return at

    cdef int edge_count(self, int tensor) noexcept:
        return 1 if self.counts == NULL else self.counts[tensor]

    cdef int _deliver(self, int tensor, object got, PyObject **results, const unsigned char *needed) except -1:
        cdef int e, first = self.first_edge(tensor), count = self.edge_count(tensor)
        if self.counts != NULL and isinstance(got, (tuple, list)):
            if len(got) != count:
                raise RuntimeError(f"{self.name()}: expected {count} gradients for a list of tensors, got {len(got)}")
            for e in range(count):
                if needed[first + e] and got[e] is not None:
                    Py_INCREF(got[e])
                    results[first + e] = <PyObject *>got[e]
            return 0
        if got is not None and needed[first]:
            Py_INCREF(got)
            results[first] = <PyObject *>got
        return 0

    cdef object _call_rule(self, Rule *rule, PyObject **grads, const unsigned char *needed, dict unpacked):
        cdef PyObject *params[MAX_SAVED]
        cdef int i
        for i in range(rule.nparams):
            params[i] = NULL
        try:
            return self._call_with(rule, params, grads, needed, unpacked)
        finally:
            for i in range(rule.nparams):
                Py_XDECREF(params[i])

    cdef object _call_with(self, Rule *rule, PyObject **params, PyObject **grads, const unsigned char *needed, dict unpacked):
        """The same, with room for the parameters, which the caller lets go of."""
        cdef int i, code
        cdef bint turned = False
        cdef object v
        for i in range(rule.nparams):
            code = rule.params[i]
            if code & 0xff00 == P_GRAD:
                if grads[code & 0xff] != NULL:
                    v = <object>grads[code & 0xff]
                    if self.op.holomorphic and is_complex((<Tensor>v).tid):
                        v, turned = slot("conj")(v), True
                else:
                    v = zeros_for(self, code & 0xff)
            elif code == P_GRADS | 1:       # as they arrived
                v = tuple([<object>grads[k] if grads[k] != NULL else None for k in range(self.noutputs)])
            elif code & 0xff00 == P_GRADS:
                v = tuple([<object>grads[k] if grads[k] != NULL else zeros_for(self, k) for k in range(self.noutputs)])
            elif code & 0xff00 == P_NEEDS:
                v = tuple([needed[self.first_edge(k)] != 0 for k in range(self.op.ntensors)])
            elif unpacked is None:
                v = unpack(self, rule.places[i], code & 0xff if code & 0xff00 == P_RESULT else -1, not state().no_grad)
            else:
                v = unpacked.get(code)
            Py_INCREF(v)
            params[i] = <PyObject *>v
        if _any_subclass(params, rule.nparams):
            v = _call_unasked(rule, params)
        elif rule.called != NULL and not state().flags:
            v = _call_straight(<Op>rule.called, params, rule.nparams)
        else:
            v = PyObject_Vectorcall(<object>rule.fn, params, rule.nparams, NULL)
        if not turned or v is None:
            return v
        if isinstance(v, (tuple, list)):        # of a joint rule
            return tuple([None if g is None else slot("conj")(g) for g in v])
        return slot("conj")(v)

    # ---- what users see

    def _edge_names(self):
        """Names of the arguments that next_functions belong to."""
        cdef int i, k
        cdef list names = []
        if self.op is None:                     # made by nobody of ours
            return names
        for i in range(self.op.ntensors):
            name = <object>self.op.args[self.op.tensors[i]].name
            many = self.edge_count(i) != 1
            names += [f"{name}[{k}]" if many else name for k in range(self.edge_count(i))]
        return names

    cdef str _saved_name(self, int k):
        """Name of saved value k as PyTorch shows it, or None for what it does not show."""
        cdef int code = self.op.saved[k], kind = code & 0xff00
        if kind == P_INPUT:
            return <object>self.op.args[code & 0xff].name
        if kind == P_SHAPE:
            return f"{<object>self.op.args[code & 0xff].name}_sym_sizes"
        if kind == P_RESULT:
            return "result" if self.op.nreturns == 1 else f"result{code & 0xff}"
        return None

    def __getattr__(self, name):
        cdef int k, code
        cdef bint is_raw = name.startswith("_raw_saved_")
        if self.op is not None and (is_raw or name.startswith("_saved_")):
            wanted = name[len("_raw_saved_") if is_raw else len("_saved_"):]
            for k in range(self.nsaved):
                if self._saved_name(k) != wanted:
                    continue
                code = self.op.saved[k]
                if is_raw:
                    return raw(self, k, code & 0xff if code & 0xff00 == P_RESULT else -1)
                if self.released:
                    raise freed_error(self)
                return unpack(self, k, code & 0xff if code & 0xff00 == P_RESULT else -1, True)
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def __dir__(self):
        names = [self._saved_name(k) for k in range(self.nsaved)] if self.op is not None else []
        return [*object.__dir__(self), *[kind + name for name in names if name is not None for kind in ("_saved_", "_raw_saved_")]]


cdef bint _any_subclass(PyObject **params, int n) noexcept:
    """Whether a subclass of Tensor is among a rule's parameters, or in a list there."""
    cdef int i
    cdef object o
    for i in range(n):
        o = <object>params[i]
        if exact(o):
            continue
        if isinstance(o, Tensor):
            return True
        elif isinstance(o, tuple):
            for t in <tuple>o:
                if isinstance(t, Tensor) and not exact(t):
                    return True
        elif isinstance(o, list):
            for t in <list>o:
                if isinstance(t, Tensor) and not exact(t):
                    return True
    return False


cdef object _call_straight(Op op, PyObject **params, int n):
    """A rule that is a call of one op, by who knows that its arguments fit."""
    cdef PyObject *args[MAX_ARGS + 1]
    cdef int i
    for i in range(n):
        args[i] = params[i]
    for i in range(n, op.nargs):
        args[i] = op.args[i].default
    return call_below(op, args)


cdef object _call_unasked(Rule *rule, PyObject **params):
    """A rule computes with tensors of a subclass as with plain ones: its ops are no calls that anybody made."""
    cdef tgx_state *st = state()
    cdef uint32_t was = st.flags & TGX_NO_SUBCLASS
    st.flags |= TGX_NO_SUBCLASS
    try:
        return PyObject_Vectorcall(<object>rule.fn, params, rule.nparams, NULL)
    finally:
        if not was:
            st.flags &= ~<uint32_t>TGX_NO_SUBCLASS


def scaled(grad, alpha):
    """The gradient of x in alpha * x, for a number; without a copy for the factor 1."""
    if alpha == 1:
        return grad
    return grad * (alpha.conjugate() if isinstance(alpha, (int, float, complex)) else slot("conj")(alpha))


start_untracked(RuleNode, True)
