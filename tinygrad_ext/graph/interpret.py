"""Runs a graph node by node with the ops of eager mode: what every other way to run one is compared with."""

import re

from tinygrad_ext.core.call.levels import operation

from . import primitives
from .functions import run_function
from .ir import Value
from .signature import signature_of
from .values import read, read_all

_PLACE = re.compile(r"(.+):(\d+) in (\S+)")


def run(graph, inputs, state=()):
    """Outputs of a graph, and the new state.

    Args:
        inputs: a value for each input, in order.
        state: a value for each state, in order; a graph without effects changes none of them, nor the inputs.

    Returns: (list of outputs, list with the new value of each state).
    """
    if len(inputs) != len(graph.inputs) or len(state) != len(graph.state):
        raise TypeError(
            f"{graph.name}: the graph takes {len(graph.inputs)} inputs and {len(graph.state)} states, "
            f"got {len(inputs)} and {len(state)}"
        )
    frame = dict(zip(map(id, graph.inputs), inputs))
    frame.update(zip((id(s.value) for s in graph.state), state))
    outputs = run_block(graph.block, frame)
    return outputs, [read(s.new, frame) for s in graph.state]


def run_block(block, frame):
    """Run the nodes of a block in a frame (id of a Value -> its value); what it returns or yields."""
    for node in block.nodes:
        try:
            _run_node(node, frame)
        except Exception as error:
            note_line(error, node)
            raise
    return read_all(block.outputs, frame)


def note_line(error, node):
    """Say on the error, once, which line of the user's program it belongs to."""
    if node.line and not getattr(error, "__notes__", None) and hasattr(error, "add_note"):
        error.add_note(f"in the graph: {node.op} of {node.line}")
        if node.op != "prim::raise":
            error.shown = shown(node)


def shown(node, error=None):
    """The lines of a compiled program that led to a node, with what is meant underlined; "" where they are not known.
    An error that came from inside of the node knows its own."""
    place = getattr(node.line, "shown", None)
    return getattr(error, "shown", "") or (_of_file(node.line) if place is None else place())


def _of_file(line):
    """The place of a line whose program is not here, as one from an archive."""
    found = _PLACE.fullmatch(line)
    told = "The following operation failed in the TorchScript interpreter.\n"
    return told + '  File "{}", line {}, in {}'.format(*found.groups()) if found else ""


def _run_node(node, frame):
    control = _CONTROL.get(node.op)
    if control is not None:
        results = control(node, frame)
    else:
        args = read_all(node.args, frame)
        row = primitives.TABLE.get(node.op)
        results = _run_op(node, args) if row is None else row.run(*args)
        several = type(results) is _Several if row is None else node.op == "prim::unpack"
        if len(node.outputs) == 1 and not several:
            results = (results,)
    for value, result in zip(node.outputs, results or ()):
        frame[id(value)] = result


class _Several(list):
    """Results of a node that has more outputs than the op returns."""


def _run_op(node, args):
    """Results of an op, of copies of what it writes to."""
    signature = signature_of(node.op)
    form = operation(signature.op, "inplace" if signature.inplace else "functional")
    generator = signature.generator
    if generator is not None and isinstance(node.args[generator], Value):
        args[generator] = args[generator] and args[generator]._copy()
    else:
        generator = None
    for i in signature.writes:
        args[i] = None if args[i] is None else args[i].clone()
    result = form(*args)
    if not signature.writes and generator is None:
        return result
    results = _Several([result] if len(signature.returns) == 1 else result or ())
    results += [args[i] for i in signature.writes]
    return _Several([*results, args[generator]] if generator is not None else results)


def _run_if(node, frame):
    chosen = node.blocks[0 if read(node.args[0], frame) else 1]
    return run_block(chosen, frame)


def _run_loop(node, frame):
    count, goes_on, *carried = read_all(node.args, frame)
    (block,) = node.blocks
    turn = 0
    while goes_on and (count is None or turn < count):
        frame[id(block.inputs[0])] = turn
        for value, new in zip(block.inputs[1:], carried):
            frame[id(value)] = new
        goes_on, *carried = run_block(block, frame)
        turn += 1
    return carried


def run_node_function(node, frame):
    def run_with(block, inputs):
        inner = dict(frame)
        inner.update(zip(map(id, block.inputs), inputs))
        return run_block(block, inner)

    return run_function(node, read_all(node.args[1:], frame), run_with)


_CONTROL = {"prim::If": _run_if, "prim::Loop": _run_loop, "prim::Function": run_node_function}
