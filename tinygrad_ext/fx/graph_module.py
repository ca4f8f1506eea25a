"""`GraphModule`: a Module whose forward is the code of a graph."""

import copy
import itertools
import linecache

from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.nn.module import Module

from .graph import Graph

_count = itertools.count()


class GraphModule(Module):
    """A Module that runs a Graph. Each has a class of its own, whose `forward` is the graph's code.

    Args:
        root: a Module, of which the attributes that the graph names are taken, or a dict of path -> attribute.
        graph: a Graph; a copy becomes the module's.
        class_name: of the class.

    After changes of `graph`, `recompile()` makes a new forward. `meta`, a dict, is the user's; copies have it, pickles
    do not.
    """

    def __new__(cls, *args, **kwargs):
        base = next(c for c in cls.__mro__ if "_graph_class" not in vars(c))
        return super().__new__(type(base.__name__, (base,), {"_graph_class": True, "__doc__": base.__doc__}))

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.meta = {}
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
        elif not isinstance(root, dict):
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, node.target)
        self.graph = graph

    def _take(self, root, path):
        if isinstance(root, dict):
            if path not in root:
                raise RuntimeError(f"the graph refers to '{path}', which is not among the keys of root")
            value = root[path]
        else:
            value = _found(root, path)
        target = self
        *folders, name = path.split(".")
        for folder in folders:
            if not hasattr(target, folder):
                target.add_module(folder, Module())
            target = getattr(target, folder)
        if isinstance(value, Tensor) and not hasattr(target, name) and not isinstance(value, Parameter):
            target.register_buffer(name, value)
        else:
            setattr(target, name, value)

    # ---- the graph ------------------------------------------------------------------------------------------------

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The source of `forward`."""
        return self._code

    def recompile(self):
        """Make `forward` from the graph as it is now; returns the PythonCode."""
        made = self._graph.python_code("self")
        self._code = made.src
        name = f"<fx graph {next(_count)}>"
        linecache.cache[name] = (len(made.src), None, made.src.splitlines(True), name)  # for tracebacks
        names = dict(made.globals)
        exec(compile(made.src, name, "exec"), names)
        type(self).forward = names["forward"]
        return made

    def to_graph(self, *inputs):
        """The captured program for inputs such as these, as a `graph.Graph`: ops instead of Python calls.

        Parameters and buffers are its state, under their paths. Raises what capturing raises: RuntimeError where
        elements of a tensor are read, CaptureError for what a graph cannot hold.
        """
        names = {id(t): (path, "parameter") for path, t in self.named_parameters()}
        names.update((id(t), (path, "buffer")) for path, t in self.named_buffers())
        level = Capture(type(self).__name__, lambda tensor: names.get(id(tensor)))
        try:
            with level:
                return level.finish(self(*[level.argument(a, f"arg{i}") for i, a in enumerate(inputs)]))
        finally:
            level.reader.restore()

    def print_readable(self, print_output=True):
        """The class as Python, with sizes and lines that nodes tell in their `meta`; printed."""
        code = self._graph.python_code("self", verbose=True).src
        parts = [part.print_readable(False) for part in self.children() if isinstance(part, GraphModule)]
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "\n".join(
            f"    {line}" if line else "" for line in "\n\n".join([code.strip("\n"), *parts]).split("\n")
        )
        if print_output:
            print(text)
        return text

    def __str__(self):
        return f"{super().__str__()}\n\n{self._code}"

    # ---- parts ----------------------------------------------------------------------------------------------------

    def add_submodule(self, target, m):
        """Put a module at a path, with empty ones on the way; False where something else is in the way."""
        *folders, name = target.split(".")
        found = self
        for folder in folders:
            if not hasattr(found, folder):
                found.add_module(folder, Module())
            found = getattr(found, folder)
            if not isinstance(found, Module):
                return False
        found.add_module(name, m)
        return True

    def delete_submodule(self, target):
        """Take the module at a path out; False where there is none."""
        *folders, name = target.split(".")
        found = self
        for folder in folders:
            found = getattr(found, folder, None)
            if not isinstance(found, Module):
                return False
        if not isinstance(getattr(found, name, None), Module):
            return False
        delattr(found, name)
        return True

    def delete_all_unused_submodules(self):
        """Take out the modules that no node uses, nor anything in them."""
        used = [node.target for node in self._graph.nodes if node.op in ("call_module", "get_attr")]
        for path, _ in list(self.named_modules()):
            if path and not any(u == path or u.startswith(f"{path}.") or path.startswith(f"{u}.") for u in used):
                self.delete_submodule(path)

    # ---- copies ---------------------------------------------------------------------------------------------------

    def __copy__(self):
        made = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = dict(self.meta)
        return made

    def __deepcopy__(self, memo):
        parts = {k: v for k, v in vars(self).items() if k not in ("_graph", "_code")}
        made = GraphModule.__new__(GraphModule)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(parts, memo))
        type(made).__name__ = type(self).__name__
        made.graph = copy.deepcopy(self._graph, memo)
        return made

    def __reduce__(self):
        parts = {k: v for k, v in vars(self).items() if k[1:] not in _MADE and k != "meta"}
        return _made_of, (type(self).__name__, parts, self._graph)


_MADE = ("graph", "code")  # what is made anew


def _made_of(name, parts, graph):
    """The GraphModule of a pickle."""
    made = GraphModule.__new__(GraphModule)
    made.__dict__.update(parts, meta={})
    type(made).__name__ = name
    made.graph = graph
    return made


def _found(root, path):
    value = root
    for part in path.split("."):
        value = getattr(value, part)
    return value
