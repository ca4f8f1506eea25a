"""Python programs as graphs of Python calls, to be changed and run again: PyTorch's `torch.fx`.

`symbolic_trace` records a module or a function as a `GraphModule`; its `graph` has `Node`s that passes change;
`Interpreter` and `Transformer` go over it node by node; `replace_pattern` finds and replaces. What a graph of ops is,
typed and without effects, stands in `tinygrad_ext.graph`; `GraphModule.to_graph(*inputs)` is the way there.
"""

from .codegen import CodeGen
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy, ProxyableClassMeta
from .subgraph_rewriter import replace_pattern
from .tracer import PH, Tracer, symbolic_trace, wrap

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "PH",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
