"""In-place ops on tensors that the graph made itself, and blocks without gradients, as ops that compute.

`%2 = aten::add_.Tensor(%x, 1, 1)` becomes `aten::add.Tensor` and `prim::tensor.as_written`, which holds the result
to the sizes and the dtype of what is written to; whatever read %x behind it reads the result. What stands between two
`prim::set_grad_enabled` gives tensors that are detached.
"""

from ..check import has_effect
from ..ir import Value, replaced
from ..signature import signature_of
from ..types import BOOL, FLOAT, INT, TENSOR
from .base import blocks, is_op, is_random, may_share, replace

MODE = "prim::set_grad_enabled"
SET_ITEM = "prim::tensor.set_item"
# in a block without gradients: what gives a tensor, but none that was not there
_PASSING = {
    f"prim::{word}"
    for word in ("If", "Loop", "getitem", "cast", "undefined", "unpack", "unpack_list", "getattr", "list", "tuple",
                 "dict", "list.pop", "dict.pop")
}  # fmt: skip
_PICKS = ("aten::__getitem__", "aten::select.int", "aten::slice.Tensor")
# in the way of blocks without gradients: they ask, when the graph runs, what a plan does not keep
ASKING = {"prim::tensor.requires_grad", "prim::tensor.is_leaf", "prim::tensor.retains_grad", "prim::tensor.grad"}


def is_write(node):
    """Whether a node writes to the tensor that is its first argument."""
    return node.op == SET_ITEM or (is_op(node) and signature_of(node.op).inplace)


def makes_memory(node):
    """Whether the outputs of a node are tensors that nobody else has."""
    return is_op(node) and not is_write(node) and not may_share(node)


def is_window(node):
    """Whether the outputs of a node may show the memory of an argument."""
    return is_op(node) and not is_write(node) and may_share(node)


def without_results(graph):
    """An in-place op gives what it writes to: whoever reads the one may read the other."""
    mapping = {}
    for block in blocks(graph):
        for node in block.nodes:
            if is_op(node) and is_write(node) and isinstance(node.args[0], Value) and len(node.outputs) == 1:
                mapping[node.output] = node.args[0]
    replace(graph, mapping)


def picked(block, readers):
    """Ids of tensors that are picked of one, written to, and put back to the same place: `x[i] += 1`."""
    found = set()
    for at, node in enumerate(block.nodes):
        if node.op not in _PICKS:
            continue
        allowed = []
        for later in block.nodes[at + 1 :]:
            allowed.append(later)
            if later.op == SET_ITEM and later.args[2] is node.output and _same_place(node, *later.args[:2]):
                if all(reader in allowed for reader in readers.get(id(node.output), ())):
                    found.add(id(node.output))
                break
            if later.blocks or (has_effect(later) and not (is_write(later) and later.args[0] is node.output)):
                break
    return found


def _same_place(node, whole, index):
    """Whether a node picks of `whole` what stands at an index."""
    if node.args[0] is not whole:
        return False
    if node.op == "aten::__getitem__":
        return node.args[1] == index
    if node.op == "aten::select.int":
        dim, at = node.args[1:]
        return (type(index) is not tuple and dim == 0 and index == at) or (dim == -1 and index == (..., at))
    dim, start, stop, step = node.args[1:]
    return dim == 0 and type(index) is slice and (start, stop, step) == (index.start, index.stop, index.step or 1)


def changed(node, graph):
    """Nodes that compute what node writes; the last one gives it."""
    target = node.args[0]
    if node.op == SET_ITEM:
        node.op = "prim::tensor.item_set"
        node.outputs = (graph.value(TENSOR, node),)
        return [node]
    node.op = signature_of(node.op).op.name
    after = type(node)("prim::tensor.as_written", (target, node.outputs[0]), (), node.line)
    after.outputs = (graph.value(TENSOR, after),)
    return [node, after]


# ---- blocks without gradients ----------------------------------------------------------------------------------------


def regions(block):
    """{id of a node that enters a mode: the mode, of one that leaves it: None}, for the pairs in a block."""
    found, entered = {}, {}
    for node in block.nodes:
        if node.op == MODE and isinstance(node.args[0], Value):
            enters = entered.get(id(node.args[0]))
            if enters is not None:
                found[id(enters)], found[id(node)] = enters.args[0], None
        elif node.op == MODE and type(node.args[0]) is bool:
            entered[id(node.output)] = node
    return found


def fits(node, mode):
    """Whether detaching what a node gives does what the mode does."""
    if mode is not False or is_random(node):
        return mode is not False
    if is_op(node):
        return all(v.type in (TENSOR, INT, FLOAT, BOOL) for v in node.outputs)
    return node.op in _PASSING or not any(v.type is TENSOR for v in node.outputs)


def detach(block, graph, mode=None, known=None):
    """Take the modes of a block away."""
    modes, kept, mapping = [mode], [], {}
    known = set() if known is None else set(known)  # made without a gradient
    for node in block.nodes:
        node.args = tuple([replaced(a, mapping) for a in node.args])
        if node.op == MODE:
            if isinstance(node.args[0], Value):
                modes.pop()
            else:
                modes.append(node.args[0])
            continue
        if node.op == "prim::grad_enabled" and modes[-1] is not None:
            mapping[node.output] = modes[-1]
            continue
        for inner in node.blocks:
            replace_in(inner, mapping)
            detach(inner, graph, modes[-1], known)
        kept.append(node)
        if modes[-1] is False and is_op(node):
            plain = all(id(v) in known or v.type in (INT, FLOAT, BOOL) for v in node.values())
            for value in [v for v in node.outputs if v.type is TENSOR]:
                last = value
                if not plain:
                    made = type(node)("aten::detach", (value,), (), node.line)
                    made.outputs = (graph.value(TENSOR, made),)
                    kept.append(made)
                    mapping[value] = last = made.output
                known.add(id(last))
    block.nodes[:] = kept
    block.outputs = [replaced(a, mapping) for a in block.outputs]
    for state in graph.state:
        if state.written:
            state.new = replaced(state.new, mapping)


def replace_in(block, mapping):
    """Let a block, and those within, read other values."""
    for node in block.nodes:
        node.args = tuple([replaced(a, mapping) for a in node.args])
        for inner in node.blocks:
            replace_in(inner, mapping)
    block.outputs = [replaced(a, mapping) for a in block.outputs]
