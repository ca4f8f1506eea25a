"""Runs `prim::Function`: the forward block as the forward of an autograd.Function, whose backward is the other block.

So the derivative is the program's own, of any order: what backward computes with the ops of eager mode is recorded
there.
"""

from tinygrad_ext.autograd.function import Function
from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor


def run_function(node, operands, run_with):
    """Outputs of a node for these operands; run_with(block, inputs) runs a block."""
    if len(node.blocks) < 2 or not is_grad_enabled() or not any(map(_derivable, operands)):
        with no_grad():
            return run_with(node.blocks[0], operands)[: len(node.outputs)]
    results = _Captured.apply(node, run_with, *operands)
    return results if type(results) is tuple else (results,)


def _derivable(value):
    return isinstance(value, Tensor) and value.requires_grad


class _Captured(Function):
    @staticmethod
    def forward(ctx, node, run_with, *operands):
        made = run_with(node.blocks[0], operands)
        count = len(node.outputs)
        ctx.node, ctx.run_with = node, run_with
        ctx.kept = [None if isinstance(k, Tensor) else k for k in made[count:]]
        ctx.places = [i for i, k in enumerate(made[count:]) if isinstance(k, Tensor)]
        ctx.save_for_backward(*(made[count + i] for i in ctx.places))
        ctx.set_materialize_grads(not any(v.type.word == "Optional" for v in node.blocks[1].inputs[:count]))
        return made[0] if count == 1 else tuple(made[:count])

    @staticmethod
    def backward(ctx, *grads):
        kept = list(ctx.kept)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            kept[place] = tensor
        return None, None, *ctx.run_with(ctx.node.blocks[1], [*grads, *kept])
