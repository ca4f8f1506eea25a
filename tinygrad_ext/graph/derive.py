"""Gradients of what a capture wrote down, by the rules of the ops' records.

Nodes are taken from the last to the first, as the engine of eager mode takes them (its order is that of making, too),
and gradients that meet are added in the order in which they arrive: so a captured backward pass has eager's bits. A
rule is called with carried values, under the capture: what it computes is in the graph, sizes that it asks for are
values of the graph, and with create_graph it can be derived again.
"""

import operator

from tinygrad_ext.autograd.modes import set_grad_enabled
from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.ops.record import BUILTIN

from . import formulas, lists, stack_gradients
from .aliases import Root, Traced
from .arriving import Arriving, any_in, expect_sizes, stand_in_for_sizes
from .ir import Value, used_values
from .tape import WHOLE as WHOLE
from .tape import Entry, Told
from .types import BOOL, INT, TENSOR, list_of


def note(capture, op, node, made, results, args=None):
    """Put a node on the tape where a gradient may flow through it. args: as the op was called, where it was."""
    needs = capture.needs
    if not needs or not any_in(node.args, needs):
        return
    told = capture.told.get(op.name)
    if told is None:
        told = capture.told[op.name] = Told(op)
    formula = told.custom and told.custom.formula()
    if formula is not None:
        formulas.note(capture, op, node, made, args, formula)
        return
    if op.record.compose is not None and not told.rules:
        why = f"{op.name} reads elements: a graph calls it whole, and knows no derivative of it"
        formulas.note_unknown(capture, op, node, made, why)
        return
    if not any_in([node.args[t] for t in told.targets], needs):
        return
    mask = told.mask
    for i, (value, result) in enumerate(zip(made, results)):
        if (
            isinstance(result, Tensor)
            and (result.is_floating_point() or result.is_complex())
            and (not mask or mask >> i & 1)
        ):
            needs.add(id(value))
    if capture.joint == "backward":  # whose own derivative is that of the graph that it becomes
        return
    start = len(capture.block.nodes)
    enter(capture, op, node, made, told)
    if capture.repeats is not None and capture.repeats.noted is not None:
        capture.repeats.noted[node] = capture.block.nodes[start:]


def enter(capture, op, node, made, told):
    """Put a node on the tape that a gradient may flow through."""
    capture.tape.append(Entry(node, op, made, told))
    if capture.joint and told.pointwise:
        expect_sizes(capture, node.args, made[0], guard_sizes)


def guard_sizes(capture, a, b):
    """Let the graph be good for two tensors of the same sizes, which are known from here on."""
    first, second = stand_in_for_sizes(capture, a), stand_in_for_sizes(capture, b)
    if first is second:
        return
    capture.of_sizes[second] = first
    sizes = [capture.graph.make(capture.block, "prim::shape", (x,), (list_of(INT),)).output for x in (a, b)]
    same = capture.graph.make(capture.block, "prim::eq", sizes, (BOOL,), (True,)).output
    capture.graph.make(capture.block, "prim::guard", (same, True, user_line()), ())


class Backward(Arriving):
    """One backward pass over a tape."""

    def run(self, roots, seeds, wanted=None):
        """Gradients of the values that `roots` depend on, from theirs; wanted: ids of those that are asked for."""
        if wanted is not None:
            self.ways = set(wanted)
            for entry in self.tape:
                if self.leads_on(entry):
                    self.ways.update(map(id, (*entry.made, *entry.node.outputs)))
        with set_grad_enabled(self.create_graph):
            for value, seed in zip(roots, seeds):
                self.give(value, seed)
            self.walk()
        return self

    def leads_on(self, entry):
        """Whether a node leads from what is wanted."""
        return self.ways is None or any(id(v) in self.ways for v in used_values(entry.node))

    def give_parts(self, value, grad):
        """Add a gradient to one that is no tensor; whether the value has such a one."""
        if not has_parts(value.type):
            return False
        (stack_gradients if stack_gradients.is_stack(value.type) else lists).give(self, value, grad)
        return True

    def add(self, old, grad):
        repeats = self.capture.repeats
        return repeats.again("add", operator.add, old, grad) if repeats else old + grad

    def either(self, a, b):
        """Whether one of two arrived, in the words of `maybe`."""
        if a is None or b is None or a is b:
            return None if a is None or b is None else a
        return self.capture.graph.make(self.capture.block, "prim::or", (a, b), (BOOL,), (a.hint or b.hint,)).output

    def fitted_anew(self, grad, value):
        """A gradient that has another shape or dtype than its value, or that a transform inside the program carries."""
        like = value.hint
        carried = type(grad) is Carried and grad.level is not self.capture
        sizes, shape, dtype = self.capture.suspend(_sizes, grad if carried else self.capture.example(grad), like)
        if sizes != shape:
            grad = self.summed(grad, value)
        if grad.dtype != dtype:
            if grad.dtype.is_complex and not like.dtype.is_complex:
                grad = grad.real
            grad = grad.to(dtype)
        return grad

    def summed(self, grad, value):
        repeats = self.capture.repeats
        return repeats.again("sum", self._summed, grad, value) if repeats else self._summed(grad, value)

    def _summed(self, grad, value):
        return grad.sum_to_size(self.shape_of(value))

    def shape_of(self, value):
        return self.capture.reader.sizes(Traced(Root(value, value.hint)))

    # ---- what a rule asks for --------------------------------------------------------------------------------------

    def by_rule(self, entry, i, rule, arrived):
        """What rule i of a node gives, in the order of its targets."""

        def result():
            return rule.function(*[self.parameter(entry, name, arrived) for name in rule.names])

        repeats = self.capture.repeats
        key = repeats and repeats.key((entry.op.name, i), self.read_by(entry, i, rule, arrived))
        if not key:
            return result()
        found, repeated = repeats.call(key, result, repeats.lifted)
        return repeats.shown(found) if repeated else found

    def parameter(self, entry, name, arrived):
        places, returns = entry.told.places, entry.told.returns
        if name == "grad":
            return self.defined(entry, 0, arrived)
        if name == "grads":
            return tuple(self.defined(entry, i, arrived) for i in range(len(entry.made)))
        if name == "arrived":
            return tuple(arrived)
        if name == "needs":
            tensors = [i for i, a in enumerate(entry.op.schema.args) if a.type == "Tensor"]
            return tuple(self.is_needed(entry.node.args[i]) for i in tensors)
        if name in places:
            return self.shown(entry.node.args[places[name]], entry.op.schema.args[places[name]])
        if name == "result":
            return self.tensor(entry.made[0])
        if name in returns:
            return self.tensor(entry.made[returns[name]])
        if name.startswith("grad_") and name[5:] in returns:
            return self.defined(entry, returns[name[5:]], arrived)
        argument, _, what = name.rpartition("_")
        return self.measure(entry.node.args[places[argument]], what)

    def defined(self, entry, i, arrived):
        """Gradient i, zeros where none arrived."""
        return self.zeros(entry.made[i]) if arrived[i] is None else arrived[i]

    def zeros(self, value):
        """Zeros like a value; None for a result that is not there."""
        hint = value.hint
        if hint is None:
            return None
        return self.capture.call("aten::zeros", tuple(self.shape_of(value)), hint.dtype, None, hint.device, None, False)

    def nothing(self, value):
        """A gradient that stands for none at all: the sum with any other is that one, to the bit."""
        hint = value.hint
        if lists.is_list(value.type):
            return lists.nothing(self, value)
        if id(value) in self.capture.hollow:
            return self.tensor(self.undefined(TENSOR, hint))
        shape = tuple(self.shape_of(value))
        return self.capture.call("aten::full", shape, -0.0, hint.dtype, None, hint.device, None, False)

    def undefined(self, type, hint):
        """What stands in the place of a value that nobody reads."""
        node = self.capture.graph.make(self.capture.block, "prim::undefined", (), (type,), (hint,))
        self.capture.hollow.add(id(node.output))
        return node.output

    def shown(self, a, declared):
        """An argument of a node as the op got it."""
        if isinstance(a, Value):
            return self.tensor(a) if isinstance(a.hint, Tensor) else self.capture.symbol_of(a)
        return tuple([self.shown(x, declared) for x in a]) if type(a) is tuple else a

    def gradient(self, value):
        """A value that is a gradient, as the rules take it."""
        return value if has_parts(value.type) else self.tensor(value)

    def tensor(self, value):
        self.capture.check_kept(value)
        return self.capture.show(Traced(Root(value, value.hint)))

    def measure(self, a, what):
        if type(a) is tuple:
            return tuple([self.measure(x, what) for x in a])
        if not isinstance(a, Value):
            return () if what == "shape" else None
        if what == "shape":
            return self.shape_of(a)
        if what == "geometry":
            return self.geometry(a)
        return getattr(a.hint, what)

    def geometry(self, value):
        """Sizes, strides and offset; those of memory without gaps follow from the sizes."""
        sizes, strides = self.shape_of(value), value.hint.stride()
        if value.hint.is_contiguous():
            step, strides = 1, []
            for size in reversed(sizes):
                strides.insert(0, step)
                step = size * step
        return sizes, tuple(strides), value.hint.storage_offset()


def _sizes(grad, like):
    return tuple(grad.shape), tuple(like.shape), like.dtype


def is_linear(entry):
    """Whether zeros for a gradient that did not arrive are as good as leaving a node out: of what the library knows,
    not of code of the user."""
    if isinstance(entry, Entry):
        return entry.op.record.owner == BUILTIN or all(rule.function is None for rule in entry.rules)
    return entry.linear


def has_parts(type):
    """Whether gradients of values of a type are no tensors, but stacks, lists or dicts of them."""
    return stack_gradients.is_stack(type) or lists.is_list(type)
