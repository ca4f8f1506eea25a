"""Blocks of a captured graph of ops, told as an fx graph: what `make_fx` writes down."""

import operator

import tinygrad_ext as tg
from tinygrad_ext._higher_order_ops import cond
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.graph import interpret, primitives
from tinygrad_ext.graph.decompose import called
from tinygrad_ext.graph.ir import Value, outer_values
from tinygrad_ext.graph.signature import signature_of

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import has_side_effect
from .products import SIMPLER

_CONTAINERS = {
    "prim::tuple": tuple,
    "prim::list": list,
    "prim::dict": lambda row: dict(zip(row[::2], row[1::2])),
    "prim::getitem": lambda row: row[0][row[1]],
    "prim::cast": lambda row: row[0],
}
_METHODS = {"prim::size": "size", "prim::rank": "dim", "prim::numel": "numel", "prim::item": "item"}
_guard = has_side_effect(primitives.TABLE["prim::guard"].run)


copy_, detach = tg.ops.aten.copy_.default, tg.ops.aten.detach.default


def loop(count, goes_on, body, carried, operands):
    """What body makes of what is carried, `count` times or until it says no: its first result is whether to go on."""
    turn = 0
    while goes_on and (count is None or turn < count):
        goes_on, *carried = body(turn, *carried, *operands)
        turn += 1
    return tuple(carried)


class Whole:
    """A Function with its derivative, as one function of what it uses."""

    def __init__(self, node, values):
        self.node, self.values = node, values
        self.__name__ = self.__qualname__ = str(node.args[0]).rpartition(".")[2] or "function"

    def __call__(self, *args):
        results = interpret.run_node_function(self.node, dict(zip(map(id, self.values), args)))
        return results[0] if len(self.node.outputs) == 1 else tuple(results)


class Writer:
    """Writes blocks of ops down as an fx graph.

    Attributes: env: id of a Value -> fx node, constant, or containers of those; root: path -> what get_attr finds;
    open: ids of the values that are nodes though a number is known of them; simpler: name of an op -> function that
    tells it by others, see `products`.
    """

    simpler = SIMPLER

    def __init__(self, is_open):
        self.open = is_open
        self.graph, self.env, self.root = Graph(), {}, {}

    def is_known(self, value):
        return id(value) not in self.open and _is_plain(value.hint)

    def read(self, a):
        if isinstance(a, Value):
            return self.env[id(a)]
        if type(a) in (tuple, list):
            return [self.read(x) for x in a]
        return slice(*map(self.read, (a.start, a.stop, a.step))) if type(a) is slice else a

    def call(self, function, args, kwargs=None):
        return self.graph.call_function(function, tuple(args), kwargs or {})

    def told_call(self, function, args):
        """A call that no value of the graph stands for, with what it is for the example."""
        made = self.call(function, args)
        made.meta["val"] = function(*[a.meta["val"] if _is_node(a) else a for a in args])
        return made

    def bind(self, values, row):
        """Note what stands for values, and in nodes what these are for the example."""
        for value, made in zip(values, row):
            self.env[id(value)] = made
            if _is_node(made) and "val" not in made.meta and value.hint is not None:
                made.meta["val"] = described(value.hint)

    def tell(self, made, values):
        """Note what the results of a call are for the example."""
        if _is_node(made):
            made.meta.setdefault("val", described(type(values)([value.hint for value in values])))

    def results(self, values, made):
        """Bind the results of a call."""
        several = len(values) != 1
        if several:
            self.tell(made, tuple(values))
        self.bind(values, [self.call(operator.getitem, (made, i)) for i in range(len(values))] if several else [made])

    def argument(self, value, name):
        """What stands for an argument: containers like it, of what `given(value, name)` makes of their leaves."""
        if isinstance(value, dict):
            return {key: self.argument(part, f"{name}_{key}") for key, part in value.items()}
        if isinstance(value, (tuple, list)):
            parts = [self.argument(part, f"{name}_{i}") for i, part in enumerate(value)]
            return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
        return self.given(value, name)

    def block(self, block):
        for node in block.nodes:
            made = self.last()
            self.node(node)
            while made is not self.last():
                made = made.next
                self.note(made, node)

    def last(self):
        """The last node of the graph; the ring's root while there is none."""
        return self.graph._root.prev

    def note(self, made, node):
        """Say in a node's meta where it comes from."""
        if node.line:
            made.meta.setdefault("stack_trace", node.line)

    # ---- nodes ----------------------------------------------------------------------------------------------------

    def node(self, node):
        if node.op == "prim::If":
            self.branches(node)
        elif node.op == "prim::Loop":
            self.loop(node)
        elif node.op == "prim::Function":
            values = list(dict.fromkeys([*node.values(), *(v for b in node.blocks for v in outer_values(b))]))
            self.results(node.outputs, self.call(Whole(node, values), [self.env[id(v)] for v in values]))
        elif node.op.startswith("prim::"):
            self.primitive(node, [self.read(a) for a in node.args])
        else:
            self.op(node, [self.read(a) for a in node.args])

    def op(self, node, args):
        signature = signature_of(node.op)
        for i in signature.writes:  # the op writes to copies, which are what it gives besides
            args[i] = args[i] and self.call(tg.ops.aten.clone.default, (args[i],))
        simpler, examples = self.simpler.get(node.op), [getattr(a, "hint", None) for a in node.args]
        if simpler and any(isinstance(a, Value) and (id(a) in self.open or a.hint is None) for a in node.args):
            simpler = None
        made = simpler and simpler(self.told_call, args, examples)
        if made is None:
            positional, named = called(signature.op.schema.args, args)
            made = self.call(_overload(node.op), tuple(positional), named)
        count = len(signature.returns)
        if count != 1:
            self.tell(made, tuple(node.outputs[:count]))
        row = [made] if count == 1 else [self.call(operator.getitem, (made, i)) for i in range(count)]
        row += [args[i] for i in signature.writes]
        if signature.generator is not None:  # which the op itself moves on
            row += [args[signature.generator]] * (len(node.outputs) - len(row))
        self.bind(node.outputs, row)

    def primitive(self, node, args):
        if node.op == "prim::guard":
            if _holds(args):
                self.call(_guard, args)
            return
        if node.op == "prim::unpack" and isinstance(args[0], (tuple, list)):
            self.bind(node.outputs, args[0])
            return
        if node.outputs and all(map(self.is_known, node.outputs)):
            self.env.update((id(v), v.hint) for v in node.outputs)
            return
        whole = isinstance(args[0], (tuple, list, dict)) if args else False
        if node.op in _CONTAINERS and (node.op != "prim::getitem" or (whole and not _is_node(args[1]))):
            self.env[id(node.output)] = _CONTAINERS[node.op](args)
        elif node.op in _METHODS:
            self.bind(node.outputs, [self.graph.call_method(_METHODS[node.op], tuple(args))])
        elif node.op == "prim::unpack":
            self.tell(args[0], list(node.outputs))
            self.bind(node.outputs, [self.call(operator.getitem, (args[0], i)) for i in range(len(node.outputs))])
        else:
            made = self.call(primitives.TABLE[node.op].run, args)
            self.results(node.outputs, made) if node.outputs else has_side_effect(made.target)

    # ---- branches and loops ---------------------------------------------------------------------------------------

    def branches(self, node):
        outer = [v for v in dict.fromkeys(v for b in node.blocks for v in outer_values(b)) if _is_node(self.read(v))]
        parts = [self.part(f"{name}_graph", b, outer) for name, b in zip(("true", "false"), node.blocks)]
        condition = self.read(node.args[0])
        made = self.call(cond, (condition, *parts, tuple(self.env[id(v)] for v in outer)))
        self.tell(made, tuple(node.outputs))
        self.bind(node.outputs, [self.call(operator.getitem, (made, i)) for i in range(len(node.outputs))])

    def loop(self, node):
        (block,), (count, goes_on, *carried) = node.blocks, map(self.read, node.args)
        outer = [v for v in outer_values(block) if _is_node(self.read(v))]
        body = self.part("body_graph", block, outer)
        made = self.call(loop, (count, goes_on, body, carried, [self.env[id(v)] for v in outer]))
        self.tell(made, tuple(node.outputs))
        self.bind(node.outputs, [self.call(operator.getitem, (made, i)) for i in range(len(node.outputs))])

    def part(self, name, block, outer):
        """The node that gets a block, which is put among the attributes as a module; outer: what it uses of outside."""
        inner = Writer(self.open)
        inner.env.update(self.env)
        inner.bind(outer_values(block), map(self.read, outer_values(block)))
        for i, value in enumerate([*block.inputs, *outer]):
            inner.bind([value], [inner.graph.placeholder(f"arg{i}_1")])
        inner.block(block)
        inner.graph.output(tuple(map(inner.read, block.outputs)))
        name = f"{name}_{sum(n.startswith(name) for n in self.root)}"
        self.root[name] = GraphModule(inner.root, inner.graph, name)
        return self.graph.get_attr(name)


def attribute(root, value):
    """Put a tensor or a generator among the attributes; its name."""
    kind = "_param_constant" if isinstance(value, Parameter) else "_tensor_constant"
    if not isinstance(value, Tensor):
        kind = "_generator"
    name = f"{kind}{sum(n.startswith(kind) for n in root)}"
    root[name] = value
    return name


def described(value):
    """What `meta["val"]` tells of a value: a tensor of its geometry without memory, what is no tensor as it is."""
    if isinstance(value, Tensor) and value.layout == tg.strided:
        return tg.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (tuple, list)):
        return tuple(map(described, value)) if type(value) is tuple else [described(a) for a in value]
    return value


def leaves_of(tree):
    """The leaves of nested tuples, lists and dicts."""
    if isinstance(tree, dict):
        return leaves_of(list(tree.values()))
    return [leaf for part in tree for leaf in leaves_of(part)] if isinstance(tree, (tuple, list)) else [tree]


def rebuilt(tree, leaves):
    """A tree with other leaves, in order."""
    if isinstance(tree, dict):
        return {key: rebuilt(part, leaves) for key, part in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [rebuilt(part, leaves) for part in tree]
        return type(tree)._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
    return next(leaves)


def _is_node(a):
    return type(a).__name__ == "Node"


def _holds(a):
    return any(map(_holds, a)) if isinstance(a, (tuple, list)) else _is_node(a)


def _is_plain(hint):
    if isinstance(hint, (tuple, list)):
        return all(map(_is_plain, hint))
    return type(hint) in (int, float, bool, str, complex)


def _overload(name):
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(tg.ops, namespace), packet), overload or "default")
