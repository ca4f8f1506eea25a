"""`save` and `load`: traced and scripted programs as one file, which runs without the Python that it was made of."""

import contextlib

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import archive
from tinygrad_ext.nn import Module, Parameter


def save(m, f, _extra_files=None):
    """Write what `trace` or `script` gave to a path or a file open for writing; `load` reads it.

    The file holds the graphs, parameters, buffers and constants, and the extra files, a dict of a name -> bytes or
    text. Raises TypeError for what is no such program, RuntimeError where a graph holds a step of Python's.
    """
    program = getattr(type(m), "_program", None)
    if program is None:
        raise TypeError(f"jit.save(): expected what jit.trace or jit.script gave, got {type(m).__name__}")
    archive.save(program(m), f, _extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False, *, verify=False):
    """The program of a file, as a module: its methods, parameters and buffers. Nothing of the file is run.

    Arguments as of `graph.load`. Errors that a graph raises name the line of the program that it was made of.
    """
    return LoadedModule(archive.load(f, map_location, verify, _extra_files))


class LoadedModule(Module):
    """A module of graphs whose Python is not here."""

    def __init__(self, program):
        super().__init__()
        object.__setattr__(self, "program", program)
        kinds = {s.name: s.kind for graph in program.methods.values() for s in graph.state}
        for name, value in program.state.items():
            if isinstance(value, Tensor) and kinds.get(name) in ("parameter", "buffer"):
                program.state[name] = _registered(self, name.split("."), kinds[name], value)

    @property
    def graph(self):
        """The graph of `forward`."""
        return self.program.methods["forward"]

    @property
    def code(self):
        """That graph as Python."""
        return self.graph.code

    def forward(self, *args, **kwargs):
        return self._run("forward", args, kwargs)

    def _program(self):
        return self.program

    def _run(self, name, args, kwargs):
        inputs = self.program.methods[name].inputs
        names = [v.name for v in inputs][len(args) :]
        if sorted(names) != sorted(kwargs) or len(args) > len(inputs):
            given = f"{len(args)} and {', '.join(kwargs)} by name" if kwargs else len(args)
            raise TypeError(
                f"{name}() takes {', '.join(v.name for v in inputs) or 'no arguments'}, but {given} were given"
            )
        return self.program.run(name, *args, *(kwargs[n] for n in names))

    def __getattr__(self, name):
        if name in self.__dict__.get("program", _Nothing).methods:
            return lambda *args, **kwargs: self._run(name, args, kwargs)
        return super().__getattr__(name)


class _Nothing:
    methods = ()


def _registered(module, path, kind, value):
    """Put a tensor where its name says; returns what stands there."""
    *parents, name = path
    for parent in parents:
        if parent not in module._modules:
            module.add_module(parent, Module())
        module = module._modules[parent]
    if kind == "parameter" and not isinstance(value, Parameter):
        value = Parameter(value.detach(), requires_grad=value.requires_grad)
    with contextlib.suppress(KeyError):  # a name that an attribute of Module has
        if kind == "parameter":
            module.register_parameter(name, value)
        else:
            module.register_buffer(name, value)
    return value
