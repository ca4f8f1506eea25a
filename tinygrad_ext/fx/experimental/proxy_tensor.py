"""`make_fx`: what a function calls in the end, ops and nothing else, as a GraphModule.

The function is captured (`graph.capture`), so gradients and transforms inside are ops too; sizes and numbers are then
taken for what they are for the example, as PyTorch does in its mode "real", or stay open.
"""

import functools
import inspect
from collections import OrderedDict

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.random import Generator, default_generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.graph.decompose import decompose, functions_of, note_hints
from tinygrad_ext.graph.passes import DeadCode
from tinygrad_ext.utils._pytree import tree_flatten, tree_map, tree_structure
from tinygrad_ext.utils.nested import plain

from ..codegen import PyTreeCodeGen
from ..graph_module import GraphModule
from .open_numbers import open_values
from .products import through
from .writer import Writer, attribute, copy_, described, leaves_of


@boundary
def make_fx(f, decomposition_table=None, tracing_mode="real", **accepted):
    """A function of f's arguments that returns the GraphModule of what f does for them, in overloads of ops alone.

    Args:
        f: function of tensors and numbers, in tuples, lists and dicts too. It is run, on the arguments themselves.
        decomposition_table: dict of op -> function that stands for it, as for `ExportedProgram.run_decompositions`.
            What is left of linear, matmul of up to two dimensions or two batches, and batched conv1d and conv2d is told
            by t, addmm, mm, bmm, mv, dot and convolution, and by what the table has for these.
        tracing_mode: "real" or "fake", which is the same here: f is run on the numbers, and sizes and numbers that are
            passed become constants. "symbolic": they stay open, as nodes, and what Python decided by one is asked again
            by a node that raises RuntimeError where it would be decided otherwise.

    A branch or loop (`cond`, `while_loop`, scripted code) is a call with its parts as modules, `true_graph_0`,
    `false_graph_0`, `body_graph_0`. Each node tells in `meta["val"]` what it is for the example: a tensor of that
    geometry on meta, or a number.

    Raises what capturing raises.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: x.sin() * x.shape[0])(tg.ones(3)).graph)
    graph():
        %x_1 : [num_users=1] = placeholder[target=x_1]
        %sin : [num_users=1] = call_function[target=tinygrad_ext.ops.aten.sin.default](args = (%x_1,), kwargs = {})
        %mul : [num_users=1] = call_function[target=tinygrad_ext.ops.aten.mul.Tensor](args = (%sin, 3), kwargs = {})
        return mul
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise ValueError(f"make_fx(): tracing_mode is 'real', 'fake' or 'symbolic', not {tracing_mode!r}")

    @functools.wraps(f)
    def record(*args):
        level = Capture(getattr(f, "__name__", "f"))
        try:
            with level:
                given = [level.argument(a, f"arg{i}") for i, a in enumerate(args)]
                result, nested = plain(f(*given))
                captured = level.finish(result)
        finally:
            level.reader.restore()
        outside = {id(t.root.state): t.root.tensor for t in level.roots.values() if t.root.state is not None}
        outside.update((id(s), generator) for generator, s in level.drawn())
        if decomposition_table:
            state = [_undrawn(outside.get(id(s), s.value.hint)) for s in captured.state]
            values = [outside.get(id(s)) for s in captured.state]
            captured, _ = decompose(captured, through(functions_of(decomposition_table)), list(args), state)
            outside = {id(s): t for s, t in zip(captured.state, values) if t is not None}
            note_hints(captured, args, state)
        return _Traced(DeadCode().run(captured), outside, tracing_mode == "symbolic").module(f, args, nested)

    return record


def _undrawn(value):
    return value._copy() if isinstance(value, Generator) else value


class _Traced(Writer):
    """Writes down what `make_fx` captured. outside: id of a State -> the object that it stands for."""

    def __init__(self, captured, outside, symbolic):
        leaves = [v for v in captured.inputs if symbolic]
        super().__init__(open_values(captured, map(id, leaves)))
        self.captured, self.outside, self.symbolic = captured, outside, symbolic

    def module(self, f, args, nested):
        """nested: spec of the result where it is another than that of what was captured."""
        names = _names(f, args)
        for value, name, tree in zip(self.captured.inputs, names, args):
            leaves, _ = tree_flatten(tree)
            nodes = iter([self.graph.placeholder(f"{name}_{i + 1}") for i in range(len(leaves))])
            self.env[id(value)] = tree_map(lambda leaf, nodes=nodes: self.leaf(leaf, next(nodes)), tree)
        for s in self.captured.state:
            self.env[id(s.value)] = self.state(s)
        self.block(self.captured.block)
        for s in self.captured.state:
            if s.written and s.kind != "generator":
                self.call(copy_, (self.env[id(s.value)], self.read(s.new)))
        self.result(names, args, self.read(self.captured.outputs[0]), nested)
        return GraphModule(self.root, self.graph, getattr(f, "__name__", "f").replace("<lambda>", "function"))

    def result(self, names, args, tree, nested):
        """As it is nested; its leaves in a list where arguments are nested, or where a class is no more than known."""
        if any(isinstance(a, (tuple, list, dict)) for a in args) or (nested is not None and not _is_named(nested)):
            self.graph.output(leaves_of([tree]))
            spec = tree_structure(tree) if nested is None else nested
            self.graph.set_codegen(PyTreeCodeGen(names, args, spec))
        else:
            self.graph.output(tree if nested is None else self.named(nested, iter(leaves_of([tree]))))

    def named(self, spec, leaves):
        """A tree of a spec with calls of the classes of named tuples."""
        if spec.is_leaf():
            return next(leaves)
        parts = [self.named(child, leaves) for child in spec.children_specs]
        if spec.type in (dict, OrderedDict):
            return dict(zip(spec.context, parts))
        if spec.type in (tuple, list):
            return spec.type(parts)
        return self.call(spec.type, parts) if hasattr(spec.type, "_field_defaults") else self.call(spec.type, (parts,))

    def leaf(self, value, node):
        """A placeholder for a tensor, or what is open; another number is what it is."""
        node.meta["val"] = described(value)
        return node if isinstance(value, Tensor) or (self.symbolic and type(value) in (int, float)) else value

    def state(self, s):
        if s.kind == "generator":  # ops find the default one by themselves
            own = self.outside[id(s)]
            return None if own is default_generator else self.graph.get_attr(attribute(self.root, own))
        if s.kind == "argument":
            place = next(v for v in self.captured.inputs if v.name == s.name)
            return self.env[id(place)]
        tensor = self.outside[id(s)]
        if not isinstance(tensor, Tensor):
            return tensor
        node = self.graph.get_attr(attribute(self.root, tensor))
        node.meta["val"] = described(tensor)
        return node


def _is_named(spec):
    """Whether a tree consists of named tuples and what is built in alone."""
    known = spec.is_leaf() or spec.type in (tuple, list, dict, OrderedDict) or hasattr(spec.type, "_make")
    return known and all(map(_is_named, spec.children_specs))


def _names(f, args):
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        names = []
    names = [name for name in names if name.isidentifier()]
    return names[: len(args)] if len(names) >= len(args) else [f"arg{i}" for i in range(len(args))]
