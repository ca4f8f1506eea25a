"""`unflatten`: an exported program as modules again, each of which runs its own part of the graph.

A part is run node by node, so what stands in its place may be any module. What the program writes to buffers is
written when the outermost call is done, so everything reads what was there before, as the graph has it.
"""

from contextvars import ContextVar

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.fx.experimental.writer import leaves_of
from tinygrad_ext.graph import interpret
from tinygrad_ext.graph.ir import Block, used_values
from tinygrad_ext.graph.types import GENERATOR
from tinygrad_ext.graph.values import read
from tinygrad_ext.nn import Module
from tinygrad_ext.utils.nested import restored

from .calls import Call, calls_of
from .module import bound
from .program import ExportedProgram

_running = ContextVar("running")


class _Running:
    """A call of an unflattened module. Attributes: turn: part -> the Call that it does next; written: (tensor, new)."""

    def __init__(self):
        self.turn, self.written = {}, []

    def finish(self):
        with no_grad():
            for tensor, new in self.written:
                tensor.copy_(new)


class InterpreterModule(Module):
    """A submodule of an unflattened program, over the program's parameters and buffers.

    It takes what its part of the graph reads of other parts, in that order, and gives what others read of it: one value
    alone, several as a tuple.
    """

    def __init__(self, path):
        super().__init__()
        self.__dict__.update(
            _calls=[], _generator=None, _places={}, _constants={}, _path=path, _name=path or "the program"
        )

    def forward(self, *args):
        running = _running.get(None)
        if running is not None:
            return self._run(running.turn.pop(self, None) or self._first(), args)
        running = _Running()
        token = _running.set(running)
        try:
            result = self._run(self._first(), args)
        finally:
            _running.reset(token)
        running.finish()
        return result

    def _first(self):
        if not self._calls:
            raise RuntimeError(f"{self._name}: the program has no op of this module, so there is nothing to run")
        return self._calls[0]

    def _run(self, call, args):
        inputs = [v for v in call.inputs if v.type != GENERATOR]
        if len(args) != len(inputs):
            raise TypeError(
                f"{self._name}: this part of the program takes {len(inputs)} values, got {len(args)}; it takes what it "
                "reads of other parts, in that order"
            )
        frame = dict(zip(map(id, inputs), args))
        frame.update((id(s.value), self._value(s)) for s in call.state if s.kind != "generator")
        results = self._outputs(call, self._done(call, frame))
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def _done(self, call, frame):
        """The frame after the items of a call."""
        for item in call.items:
            if isinstance(item, Call):
                self._call(item, frame)
                continue
            live = [frame.setdefault(id(v), self._generator) for v in used_values(item) if v.type == GENERATOR]
            interpret.run_block(Block((), [item]), frame)
            for v in item.outputs:
                if live and isinstance(frame[id(v)], Generator):
                    live[0].set_state(frame[id(v)].get_state())
                    frame[id(v)] = live[0]
        running = _running.get()
        for s in call.written:
            if s.kind != "generator":
                running.written.append((self._found(s.name), read(s.new, frame)))
        return frame

    def _outputs(self, call, frame):
        return [frame[id(v)] for v in call.outputs if v.type != GENERATOR]

    def _call(self, call, frame):
        """Run a submodule, whichever stands there now."""
        part = self.get_submodule(call.path[len(self._path) :].lstrip("."))
        if isinstance(part, InterpreterModule):
            _running.get().turn[part] = call
        result = part(*[frame[id(v)] for v in call.inputs if v.type != GENERATOR])
        outputs = [v for v in call.outputs if v.type != GENERATOR]
        row = [result] if len(outputs) == 1 and isinstance(result, Tensor) else leaves_of(result)
        if len(row) != len(outputs):
            raise RuntimeError(
                f"{call.path} gave {len(row)} values, but the program reads {len(outputs)} of it: what takes the place "
                "of a part has to give as many"
            )
        frame.update(zip(map(id, outputs), row))

    def _value(self, state):
        value = self._found(state.name)
        return value.clone() if state.written and isinstance(value, Tensor) else value

    def _found(self, name):
        """The value of a state as it is now."""
        if name in self._constants:
            return self._constants[name]
        value = self
        for part in self._places[name].split("."):
            value = getattr(value, part)
        return value

    def _know(self, states, program):
        """Note where the values of states are found: attributes of this module, or of what is below it."""
        for s in states:
            value = program.state[s.name]
            if s.kind not in ("parameter", "buffer"):
                self._constants[s.name] = value
            elif _is_below(s.name, self._path):
                self._places[s.name] = s.name[len(self._path) :].lstrip(".")
            else:  # it is another module's too
                name = s.name.rpartition(".")[2]
                while hasattr(self, name):
                    name += "_"
                setattr(self, name, value) if s.kind == "parameter" else self.register_buffer(name, value)
                self._places[s.name] = name

    def extra_repr(self):
        return "" if self._calls else "no op"


def _is_below(name, path):
    return not path or name.startswith(f"{path}.")


class UnflattenedModule(InterpreterModule):
    """What `unflatten` gives."""

    def __init__(self, program):
        super().__init__("")
        inner, graph = program._program, program.captured
        notes = inner.notes
        self.__dict__.update(
            _asked=(program._names, program.placed, program.check), _output=graph.outputs[0], _of=program
        )
        _refuse(graph)
        for path, mode in notes[""]["modules"]:
            self._part(path).training = mode
        for name, value in program.named_parameters():
            path, _, last = name.rpartition(".")
            self._part(path).register_parameter(last, value)
        for name, value in program.named_buffers():
            path, _, last = name.rpartition(".")
            self._part(path).register_buffer(last, value, persistent=name not in notes[""].get("passing", []))
        for path, first in notes["forward"]["calls"]["shared"]:
            folder, _, last = path.rpartition(".")
            self._part(folder).add_module(last, self._part(first))
        generator = next((inner.state[s.name] for s in graph.state if s.kind == "generator"), None)
        self._take(calls_of(graph, notes["forward"]["calls"]), inner, generator)

    def _part(self, path):
        found = self
        for name in path.split(".") if path else ():
            if name not in found._modules:
                found.add_module(name, InterpreterModule(f"{found._path}.{name}".lstrip(".")))
            found = found._modules[name]
        return found

    def _take(self, call, program, generator):
        part = self._part(call.path)
        part._calls.append(call)
        part.__dict__["_generator"] = generator
        part._know([*call.state, *call.written], program)
        for item in call.items:
            if isinstance(item, Call):
                self._take(item, program, generator)

    def forward(self, *args, **kwargs):
        names, placed, check = self._asked
        given = self._of.plain(bound(names, placed, args, kwargs))
        check(given)
        given = dict(given)
        return restored(self._of._nested, super().forward(*[given[name] for name in names]))

    def _outputs(self, call, frame):
        return [read(self._output, frame)]


@boundary
def unflatten(module, flat_args_adapter=None):
    """A Module with the submodules that the exported one had, over the same parameters and buffers.

    Each submodule runs its part of the graph: it can be looked at, called alone, hooked, and replaced by another module
    that takes and gives as many values. Raises RuntimeError for a program from a file without calls of modules, and for
    state that is neither parameter nor buffer nor generator, such as a count in Python.

    >>> import tinygrad_ext as tg
    >>> program = tg.export.export(tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.ReLU()), (tg.ones(2),))
    >>> net = tg.export.unflatten(program)
    >>> setattr(net, "1", tg.nn.Sigmoid())
    >>> bool((net(tg.ones(2)) == net.get_submodule("0")(tg.ones(2)).sigmoid()).all())
    True
    """
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten(): argument 'module' must be an ExportedProgram, not {type(module).__name__}")
    module.refuse_changes("unflatten()")
    if flat_args_adapter is not None:
        raise NotImplementedError("unflatten(): flat_args_adapter is not there; change the arguments before the call")
    if "calls" not in module._program.notes["forward"]:
        raise RuntimeError("unflatten(): the program does not tell calls of modules: export it again")
    return UnflattenedModule(module)


def _refuse(graph):
    """RuntimeError for state that no module of an unflattened program could hold."""
    other = [s for s in graph.state if s.kind not in ("parameter", "buffer", "constant", "generator")]
    other += [s for s in graph.state if s.kind == "generator"][1:]
    if other:
        raise RuntimeError(f"unflatten(): the program has the {other[0].kind} '{other[0].name}' as its state")
