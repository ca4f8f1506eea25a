"""`export`: a module traced for declared sizes; `save` and `load`."""

import functools
import io
from contextlib import contextmanager

import tinygrad_ext as tg
from tinygrad_ext import graph as graphs
from tinygrad_ext import serialization
from tinygrad_ext.archive import files
from tinygrad_ext.autograd.modes import enable_grad, inference_mode
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.primitives import GuardFailed
from tinygrad_ext.graph.versions import refuse_python
from tinygrad_ext.jit._state import writing
from tinygrad_ext.jit.notes import check_notes
from tinygrad_ext.jit.saving import program_of
from tinygrad_ext.jit.script.script_module import ScriptModule
from tinygrad_ext.jit.tracing import trace
from tinygrad_ext.nn import Module
from tinygrad_ext.utils.nested import opened, restored

from .calls import Calls, calls_of, check_told
from .dynamic_shapes import Dim, Hint, ShapesCollection, Sum
from .program import ExportedProgram
from .sizes import Sizes

EXAMPLE = "export_example_inputs.safetensors"


class UserError(RuntimeError):
    """What was declared does not fit the program."""


@boundary
def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, **accepted):
    """An ExportedProgram of a Module, by running it once on examples.

    Arguments:
        mod: a Module; its training mode is that of the program. args: tuple of arguments. kwargs: dict of more by name.
        dynamic_shapes: the sizes that stay open, as a dict of an argument's name, or a tuple in the order of the
            arguments, of {dimension: Dim} or a list with a Dim or None for each dimension; in tuples, lists and dicts
            like the argument's; or a ShapesCollection. All other sizes are those of the examples.
        strict and further keywords of PyTorch are accepted.

    Raises UserError where the program decides by a size that is declared open, with its line, and GraphError for what
    no graph can hold, such as a Function that leaves the library.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.export import Dim, export
    >>> exported = export(tg.nn.ReLU(), (tg.ones(3, 2),), dynamic_shapes=({0: Dim("batch")},))
    >>> exported.module()(tg.ones(5, 2)).shape
    torch.Size([5, 2])
    """
    if not isinstance(mod, Module):
        raise ValueError(
            f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}. A function is traced by jit.trace"
        )
    if issubclass(type(mod), ScriptModule):
        raise ValueError("export() takes a module of Python, not one that is compiled: jit.save keeps that one")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    example, kwargs = (args, dict(kwargs or {})), dict(kwargs or {})
    rows = {key: opened(value) for key, value in [*enumerate(args), *kwargs.items()]}
    args, kwargs = tuple([rows[i][0] for i in range(len(args))]), {name: rows[name][0] for name in kwargs}
    specs = {key: spec for key, (_, spec) in rows.items() if spec is not None}
    with _closed(mod, specs), Calls(mod) as calls, writing("export"), inference_mode(False), enable_grad():
        traced = trace(mod, args, check_trace=False, example_kwarg_inputs=kwargs)
        captured = traced._runner.latest
        refuse_python(captured.graph)
        program = program_of(traced)  # of the module with what notes its calls, for which it was captured
    if isinstance(dynamic_shapes, ShapesCollection):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    names = [v.name for v in captured.graph.inputs]
    arguments = list(zip(names, (*args, *(kwargs or {}).values())))
    declared = _Declared(arguments, dynamic_shapes)

    def run(given):
        row = [value for _, value in given]
        return captured.graph.execute(row, [holder.read(row) for holder in captured.holders])

    sizes = declared.tried(run)
    program.notes["forward"]["calls"] = calls.told(captured.graph)
    program.notes[""]["export"] = {"sizes": sizes.told(), "tied": _tied(mod)}
    specs = {names[key] if type(key) is int else key: spec for key, spec in specs.items()}
    return ExportedProgram(program, names, sizes, example, captured.nested, specs)


@contextmanager
def _closed(mod, specs):
    """Let a module take arguments that `opened` gave. specs: place or name of those -> spec."""
    if not specs:
        yield
        return
    before, forward = vars(mod).get("forward"), mod.forward

    @functools.wraps(forward)
    def closing(*args, **kwargs):
        args = [restored(specs.get(i), value) for i, value in enumerate(args)]
        return forward(*args, **{name: restored(specs.get(name), value) for name, value in kwargs.items()})

    mod.__dict__["forward"] = closing
    try:
        yield
    finally:
        del mod.__dict__["forward"]
        if before is not None:
            mod.__dict__["forward"] = before


def _tied(mod):
    """[further name, name] of parameters and buffers that have several."""
    rows = [*mod.named_parameters(remove_duplicate=False), *mod.named_buffers(remove_duplicate=False)]
    first = {id(tensor): name for name, tensor in reversed(rows)}
    return [[name, first[id(tensor)]] for name, tensor in rows if first[id(tensor)] != name]


class _Declared:
    """What dynamic_shapes says of each dimension."""

    def __init__(self, arguments, dynamic_shapes):
        self.arguments, self.of, self.dims = arguments, {}, {}
        names = [name for name, _ in arguments]
        if isinstance(dynamic_shapes, dict):
            if set(dynamic_shapes) - set(names):
                raise UserError(
                    f"dynamic_shapes has the keys {list(dynamic_shapes)}, but the arguments are {names}. Name those, "
                    "or give a tuple in their order"
                )
            rows = [dynamic_shapes.get(name) for name in names]
        elif dynamic_shapes is None:
            rows = [None] * len(names)
        elif isinstance(dynamic_shapes, (tuple, list)) and len(dynamic_shapes) == len(names):
            rows = dynamic_shapes
        else:
            raise UserError(f"dynamic_shapes must be a dict, or a tuple of {len(names)}, got {dynamic_shapes!r}")
        for (name, value), row in zip(arguments, rows):
            self.read(value, row, name)

    def read(self, tree, row, path):
        """Note what a row says of a part of an argument."""
        if isinstance(tree, Tensor):
            self.of[path] = self.sizes_of(tree, row, path)
        elif isinstance(tree, (tuple, list, dict)):
            keys = list(tree) if isinstance(tree, dict) else range(len(tree))
            if row is not None and (type(row) is dict) != isinstance(tree, dict):
                raise UserError(f"dynamic_shapes of {path} must be built like it, a {type(tree).__name__}, got {row!r}")
            if row is not None and not isinstance(tree, dict) and len(row) != len(tree):
                raise UserError(f"dynamic_shapes of {path} has {len(row)} parts, but the argument has {len(tree)}")
            for key in keys:
                part = None if row is None else row.get(key) if isinstance(row, dict) else row[key]
                self.read(tree[key], part, f"{path}[{key!r}]")
        elif row is not None:
            raise UserError(f"dynamic_shapes of {path} must be None, for it is no tensor but {type(tree).__name__}")

    def sizes_of(self, tensor, row, path):
        shape = list(map(int, tensor.shape))
        if row is not None and not isinstance(row, (dict, tuple, list)):
            raise UserError(f"dynamic_shapes of {path} must be a dict or a list of dimensions, got {row!r}")
        entries = dict(row) if isinstance(row, dict) else dict(enumerate(row or ()))
        if not isinstance(row, dict) and row and len(row) != len(shape):
            raise UserError(f"dynamic_shapes of {path} tells {len(row)} dimensions, but it has {len(shape)}")
        for dim, entry in entries.items():
            if type(dim) is not int or not 0 <= dim < len(shape):
                raise UserError(f"dynamic_shapes of {path} names dimension {dim!r}, but it has {len(shape)}")
            shape[dim] = self.size_of(shape[dim], entry, f"{path}.shape[{dim}]")
        return shape

    def size_of(self, size, entry, place):
        if entry is None or entry is Dim.STATIC:
            return size
        if isinstance(entry, Hint):
            self.dims[place] = Dim("any"), size, entry is Dim.AUTO
            return [place, 1, 0]
        if isinstance(entry, Sum):
            count, rest = divmod(size - entry.offset, entry.scale)
            name, low, high = entry.root.__name__, entry.root.min, entry.root.max
            if rest or not low <= count <= high:
                raise UserError(f"{place} is {size} in the example, which is no {entry!r} with {entry.root!r}")
            _, other, _ = self.dims.setdefault(name, (entry.root, count, False))
            if other != count:
                raise UserError(f"{place} makes {name} {count} in the example, but another dimension makes it {other}")
            return [name, entry.scale, entry.offset]
        if entry != size or type(entry) is not int:
            raise UserError(f"{place} is {size} in the example, but dynamic_shapes says {entry!r}")
        return size

    # ---- trying it ------------------------------------------------------------------------------------------------

    def tried(self, run):
        """The Sizes, after the graph ran at other ones. UserError where it cannot; a size of Dim.AUTO is fixed then."""
        for name, (dim, size, is_auto) in list(self.dims.items()):
            for other in _others(dim, size):
                try:
                    run([(n, self.resized(value, n, name, other)) for n, value in self.arguments])
                except (GuardFailed, RuntimeError, IndexError, ValueError) as error:
                    if not is_auto:
                        raise UserError(
                            f"{name} was declared open ({', '.join(self.places(name))}), but the program holds for "
                            f"{size} and not for {other}: {error}"
                        ) from None
                    self.fix(name, size)
                    break
        hints = [name for name, (dim, _, _) in self.dims.items() if dim.__name__ != name]
        of = {p: [None if type(s) is list and s[0] in hints else s for s in sizes] for p, sizes in self.of.items()}
        return Sizes(of, {n: (dim.min, dim.max) for n, (dim, _, _) in self.dims.items() if n not in hints})

    def places(self, name):
        """The dimensions that are told by a name."""
        rows = [(path, d, s) for path, sizes in self.of.items() for d, s in enumerate(sizes)]
        return [f"{path}.shape[{d}]" for path, d, s in rows if type(s) is list and s[0] == name]

    def fix(self, name, size):
        for sizes in self.of.values():
            sizes[:] = [size if type(s) is list and s[0] == name else s for s in sizes]
        del self.dims[name]

    def resized(self, tree, path, name, count):
        """An argument with the dimensions of a name as `count` makes them; elements are repeated."""
        if isinstance(tree, Tensor):
            tree = tree.detach()
            for d, size in enumerate(self.of[path]):
                if type(size) is list and size[0] == name:
                    wanted = size[1] * count + size[2]
                    places = [i % max(tree.shape[d], 1) for i in range(wanted)]
                    tree = (
                        tree.index_select(d, tg.tensor(places, dtype=tg.int64))
                        if tree.shape[d]
                        else _filled(tree, d, wanted)
                    )
            return tree
        if isinstance(tree, (tuple, list)):
            parts = [self.resized(part, f"{path}[{i}]", name, count) for i, part in enumerate(tree)]
            return type(tree)._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
        if isinstance(tree, dict):
            return {key: self.resized(part, f"{path}[{key!r}]", name, count) for key, part in tree.items()}
        return tree


def _filled(tensor, dim, size):
    return tensor.new_zeros([size if d == dim else n for d, n in enumerate(tensor.shape)])


def _others(dim, size):
    """Sizes to try besides the example's: the smallest, and two larger ones."""
    low = dim.min if dim.min > 0 else min(2, dim.max)
    return [n for n in dict.fromkeys((low, min(size + 1, dim.max), min(size + 7, dim.max))) if n != size]


# ---- files ---------------------------------------------------------------------------------------------------------


@boundary
def save(ep, f, *, extra_files=None, **accepted):
    """Write an ExportedProgram to a path or a file open for binary writing.

    extra_files: dict of a name -> bytes or text, which stand in the file as they are. The file is an archive of graphs:
    `jit.load` takes it too, without what was declared of sizes.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"save(): argument 'ep' must be an ExportedProgram, not {type(ep).__name__}")
    ep.refuse_changes("save()")
    room = io.BytesIO()
    if ep.example_inputs is not None:
        row = ep.example
        serialization.save((tuple(row[: ep.placed]), dict(zip(ep._names[ep.placed :], row[ep.placed :]))), room)
    graphs.save(ep._program, f, {**(extra_files or {}), EXAMPLE: room.getvalue()})


@boundary
def load(f, *, extra_files=None, **accepted):
    """The ExportedProgram of a file. Nothing of it is run.

    extra_files: a dict whose keys are names of extra files; their bytes become its values. Raises RuntimeError for a
    damaged file, and for one of another kind.
    """
    wanted = {EXAMPLE: None, **(extra_files or {})}
    name = f if isinstance(f, str) else getattr(f, "name", "the file")
    try:
        program = graphs.load(f, extra_files=wanted)
    except RuntimeError as error:
        if f"no extra file '{EXAMPLE}'" in str(error):
            raise RuntimeError(f"load: {name} holds no exported program; jit.load reads what jit.save wrote") from None
        raise
    example = wanted.pop(EXAMPLE)
    if extra_files is not None:
        extra_files.update(wanted)
    try:
        check_notes(program)
        told = program.notes[""]["export"]
        names = [v.name for v in program.methods["forward"].inputs]
        sizes = Sizes.of_told(told["sizes"])
        for further, first in told.get("tied", ()):
            if type(further) is not str or first not in {
                *program.notes[""]["parameters"],
                *program.notes[""]["buffers"],
            }:
                raise ValueError("its tied names are not as export() writes them")
        if "calls" in program.notes["forward"]:
            check_told(program.notes["forward"]["calls"], {path for path, _ in program.notes[""]["modules"]})
            calls_of(program.methods["forward"], program.notes["forward"]["calls"])
        given = serialization.load(io.BytesIO(example)) if example else None
    except files.DAMAGES as error:
        raise RuntimeError(f"load: {name} is damaged; manifest.json: {files.said(error)}") from None
    return ExportedProgram(program, names, sizes, given)
