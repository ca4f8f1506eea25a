"""`Interpreter` runs a GraphModule node by node; `Transformer` makes a new one of what it is told for each."""

from .graph import Graph
from .graph_module import GraphModule
from .immutable_collections import immutable_dict, immutable_list
from .node import map_aggregate, map_arg
from .proxy import Proxy
from .tracer import Tracer


class Interpreter:
    """Runs the nodes of a GraphModule one after the other; subclasses replace what one kind of node does.

    Args:
        module: a GraphModule, or a Module that `graph` belongs to.
        garbage_collect_values: forget values after their last use.
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = {}
        seen = set()
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """What the graph gives for these arguments. initial_env: node -> value of nodes that are not run.
        enable_io_processing: arguments and result are those of the graph's code, not of its placeholders and output.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and error.args and isinstance(error.args[0], str):
                    error.args = (f"{error.args[0]}\n\nWhile executing {node.format_node()}", *error.args[1:])
                raise
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    del self.env[used]
            if node.op == "output":
                return self.graph.process_outputs(self.env[node]) if enable_io_processing else self.env[node]
        return None

    def boxed_run(self, args_list):
        """`run` with arguments in a list, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n):
        """What one node gives."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    # ---- kinds of nodes -------------------------------------------------------------------------------------------

    def placeholder(self, target, args, kwargs):
        """The next argument; the rest of them for `*args`."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target, args, kwargs):
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """A call of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        """A call of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """What is returned."""
        return args[0]

    # ---- values ---------------------------------------------------------------------------------------------------

    def fetch_attr(self, target):
        """The attribute of the module at a path."""
        found = self.module
        for part in target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}: there is no '{part}'")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n):
        """(args, kwargs) of a node, with values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """args with values in the place of nodes."""

        def value(used):
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[used]

        return _filled(args, value)


def _filled(a, value):
    """a with values for its nodes, in lists and dicts that may be changed."""
    if isinstance(a, immutable_list):
        return [_filled(x, value) for x in a]
    if isinstance(a, immutable_dict):
        return {k: _filled(x, value) for k, x in a.items()}
    if isinstance(a, tuple):
        parts = [_filled(x, value) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    return map_arg(a, value)


class Transformer(Interpreter):
    """An Interpreter over Proxies: `transform()` is the GraphModule of what its methods do with each node."""

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(self.graph._codegen)
        self.tracer = _Tracer(self.new_graph, module)

    def placeholder(self, target, args, kwargs):
        default = args if args else ()
        return Proxy(self.new_graph.create_node("placeholder", target, default), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.call_module(self.fetch_attr(target), None, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self):
        """The new GraphModule."""
        result = self.run(enable_io_processing=False)
        if result is not None:
            strip = lambda a: a.node if isinstance(a, Proxy) else a
            old = self.graph.output_node()
            new = self.new_graph.output(map_aggregate(result, strip), old.type)
            new.meta = dict(old.meta)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)

    def run(self, *args, **more):
        self.extra_traceback = False
        return super().run(*args, **more)


class _Tracer(Tracer):
    """Adds to the new graph; every module is a leaf."""

    def __init__(self, graph, root):
        super().__init__()
        self.graph, self.root = graph, root
        self.tensor_attrs = {}

    def is_leaf_module(self, m, module_qualified_name):
        return True
