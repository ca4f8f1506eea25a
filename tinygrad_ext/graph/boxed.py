"""Functions whose body leaves the library, for NumPy or for another one: a node that calls them as a whole.

The node is a `prim::Function` like any other, so its derivative goes where it should: its forward block calls the
Function with the engine of eager mode, and keeps the call as one value; its backward block asks that call for the
gradients. Of the second derivative nobody knows anything, and it is refused. Such a graph stays in its process.
"""

from tinygrad_ext.autograd import grad as gradients
from tinygrad_ext.autograd.modes import no_grad, set_grad_enabled
from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.tensor import Tensor

from .function_context import Context, Refused, once
from .ir import Block
from .primitives.objects import keep_function
from .types import ANY, TENSOR, optional

_SLOT = object()  # where a tensor stands among the arguments


class Box:
    """A Function with the arguments of a call that are no tensors."""

    def __init__(self, operation, args, needs):
        self.operation, self.needs = operation, needs
        self.template = tuple([_SLOT if isinstance(a, Tensor) else a for a in args])
        self.name = operation.function.__qualname__

    def key(self):
        return self.operation.function, self.template, self.needs

    def forward(self, *tensors):
        """The outputs, and where gradients may be asked for what they came from."""
        rest, given, leaves = iter(tensors), [], []
        for a, needed in zip(self.template, self.needs or (False,) * len(self.template)):
            if a is _SLOT:
                a = next(rest).detach()
                leaves.append(a.requires_grad_(needed))
            given.append(a)
        versions = [a._version for a in leaves]
        with set_grad_enabled(self.needs is not None):
            result = self.operation(*given)
        if [a._version for a in leaves] != versions:
            raise Refused(f"{self.name}: forward leaves the library and writes to an input, which is not captured")
        outputs = result if isinstance(result, tuple) else (result,)
        record = Record(outputs, leaves, isinstance(result, tuple))
        shown = [o.detach() for o in outputs if isinstance(o, Tensor)]
        return (*shown, record)

    def backward(self, record, *grads):
        """A gradient for each tensor argument, zeros where there is none; the engine of eager mode makes zeros of a
        gradient of an output that is None, or not, as the Function says."""
        outputs = [o for o in record.outputs if isinstance(o, Tensor)]
        pairs = [(o, g) for o, g in zip(outputs, grads) if o.requires_grad and g is not None]
        found = [None] * len(record.leaves)
        wanted = [i for i, a in enumerate(record.leaves) if a.requires_grad]
        if pairs and wanted:
            roots, seeds = zip(*pairs)
            with no_grad():
                made = gradients(roots, [record.leaves[i] for i in wanted], seeds, retain_graph=True, allow_unused=True)
            for i, g in zip(wanted, made):
                found[i] = g
        return tuple([a.new_zeros(a.shape) if g is None else g for a, g in zip(record.leaves, found)])


class Record:
    """What a call keeps for its derivative."""

    def __init__(self, outputs, leaves, several):
        self.outputs, self.leaves, self.several = outputs, leaves, several


class _Half:
    """The forward or the backward of a Box; equal ones have one word."""

    def __init__(self, box, which):
        self.box, self.which = box, which
        self.__qualname__ = f"{box.name}.{which}"

    def __call__(self, *args):
        found = getattr(self.box, self.which)(*args)
        return found[0] if len(found) == 1 else found

    def __eq__(self, other):
        return type(other) is _Half and (self.which, self.box.key()) == (other.which, other.box.key())

    def __hash__(self):
        try:
            return hash((self.which, self.box.key()))
        except TypeError:
            return id(self.box)


class BoxedCall:
    """As function_context.Call, of what cannot be written down; why: the error that said so."""

    lasting, dirty = (), ()

    def __init__(self, capture, operation, args, needs, why):
        self.capture, self.function = capture, operation.function
        tensors = [a for a in args if isinstance(a, Tensor)]
        self.box = Box(operation, args, tuple(needs) if is_grad_enabled() else None)
        examples = [capture.example(a) for a in tensors]
        *shown, record = capture.suspend(self.called, *examples)
        self.outputs, self.single = record.outputs, not record.several
        if not all(isinstance(o, Tensor) or o is None for o in self.outputs):
            raise why
        self.context = Context(())
        self.context.plain = {id(o) for o in self.outputs if isinstance(o, Tensor) and not o.requires_grad}
        graph = capture.graph
        self.forward = Block([graph.value(TENSOR, None, e) for e in examples])
        node = graph.make(
            self.forward, "prim::boxed", (keep_function(_Half(self.box, "forward")), *self.forward.inputs),
            (*[TENSOR] * len(shown), ANY), (*shown, record), line=user_line(),
        )  # fmt: skip
        *self.made, self.record = node.outputs

    def called(self, *examples):
        before = default_generator.get_state()
        results = self.box.forward(*examples)
        if not default_generator.get_state().equal(before):
            default_generator.set_state(before)
            raise Refused(
                f"{self.box.name}: forward leaves the library and draws random numbers, which is not captured together"
            )
        return results

    def lender(self, output):
        return None

    def backward(self, absent=()):
        graph, block = self.capture.graph, Block()
        flows = [o.requires_grad for o in self.outputs if isinstance(o, Tensor)]
        types = [optional(TENSOR) if wanted and sum(flows) > 1 else TENSOR for wanted in flows]
        block.inputs = [graph.value(type, None, v.hint) for type, v in zip(types, self.made)]
        operands = self.forward.inputs
        if self.box.needs is None:
            block.outputs = [None] * len(operands)
            return block
        args = keep_function(_Half(self.box, "backward")), self.record, *block.inputs
        types, hints = [TENSOR] * len(operands), [v.hint for v in operands]
        made = graph.make(block, "prim::boxed", args, types, hints, line=user_line()).outputs
        message = (
            f"{self.function.__name__}: forward or backward leaves the library, so its second derivative is not known"
        )
        block.outputs = list(once(graph, block, message, made, (*block.inputs, *operands)))
        return block
