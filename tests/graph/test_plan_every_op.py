"""A plan of one op gives the bits that eager mode gives, and their layout, for every sample of the op table."""

import warnings

import pytest

import tinygrad_ext as tg
from tests.helpers.graphs import graph_of_sample, same_bits
from tinygrad_ext.graph import interpret
from tinygrad_ext.graph.cutting import Row
from tinygrad_ext.graph.signature import output_types, signature_of
from tinygrad_ext.graph.types import GENERATOR
from tinygrad_ext.testing import sweep

OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops() if op.name.startswith("aten::")}
UNSET = {name for name, op in OPS.items() if sweep.tagged(op, "unset")}
# What the interpreter does in some sample: sizes that depend on elements, numbers read from tensors. May only shrink.
BOXED = {
    *("allclose", "bincount", "equal", "tolist"),
    *("argwhere", "masked_select", "nonzero", "nonzero.as_tuple", "unique", "unique_consecutive", "where"),
    *("index_put", "one_hot", "repeat_interleave.Tensor", "repeat_interleave.self_Tensor"),
    "tensor_split.tensor_indices_or_sections",
    *("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data"),  # packed sequences, of as many steps as a tensor says
    *("_pack_padded_sequence", "_pad_packed_sequence"),
    *("normal.Tensor_Tensor", "normal.float_Tensor"),
    *("fill.Tensor", "index_fill.int_Tensor", "masked_fill.Tensor"),
}


def graphs(op):
    """(graph of one op, its inputs) for each sample and kind of dtype."""
    for dtype in ("float32", "int64", "bool", "bfloat16", "complex64"):
        for sample in sweep.samples(op, dtype) if dtype in sweep.supported(op) else ():
            try:
                made = graph_of_sample(op, sample)
            except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
                continue  # what eager mode refuses is not the point here
            if made is not None:
                yield with_generator(*made)


def with_generator(graph, inputs):
    """Let an op that draws do so from a generator that is passed in."""
    (node,) = graph.nodes
    signature = signature_of(node.op)
    if signature.generator is None:
        return graph, inputs
    args = list(node.args)
    args[signature.generator] = graph.input("g", GENERATOR)
    graph.nodes.clear()
    graph.block.outputs = list(graph.make(graph.block, node.op, args, output_types(signature, args)).outputs)
    return graph.check(), [*inputs, tg.Generator().manual_seed(5)]


def apart(t):
    """The same elements with a gap behind each."""
    return tg.stack([t, t], -1)[..., 0] if isinstance(t, tg.Tensor) else t


@pytest.mark.parametrize("name", sorted(set(OPS) - UNSET))
def test_plan_gives_eager_s_bits(name):
    boxed = set()
    for graph, given in graphs(OPS[name]):
        for inputs in (given, list(map(apart, given))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    expected, _ = interpret.run(graph, inputs)
                except (RuntimeError, IndexError):
                    continue  # a view needs elements that lie together; an index as a list of slices is none
                for _ in range(2):  # planned, then called again
                    outputs, _ = graph.execute(inputs)
                    assert same_bits(outputs, expected), f"{graph}\n{graph.explain()}"
        boxed.update(node.op for node in graph.nodes if not any(type(row) is Row for row in graph.executor.parts))
    assert bool(boxed) == (name in BOXED)


def test_the_interpreter_does_less_than_one_op_in_twenty():
    assert len(BOXED) <= len(OPS) / 20 and set(OPS) >= BOXED
