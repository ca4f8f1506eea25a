"""How much memory a graph keeps for its backward pass."""

from typing import NamedTuple

from tinygrad_ext.autograd.engine import GradientEdge
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.engine import gradient_edge_of
from tinygrad_ext.core.grad.function import FunctionNode
from tinygrad_ext.core.grad.node import Node, place_of
from tinygrad_ext.core.grad.reach import nodes_behind
from tinygrad_ext.core.grad.saved import saved_values, storage_of


class NodeBytes(NamedTuple):
    """Bytes that one node is the first to keep, newest node first."""

    name: str
    place: str
    bytes: int
    tensors: tuple


class SavedReport(tuple):
    """The nodes of a graph that keep memory; prints as a table."""

    __slots__ = ()

    @property
    def total(self):
        """Bytes of all nodes."""
        return sum(row.bytes for row in self)

    def __str__(self):
        lines = [f"{row.bytes:>12,}  {row.name:<24} {', '.join(row.tensors):<32} {row.place}" for row in self]
        return "\n".join([*lines, f"{self.total:>12,}  bytes"])


@boundary
def saved_bytes(output, *, by_node=False):
    """Bytes that the graph of `output` keeps for its backward pass, each storage counted once.

    Counted are the tensors that ops and Functions saved, those hung on a Function's ctx as attributes, and those in
    what pack hooks returned (inside tuples, lists and dicts too); a view counts as the whole storage that it keeps
    alive. Parameters that are saved count, though others hold them too.

    Arguments:
        output: tensor, GradientEdge or Node, or a sequence of them.
        by_node: return the nodes that keep the memory, a tuple of (name, place, bytes, tensors) that prints as a table.

    Raises TypeError for anything else. A tensor without grad_fn keeps nothing: 0.
    """
    outputs = output if isinstance(output, (tuple, list)) and not isinstance(output, GradientEdge) else (output,)
    roots = [root for root in map(_root, outputs) if root is not None]
    rows, seen = [], set()
    for node in reversed(nodes_behind(roots)):
        kept, count = [], 0
        for t in _tensors([saved_values(node), node.attributes() if isinstance(node, FunctionNode) else ()]):
            place = storage_of(t)
            if place is not None and place[0] not in seen:
                seen.add(place[0])
                count += place[1]
                kept.append(f"{t.dtype.name}{list(t.shape)}")
        if kept:
            rows.append(NodeBytes(node.name(), place_of(node), count, tuple(kept)))
    report = SavedReport(rows)
    return report if by_node else report.total


def _root(output):
    if isinstance(output, Tensor):
        edge = gradient_edge_of(output)
        return None if edge is None else edge[0]
    if isinstance(output, GradientEdge):
        return output.node
    if isinstance(output, Node):
        return output
    raise TypeError(
        f"saved_bytes(): argument 'output' must be Tensor, GradientEdge or Node, not {type(output).__name__}"
    )


def _tensors(value):
    """The tensors in a nest of tuples, lists and dicts."""
    stack = [value]
    while stack:
        v = stack.pop()
        if isinstance(v, Tensor):
            yield v
        elif isinstance(v, (tuple, list)):
            stack += reversed(v)
        elif isinstance(v, dict):
            stack += v.values()
