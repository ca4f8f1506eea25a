"""The backward block of a Function that is told which gradients did not arrive, `set_materialize_grads(False)`.

Its backward is Python, which asks `is None`; so it is written down once for each set of gradients that may arrive, in
branches that ask the same. Such a block takes gradients that may be None.
"""

from .aliases import CaptureError
from .control_backward import cast, substitute
from .ir import Block, Node, Value
from .types import BOOL, TENSOR, optional

MOST = 4  # outputs with gradients: there is a way for each set of them


def told_apart(capture, call, places):
    """As call.backward(). places: numbers of the outputs, among those that are values, whose gradients may be None."""
    if len(places) > MOST:
        raise CaptureError(
            f"{call.function.__name__}: {len(places)} outputs with set_materialize_grads(False) are not captured, "
            f"{MOST} at most"
        )
    block = Block(
        [
            capture.graph.value(optional(v.type) if i in places else v.type, None, v.hint)
            for i, v in enumerate(call.made)
        ]
    )
    block.outputs = _ways(capture, call, (block, block.inputs), places, ())
    return block


def takes_none(block, number):
    """Whether a backward block may be given None for the gradient of an output."""
    return block.inputs[number].type is not TENSOR and block.inputs[number].type.word == "Optional"


def _ways(capture, call, target, places, absent):
    """Gradients of the operands, written to a block. target: (block, gradients of the outputs)."""
    block, grads = target
    if not places:
        return _way(capture, call, target, absent)
    first, *rest = places
    is_there = capture.graph.make(block, "prim::isnot", (grads[first], None), (BOOL,), (True,)).output
    halves = Block(), Block()
    rows = [_ways(capture, call, (half, grads), rest, gone) for half, gone in zip(halves, (absent, (*absent, first)))]
    node, found = Node("prim::If", (is_there,), halves), []
    if not rows[1]:  # nothing at all arrived, which nobody asks for
        rows[1] = [None] * len(rows[0])
    for pair in zip(*rows):
        if pair == (None, None):
            found.append(None)
            continue
        sure = all(isinstance(a, Value) and a.type is TENSOR for a in pair)
        hint = next(a.hint for a in pair if isinstance(a, Value))
        found.append(capture.graph.value(TENSOR if sure else optional(TENSOR), node, hint))
        for half, a in zip(halves, pair):
            half.outputs.append(a)
    node.outputs = tuple(v for v in found if v is not None)
    block.nodes.append(node)
    return found


def _way(capture, call, target, absent):
    block, grads = target
    if len(absent) == sum(g.type.is_optional for g in grads):
        return ()
    inner, known = call.backward(absent), {}
    for number, (stand_in, given) in enumerate(zip(inner.inputs, grads)):
        known[stand_in] = given
        if given.type.is_optional and number not in absent:
            known[stand_in] = cast(capture, block, given, TENSOR).output
    substitute(inner, known)
    block.nodes += inner.nodes
    return inner.outputs
