"""What a call wrote down once is written down again without running the Python code that said it.

A graph with its derivative is made by calling ops and the rules of records under a capture, and a model calls the same
ones again and again for tensors of the same kind. The nodes that such a call adds are kept as a `Piece`: a later call
for operands of the same dtypes, sizes and strides adds them with its own operands. What they make has the examples of
the first time: these have no memory, and nothing writes to one.

A piece lives as long as its capture. Rejected: pieces for other sizes, or for all captures of the process. What Python
code looks at besides its operands (strides, settings, the default dtype) would have to be known for each rule.
"""

from collections import namedtuple
from contextlib import suppress

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.tensor import Carried, Tensor

from . import derive
from .aliases import Root, Traced
from .ir import Node, Value
from .items import Items
from .signature import signature_of
from .symbols import Symbol
from .types import TENSOR

# of numbers only: given the same operands they give the same
_NUMBERS = {
    f"prim::{word}"
    for word in [
        *("shape", "size", "len", "eq", "ne", "lt", "le", "gt", "ge", "guard"),
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs"),
    ]
}
_PLAIN = {int, bool, str, type(None), dtypes.dtype, dtypes.device, dtypes.layout, dtypes.memory_format}


class Ref(namedtuple("Ref", "at")):
    """A place in the row of values of a piece: its operands, then what its steps make."""

    __slots__ = ()


# One node. run: the op, None for a primitive; args: with Refs; plain: whether no Ref stands in a tuple; types, hints:
# of what it makes; flows: numbers of results that may need a gradient; noted: whether the
# tape is told
Step = namedtuple("Step", "node run args plain types hints flows noted")
Piece = namedtuple("Piece", "steps results")


class Unfit(Exception):
    """A call that no piece is made of."""


class Repeats:
    """The pieces of one capture."""

    def __init__(self, capture):
        self.capture, self.pieces, self.kinds = capture, {}, {}
        self.noted = None  # while a call is looked at: {node that the tape was told of: the nodes that this added}

    def key(self, what, row):
        """(key, operands) of a call of `what` with a row of Values, carried values and constants in tuples; None where
        it is like no other."""
        if self.capture.overwritten or self.noted is not None:
            return None
        return self.capture.suspend(self._key, what, row)  # which would be asked about each size that is read

    def _key(self, what, row):
        operands, places = [], {}
        try:
            kinds = tuple([self._kind(a, operands, places) for a in row])
        except Unfit:
            return None
        return (what, is_grad_enabled(), kinds), operands

    def _kind(self, a, operands, places):
        if type(a) is Carried and a.level is self.capture:
            a = self.capture.traced(a).value
        if type(a) is Value:
            if a in places:
                return places[a]
            places[a] = len(operands)
            operands.append(a)
            kind = self.kinds.get(a)
            if kind is None:
                kind = self.kinds[a] = self._kind_of(a)
            return kind, id(a) in self.capture.needs
        kind = type(a)
        if kind in _PLAIN:
            return kind, a
        if kind is float or kind is complex:
            return kind, repr(a)
        if kind is tuple or kind is list:
            return (kind, *[self._kind(x, operands, places) for x in a])
        if kind is Items and a.type is None:
            return (Items, *[self._kind(x, operands, places) for x in a.parts])
        raise Unfit

    def _kind_of(self, value):
        hint = value.hint
        if id(value) in self.capture.hollow or id(value) in self.capture.unknown:
            raise Unfit
        if type(hint) is Tensor:
            return value.type, hint.dtype, hint.device, tuple(hint.shape), hint.stride(), hint.storage_offset()
        if type(hint) in (int, float, bool):
            return value.type, repr(hint)
        raise Unfit

    def call(self, key, function, told):
        """What `function()` gives, as a tree of Values by `told`; the nodes are written down, by a piece where there is
        one. Returns (tree, whether it was a piece); without one the tree is as the function gave it."""
        found, operands = key
        piece = self.pieces.get(found, False)
        if piece:
            return self._again(piece, operands), True
        if piece is not False:
            return function(), False
        return self._look(found, operands, function, told), False

    # ---- looking ---------------------------------------------------------------------------------------------------

    def _look(self, found, operands, function, told):
        """What `function()` gives; what it writes down is a piece from now on, or None."""
        capture, self.noted = self.capture, {}
        nodes, start = capture.block.nodes, len(capture.block.nodes)
        outside, tape = _outside(capture), len(capture.tape)
        guarded, capture.guarded = capture.guarded, set()  # else a guard that is there already would not be seen
        try:
            result = function()
        finally:
            noted, self.noted = self.noted, None
            twice = guarded & capture.guarded
            capture.guarded |= guarded
        self.pieces[found], more = None, len(capture.tape) - tape
        if outside == _outside(capture) and (not more or more == len(noted)):
            with suppress(Unfit):
                self.pieces[found] = self._piece(nodes[start:], operands, noted, told(result))
        if twice:
            nodes[start:] = [n for n in nodes[start:] if n.op != "prim::guard" or id(n.args[0]) not in twice]
        return result

    def _piece(self, nodes, operands, noted, results):
        """The Piece of nodes that were written down. noted: see above."""
        places, steps = {v: i for i, v in enumerate(operands)}, []
        left_out = {node for added in noted.values() for node in added}
        for node in nodes:
            if node not in left_out:
                self._step(node, places, steps, node in noted)
        return Piece(steps, _refs(results, places))

    def _step(self, node, places, steps, noted):
        if node.blocks:
            raise Unfit
        for a in node.args:  # a size that was asked for before
            if type(a) is Value and a not in places and a.node is not None and a.node.op == "prim::size":
                self._step(a.node, places, steps, False)
        args, run = tuple([_refs(a, places) for a in node.args]), None
        hints = [v.hint for v in node.outputs]
        if not node.op.startswith("prim::"):
            signature = signature_of(node.op)
            if signature.writes or signature.inplace or signature.generator is not None:
                raise Unfit
            if not all(type(h) is Tensor for h in hints) or any(v.type is not TENSOR for v in node.outputs):
                raise Unfit
            run = operation(signature.op)
        elif node.op not in _NUMBERS or any(isinstance(h, Tensor) for h in hints):
            raise Unfit
        plain = not any(type(a) is tuple for a in args)
        flows = [i for i, v in enumerate(node.outputs) if id(v) in self.capture.needs]
        steps.append(Step(node, run, args, plain, tuple([v.type for v in node.outputs]), hints, flows, noted))
        for value in node.outputs:
            places[value] = len(places)

    # ---- writing ---------------------------------------------------------------------------------------------------

    def _again(self, piece, operands):
        """The results of a piece for these operands, Values."""
        capture, values = self.capture, list(operands)
        nodes, made = capture.block.nodes, capture.graph.value
        for step in piece.steps:
            old = step.node
            if old.op == "prim::size" and (known := self._size(step, values)) is not None:
                values.append(known)
                continue
            args = step.args
            args = tuple([values[a.at] if type(a) is Ref else a for a in args]) if step.plain else _given(args, values)
            if old.op == "prim::guard":
                if id(args[0]) in capture.guarded:
                    continue
                capture.guarded.add(id(args[0]))
            node = Node(old.op, args, (), old.line, old.version, old.owner)
            node.outputs = tuple([made(t, node, hint) for t, hint in zip(step.types, step.hints)])
            nodes.append(node)
            values += node.outputs
            if old.op == "prim::size":
                capture.sizes[id(args[0]), args[1]] = Symbol(capture, node.outputs[0], node.outputs[0].hint)
            for i in step.flows:
                capture.needs.add(id(node.outputs[i]))
            if step.noted and capture.joint == "forward":
                derive.enter(capture, step.run.op, node, list(node.outputs), capture.told[old.op])
        return _given(piece.results, values)

    def _size(self, step, values):
        """A size that was asked for before."""
        tensor, dim = step.args
        known = self.capture.sizes.get((id(values[tensor.at]), dim)) if type(dim) is int else None
        return None if known is None else known.value

    def shown(self, tree):
        """A tree of Values as rules take it."""
        if type(tree) is Value:
            return self.capture.show(Traced(Root(tree, tree.hint)))
        return tuple([self.shown(x) for x in tree]) if type(tree) is tuple else tree

    def lifted(self, tree):
        """A tree of carried values as Values."""
        if type(tree) is Carried and tree.level is self.capture:
            return self.capture.traced(tree).value
        if isinstance(tree, (tuple, list)):
            return tuple([self.lifted(x) for x in tree])
        if tree is None:
            return None
        raise Unfit

    def again(self, what, function, *row):
        """function(*row) of carried values."""
        key = self.key(what, row)
        if key is None:
            return function(*row)
        found, repeated = self.call(key, lambda: function(*row), self.lifted)
        return self.shown(found) if repeated else found


def _outside(capture):
    """How many tensors from outside there are, and which values generators are at."""
    return len(capture.roots), [id(found[1]) for found in capture.generators.values()]


def _refs(a, places):
    if type(a) is Value:
        if a not in places:
            raise Unfit
        return Ref(places[a])
    if type(a) is tuple or type(a) is list:
        return tuple([_refs(x, places) for x in a])
    if type(a) in _PLAIN or type(a) is float or type(a) is complex:
        return a
    raise Unfit


def _given(a, values):
    if type(a) is Ref:
        return values[a.at]
    return tuple([_given(x, values) for x in a]) if type(a) is tuple else a
