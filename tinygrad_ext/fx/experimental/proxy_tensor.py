"""`make_fx`: what a function calls in the end, ops and nothing else, as a GraphModule.

The function is captured (`graph.capture`), so gradients and transforms inside are ops too; sizes and numbers are then
taken for what they are for the example, as PyTorch does in its mode "real".
"""

import functools
import inspect
import operator

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.export.decompose import called, decompose, functions_of
from tinygrad_ext.graph import primitives
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.passes import DeadCode
from tinygrad_ext.graph.signature import signature_of
from tinygrad_ext.utils._pytree import tree_flatten, tree_map

from ..codegen import PyTreeCodeGen
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import has_side_effect
from .products import SIMPLER

_CHECKS = {"prim::guard"}  # of sizes, which are known here

_CONTAINERS = {
    "prim::tuple": tuple,
    "prim::list": list,
    "prim::dict": lambda row: dict(zip(row[::2], row[1::2])),
    "prim::getitem": lambda row: row[0][row[1]],
}


@boundary
def make_fx(f, decomposition_table=None, tracing_mode="real", **accepted):
    """A function of f's arguments that returns the GraphModule of what f does for them, in overloads of ops alone.

    Args:
        f: function of tensors and numbers, in tuples, lists and dicts too. It is run, on the arguments themselves.
        decomposition_table: dict of op -> function that stands for it, as for `ExportedProgram.run_decompositions`.
            What is left of linear, matmul of up to two dimensions or two batches, and batched conv1d and conv2d is told
            by t, addmm, mm, bmm, mv, dot and convolution; entries for these do not reach it.
        tracing_mode: "real" or "fake", which is the same here: f is run on the numbers, and sizes become constants.
            `graph.capture` keeps them open.

    Raises NotImplementedError for branches and loops of scripted code, which fx has no node for, and what capturing
    raises.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: x.sin() * x.shape[0])(tg.ones(3)).graph)
    graph():
        %x_1 : [num_users=1] = placeholder[target=x_1]
        %sin : [num_users=1] = call_function[target=tinygrad_ext.ops.aten.sin.default](args = (%x_1,), kwargs = {})
        %mul : [num_users=1] = call_function[target=tinygrad_ext.ops.aten.mul.Tensor](args = (%sin, 3), kwargs = {})
        return mul
    """
    if tracing_mode not in ("real", "fake"):
        raise NotImplementedError(
            f"make_fx() has the tracing_modes 'real' and 'fake', not {tracing_mode!r}: graph.capture keeps sizes open"
        )

    @functools.wraps(f)
    def record(*args):
        level = Capture(getattr(f, "__name__", "f"))
        try:
            with level:
                given = [level.argument(a, f"arg{i}") for i, a in enumerate(args)]
                captured = level.finish(f(*given))
        finally:
            level.reader.restore()
        outside = {id(t.root.state): t.root.tensor for t in level.roots.values() if t.root.state is not None}
        if decomposition_table:
            state = [outside.get(id(s), s.value.hint) for s in captured.state]
            values = [outside.get(id(s)) for s in captured.state]
            captured, _ = decompose(captured, functions_of(decomposition_table), list(args), state)
            outside = {id(s): t for s, t in zip(captured.state, values) if t is not None}
            _evaluate(captured, args, state)
        return _Writer(DeadCode().run(captured), outside).module(f, args)

    return record


def _evaluate(graph, args, state):
    """Note at each value what it is for the example."""
    from tinygrad_ext.graph import interpret  # lazy: with a decomposition_table only

    frame = dict(zip(map(id, graph.inputs), args))
    frame.update(zip((id(s.value) for s in graph.state), state))
    with tg.no_grad():
        interpret.run_block(graph.block, frame)
    for value in (*graph.inputs, *(s.value for s in graph.state), *(v for node in graph.nodes for v in node.outputs)):
        value.hint = frame[id(value)]


@has_side_effect
def copy_(to, new):
    """Write to what the function writes to."""
    return to.copy_(new)


class _Writer:
    """Writes a captured graph down as an fx graph. env: id of a Value -> fx node, constant, or containers of those."""

    def __init__(self, captured, outside):
        self.captured, self.outside = captured, outside
        self.graph, self.env, self.root = Graph(), {}, {}

    def module(self, f, args):
        names = _names(f, args)
        nested = any(isinstance(a, (tuple, list, dict)) for a in args)
        for value, name, tree in zip(self.captured.inputs, names, args):
            leaves, _ = tree_flatten(tree)
            nodes = iter([self.graph.placeholder(f"{name}_{i + 1}") for i in range(len(leaves))])
            self.env[id(value)] = tree_map(lambda leaf, nodes=nodes: self.leaf(leaf, next(nodes)), tree)
        if nested:
            self.graph.set_codegen(PyTreeCodeGen(names, args))
        for s in self.captured.state:
            self.env[id(s.value)] = self.state(s)
        for node in self.captured.nodes:
            self.node(node)
        for s in self.captured.state:
            if s.written and s.kind != "generator":
                self.call(copy_, (self.env[id(s.value)], self.read(s.new)))
        self.graph.output(self.read(self.captured.outputs[0]))
        return GraphModule(self.root, self.graph, getattr(f, "__name__", "f").replace("<lambda>", "function"))

    def leaf(self, value, node):
        """A placeholder for a tensor; a number is what it is."""
        return node if isinstance(value, Tensor) else value

    def state(self, s):
        if s.kind == "generator":
            return None
        if s.kind == "argument":
            place = next(v for v in self.captured.inputs if v.name == s.name)
            return self.env[id(place)]
        tensor = self.outside[id(s)]
        if not isinstance(tensor, Tensor):
            return tensor
        kind = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
        name = f"{kind}{sum(n.startswith(kind) for n in self.root)}"
        self.root[name] = tensor
        return self.graph.get_attr(name)

    def read(self, a):
        if isinstance(a, Value):
            return self.env[id(a)]
        if type(a) in (tuple, list):
            return [self.read(x) for x in a]
        return slice(*map(self.read, (a.start, a.stop, a.step))) if type(a) is slice else a

    def node(self, node):
        if node.op in primitives.CONTROL:
            raise NotImplementedError(
                f"make_fx(): {node.op} at {node.line} has no node in fx; graph.capture gives a graph that has"
            )
        args = [self.read(a) for a in node.args]
        if node.op.startswith("prim::"):
            self.primitive(node, args)
            return
        signature = signature_of(node.op)
        if signature.generator is not None:
            args[signature.generator] = None
        for i in signature.writes:  # the op writes to copies, which are what it gives besides
            args[i] = args[i] and self.call(tg.ops.aten.clone.default, (args[i],))
        simpler = SIMPLER.get(node.op)
        made = simpler and simpler(self.call, args, [getattr(a, "hint", None) for a in node.args])
        if made is None:
            positional, named = called(signature.op.schema.args, args)
            made = self.call(_overload(node.op), tuple(positional), named)
        count = len(signature.returns)
        row = [made] if count == 1 else [self.call(operator.getitem, (made, i)) for i in range(count)]
        row += [args[i] for i in signature.writes]
        row += [None] * (len(node.outputs) - len(row))  # a generator, which the op finds by itself
        self.env.update(zip(map(id, node.outputs), row))

    def primitive(self, node, args):
        if node.op in _CHECKS:
            return
        if node.op == "prim::unpack":
            whole = args[0]
            parts = whole if isinstance(whole, (tuple, list)) else None
            row = parts or [self.call(operator.getitem, (whole, i)) for i in range(len(node.outputs))]
            self.env.update(zip(map(id, node.outputs), row))
            return
        if not _holds(args) and all(_is_plain(v.hint) for v in node.outputs):
            self.env.update((id(v), v.hint) for v in node.outputs)
            return
        whole = isinstance(args[0], (tuple, list, dict)) if args else False
        if node.op in _CONTAINERS and (node.op != "prim::getitem" or whole):
            self.env[id(node.output)] = _CONTAINERS[node.op](args)
        elif all(_is_plain(v.hint) for v in node.outputs):  # a size, or what follows from sizes
            self.env.update((id(v), v.hint) for v in node.outputs)
        else:
            made = self.call(primitives.TABLE[node.op].run, tuple(args))
            row = (
                [made]
                if len(node.outputs) == 1
                else [self.call(operator.getitem, (made, i)) for i in range(len(node.outputs))]
            )
            self.env.update(zip(map(id, node.outputs), row))

    def call(self, function, args, kwargs=None):
        return self.graph.call_function(function, tuple(args), kwargs or {})


def _holds(a):
    return any(map(_holds, a)) if isinstance(a, (tuple, list)) else type(a).__name__ == "Node"


def _is_plain(hint):
    if isinstance(hint, (tuple, list)):
        return all(map(_is_plain, hint))
    return type(hint) in (int, float, bool, str, complex)


def _overload(name):
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(tg.ops, namespace), packet), overload or "default")


def _names(f, args):
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        names = []
    names = [name for name in names if name.isidentifier()]
    return names[: len(args)] if len(names) >= len(args) else [f"arg{i}" for i in range(len(args))]
