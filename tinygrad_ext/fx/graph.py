"""`Graph`: nodes in the order in which they run, and what is done to them."""

import builtins
import contextlib
import copy
import keyword
import re
from collections import defaultdict

from .code import PythonCode, python_code
from .codegen import CodeGen
from .node import Node, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

_PYTHON = {*keyword.kwlist, *dir(builtins)}
_PYTHON |= {"inf", "nan", "NoneType", "torch", "tinygrad_ext", "device", "fx_pytree", "pytree"}


class Names:
    """Names that are taken; `free` gives one that is not."""

    def __init__(self):
        self.taken, self._last = set(), defaultdict(int)

    def free(self, wanted):
        """The wanted name as an identifier, with a number behind it where it is taken or Python's own."""
        wanted = re.sub(r"\W", "_", wanted, flags=re.A) or "_unnamed"
        wanted = f"_{wanted}" if wanted[0].isdigit() else wanted
        match = re.fullmatch(r"(.+)_(\d+)", wanted)
        base = match[1] if match else wanted
        number = int(match[2]) if match and wanted not in self.taken else self._last[base]
        name = wanted
        if name in _PYTHON:
            number += 1
            name = f"{base}_{number}"
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        self._last[base] = number
        return name


class NodeList:
    """The nodes of a graph in order, as they are at each step; `reversed` goes the other way."""

    def __init__(self, graph, forward=True):
        self._graph, self._forward = graph, forward

    def __len__(self):
        return self._graph._len

    def __iter__(self):
        root = self._graph._root
        node = root._next if self._forward else root._prev
        while node is not root:
            if not node._erased:
                yield node
            node = node._next if self._forward else node._prev

    def __reversed__(self):
        return NodeList(self._graph, not self._forward)


class Graph:
    """Python calls in order: what `symbolic_trace` records and `GraphModule` runs.

    Attributes: nodes; owning_module, the GraphModule that it belongs to.
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len, self._names = 0, Names()
        self.owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def nodes(self):
        return NodeList(self)

    def output_node(self):
        """The node that says what is returned."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of this kind, with this target where one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- making nodes ---------------------------------------------------------------------------------------------

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Add a node where the graph inserts at present, at its end unless told otherwise."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("args must be a tuple and kwargs a dict")
        node = Node(self, self._names.free(name or _name_of(target)), op, target, args, kwargs, type_expr)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name, type_expr=None, default_value=...):
        """An argument of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """An attribute of the module by its path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a submodule by its path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """What is returned."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda n: n):
        """Add a copy of a node of another graph; arg_transform(node) says which node of this graph stands for one."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Add copies of another graph's nodes; returns what stands for its output. val_map: node there -> node here."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], val_map.__getitem__)
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    # ---- places ---------------------------------------------------------------------------------------------------

    def inserting_before(self, n=None):
        """Add nodes before this one from now on to the end of the `with`, or at the beginning."""
        return self._inserting((self._root._next if n is None else n).prepend, n)

    def inserting_after(self, n=None):
        """Add nodes right behind this one, or at the beginning, to the end of the `with`; the last one is the first."""
        return self._inserting((self._root if n is None else n).append, n)

    def _inserting(self, insert, n):
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        before, self._insert = self._insert, insert

        @contextlib.contextmanager
        def until_the_end():
            try:
                yield
            finally:
                self._insert = before

        return until_the_end()

    def erase_node(self, to_erase):
        """Take a node out. RuntimeError while others use it."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{list(to_erase.users)}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._leave()
        to_erase._erased = True
        self._len -= 1
        to_erase._assign((), {})

    def eliminate_dead_code(self, is_impure_node=None):
        """Erase nodes that nobody uses and that do nothing besides; returns whether there were any."""
        self.lint()
        keep = is_impure_node or Node.is_impure
        count = self._len
        for node in reversed(self.nodes):
            if not node.users and not keep(node):
                self.erase_node(node)
        return self._len < count

    def lint(self):
        """RuntimeError where the graph is not in order: nodes that come before what they use, names twice, ..."""
        seen, names = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph!")
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                _check_path(self.owning_module, node)

    # ---- telling --------------------------------------------------------------------------------------------------

    def python_code(self, root_module="self", *, verbose=False):
        """A PythonCode: `src`, a function `forward` that does what the graph says, and the `globals` it needs.

        root_module: the name under which the body finds the module of get_attr and call_module.
        verbose: with the sizes that `meta["val"]` tells, and the user's lines.
        """
        return python_code(self, root_module, verbose)

    def set_codegen(self, codegen):
        """Let a CodeGen say how the code begins and ends; seen at the module's next `recompile()`."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer):
        """Change the body whenever code is made; in a `with`, until its end.

        make_transformer: function of the present transformer, or None, that gives the new one: a function of the list
        of the body's lines, each with its end, that gives such a list.
        """
        codegen, before = self._codegen, self._codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until_the_end():
            try:
                yield
            finally:
                codegen._body_transformer = before

        return until_the_end()

    def process_inputs(self, *args):
        """The values of the graph's placeholders, of the arguments that its code takes."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What the graph's code returns, of the graph's output."""
        return self._codegen.process_outputs(out)

    def __str__(self):
        returned = []
        lines = [node.format_node([], returned) for node in self.nodes]
        return f"graph():{''.join(returned)}" + "".join(f"\n    {line}" for line in lines)

    def print_tabular(self):
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(dict(n.kwargs))) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))
        print("\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows))

    def __reduce__(self):
        places = {node: Place(i) for i, node in enumerate(self.nodes)}
        plain = lambda a: _replaced(a, Node, places.__getitem__)
        rows = [(n.op, n.name, n.target, plain(n.args), plain(n.kwargs), n.type) for n in self.nodes]
        own = self._codegen if type(self._codegen) is not CodeGen or self._codegen._body_transformer else None
        return graph_of_rows, (rows, own)

    def __deepcopy__(self, memo=None):
        made, values = Graph(tracer_cls=self._tracer_cls), {}
        made._codegen = copy.deepcopy(self._codegen, memo)
        for node in self.nodes:
            values[node] = new = made.node_copy(node, values.__getitem__)
            new.meta = copy.copy(node.meta)
        return made


class Place:
    """A node of a pickled graph, by its number."""

    def __init__(self, number):
        self.number = number


def graph_of_rows(rows, codegen=None):
    """The graph of a pickle."""
    graph, nodes = Graph(), []
    if codegen is not None:
        graph.set_codegen(codegen)
    for op, name, target, args, kwargs, kind in rows:
        args, kwargs = (_replaced(a, Place, lambda p: nodes[p.number]) for a in (args, kwargs))
        nodes.append(graph.create_node(op, target, args, kwargs, name, kind))
    return graph


def _replaced(a, kind, function):
    """Plain arguments with function(x) in the place of each x of a kind."""
    if isinstance(a, kind):
        return function(a)
    if isinstance(a, (tuple, list)):
        parts = [_replaced(x, kind, function) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts) if isinstance(a, tuple) else parts
    if isinstance(a, dict):
        return {key: _replaced(x, kind, function) for key, x in a.items()}
    if isinstance(a, slice):
        return slice(*(_replaced(x, kind, function) for x in (a.start, a.stop, a.step)))
    return a


def _name_of(target):
    """The name that a node of this target asks for: snake case, without dots."""
    if isinstance(target, str):
        text = f"_{target.lstrip('*')}" if target.startswith("*") else target
    else:
        text = getattr(target, "__name__", None) or type(target).__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text.replace(".", "_")).lower()


def _check_path(module, node):
    found = module
    for i, part in enumerate(node.target.split(".")):
        if not hasattr(found, part):
            path = ".".join(node.target.split(".")[:i]) or "the module"
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {path}")
        found = getattr(found, part)
