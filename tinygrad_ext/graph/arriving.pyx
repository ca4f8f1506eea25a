# cython: language_level=3, boundscheck=True, wraparound=True
"""What arrives at values while gradients go back over a tape: the part of `derive.Backward` that each node goes through."""
import itertools

from .nodes cimport VALUE, args_of, hint_of, type_of
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, same_sizes

from .tape import Entry, reads_of
from .types import TENSOR
from .values import values_in

cdef object _numbers = itertools.count(1)       # of nodes that have a derivative


def any_in(args, set ids):
    """Whether the id of some Value among arguments is in a set."""
    return among(args, ids)


cdef bint among(args, set ids) except -1:
    for v in values_in(args):
        if id(v) in ids:
            return True
    return False


def alike(Tensor a not None, Tensor b not None):
    """Whether two examples have the same sizes and dtype; asks no level."""
    return a.tid == b.tid and same_sizes(a, b)


cdef list tensors_in(args):
    """The Values among arguments whose examples are tensors."""
    return [v for v in values_in(args) if isinstance(hint_of(v), Tensor)]


def stand_in_for_sizes(capture, value):
    """Which of the values that are known to have the same sizes stands for this one."""
    cdef dict known = capture.of_sizes
    while value in known:
        value = known[value]
    return value


def expect_sizes(capture, args, made, guard):
    """Let the graph be good for operands that have the sizes of the result, where they have them now: their gradients
    need no sum then. Operands that are all of the same sizes give them to the result.

    guard: writes down that two values have the same sizes."""
    cdef list operands = [v for v in tensors_in(args) if type_of(v) is TENSOR]
    cdef list fitting = [v for v in operands if same_sizes(<Tensor>hint_of(v), <Tensor?>hint_of(made))]
    cdef set needs = capture.needs
    if fitting and len(fitting) == len(operands):
        for other in operands[1:]:
            if other is not operands[0]:
                guard(capture, operands[0], other)
        capture.of_sizes[made] = stand_in_for_sizes(capture, operands[0])
    for v in fitting:
        if id(v) in needs and v is not made:
            if stand_in_for_sizes(capture, v) is not stand_in_for_sizes(capture, made):
                guard(capture, v, made)
            capture.sized.add((id(v), id(made)))


cdef class Arriving:
    """Needs of the class that derives from it: either, give_parts, fitted_anew, summed, by_rule, leads_on, add.

    Attributes:
        grads: what arrived: id of a Value -> Carried.
        values: id -> Value.
        maybe: id -> a bool Value, whether anything arrived at all when the graph runs, or None where that is certain.
        flag: the same for what is being given.
        ways: ids of Values that lead to what is wanted; None where that is all.
        seen: ids of Values whose hooks were called.
    """
    cdef public object capture, create_graph, tape, flag, ways
    cdef public dict grads, values, maybe
    cdef public set seen

    def __init__(self, capture, create_graph, tape=None):
        self.capture, self.create_graph, self.tape = capture, create_graph, capture.tape if tape is None else tape
        self.grads, self.values, self.maybe = {}, {}, {}
        self.flag = self.ways = None
        self.seen = set()

    def walk(self):
        """Take the nodes of the tape from the last to the first."""
        cdef list nodes = <list>self.capture.block.nodes
        cdef Py_ssize_t i, start
        joint = self.capture.joint
        for entry in reversed(self.tape[:]):
            if not self.reached(entry.made) or (self.ways is not None and not self.leads_on(entry)):
                continue
            start = len(nodes)
            self.step(entry)
            node = entry.node
            if not node.seq:
                node.seq = next(_numbers)
            for i in range(start, len(nodes)):
                nodes[i].derives = node.seq
                if joint:
                    nodes[i].line = node.line

    cdef bint reached(self, made) except -1:
        for v in made:
            if id(v) in self.grads:
                return True
        return False

    def unsure(self, made):
        """Values at which something arrived only if another value says so."""
        return [v for v in made if id(v) in self.grads and self.maybe_of(v) is not None]

    def step(self, entry):
        """Give the operands of a node what they get of what arrived at its results."""
        cdef list arrived = [self.hooked(v) for v in entry.made]
        cdef set needs = self.capture.needs
        cdef dict got = {}
        cdef Py_ssize_t i
        cdef bint needed
        self.flag, first = None, True
        for v in entry.made:
            if id(v) in self.grads:
                self.flag = self.maybe_of(v) if first else self.either(self.flag, self.maybe_of(v))
                first = False
        if not isinstance(entry, Entry):
            entry.spread(self, arrived)
            return
        told, args = entry.told, args_of(entry.node)
        for i, rule in enumerate(told.rules):
            targets = rule.targets
            needed = False
            for t in targets:
                needed = needed or among((args[t],), needs)
            if not needed:
                continue
            result = arrived[0] if rule.function is None else self.by_rule(entry, i, rule, arrived)
            got.update(zip(targets, (result,) if len(targets) == 1 else result))
        broadcasts = told.pointwise and len(tensors_in(args)) > 1
        for target in sorted(got):
            operand, grad = args[target], got[target]
            if type(operand) is VALUE:
                if (broadcasts and grad is not None and id(operand) in needs
                        and (id(operand), id(entry.made[0])) not in self.capture.sized):
                    grad = self.summed(grad, operand)
                self.give(operand, grad)
            elif type(operand) is tuple and grad is not None:
                for value, part in zip(operand, grad):
                    if type(value) is VALUE:
                        self.give(value, part)

    def is_needed(self, operand):
        return among((operand,), self.capture.needs)

    def hooked(self, value):
        """The gradient that arrived at a value, after the hooks on it."""
        grad, hooks = self.grads.get(id(value)), self.capture.hooks
        if grad is None or not hooks or id(value) in self.seen:
            return grad
        self.seen.add(id(value))
        for _, hook in list(hooks.get(id(value), ())):
            new = hook(grad)
            if new is not None:
                self.grads[id(value)] = grad = new
        return grad

    def give(self, value, grad):
        """Add a gradient to a value's, in its shape and dtype."""
        capture, key = self.capture, id(value)
        if grad is None or key not in capture.needs or (self.ways is not None and key not in self.ways):
            return
        if key in capture.unknown:
            raise RuntimeError(capture.unknown[key])
        if type_of(value) is not TENSOR and self.give_parts(value, grad):
            return
        grad = self.fitted(grad, value)
        old = self.so_far(value)
        if old is None:
            self.put(value, grad, self.flag)
            return
        maybe = self.either(self.maybe_of(value), self.flag)
        self.put(value, self.add(old, grad), maybe)

    def fitted(self, grad, value):
        """A gradient in the shape and dtype of a value."""
        like = hint_of(value)
        if like is None:    # there is no example of it this time
            return grad
        if type(grad) is Carried and (<Carried>grad).level is self.capture and isinstance(like, Tensor):
            seen = self.capture.traced(grad).example
            if alike(seen, like):
                return grad
        return self.fitted_anew(grad, value)

    def so_far(self, value):
        """What has arrived at a value, or None."""
        return self.grads.get(id(value))

    def maybe_of(self, value):
        return self.maybe.get(id(value))

    def put(self, value, grad, maybe=None):
        key = id(value)
        self.values[key], self.grads[key], self.maybe[key] = value, grad, maybe

    def read_by(self, entry, i, rule, list arrived):
        """What the parameters of a rule are made of."""
        cdef list row = []
        cdef Py_ssize_t at
        made, args = entry.made, args_of(entry.node)
        reads = entry.told.reads.get(i)
        if reads is None:
            reads = entry.told.reads[i] = reads_of(entry.told, rule)
        for kind, at in reads:
            if kind == "argument":
                row.append(args[at])
            elif kind == "result":
                row.append(made[at])
            elif kind == "grad":
                row.append((None, made[at]) if arrived[at] is None else arrived[at])
            elif kind == "grads":
                row.append([(None, v) if grad is None else grad for v, grad in zip(made, arrived)])
            else:
                row.append(self.parameter(entry, kind, arrived))
        return row
