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

from . import boxed
from .absent_gradients import takes_none, told_apart
from .aliases import CaptureError, Root, Traced
from .control_backward import substitute
from .function_context import Call, Context, Refused, lasting
from .ir import Block, Node, Value, outer_values, used_values
from .items import NotDerived
from .symbols import Symbol
from .types import TENSOR


def capture_function(capture, operation, args):
    """Write a call down; its outputs as the user sees them."""
    operands = [a for a in args if isinstance(a, Tensor)]
    values = [capture.lift(a) for a in operands]
    wants = is_grad_enabled() and any(id(v) in capture.needs for v in values)
    if not is_grad_enabled():
        values = [capture.without_grad(v) for v in values]
    if getattr(operation.function, "hooks_only", False):
        return capture_hooks(capture, operation, args, values if wants else None)
    rest = iter(values)
    needs = [isinstance(a, Tensor) and _may_need(capture, a, next(rest), wants) for a in args]
    try:
        call = Call(capture, operation, args, tuple(needs))
        backward = _backward(capture, call)
    except Refused:
        raise
    except (CaptureError, NotImplementedError) as error:
        call = boxed.BoxedCall(capture, operation, args, needs, error)
        backward = call.backward()
    kept = _kept(call.forward, backward)
    values_of = [o for o in call.outputs if isinstance(o, (Tensor, Symbol))]
    derivable = [_flows(v) and id(o) not in call.context.plain for v, o in zip(call.made, values_of)]
    last = [now for _, now in call.lasting]
    name = operation.function.__qualname__
    node = _record(capture, name, values, (call.forward, backward), call.made, kept, derivable if wants else None, last)
    for (o, _), value in zip(call.lasting, node.outputs[len(call.made) :]):
        lasting(o, value)
    rest = iter(node.outputs)
    result = tuple(_shown(capture, call, o, next(rest)) if isinstance(o, (Tensor, Symbol)) else o for o in call.outputs)
    return result[0] if call.single else result


def _backward(capture, call):
    """The backward block of a call; a gradient that does not arrive is zeros there, or None where it is told so."""
    values = [o for o in call.outputs if isinstance(o, (Tensor, Symbol))]
    places = [i for i, v in enumerate(call.made) if _flows(v) and id(values[i]) not in call.context.plain]
    first = call.backward()  # which may say so too
    if call.context.materialize or len(places) < 2:
        return first
    return told_apart(capture, call, places)


def _may_need(capture, tensor, value, wants):
    """What ctx.needs_input_grad says; where nobody asks now, somebody may when the graph runs."""
    return id(value) in capture.needs if wants else tensor.is_floating_point() or tensor.is_complex()


def _is_tensor(value):
    return isinstance(value.hint, Tensor)


def _flows(value):
    return _is_tensor(value) and (value.hint.is_floating_point() or value.hint.is_complex())


def _dependent(block, needed):
    """ids of the values of a block that follow from those of its inputs that a gradient is wanted of."""
    found = {id(v) for v, wanted in zip(block.inputs, needed) if wanted}
    for node in block.nodes:
        if node.op != "aten::detach" and any(id(v) in found for v in used_values(node)):
            found.update(id(v) for v in node.outputs if _flows(v))
    return found


def _shown(capture, call, output, value):
    """An output as the user sees it: an argument that was written to is that argument."""
    if isinstance(output, Symbol):
        return Symbol(capture, value, value.hint, output.of_data)
    root = Root(value, value.hint)
    if id(output) in call.context.dirty:
        target = call.args[next(i for i, g in enumerate(call.given) if g is output)]
        capture.assign(target, capture.show(Traced(root)), _Writing)
        return target
    lender = call.lender(output)
    if lender is not None:
        root.lent = capture.traced(lender).root.lent = call.function.__name__
    return capture.show(Traced(root))


class _Writing:
    name, kind = "mark_dirty", "inplace"


def _record(capture, name, values, blocks, made, kept, derivable, last=()):
    """The node of two blocks. made: what the forward block computes; kept: what
    the backward block uses of it; derivable: which results gradients flow through, None where none are wanted; last:
    further results, that gradients do not flow through."""
    forward, backward = blocks
    wants = derivable is not None
    between = [v for v in kept if v not in forward.inputs and v not in made] if wants else []
    between = [*last, *between]
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
        depends = _dependent(forward, [id(v) in capture.needs for v in values])
        for v, value in zip(between[len(last) :], node.outputs[len(made) + len(last) :]):
            if not _is_tensor(v) or id(v) not in depends:
                continue
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


def _kept(forward, backward):
    """Values of the forward block that the backward block uses; there they become inputs."""
    inside = {id(v) for v in forward.inputs}
    inside |= {id(v) for node in forward.walk() for v in node.outputs}
    kept = [v for v in outer_values(backward) if id(v) in inside]
    stand_ins = {v: Value(f"{v.name}.kept", v.type, None, v.hint) for v in kept}
    substitute(backward, stand_ins)
    backward.inputs += stand_ins.values()
    return kept


def capture_hooks(capture, operation, args, values):
    """A Function that is the identity, and there for what its backward calls: the hooks of a module on gradients. No
    node stands for it; it is on the tape, and hooks run when gradients arrive there while the program is captured."""
    operands = [a for a in args if isinstance(a, Tensor)]
    if values is None:
        return tuple(operands)
    node = Node("prim::Function", ("hooks", *values), (), user_line())
    node.outputs = tuple(capture.fresh(v) for v in values)
    capture.reader.unheard.append(node.line)
    capture.needs.update(id(v) for v in node.outputs)
    capture.tape.append(HooksEntry(capture, node, operation, args))
    return tuple(capture.show(Traced(Root(v, v.hint))) for v in node.outputs)


class HooksEntry:
    """What the tape has of such a Function."""

    linear = False

    def __init__(self, capture, node, operation, args):
        self.node, self.made, self.operation, self.args = node, node.outputs, operation, args
        self.context = Context(())
        with capture.inside(Block()), no_grad():
            operation.function.forward(self.context, *args)

    def reads(self, needs):
        return ()

    def spread(self, passed, arrived):
        if self.context.materialize:
            arrived = [passed.zeros(v) if g is None else g for v, g in zip(self.made, arrived)]
        row = passed.capture.resume(self.operation.function.backward, self.context, *arrived)
        grads = [g for a, g in zip(self.args, row) if isinstance(a, Tensor)]
        for operand, grad in zip(self.node.args[1:], grads):
            passed.give(operand, grad)


class OnceEntry:
    """What the tape has of `prim::once`: a derivative that nobody knows."""

    linear = True

    def __init__(self, node):
        self.node, self.made = node, node.outputs

    def note(self, capture):
        if any(id(v) in capture.needs for v in self.node.values()):
            capture.needs.update(map(id, self.made))
            capture.tape.append(self)

    def reads(self, needs):
        return ()

    def spread(self, passed, arrived):
        raise RuntimeError(self.node.args[0])


def follow(capture, node, now, before):
    """Let a node that is another name of `now` be a Function with the elements of `now`, whose gradient goes to
    `before`."""
    forward, backward = Block(), Block()
    forward.inputs = [capture.graph.value(TENSOR, None, v.hint) for v in (before, now)]
    backward.inputs = [capture.graph.value(TENSOR, None, now.hint)]
    forward.outputs, backward.outputs = [forward.inputs[1]], [backward.inputs[0], None]
    node.op, node.args, node.blocks = "prim::Function", ("write", before, now), (forward, backward)


class FollowEntry:
    """What the tape has of such a node before: the gradient goes on to `before`."""

    linear = True

    def __init__(self, value, before):
        self.node, self.made, self.before = Node("prim::Function", ("write", before)), (value,), before

    def reads(self, needs):
        return ()

    def spread(self, passed, arrived):
        passed.give(self.before, arrived[0])


class FunctionEntry:
    """What the tape has of a node `prim::Function`: its backward block is copied into the graph when gradients
    arrive."""

    linear = False

    def __init__(self, node, count, kept):
        """kept: the values outside of the node that are what its backward block takes behind the gradients."""
        self.node, self.made, self.kept = node, node.outputs[:count], kept

    def reads(self, needs):
        """Values that its backward reads."""
        return self.kept

    def spread(self, passed, arrived):
        """Give the operands their gradients."""
        capture, (_, block) = passed.capture, self.node.blocks
        given = [
            passed.zeros(v) if g is None and _is_tensor(v) and not takes_none(block, i) else g
            for i, (v, g) in enumerate(zip(self.made, arrived))
        ]
        unused = [None] * (len(self.node.outputs) - len(self.made))
        row = [*(None if g is None else capture.lift(g) for g in given), *unused, *self.kept]
        with set_grad_enabled(passed.create_graph):
            found = capture.replay_block(block, dict(zip(block.inputs, row)))
            found = [passed.tensor(v) if v is not None else None for v in found]
        for operand, grad in zip(self.node.args[1:], found):
            passed.give(operand, grad)
