"""A call of an autograd.Function while a program is captured: one node, `prim::Function`, that holds both of its
halves.

The forward runs in a block of its own on stand-ins for the operands, the backward in a second one on stand-ins for the
gradients. What the backward uses of the forward, by `save_for_backward` or in any other way, the forward block yields
behind its outputs, and the backward block takes behind the gradients. Where a gradient is wanted in the same capture,
what is kept stands among the outputs of the node too, and the backward block is copied into the graph, node by node:
so it can be derived again.
"""

from tinygrad_ext.autograd.modes import no_grad, set_grad_enabled
from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor

from .aliases import Root, Traced
from .ir import Block, Node, Value, replaced, values_in
from .items import NotDerived
from .types import TENSOR


class Context:
    """`ctx` of a Function that is captured."""

    def __init__(self, needs):
        self.needs_input_grad = needs
        self.saved_tensors = ()
        self.plain, self.materialize = (), True

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_non_differentiable(self, *tensors):
        self.plain = tensors

    def mark_dirty(self, *tensors):
        raise NotImplementedError(
            "mark_dirty: a Function that writes to its inputs is not captured yet; return a new tensor"
        )

    def set_materialize_grads(self, value):
        self.materialize = value


def capture_function(capture, function, args):
    """Write a call down; its outputs as the user sees them."""
    operands = [a for a in args if isinstance(a, Tensor)]
    values = [capture.lift(a) for a in operands]
    examples = [capture.example(a) for a in operands]
    wants = is_grad_enabled() and any(id(v) in capture.needs for v in values)
    if not is_grad_enabled():
        values = [capture.without_grad(v) for v in values]
    needed = [isinstance(a, Tensor) and wants and id(v) in capture.needs for a, v in _paired(args, values)]
    context = Context(tuple(needed))
    forward, outputs, single = _forward(capture, function, context, args, examples)
    tensors = [o for o in outputs if isinstance(o, Tensor)]
    made = [capture.lift(o) for o in tensors]
    backward = _backward(capture, function, context, args, tensors, outputs)
    kept = _kept(forward, backward)
    plain = {id(t) for t in context.plain}
    derivable = [id(t) not in plain and (t.is_floating_point() or t.is_complex()) for t in tensors]
    name = function.__qualname__
    node = _record(capture, name, values, (forward, backward), made, kept, derivable if wants else None)
    shown = iter([capture.show(Traced(Root(v, v.hint))) for v in node.outputs[: len(made)]])
    result = tuple(next(shown) if isinstance(o, Tensor) else o for o in outputs)
    return result[0] if single else result


def _record(capture, name, values, blocks, made, kept, derivable):
    """The node of two blocks. made: what the forward block computes; kept: what the backward block uses of it;
    derivable: which results gradients flow through, None where none are wanted."""
    forward, backward = blocks
    wants = derivable is not None
    between = [v for v in kept if v not in forward.inputs and v not in made] if wants else []
    forward.outputs = [*made, *between, *kept]
    node = Node("prim::Function", (name, *values), (forward, backward), user_line())
    node.outputs = tuple(capture.graph.value(v.type, node, v.hint) for v in (*made, *between))
    # gradients of what stands between come from nowhere in a first derivative, and go nowhere
    backward.inputs[len(made) : len(made)] = [capture.graph.value(v.type, None, v.hint) for v in between]
    capture.block.nodes.append(node)
    if wants:
        capture.needs.update(id(v) for v, flows in zip(node.outputs, derivable) if flows)
        outside = {**dict(zip(forward.inputs, values)), **dict(zip((*made, *between), node.outputs))}
        capture.tape.append(FunctionEntry(node, len(made), [outside[v] for v in kept]))
        for value in node.outputs[len(made) :]:
            capture.needs.add(id(value))
            capture.unknown[id(value)] = (
                f"{name.rpartition('.')[2]}Backward: a tensor that forward made from an input that needs a gradient, "
                "and that is neither an input nor an output, is used in backward, so the second derivative through it "
                "is not known. Return it from forward as a further output, or compute it anew in backward"
            )
    return node


def replay_function(replay, node, frame):
    """A node `prim::Function` of a graph that is written down again."""
    capture, graph = replay.capture, replay.graph
    name, *operands = [replay.read(a, frame) for a in node.args]
    values = [replay.lift(a) for a in operands]
    source = node.blocks[0]
    count = len(node.outputs)
    forward, inner = Block(), dict(frame)
    for old, a in zip(source.inputs, values):
        forward.inputs.append(graph.value(old.type, None, replay.example(a)))
        inner[id(old)] = forward.inputs[-1]
    with capture.inside(forward), no_grad():
        results = [replay.lift(a) for a in replay.block(source, inner)]
    wants = len(node.blocks) == 2 and any(isinstance(v, Value) and id(v) in capture.needs for v in values)
    made, kept = results[:count], results[count:]
    if not all(isinstance(v, Value) for v in results):
        raise NotDerived(f"{name}: a Function that gives or keeps what is no value")
    backward = Block()
    if len(node.blocks) == 2:
        inner = dict(frame)
        for old, v in zip(node.blocks[1].inputs, results):
            backward.inputs.append(graph.value(old.type, None, v.hint))
            inner[id(old)] = backward.inputs[-1]
        with capture.inside(backward), no_grad():
            backward.outputs = [replay.lift(a) for a in replay.block(node.blocks[1], inner)]
    derivable = [isinstance(v.hint, Tensor) and (v.hint.is_floating_point() or v.hint.is_complex()) for v in made]
    blocks = (forward, backward) if len(node.blocks) == 2 else (forward,)
    if not wants:
        forward.outputs = results
        new = graph.make(
            capture.block, node.op, (name, *values), [v.type for v in made], [v.hint for v in made], blocks
        )
        return new.outputs
    return _record(capture, name, values, blocks, made, kept, derivable).outputs[:count]


def _paired(args, values):
    rest = iter(values)
    return [(a, next(rest) if isinstance(a, Tensor) else None) for a in args]


def _forward(capture, function, context, args, examples):
    """(block, outputs as carried values of the block, whether there is one that is no tuple)."""
    block, rest = Block(), iter(examples)
    given = []
    for a in args:
        if isinstance(a, Tensor):
            example = next(rest)
            value = capture.graph.value(TENSOR, None, example)
            block.inputs.append(value)
            a = capture.show(Traced(Root(value, example)))
        given.append(a)
    with capture.inside(block), no_grad():
        if function.setup_context is not _no_setup(function):
            result = function.forward(*given)
            function.setup_context(context, tuple(given), result)
        else:
            result = function.forward(context, *given)
        outputs = result if isinstance(result, tuple) else (result,)
        for o in outputs:
            if isinstance(o, Tensor):
                capture.lift(o)  # what a view of something written to is by now
    return block, outputs, not isinstance(result, tuple)


def _no_setup(function):
    """The `setup_context` of a Function that defines none."""
    from tinygrad_ext.autograd.function import Function  # lazy: Functions are rare in what is captured

    return Function.setup_context


def _backward(capture, function, context, args, tensors, outputs):
    """The block from gradients of the outputs to those of the operands; it still refers to values of the forward
    block."""
    block, grads = Block(), []
    for o in outputs:
        if not isinstance(o, Tensor):
            grads.append(None)
            continue
        example = capture.traced(o).example
        value = capture.graph.value(TENSOR, None, example)
        block.inputs.append(value)
        grads.append(capture.show(Traced(Root(value, example))))
    with capture.inside(block), set_grad_enabled(False):
        got = function.backward(context, *grads)
        got = got if isinstance(got, (tuple, list)) else (got,)
        if len(got) < len(args):
            raise RuntimeError(
                f"function {function.__name__}Backward returned an incorrect number of gradients "
                f"(expected {len(args)}, got {len(got)})"
            )
        block.outputs = [None if g is None else capture.lift(g) for a, g in zip(args, got) if isinstance(a, Tensor)]
    return block


def _kept(forward, backward):
    """Values of the forward block that the backward block uses; there they become inputs."""
    inside = {id(v) for v in forward.inputs}
    inside |= {id(v) for node in forward.walk() for v in node.outputs}
    used = [v for node in backward.walk() for v in values_in(node.args)] + list(values_in(backward.outputs))
    kept = list({id(v): v for v in used if id(v) in inside}.values())
    if any(not isinstance(v.hint, Tensor) for v in kept):
        raise NotImplementedError(
            "a backward that uses a size of its forward is not captured yet: take it from a saved tensor"
        )
    stand_ins = {v: Value(f"{v.name}.kept", v.type, None, v.hint) for v in kept}
    for node in backward.walk():
        node.args = replaced(node.args, stand_ins)
    backward.outputs = list(replaced(tuple(backward.outputs), stand_ins))
    backward.inputs += stand_ins.values()
    return kept


def follow(capture, old, new):
    """A value with the elements of `new`, whose gradient goes to `old`: as where memory was written to behind
    autograd's back."""
    forward, backward = Block(), Block()
    forward.inputs = [capture.graph.value(TENSOR, None, v.hint) for v in (old, new)]
    backward.inputs = [capture.graph.value(TENSOR, None, new.hint)]
    forward.outputs, backward.outputs = [forward.inputs[1]], [backward.inputs[0], None]
    node = Node("prim::Function", ("write", old, new), (forward, backward), user_line())
    node.outputs = (capture.graph.value(TENSOR, node, new.hint),)
    capture.block.nodes.append(node)
    capture.needs.add(id(node.output))
    capture.tape.append(FunctionEntry(node, 1, []))
    return node.output


class FunctionEntry:
    """What the tape has of a node `prim::Function`: its backward block is copied into the graph when gradients
    arrive."""

    def __init__(self, node, count, kept):
        """kept: the values outside of the node that are what its backward block takes behind the gradients."""
        self.node, self.made, self.kept = node, node.outputs[:count], kept

    def reads(self, needs):
        """Values that its backward reads."""
        return self.kept

    def spread(self, passed, arrived):
        """Give the operands their gradients."""
        capture, (_, block) = passed.capture, self.node.blocks
        given = [passed.zeros(v) if g is None else g for v, g in zip(self.made, arrived)]
        unused = [None] * (len(self.node.outputs) - len(self.made))
        mapping = dict(zip(block.inputs, [*map(capture.lift, given), *unused, *self.kept]))
        with set_grad_enabled(passed.create_graph):
            found = [passed.tensor(v) if v is not None else None for v in capture.replay_block(block, mapping)]
        for operand, grad in zip(self.node.args[1:], found):
            passed.give(operand, grad)
