"""`_get_trace_graph`: the ops that a program runs, as a graph that counters of operations and drawings read.

Ops are told as PyTorch has them, composites as a whole (`aten::batch_norm`), at the sizes that were seen. Unlike
`trace` the program runs on its own tensors and may read them: nothing of this graph runs again.
"""

import warnings

from tinygrad_ext.core.call.levels import Observer, OpForm, user_line
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.types import TENSOR, list_of
from tinygrad_ext.nn.modules.module import Module
from tinygrad_ext.overrides.opened import steps
from tinygrad_ext.utils import _pytree as pytree

from .switches import TracerWarning
from .trace_forms import FORMS, INDEXED, OPENED
from .trace_nodes import TraceGraph

_ELEMENTS = frozenset(["__bool__", "__int__", "__float__", "__index__", "item", "tolist", "numpy"])  # reading them


class GraphWriter(Observer):
    """Writes down what is called inside a `with`."""

    traces = True  # for is_tracing()
    sees_attributes = True

    def __init__(self, out_of_place):
        self.graph, self.out_of_place = TraceGraph(), out_of_place
        self.values, self.kept, self.scopes = {}, [], []

    def push_scope(self, name):
        """Nodes stand in a scope of that name from now on."""
        self.scopes.append(str(name))

    def pop_scope(self):
        """The scope that was entered last is left."""
        self.scopes.pop()

    def stands_for(self, tensor, value):
        self.values[id(tensor)] = value
        self.kept.append(tensor)

    def given(self, tensor):
        """An input of the graph."""
        if id(tensor) not in self.values:
            self.stands_for(tensor, self.graph.output_of(self.graph.param_node(), TENSOR, tensor))

    def read(self, value, name, args):
        if name in _ELEMENTS:
            told = f"{name}() of a tensor: the graph tells what the program does with this value, and no other"
            warnings.warn(told, TracerWarning, stacklevel=3)
        return NotImplemented

    # ---- operations ------------------------------------------------------------------------------------------------

    def process(self, operation, args):
        if operation.name in INDEXED:
            return self.resume(steps, *args)
        if isinstance(operation, OpForm):
            if operation.reads:
                return self.read(None, operation.op.name.partition("::")[2], args)
            if operation.composite and operation.name in OPENED:
                return NotImplemented
            form = FORMS.get(operation.name)
            kind, told = form(*args) if form is not None else (operation.name.partition(".")[0], args)
            if self.out_of_place:
                kind = kind.removesuffix("_")
            return self.write(kind, told, operation, args)
        if operation.name.startswith("function::"):
            return self.write("prim::PythonOp", args, operation, args, operation.name[10:].rpartition(".")[2])
        return NotImplemented

    def write(self, kind, told, operation, args, python=""):
        where = "/".join(self.scopes), user_line()
        inputs = [self.value(a, where) for a in told]
        result = operation(*args)
        node = self.graph.add(kind, inputs, None, *where, python)
        if isinstance(operation, OpForm) and operation.schema.returns[0].is_list:
            made = self.graph.output_of(node, list_of(TENSOR))
            node = self.graph.add("prim::ListUnpack", [made], None, *where)
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            made = self.graph.output_of(node, TENSOR, tensor)
            if isinstance(tensor, Tensor):
                self.stands_for(tensor, made)
        return result

    def value(self, x, where):
        if isinstance(x, (tuple, list)):
            return self.graph.row([self.value(part, where) for part in x], True, *where)
        known = self.values.get(id(x)) if isinstance(x, Tensor) else None
        if known is None:
            known = self.graph.constant(x, *where)
            if isinstance(x, Tensor):
                self.stands_for(x, known)
        return known

    def finish(self, result):
        found = [self.value(x, ("", "")) for x in pytree.tree_leaves(result)]
        self.graph.end(found if len(found) == 1 else [self.graph.row(found, False)])


def _get_trace_graph(
    f, args=(), kwargs=None, strict=True, _force_outplace=False, return_inputs=False, _return_inputs_states=False
):
    """The ops that a call runs, as a graph with the questions of PyTorch's: `nodes()`, `kind()`, `inputs()`.

    Args:
        f: a function or module.
        args, kwargs: what it is called with; a tensor alone stands for one argument.
        strict: accepted; dicts and lists are taken as results in any case.
        _force_outplace: whether ops that write are told as those that compute.
        return_inputs: whether copies of the inputs, parameters and buffers as they were before are given as well.
        _return_inputs_states: whether the inputs before and after the call are given as well.

    Returns:
        (the graph, what the call returned) and, where it is asked for, the inputs.
    """
    args, kwargs = args if isinstance(args, tuple) else (args,), kwargs or {}
    writer = GraphWriter(_force_outplace)
    tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    tensors += f.state_dict(keep_vars=True).values() if isinstance(f, Module) else ()
    for tensor in tensors:
        writer.given(tensor)
    before = tuple(x.detach().clone() for x in tensors) if return_inputs else None
    states = pytree.tree_map(_copied, args) if _return_inputs_states else None
    with writer:
        result = f(*args, **kwargs)
    writer.finish(result)
    if return_inputs:
        return writer.graph, result, before
    return (writer.graph, result, (states, args)) if _return_inputs_states else (writer.graph, result)


def _copied(x):
    return x.detach().clone() if isinstance(x, Tensor) else x
