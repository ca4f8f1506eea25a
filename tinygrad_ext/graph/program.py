"""`Program`: several graphs over one state, what front ends hand over to be saved and get back when it is loaded."""

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.interop import storage_of
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.random import Generator, default_generator
from tinygrad_ext.core.data.tensor import Tensor

from . import derivative

DEFAULT = "default"  # name of the state that stands for the generator of the process


class Program:
    """Graphs by name, and the state that they share by name.

    Args:
        methods: dict of a name ("forward", "decode") -> Graph.
        state: dict, or another mapping, of a name -> tensor, number, text, None or Generator; it holds what the graphs
            name as their state, and is written to. The generator of the process belongs to every program, as "default".
        notes: dict of a method's name -> anything that JSON can hold, which is kept with it (a front end's description
            of nested arguments and results).

    Raises ValueError for a graph whose state is not there.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.graph import Graph, Program
    >>> text = "graph f(%x: Tensor) {\\n  %1: Tensor = aten::exp(%x)\\n  return %1\\n}"
    >>> Program({"forward": Graph.parse(text)}).run("forward", tg.zeros(2))
    tensor([1., 1.])
    """

    def __init__(self, methods, state=None, notes=None):
        self.methods = dict(methods)
        self.state = {} if state is None else state
        self.state.setdefault(DEFAULT, default_generator)
        self.notes = dict(notes or {})
        for name, graph in self.methods.items():
            for s in graph.state:
                if s.name not in self.state:
                    raise ValueError(f"method '{name}' has the {s.kind} '{s.name}', which is not in the state")

    def run(self, method, *inputs):
        """What a method gives for these inputs, one alone, several as a tuple. The state is updated.

        A tensor of the state is written in place where size and dtype stay, so who shares it sees the new value.
        """
        if method not in self.methods:
            raise AttributeError(f"the program has no method '{method}'; it has {', '.join(self.methods) or 'none'}")
        graph = self.methods[method]
        state = self.state_of(graph)
        if graph.effects or (is_grad_enabled() and (wants_grad(inputs) or wants_grad(state))):
            outputs, new = derivative.run(graph, list(inputs), state)
        else:
            outputs, new = graph.execute(inputs, state)
        outputs = self._write(graph, outputs, new)
        return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None

    def __call__(self, *inputs):
        return self.run("forward", *inputs)

    def state_of(self, graph):
        """The values of a graph's state, in its order."""
        return [self.state[s.name] for s in graph.state]

    def _write(self, graph, outputs, new):
        """Put what a graph has made of the state in its place; returns the outputs, none of which changes by that."""
        written = [(s.name, value) for s, value in zip(graph.state, new) if s.written]
        rooms = {id(storage_of(t)) for name, _ in written if _has_room(t := self.state[name])}
        outputs = [_apart(a, rooms) for a in outputs]
        for name, value in [(name, _apart(value, rooms)) for name, value in written]:
            old = self.state[name]
            if isinstance(old, Generator):
                old.set_state(value.get_state())
            elif _has_room(old) and isinstance(value, Tensor) and (old.shape, old.dtype) == (value.shape, value.dtype):
                with no_grad():
                    old.copy_(value)
            else:
                self.state[name] = value
        return outputs

    def __repr__(self):
        return f"<Program of {', '.join(self.methods)}: {len(self.state)} of state>"


def wants_grad(values):
    """Whether a gradient may be asked of what is computed from these."""
    for value in values:
        if isinstance(value, Tensor):
            if value.requires_grad:
                return True
        elif isinstance(value, (tuple, list, dict)) and wants_grad(value.values() if type(value) is dict else value):
            return True
    return False


def _has_room(value):
    return isinstance(value, Tensor) and not value.is_meta


def _apart(value, rooms):
    """A value that shares no memory with these storages."""
    if isinstance(value, Tensor):
        return value.clone() if not value.is_meta and id(storage_of(value)) in rooms else value
    if isinstance(value, (list, tuple)):
        parts = [_apart(v, rooms) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: _apart(v, rooms) for key, v in value.items()}
    return value
