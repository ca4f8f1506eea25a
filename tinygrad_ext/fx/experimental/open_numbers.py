"""Which numbers of a captured graph are known before it runs, and which a graph of fx keeps as nodes."""

from tinygrad_ext.graph.ir import Value, used_values, values_in
from tinygrad_ext.graph.signature import signature_of

_FIXED = {"prim::rank", "prim::dtype", "prim::device", "prim::layout"}  # the same for tensors of any size
_OF_SIZES = {"prim::size", "prim::shape", "prim::numel", "prim::getitem", "prim::unpack", "prim::tuple", "prim::list",
             "prim::dict", "prim::len"}  # fmt: skip
_COUNTED = {"aten::nonzero", "aten::masked_select", "aten::unique", "aten::unique_consecutive", "aten::_unique2"}


def open_values(graph, inputs=(), is_fixed=lambda node: False):
    """Ids of the values that are open: numbers that the example does not tell, and tensors with such a size.

    inputs: ids of values that are open from the start. is_fixed: says of nodes that ask for sizes whether these are
    the example's all the same.
    """
    found = set(inputs)
    _walk(graph.block, found, is_fixed)
    return found


def _walk(block, found, is_fixed):
    for node in block.nodes:
        for inner in node.blocks:
            found.update(map(id, inner.inputs))
            _walk(inner, found, is_fixed)
        if _is_open(node, found) and not is_fixed(node):
            found.update(map(id, node.outputs))


def _is_open(node, found):
    if node.blocks:
        return True
    if node.op in _FIXED:
        return False
    if any(id(v) in found for v in used_values(node)):
        return True
    if node.op.startswith("prim::"):
        tensors = any(isinstance(v, Value) and v.type.word == "Tensor" for v in values_in(node.args))
        return tensors and node.op not in _OF_SIZES and not node.op.startswith("prim::tensor.is_")
    return node.kind() in _COUNTED or "data_dependent" in (signature_of(node.op).op.record.tags or "")
