"""Writes a graph down once more under a capture, where it can be derived.

Nodes are called one after the other as a program would call them, so composites are opened and the tape is kept;
branches and loops stay what they are (control_nodes.py). What is known already is followed now: a condition that is no
value any more chooses its branch, arithmetic on numbers is done, lists whose length is known are taken apart.

Every step runs on the examples of this time too. A branch that this time does not take may be good for other sizes
only: where it fails, the new graph holds a guard in its place.
"""

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.data.tensor import Tensor

from . import derive, lists, primitives
from .aliases import Root, Traced
from .control import replay_if, replay_loop
from .control_backward import CastEntry, cast
from .function_nodes import replay_function
from .ir import Block, Value, outer_values, values_in
from .items import SPOKEN, STATIC, Items, NotDerived, as_items, may_hold_tensors, of_parts
from .primitives.objects import fits
from .signature import output_types, signature_of
from .stack_gradients import StackEntry, is_stack
from .symbols import Symbol
from .types import ANY, INT, TENSOR
from .walks import readers

_STACKS = {"prim::push", "prim::pop"}
_WRITES = {"prim::tensor.item_set", "prim::tensor.as_written"}
_MODES = {"prim::grad_enabled", "prim::tensor.requires_grad"}  # a derivative is asked for
# primitives that stay in the graph though nothing that they take is a value
_LASTING = {
    "prim::list", "prim::dict", "prim::raise", "prim::undefined", "prim::stack", "prim::grads.none",
    "prim::generator.seeded",
}  # fmt: skip
_CONTROL = {"prim::If": replay_if, "prim::Loop": replay_loop, "prim::Function": replay_function}


class Replay:
    """Operands are Values of the new graph, constants, and Items of them."""

    def __init__(self, capture):
        self.capture, self.graph = capture, capture.graph
        self.depth = 0  # blocks that it is within
        self.readers = None  # {id of a Value of the graph that is written down: nodes that read it}

    def block(self, block, frame):
        """What a block yields, with `frame` (id of a Value -> operand) for what it reads."""
        if self.readers is None:
            self.readers = readers(block)
        for node in block.nodes:
            start = len(self.capture.block.nodes)
            self.node(node, frame)
            for new in self.capture.block.nodes[start:]:
                new.line = node.line or new.line
        return [self.read(a, frame) for a in block.outputs]

    def within(self, node, mapping):
        """What a node with blocks gives, as values of the new graph, with `mapping` for values that it reads."""
        frame = {id(v): mapping.get(v, v) for v in outer_values(Block((), [node]))}
        return list(map(self.lift, self.block(Block((), [node], node.outputs), frame)))

    def node(self, node, frame):
        if node.op in _CONTROL:
            results = _CONTROL[node.op](self, node, frame)
        elif node.op.startswith("prim::"):
            results = self.primitive(node, [self.read(a, frame) for a in node.args])
        else:
            args = [frame[id(a)] if type(a) is Value else a if a is None else self.read(a, frame) for a in node.args]
            results = self.op(node, args)
        for value, result in zip(node.outputs, results):
            frame[id(value)] = result

    def read(self, a, frame):
        if isinstance(a, Value):
            return frame[id(a)]
        if type(a) is tuple:
            return Items(None, [self.read(x, frame) for x in a])
        if type(a) is slice:
            return slice(*[self.read(x, frame) for x in (a.start, a.stop, a.step)])
        return a

    # ---- ops -------------------------------------------------------------------------------------------------------

    def op(self, node, args):
        signature = signature_of(node.op)
        if signature.inplace:
            raise NotDerived(f"{node.op} writes to a tensor that others may see")
        if signature.generator is not None:
            return self.random(node, signature, args)
        if node.op in lists.RULES and self.is_list(args[0]):
            return lists.replayed(self, node.op, [self.lift(a) for a in args], [v.type for v in node.outputs])
        if node.op == "aten::unbind.int" and lists.are_picked(self.readers.get(id(node.output), ())):
            lifted = [self.lift(a) for a in args]
            return lists.replayed(self, "prim::grads.unbind", lifted, [v.type for v in node.outputs])
        repeats = self.capture.repeats
        key = None if repeats is None or signature.writes else repeats.key(node.op, args)
        if key is not None:
            return repeats.call(key, lambda: self.called(node, signature, args), list)[0]
        return self.called(node, signature, args)

    def called(self, node, signature, args):
        """An op that draws from no generator that is a value."""
        shown = [self.shown(a) for a in args]
        drawn = self.drawn() if self.depth else None
        results = operation(signature.op)(*shown)
        if self.depth and self.drawn() != drawn:  # a composite, such as dropout: each turn has to draw anew
            raise NotDerived(f"{node.op} draws from a generator within a branch or a loop")
        count = len(signature.returns)
        row = [results] if count == 1 else list(results or ())
        row += [shown[i] for i in signature.writes]
        return [self.operand(r, t.type) for r, t in zip(row, node.outputs)]

    def drawn(self):
        """Which values the generators are at."""
        return [id(found[1]) for found in self.capture.generators.values()]

    def random(self, node, signature, args):
        """An op that draws: its generator is a value, or the default one, which is a state of the new graph."""
        at = signature.generator
        if not isinstance(args[at], Value):
            if self.depth:
                raise NotDerived(f"{node.op} draws from a generator within a branch or a loop")
            return self.op_of_default(node, signature, args)
        lifted = [self.lift(a) for a in args]
        examples = [self.example(a) for a in args]
        examples[at] = examples[at]._copy()
        results = self.on_examples(operation(signature.op), *examples)
        row = [results] if len(signature.returns) == 1 else list(results or ())
        made = self.graph.make(
            self.capture.block, node.op, lifted, output_types(signature, lifted), owner=node.owner, version=node.version
        )
        for value, result in zip(made.outputs, [*row, examples[at]]):
            value.hint = result
        derive.note(self.capture, signature.op, made, list(made.outputs[: len(row)]), row)
        return made.outputs

    def op_of_default(self, node, signature, args):
        results = operation(signature.op)(*[self.shown(a) for a in args])
        row = [results] if len(signature.returns) == 1 else list(results or ())
        return [self.operand(r, t.type) for r, t in zip(row, node.outputs)]

    # ---- primitives ------------------------------------------------------------------------------------------------

    def primitive(self, node, args):
        row = primitives.TABLE[node.op]
        if node.op == "prim::new":
            raise NotDerived("an object of a class is another one in each run, and may be written to")
        known = STATIC.get(node.op)
        if known is not None:
            found = known(node, *args)
            if found is not None:
                return found
        if node.op == "prim::cast" and _is_other(args[0], node.output.type):
            raise NotDerived("which type of a Union a value has hangs on the way that is taken")
        if node.op in _MODES and (not args or isinstance(args[0], Value)):
            return (not args or self.needs_grad(args[0]),)
        if node.op in _WRITES and isinstance(args[0], Value):
            return (self.written(node.op, *args),)
        if node.op in SPOKEN:
            lifted, types = [self.lift(a) for a in args], [v.type for v in node.outputs]
            return self.graph.make(self.capture.block, node.op, lifted, types, line=node.line).outputs
        if row.effect and row.effect != "takes" and node.op != "prim::guard":
            raise NotDerived(f"{node.op} has an effect")
        found = of_parts(node, row, args)
        if found is not None:
            return found
        if not any(self.values(a) for a in args) and node.op not in _LASTING:
            results = self.on_examples(row.run, *map(self.example, args))
            results = results if len(node.outputs) > 1 else (results,)
            return [as_items(a, value.type) for a, value in zip(results, node.outputs)]  # each run has lists of its own
        if any(id(v) in self.capture.needs for a in args for v in self.values(a)):
            if node.op == "prim::cast" and (isinstance(args[0].hint, Tensor) or is_stack(args[0].type)):
                return (self.cast(args[0], node.output.type),)
            if node.op in lists.RULES:
                return self.of_lists(node, row, args)
            if any(may_hold_tensors(v.type) for v in node.outputs) and node.op not in _STACKS:
                raise NotDerived(f"the derivative of {node.op} is not known")
        if row.effect == "takes":
            return self.of_lists(node, row, args)
        lifted, examples = [self.lift(a) for a in args], list(map(self.example, args))
        empty = node.op == "prim::pop" and not examples[0]  # on a way that is not taken this time
        results = () if empty else self.on_examples(row.run, *examples)
        made = self.graph.make(self.capture.block, node.op, lifted, [v.type for v in node.outputs], line=node.line)
        for value, result in zip(made.outputs, results if len(node.outputs) > 1 else (results,)):
            value.hint = result
        if node.op in _STACKS:
            StackEntry(made).note(self.capture)
        return made.outputs

    def needs_grad(self, value):
        """Whether a tensor requires a gradient; behind branches and loops that shows when the graph runs."""
        if id(value) not in self.capture.needs:
            return False
        if self.depth or any(node.blocks for node in self.capture.block.nodes):
            raise NotDerived("whether a gradient is needed hangs on which way is taken")
        return True

    def written(self, op, old, new, *value):
        """A tensor after a write."""
        tensor = self.shown(old)
        if value:
            made = tensor.clone()
            made[self.index(new)] = self.shown(value[0])
            return self.operand(made)
        if not isinstance(new, Value) or tuple(new.hint.shape) != tuple(old.hint.shape):
            raise NotDerived("an in-place op whose result has other sizes")
        derive.guard_sizes(self.capture, old, new)
        return new if new.hint.dtype == old.hint.dtype else self.operand(self.shown(new).to(old.hint.dtype))

    def index(self, a):
        """What stands in brackets; the outermost sequence is a tuple."""
        shown = self.shown(a)
        return tuple(shown) if isinstance(shown, list) else shown

    def of_lists(self, node, row, args):
        """A primitive on lists that are values."""
        taken = row.effect == "takes" and type(args[0]) is Items
        args = [self.own(args[0]) if taken else self.lift(args[0]), *map(self.lift, args[1:])]
        return lists.replayed(self, node.op, args, [v.type for v in node.outputs], node.line)

    def own(self, a):
        """Items as one value that may be taken over."""
        value = self.lift(a)
        return lists.replayed(self, "prim::own", [value], [value.type])[0] if type(a) is Items else value

    def is_list(self, a):
        return isinstance(a, Value) and lists.is_list(a.type)

    def operation_of(self, name):
        return operation(signature_of(name).op)

    def cast(self, value, type):
        """A value under another type."""
        node = cast(self.capture, self.capture.block, value, type)
        self.capture.needs.add(id(node.output))
        CastEntry(node).note(self.capture)
        return node.output

    def on_examples(self, function, *args):
        """Run something beside the capture."""
        with no_grad():
            return self.capture.suspend(function, *args)

    # ---- operands --------------------------------------------------------------------------------------------------

    def values(self, a):
        """The Values in an operand."""
        if type(a) is Items:
            return [v for part in a.parts for v in self.values(part)]
        return list(values_in((a,)))

    def operand(self, result, type=TENSOR):
        """What an op returned, as an operand."""
        if isinstance(result, (list, tuple)) and not isinstance(result, Symbol):
            inner = type.args[0] if type.word == "List" else TENSOR
            return Items(type, [self.operand(r, inner) for r in result])
        if isinstance(result, Tensor):
            return self.capture.traced(result).value
        return result.value if isinstance(result, Symbol) else result

    def shown(self, a):
        """An operand as an op is called with it."""
        if type(a) is Items:
            return [self.shown(part) for part in a.parts]
        if not isinstance(a, Value):
            return a
        if isinstance(a.hint, Tensor):
            return self.capture.show(Traced(Root(a, a.hint)))
        if isinstance(a.hint, (list, tuple)):
            return self.spread(a)
        if type(a.hint) in (int, float):
            return Symbol(self.capture, a, a.hint)
        if type(a.hint) in (bool, str, complex):
            self.capture.guard(Symbol(self.capture, a, a.hint))
        return a.hint

    def spread(self, a):
        """The parts of a sequence that is one value, which has to have as many when the graph runs."""
        length = self.graph.make(self.capture.block, "prim::len", (a,), (INT,), (len(a.hint),)).output
        self.capture.guard(Symbol(self.capture, length, len(a.hint)))
        inner = a.type.args[0] if a.type.word == "List" else ANY
        return [self.shown(v) for v in lists.replayed(self, "prim::unpack", [a], [inner] * len(a.hint))]

    def lift(self, a):
        """An operand as a node has it."""
        if type(a) is not Items:
            return slice(*map(self.lift, (a.start, a.stop, a.step))) if type(a) is slice else a
        if a.type is None:
            return tuple([self.lift(part) for part in a.parts])
        return self.whole(a)

    def whole(self, a):
        """Items as one value."""
        if any(id(v) in self.capture.needs for v in self.values(a)) and not lists.is_list(a.type):
            raise NotDerived(f"the derivative of a {a.type} that is one value is not known")
        parts, op = [self.lift(part) for part in a.parts], a.type.word.lower()
        if a.keys is not None:
            parts = [p for pair in zip(a.keys, parts) for p in pair]
        return lists.replayed(self, f"prim::{op}", parts, [a.type])[0]

    def example(self, a):
        """An operand as it is this time."""
        if type(a) is Items:
            parts = [self.example(part) for part in a.parts]
            if a.keys is not None:
                return dict(zip(a.keys, parts))
            return tuple(parts) if a.type is not None and a.type.word == "Tuple" else parts
        if type(a) is slice:
            return slice(*map(self.example, (a.start, a.stop, a.step)))
        return a.hint if isinstance(a, Value) else a


def _is_other(a, type):
    """Whether a value of a Union is not of a type this time."""
    return isinstance(a, Value) and a.type.word == "Union" and not fits(a.hint, type)
