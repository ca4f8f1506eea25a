# cython: language_level=3
"""The part of forward mode that every op goes through: primals and tangents out of the arguments, and into the results.

Compiled, because a small op should cost little more than itself and its tangent: in Python the level took twice as long as
both.
"""
from tinygrad_ext.core.call.dispatch cimport FUNCTIONAL, Op, state
from tinygrad_ext.core.call.levels cimport Level, Observer, OpForm, Operation, carry_like
from tinygrad_ext.core.data.dtype cimport flips_of
from tinygrad_ext.core.data.table_gen cimport is_complex, is_half, is_inexact
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, same_sizes

from tinygrad_ext.core.call.levels import OF_GEOMETRY

from .nesting import carriers


cdef class Pair:
    """What a dual tensor stands for.

    Attributes:
        primal: the value.
        loose: the tangent may share its memory with others than the views of this one.
        base, view: what this is a view of, and how tangents of that become tangents of this.
        still: it does not follow the tangents of what it was made of, as a drawn number: who asks for its own gets zeros.
    """

    cdef public object primal
    cdef public Pair base
    cdef public object view
    cdef public bint loose, still
    cdef object _tangent, _found        # of a view: and the tangent of the base that it was taken from

    def __init__(self, primal, tangent=None, Pair base=None, view=None, bint loose=False):
        if tangent is not None and base is None:
            tangent = alike(tangent, primal)
        self.primal, self._tangent, self.base, self.view, self.loose = primal, tangent, base, view, loose

    @property
    def tangent(self):
        """The derivative, or None for zeros."""
        return self.slope()

    cdef object slope(self):
        if self.base is not None:
            whole = self.base.slope()
            if whole is not self._found:
                self._found, self._tangent = whole, None if whole is None else self.view(whole)
        return self._tangent

    def own(self, incoming):
        """The tangent as memory for `incoming` to be written to, which views of this share and nobody else."""
        if self.base is not None:
            self.base.own(incoming)
            return self.slope()
        if self._tangent is None:
            self._tangent = _blank(incoming, self.primal)
        elif self.loose or not carriers(incoming) <= carriers(self._tangent):
            self._tangent = _blank(self._tangent + incoming.new_zeros(()), self.primal).copy_(self._tangent)
        self.loose = False
        return self._tangent

    def clear(self):
        """Zeros are written."""
        if self.base is None:
            self.still = self.still or self._tangent is not None
            self._tangent = None
        elif self.slope() is not None:
            self.own(self.slope()).zero_()

    def detach(self):
        """The value is no function of anything from now on, nor a view."""
        self._tangent = self.base = None
        self.still = False


def _blank(like, primal):
    """Zeros in the order of a primal's memory, for each sample where `like` is batched."""
    strides = primal.stride()
    if any([s == 0 and n > 1 for s, n in zip(strides, primal.shape)]):
        return alike(like.new_zeros(primal.shape), primal)
    return alike(like.new_empty_strided(primal.shape, strides).zero_(), primal)


cpdef object alike(object tangent, object primal):
    """A tangent with the conjugate and negative bits of its primal: views of both are taken alike."""
    if type(tangent) is not Carried and type(primal) is not Carried:
        if flips_of((<Tensor?>tangent).device_id) == flips_of((<Tensor?>primal).device_id):
            return tangent
    elif not is_complex((<Tensor>tangent).tid) or tangent.is_conj() == primal.is_conj():
        return tangent
    tangent = tangent.resolve_conj().resolve_neg()
    if primal.is_conj():
        tangent = tangent.conj_physical()._conj()
    return (-tangent)._neg_view() if primal.is_neg() else tangent


cdef class Pairs(Observer):
    """A level that carries pairs."""

    cdef bint inference         # inference mode was on outside; when it is switched on inside, results have no tangents

    def __init__(self):
        self.known, self.inference = OF_GEOMETRY, state().inference

    def rule_of(self, op):
        """How an op's tangents are found: function(operation, primals, tangents); None for a composite that is opened."""
        raise NotImplementedError

    def process_other(self, operation, args):
        """Operations that are no functional ops."""
        raise NotImplementedError

    def process(self, operation, args):
        cdef list duals
        cdef Pair d
        cdef Op op
        cdef bint moves = False
        if type(operation) is not OpForm or (<OpForm>operation).form != FUNCTIONAL:
            return self.process_other(operation, args)
        duals = []
        _collect(self, args, duals)
        if not duals:
            return self.made(operation, args)
        op = (<OpForm>operation).op
        rule = self.rule_of(op)
        if rule is None:
            return NotImplemented       # opened without tangents too: it may return a view, which is to be written to
        for d in duals:
            if d.slope() is not None:
                moves = True
        if state().inference and not self.inference:
            moves = False
        elif op.record.view:
            return self.viewed(operation, args, rule)
        if not moves:
            return self.joined((<Operation>operation).run(tuple(self.stripped(args))), None, duals)
        result, found = rule(operation, self.stripped(args), self.derivatives(args))
        result = self.joined(result, found, duals)
        if found is None and type(result) is Carried and (<Carried>result).level is self:
            (<Pair?>(<Carried>result).value).still = True
        return result

    # ---- values ----------------------------------------------------------------------------------------------------

    def owns(self, value):
        """Whether this level carries a value."""
        return type(value) is Carried and (<Carried>value).level is self

    def shown(self, Pair pair not None):
        """What the program sees of a pair."""
        return carry_like(self, pair, <Tensor>pair.primal)

    def pair(self, primal, tangent=None):
        """A dual tensor."""
        return carry_like(self, Pair(primal, tangent), <Tensor?>primal)

    def fits(self, primal, tangent):
        """Whether a tangent is of the shape and dtype of a primal that has derivatives."""
        if not isinstance(primal, Tensor) or not isinstance(tangent, Tensor):
            return False
        cdef Tensor p = primal, t = tangent
        return p.tid == t.tid and is_inexact(p.tid) and same_sizes(p, t)

    def joined(self, result, found, duals):
        """Results with their tangents, as the program sees them."""
        cdef Pair pair, d
        cdef Tensor tensor
        if isinstance(result, Tensor):
            tensor = <Tensor>result
            if not is_inexact(tensor.tid):
                return result
            for d in duals:
                if d.primal is result:
                    return self.shown(d)        # the argument itself, whose memory may be written to by either name
            pair = Pair(result, found)
            if found is not None:
                pair.loose = type(found) is Carried or found._is_view()
                for d in duals:
                    if d.slope() is found:
                        pair.loose = True
                        while d.base is not None:
                            d = d.base
                        d.loose = True
            return carry_like(self, pair, tensor)
        if isinstance(result, (list, tuple)):
            row = [self.joined(r, None if found is None else found[i], duals) for i, r in enumerate(result)]
            return row if type(result) is list else tuple.__new__(type(result), row)
        return result

    def found(self, args, list duals not None):
        """The pairs among arguments, appended to a list, which is returned."""
        _collect(self, args, duals)
        return duals

    def stripped(self, args):
        """Arguments with primals for what is dual."""
        cdef list row = []
        for a in args:
            if type(a) is Carried and (<Carried>a).level is self:
                a = (<Pair>(<Carried>a).value).primal
            elif type(a) is list:
                a = self.stripped(a)
            elif type(a) is tuple:
                a = tuple(self.stripped(a))
            row.append(a)
        return row

    def derivatives(self, args):
        """The tangents of arguments, None where there is none."""
        cdef list row = []
        for a in args:
            found = None
            if type(a) is Carried:
                if (<Carried>a).level is self:
                    found = (<Pair>(<Carried>a).value).slope()
            elif type(a) is list or type(a) is tuple:
                for x in a:
                    if isinstance(x, Tensor):
                        found = self.derivatives(a)
                        break
            row.append(found)
        return row


cdef int _collect(Level level, args, list duals) except -1:
    for a in args:
        if type(a) is Carried:
            if (<Carried>a).level is level:
                duals.append((<Carried>a).value)
        elif type(a) is list or type(a) is tuple:
            _collect(level, a, duals)
    return 0


# ---- tangents by the rules of gradients ----------------------------------------------------------------------------

cdef enum:
    SEED, NEEDS, RESULT, PRIMAL, SHAPE, GEOMETRY, ATTRIBUTE

cdef dict _CODES = {"grad": SEED, "grads": SEED, "needs": NEEDS, "result": RESULT}


cdef class Asks:
    """What a gradient rule of an op asks for by the names of its parameters."""

    cdef list asked     # (code, number of an argument, name of an attribute)

    def __init__(self, op, rule):
        places = {a.name: i for i, a in enumerate(op.schema.args)}
        self.asked = []
        for name in rule.names:
            argument, _, what = name.rpartition("_")
            if name in _CODES:
                self.asked.append((_CODES[name], 0, ""))
            elif name in places:
                self.asked.append((PRIMAL, places[name], ""))
            else:
                code = SHAPE if what == "shape" else GEOMETRY if what == "geometry" else ATTRIBUTE
                self.asked.append((code, places[argument], what))

    def of(self, primals, result, seed, needs):
        """The arguments of the rule, with `seed` for the gradient."""
        cdef list row = []
        cdef int code, i
        for code, i, what in self.asked:
            if code == SEED:
                found = seed
            elif code == PRIMAL:
                found = primals[i]
            elif code == RESULT:
                found = result if isinstance(result, Tensor) else result[0]
            elif code == NEEDS:
                found = needs
            elif code == GEOMETRY:
                t = primals[i]
                found = t.shape, t.stride(), t.storage_offset()
            else:
                found = getattr(primals[i], what, () if code == SHAPE else None)
            row.append(found)
        return row


cdef class ByGradient:
    """The tangents of a pointwise op: what its gradient rules make of those of its arguments, added up.

    plan: (rule, what it asks for, which of its results, number of the argument); -1 for a rule that gives one.
    other: for functions of complex numbers that give real ones, which have no derivative in the strict sense.
    """

    cdef list plan, tensors
    cdef object other

    def __init__(self, list plan, list tensors, other):
        self.plan, self.tensors, self.other = plan, tensors, other

    def __call__(self, Operation call not None, primals, tangents):
        cdef int i, at, target
        cdef bint turned
        cdef Tensor result, slope
        result = <Tensor?>call.run(tuple(primals))
        if not is_complex(result.tid):
            for i in self.tensors:
                a = primals[i]
                if isinstance(a, Tensor) and is_complex((<Tensor>a).tid):
                    return self.other(call, primals, tangents)
        total = None
        for function, asks, at, target in self.plan:
            tangent = tangents[target]
            if tangent is None:
                continue
            slope = <Tensor?>tangent
            if not same_sizes(slope, result):
                slope = slope.expand(result.shape)
            if slope.tid != result.tid:
                slope = slope.to(result.dtype)
            tangent = slope
            if function is not None:
                turned = is_complex(slope.tid)
                needs = tuple([i == target for i in self.tensors])
                tangent = function(*(<Asks>asks).of(primals, result, slope.conj_physical() if turned else slope, needs))
                if at >= 0:
                    tangent = tangent[at]
                if turned and tangent is not None:
                    tangent = tangent.conj_physical()
            if tangent is not None:
                total = tangent if total is None else total + tangent
        if is_half(result.tid) and total is not None:       # a rule may have computed it in float32
            total = total.to(result.dtype)
        return result, total
