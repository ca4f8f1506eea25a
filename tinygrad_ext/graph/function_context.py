"""How a Function's own forward and backward are run while a program is captured: what they get as ctx, in each of the
three styles, and what they may not do."""

from tinygrad_ext.autograd.function import Function
from tinygrad_ext.autograd.modes import no_grad, set_grad_enabled
from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.data.tensor import Tensor

from .aliases import CaptureError, Root, Traced, share
from .ir import Block
from .symbols import Symbol
from .types import TENSOR


class Refused(CaptureError):
    """A Function does what calling it as a whole would not make right."""


class Context:
    """`ctx` of a Function that is captured. Attributes: plain, dirty (ids of outputs), materialize."""

    def __init__(self, needs):
        self.needs_input_grad = needs
        self.saved_tensors = ()
        self.plain, self.dirty, self.materialize = set(), set(), True

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    @property
    def saved_variables(self):
        return self.saved_tensors

    @property
    def to_save(self):
        return self.saved_tensors

    def mark_non_differentiable(self, *tensors):
        self.plain = set(map(id, tensors))

    def mark_dirty(self, *tensors):
        self.dirty = set(map(id, tensors))

    def set_materialize_grads(self, value):
        self.materialize = value

    def name(self):
        return f"{type(self).__name__}Backward"


class Call:
    """One call of a Function.

    Attributes:
        forward: the Block that it was written to. outputs: what forward returned, a tuple; single: it was no tuple.
        given: what forward was given: stand-ins for tensors. made: Values of the outputs that are no constants.
        lasting: [what changed, its new Value] of generators and of tensors from outside that forward wrote to.
    """

    def __init__(self, capture, operation, args, needs):
        self.capture, self.operation, self.function, self.args = capture, operation, operation.function, args
        self.context = _context(operation, needs)
        self.forward, self.given, self.roots = Block(), [], []
        for a in args:
            self.given.append(self.stand_in(a) if isinstance(a, Tensor) else a)
        before = self.outside()
        try:
            with capture.inside(self.forward), no_grad():
                self.run()
        finally:
            self.lasting = self.changed_since(before)

    def stand_in(self, tensor):
        example = self.capture.example(tensor)
        value = self.capture.graph.value(TENSOR, None, example)
        self.forward.inputs.append(value)
        self.roots.append(Root(value, example))
        return self.capture.show(Traced(self.roots[-1]))

    def run(self):
        function, names = self.function, self.operation.keywords
        count = len(self.given) - len(names)
        positional, keywords = self.given[:count], dict(zip(names, self.given[count:]))
        if function.setup_context is not Function.setup_context:
            result = function.forward(*positional, **keywords)
            function.setup_context(self.context, tuple(self.given), result)
        else:
            result = function.forward(self.context, *positional, **keywords)
        self.single = not isinstance(result, tuple)
        self.outputs = (result,) if self.single else result
        self.made = [self.capture.lift(o) for o in self.outputs if isinstance(o, (Tensor, Symbol))]
        for tensor, root in zip((g for g in self.given if isinstance(g, Tensor)), self.roots):
            if root.version and id(tensor) not in self.context.dirty:
                raise Refused(
                    f"{function.__name__}: forward writes to an input that it does not name in ctx.mark_dirty(); that "
                    "is not captured. Mark it, and return it, or write to a clone()"
                )
            if id(tensor) in self.context.dirty and not any(o is tensor for o in self.outputs):
                raise Refused(f"{function.__name__}: an input in ctx.mark_dirty() is not returned by forward")

    def lender(self, output):
        """The argument whose memory an output shows, or None."""
        for a, stand_in in zip(self.args, self.given):
            if isinstance(a, Tensor) and share(self.capture.example(output), self.capture.example(stand_in)):
                return a
        return None

    # ---- what lasts ------------------------------------------------------------------------------------------------

    def outside(self):
        """id -> (root or row of a generator, what it holds) of all that a forward could change besides its inputs."""
        roots = [(t.root, (t.root.value, t.root.example, t.root.version)) for t in self.capture.roots.values()]
        rows = [(row, (row[1],)) for row in self.capture.generators.values()]
        return {id(o): (o, held) for o, held in (*roots, *rows)}

    def changed_since(self, before):
        """What holds something else by now, put back: (root or row, its new Value) each."""
        found = []
        for key, (o, held) in self.outside().items():
            first = (o.state.value, self.capture.suspend(o.tensor.detach), 0) if isinstance(o, Root) else (o[0].value,)
            _, was = before.get(key, (o, first))
            if held[0] is not was[0]:
                found.append((o, held[0]))
                _set(o, *was)
                if isinstance(o, Root):
                    self.capture.roots[id(o.tensor)].version = -1  # made anew when it is read
        return found

    # ---- backward --------------------------------------------------------------------------------------------------

    def backward(self, absent=()):
        """The block from gradients of the outputs to those of the operands; it still refers to values of the forward
        block. absent: numbers of the outputs, among those that are values, whose gradient is None."""
        block, grads, number = Block(), [], -1
        for o in self.outputs:
            if isinstance(o, (Tensor, Symbol)):
                number += 1
                made = self.made[number]
                value = self.capture.graph.value(made.type, None, made.hint)
                block.inputs.append(value)
            if not isinstance(o, Tensor) or number in absent:
                grads.append(None)
            else:
                grads.append(self.capture.show(Traced(Root(value, made.hint))))
        function, before = self.function, self.outside()
        rule = function.backward if function.backward is not Function.backward else function.vjp
        with self.capture.inside(block), set_grad_enabled(False):
            got = rule(self.context, grads) if function.boxed_grads_call else rule(self.context, *grads)
            row = self.operation.gradients(got)
            found = [g for a, g in zip(self.args, row) if isinstance(a, Tensor)]
            block.outputs = [None if g is None else self.capture.lift(g) for g in found]
        if getattr(rule, "once", False):
            self.mark_once(block)
        if self.changed_since(before):
            raise Refused(
                f"{function.__name__}: backward draws random numbers, or writes to a tensor from outside; that is not "
                "captured. Do it in forward"
            )
        return block

    def mark_once(self, block):
        """Let the gradients be nothing that can be differentiated."""
        message = (
            "trying to differentiate twice a function that was marked with @once_differentiable: "
            f"{self.function.__name__}"
        )
        places = [i for i, v in enumerate(block.outputs) if v is not None]
        if places:
            found = [block.outputs[i] for i in places]
            sources = [v for v in (*block.inputs, *self.forward.inputs) if v.type is TENSOR]
            for i, v in zip(places, once(self.capture.graph, block, message, found, sources)):
                block.outputs[i] = v


def once(graph, block, message, values, sources):
    """The same values, which nobody may differentiate by the sources."""
    args = message, len(values), *values, *sources
    types, hints = [TENSOR] * len(values), [v.hint for v in values]
    return graph.make(block, "prim::once", args, types, hints, line=user_line()).outputs


def _set(o, value, *rest):
    if isinstance(o, Root):
        o.value, (o.example, o.version) = value, rest
    else:
        o[0].new = o[1] = value


def lasting(o, value):
    """Let a generator or a tensor from outside hold what a node gave."""
    if isinstance(o, Root):
        o.value, o.example, o.version = value, value.hint, o.version + 2  # one more than it had inside
    else:
        o[0].new = o[1] = value


def _context(operation, needs):
    function = operation.function
    if not function._legacy:
        return Context(needs)
    # in the legacy style ctx is the instance that was called
    kind = type(function)(function.__name__, (Context, function), {})
    made = kind.__new__(kind)
    made.__dict__.update(operation.attributes)
    Context.__init__(made, needs)
    return made
