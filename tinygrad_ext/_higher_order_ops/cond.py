"""`cond`: one of two functions, chosen by a tensor."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.func.batch import Batch
from tinygrad_ext.graph.capture import CaptureError
from tinygrad_ext.graph.control_backward import IfEntry
from tinygrad_ext.graph.ir import Node, Value
from tinygrad_ext.graph.trees import type_of_tree
from tinygrad_ext.graph.types import GENERATOR, SCALAR
from tinygrad_ext.utils._pytree import tree_flatten, tree_unflatten

from .blocks import capture_under_way, check_call, check_single, lent, own_block, shown, truth, yielded


@boundary
def cond(pred, true_fn, false_fn, operands=()):
    """What true_fn gives for the operands where pred is true, else what false_fn gives.

    Args:
        pred: a truth value, or a tensor of one element.
        true_fn, false_fn: functions of the operands that return tensors, in containers too, of the same structure,
            dtypes and numbers of dimensions. They write to nothing. They may draw random numbers.
        operands: tuple or list of tensors, in containers too. The functions may use other tensors as well.

    In a graph that is captured (`jit.trace`, `graph.capture`, `export`, `compile`) both branches are kept, and pred
    chooses each time the graph runs; a gradient goes through the one that ran. Under `vmap` with a pred for each sample
    both are computed and `where` chooses.

    Raises RuntimeError for a pred of several elements, and CaptureError, a RuntimeError, for branches that differ in
    what they return, or do what a branch cannot hold.

    >>> import tinygrad_ext as tg
    >>> step = tg.jit.trace(lambda x: tg.cond(x.sum() > 0, tg.sin, tg.cos, (x,)), tg.ones(2))
    >>> step(tg.zeros(2))
    tensor([1., 1.])
    """
    check_call("cond", {"true_fn": true_fn, "false_fn": false_fn}, operands, "operands")
    if not isinstance(pred, Tensor):
        return (true_fn if pred else false_fn)(*operands)
    check_single(pred, "cond", "pred")
    if isinstance(getattr(pred, "level", None), Batch):
        return _chosen(pred, true_fn(*operands), false_fn(*operands))
    level = capture_under_way()
    if level is None:
        return (true_fn if pred else false_fn)(*operands)
    return _captured(level, pred, {"true_fn": true_fn, "false_fn": false_fn}, operands)


def _chosen(pred, first, second):
    rows, spec = tree_flatten(first)
    others, other = tree_flatten(second)
    _check_structure(spec, other)
    return tree_unflatten([tg.where(pred.reshape(()), a, b) for a, b in zip(rows, others)], spec)


def _check_structure(spec, other):
    if spec != other:
        raise CaptureError(f"cond: true_fn gives {spec}, and false_fn {other}; let both return the same structure")


def _captured(level, pred, functions, operands):
    condition = truth(level, pred, "cond", "pred")
    blocks, tapes, results, specs, shared, drawn = [], [], [], [], [], []
    for name, function in functions.items():
        drawn.append({})
        with own_block(level, "cond", name, drawn[-1]) as (block, tape):
            result = function(*operands)
            block.outputs, spec = yielded(level, result)
            shared.append(lent(level, block, result, f"cond: {name}"))
        blocks.append(block)
        tapes.append(tape)
        results.append(tree_flatten(result)[0])
        specs.append(spec)
    _check_structure(*specs)
    node = Node("prim::If", (condition,), blocks)
    taken, found, lenders = 0 if condition.hint else 1, [], set()
    constant = [_is_constant(*pair) for pair in zip(*(block.outputs for block in blocks))]
    for i, pair in enumerate(zip(*results)):
        if constant[i]:
            found.append(pair[0])
            continue
        values = [block.outputs[i] for block in blocks]
        _check_pair(i, *map(_example, values))
        value = level.graph.value(_type_of(values, pair[taken]), node, _example(values[taken]))
        if any(row[i] for row in shared):
            lenders.add(id(value))
        if any(isinstance(a, Value) and id(a) in level.needs for a in values):
            level.needs.add(id(value))
        node.outputs = (*node.outputs, value)
        found.append(value)
    for block in blocks:
        block.outputs = [a for a, left_out in zip(block.outputs, constant) if not left_out]
    for generator in {**drawn[0], **drawn[1]}:
        before = level.generator_state(generator)[1]
        for block, row in zip(blocks, drawn):
            block.outputs.append(row.get(generator, before))
        value = level.graph.value(GENERATOR, node)
        node.outputs = (*node.outputs, value)
        level.advance(generator, value)
    level.block.nodes.append(node)
    IfEntry(node, tapes).note(level)
    rows = [shown(level, a, "cond" if id(a) in lenders else None) if isinstance(a, Value) else a for a in found]
    return tree_unflatten(rows, specs[0])


def _is_constant(a, b):
    return not isinstance(a, Value) and type(a) is type(b) and a == b and not isinstance(a, float)


def _type_of(values, result):
    """Of what a branch gives; any number where one is what item() gave."""
    return SCALAR if any(isinstance(a, Value) and a.type is SCALAR for a in values) else type_of_tree(result)


def _example(a):
    return a.hint if isinstance(a, Value) else a


def _check_pair(i, a, b):
    """What follows is written down for one kind of result."""
    kinds = [f"{x.dtype} of {x.dim()} dimensions" if isinstance(x, Tensor) else type(x).__name__ for x in (a, b)]
    if kinds[0] != kinds[1]:
        raise CaptureError(
            f"cond: result {i} of true_fn is {kinds[0]}, of false_fn {kinds[1]}; a graph needs results of one dtype "
            "and number of dimensions from both"
        )
