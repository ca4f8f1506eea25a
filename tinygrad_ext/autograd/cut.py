"""Why an input cannot be reached from an output, as far as it can be known."""

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.cuts import recent_cuts
from tinygrad_ext.core.grad.engine import gradient_edge_of
from tinygrad_ext.core.grad.node import place_of
from tinygrad_ext.core.grad.reach import nodes_behind
from tinygrad_ext.core.grad.saved import saved_values, storage_of

TOLD = 3  # of recent cuts


def why_disconnected(output, input, nodes):
    """Sentences about an input that is not among the nodes behind the output."""
    if not input.requires_grad:
        return [_of_input(input)]
    edge = gradient_edge_of(input)
    known = _known_cuts(edge[0], nodes)
    if not nodes:
        return [_of_output(output, input), *known]
    last = nodes[0]
    told = [
        f"the input is not in the graph of the output, whose last op is {last.name()} ({place_of(last)}) and which "
        f"ends in {_ends(nodes)}"
    ]
    return told + (_aliases(input, nodes) or []) + (known or [_advice(input)])


def _of_input(input):
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        return f"the input is {input.dtype}: only floating point and complex tensors have gradients"
    if input.is_inference():
        return "the input was made in inference_mode, so it can never be in a graph: make it outside, or clone() it"
    return (
        "the input does not require grad: call requires_grad_() on it before the output is computed (if it was "
        "computed itself: from tensors that require none, from a detached one, or under no_grad)"
    )


def _of_output(output, input):
    """The output has no history at all."""
    if not (output.dtype.is_floating_point or output.dtype.is_complex):
        return f"the output is {output.dtype}, which carries no gradient: use the floating point value it was made from"
    if output.requires_grad:
        return "the output is a leaf itself: nothing was computed from the input"
    told = "the output has no grad_fn"
    if storage_of(output) is not None and storage_of(output) == storage_of(input):
        return told + ": it is the input's own memory, cut off by detach(), .data or under no_grad"
    return (
        told
        + ": it was computed with grad mode off (no_grad, inference_mode, inside a Function's forward), from tensors "
        "that require no grad, or from such as were cut off"
    )


def _ends(nodes):
    leaves = [n.variable for n in nodes if n.name() == "AccumulateGrad"]
    if not leaves:
        return "no leaf"
    shapes = ", ".join(str(list(t.shape)) for t in leaves[:4]) + (", ..." if len(leaves) > 4 else "")
    return f"{len(leaves)} other {'leaf' if len(leaves) == 1 else 'leaves'} of shape {shapes}"


def _aliases(input, nodes):
    """Nodes that saved a tensor in the input's memory: there it went in, without its history."""
    memory = storage_of(input)
    for n in nodes:
        for t in saved_values(n):
            if isinstance(t, Tensor) and memory is not None and storage_of(t) == memory and not t.requires_grad:
                return [
                    f"{n.name()} ({place_of(n)}) was given a tensor in the input's own memory that requires no grad: "
                    "the input went in through detach(), .data or a view made under no_grad"
                ]
    return []


def _known_cuts(target, nodes):
    """Calls remembered for having cut a gradient between the input and the output."""
    first = target._sequence_nr() if target.name() != "AccumulateGrad" else 0
    last = nodes[0]._sequence_nr() if nodes else float("inf")
    files = {_file(place_of(n)) for n in nodes}
    sure, likely = [], []
    for what, place, source, seq in reversed(recent_cuts()):
        if isinstance(source, Tensor):
            edge = gradient_edge_of(source)
            source = edge and edge[0]
        if seq > last:
            continue
        if source is not None and target in nodes_behind([source]):
            sure.append(
                f"{_call(what)} at {place} was given a tensor that depends on the input, and what it returned does not"
            )
        elif source is None and first < seq and (not files or _file(place) in files):
            likely.append(
                f"{_call(what)} at {place} may have cut it (what it was given is gone, so this is not certain)"
            )
    return list(dict.fromkeys(sure or likely))[:TOLD]


def _file(place):
    return place.rpartition(":")[0]


def _call(what):
    return what if what.startswith(".") else f"{what}()"


def _advice(input):
    return (
        "no cut is remembered: look for a new tensor made of numbers (item(), tolist(), numpy(), tensor()), for "
        f"no_grad, or for {'another leaf in place of this one' if input.is_leaf else 'a copy that was detached'}"
    )
