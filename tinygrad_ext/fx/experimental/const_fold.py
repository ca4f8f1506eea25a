"""`split_const_subgraphs`: what hangs on no argument is computed once, before the first call."""

import functools
import re

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.core.data.tensor import Tensor

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg
from ..tracer import symbolic_trace

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule whose constant part is computed when it is called first.

    Attributes: const_subgraph_module: what computes it, None where there is none; fx_const_folded_attrs_name: the
    attribute that it becomes, a Parameter, or a ParameterList where there are several; has_folding_been_run.
    """

    def __init__(
        self, root, graph, const_subgraph=None, fx_const_folded_attrs_name=None, device_for_folded_attrs="cpu"
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self):
        """Compute the constant part now. AssertionError where that was done."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        made = nn.ParameterList(map(self._kept, found)) if isinstance(found, tuple) else self._kept(found)
        setattr(self, self.fx_const_folded_attrs_name, made)

    def _kept(self, value):
        if not isinstance(value, Tensor):
            return nn.Parameter(tg.tensor([value], device=self.device_for_folded_attrs), requires_grad=False)
        return nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced, name):
    """A name for an attribute that the module does not have: `name`, or with a number behind it."""
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        stem, number = re.fullmatch(r"(.*?)(?:_(\d+))?", name).groups()
        name = f"{stem}_{int(number or 0) + 1}"
    return name


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """A FoldedGraphModule that computes once what hangs on attributes and constants alone.

    Args:
        module: a GraphModule, or a Module, which is traced.
        skip_folding_node_fn: says of a node whether it stays where it is. Nodes with effects and random ones do.
        device_for_folded_attrs: of numbers that are computed, which become tensors.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.fx.experimental.const_fold import split_const_subgraphs
    >>> class Scaled(tg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = tg.nn.Parameter(tg.tensor([2.0]))
    ...     def forward(self, x):
    ...         return x * self.scale.exp()
    >>> print(split_const_subgraphs(Scaled()).code.strip())
    def forward(self, x):
        _fx_const_folded_attrs = self._FX_CONST_FOLDED_ATTRS
        mul = x * _fx_const_folded_attrs;  x = _fx_const_folded_attrs = None
        return mul
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    folded = _constant(traced, skip_folding_node_fn)
    taken = [n for n in folded if n.op != "get_attr" and any(user not in folded for user in n.users)]
    if not taken:
        return FoldedGraphModule(traced, traced.graph)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    part, values = Graph(), {}
    for n in folded:
        values[n] = part.node_copy(n, values.__getitem__)
    part.output(values[taken[0]] if len(taken) == 1 else tuple(map(values.__getitem__, taken)))
    part.eliminate_dead_code()
    places = {n: name if len(taken) == 1 else f"{name}.{i}" for i, n in enumerate(taken)}
    root = {n.target: _at(traced, n.target) for n in traced.graph.nodes if n.op in ("get_attr", "call_module")}
    root.update((place, nn.Parameter(tg.zeros(1), requires_grad=False)) for place in places.values())
    graph = _rest(traced.graph, places, folded)
    made = FoldedGraphModule(root, graph, part, name, device_for_folded_attrs)
    made.training, made.meta = traced.training, dict(traced.meta)
    return made


def _at(module, path):
    """The attribute at a path."""
    return functools.reduce(getattr, path.split("."), module)


def _constant(traced, skip):
    """The nodes that hang on no argument, in order."""
    found = {}
    for n in traced.graph.nodes:
        if n.op in ("placeholder", "output") or (n.op != "get_attr" and not found.keys() >= set(n.all_input_nodes)):
            continue
        if not (skip is not None and skip(n)) and not n.is_impure() and not _calls_effects(traced, n):
            found[n] = True
    return list(found)


def _calls_effects(module, n):
    """Whether a node calls a GraphModule with effects inside."""
    inner = module.get_submodule(n.target) if n.op == "call_module" else None
    if not isinstance(inner, GraphModule):
        return False
    return any(_calls_effects(inner, m) or (m.op == "call_function" and m.is_impure()) for m in inner.graph.nodes)


def _rest(source, places, folded):
    graph, values = Graph(), {}
    for n in source.nodes:
        if n.op == "placeholder":
            values[n] = graph.node_copy(n)
    for n in source.nodes:
        if n in places:
            values[n] = graph.get_attr(places[n])
            values[n].meta = dict(n.meta)
        elif n.op == "output":
            graph.output(map_arg(n.args[0], values.__getitem__), n.type).meta = dict(n.meta)
        elif n.op != "placeholder" and (n.op == "get_attr" or n not in folded):
            values[n] = graph.node_copy(n, values.__getitem__)
    graph.set_codegen(source._codegen)
    graph.eliminate_dead_code()
    return graph
