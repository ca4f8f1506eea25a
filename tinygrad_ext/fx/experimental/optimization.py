"""Modules made ready for inference: batch norm taken into the convolution before it, dropout left out."""

import copy

import tinygrad_ext as tg
from tinygrad_ext import nn

from ..graph_module import GraphModule
from ..tracer import symbolic_trace

_PAIRS = [(nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Linear, nn.BatchNorm1d)]


def matches_module_pattern(pattern, node, modules):
    """Whether a node calls a module of the second class on what a call of one of the first class gives.

    modules: dict of the module's `named_modules()`.
    """
    before = node.args[0] if node.args else None
    calls = [n for n in (before, node) if getattr(n, "op", None) == "call_module" and n.target in modules]
    return len(calls) == 2 and [type(modules[n.target]) for n in calls] == list(pattern)


def replace_node_module(node, modules, new_module):
    """Let the node of a module call another one, under the same path."""
    *folders, name = node.target.split(".")
    modules[node.target] = new_module
    setattr(modules[".".join(folders)], name, new_module)


def fuse(model, inplace=False, no_trace=False):
    """A module in which batch norms are part of the convolution or the linear map before them, for inference.

    Args:
        model: a Module in the mode eval(). inplace: change its parameters instead of copies. no_trace: it is a
            GraphModule already, which is changed.

    Raises RuntimeError for a module in the mode train(), where the statistics are those of the batch.
    """
    model = model if inplace else copy.deepcopy(model)
    made = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(made.named_modules())
    for node in list(made.graph.nodes):
        if not any(matches_module_pattern(pair, node, modules) for pair in _PAIRS):
            continue
        before = node.args[0]
        first, norm = modules[before.target], modules[node.target]
        if len(before.users) > 1 or not norm.track_running_stats or _calls(made, before.target) > 1:
            continue
        if norm.training:
            raise RuntimeError("fuse() is for inference: call eval() before, so that the running statistics are used")
        replace_node_module(before, modules, _fused(first, norm))
        node.replace_all_uses_with(before)
        made.graph.erase_node(node)
    made.recompile()
    made.delete_all_unused_submodules()
    return made


def remove_dropout(model):
    """The GraphModule of a module without its dropout."""
    made = symbolic_trace(model)
    modules = dict(made.named_modules())
    for node in list(made.graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            made.graph.erase_node(node)
    made.recompile()
    made.delete_all_unused_submodules()
    return made


def _calls(made, path):
    return len(made.graph.find_nodes(op="call_module", target=path))


def _fused(first, norm):
    """The convolution or linear map that does what both do."""
    made = copy.deepcopy(first)
    with tg.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        shift = -norm.running_mean * scale
        if norm.affine:
            scale, shift = scale * norm.weight, shift * norm.weight + norm.bias
        bias = shift if first.bias is None else first.bias * scale + shift
        weight = first.weight * scale.reshape(-1, *[1] * (first.weight.dim() - 1))
    made.weight, made.bias = nn.Parameter(weight), nn.Parameter(bias)
    return made
