"""Archives of graphs: a program in one file, which is read without running anything.

A zip whose entries are stored and aligned:

    manifest.json           format, methods, ops with version and schema, who brought them, examples, extra files
    graphs/<method>.txt     a graph as `str` prints it
    weights.safetensors     the state, by name, as `tinygrad_ext.save` writes a dict
    examples.safetensors    recorded inputs and outputs, which `load(verify=True)` compares with
    extra/<name>            anything

Why it is so stands in docs/decisions/0019-graph-archives.md. Nothing in the file is believed: sizes and places are
judged by the room `archive`, graphs by `check`, and what it may cost is charged to a budget.
"""

import contextlib
import io
import json
import zipfile

from tinygrad_ext.archive import files
from tinygrad_ext.archive.budget import MOST_OBJECTS, Budget
from tinygrad_ext.archive.object_tree import read_json
from tinygrad_ext.archive.replace import write_to
from tinygrad_ext.archive.zip_entries import Entries, write_entry
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.random import Generator, default_generator
from tinygrad_ext.core.data.tensor import Tensor

from . import examples as recorded
from . import held
from .graph import Graph
from .manifest import checked, extra_name, manifest_of, method_name, signature_told
from .program import DEFAULT, Program
from .versions import Unfit, bring_up, refuse_python, stamp

MANIFEST, WEIGHTS, EXAMPLES = "manifest.json", "weights.safetensors", "examples.safetensors"


# ---- save ----------------------------------------------------------------------------------------------------------


@boundary
def save(program, f, extra_files=None, examples=None):
    """Write a Program to a path or a file open for binary writing.

    Args:
        program: its graphs are checked first; its state is tensors, numbers, text, None and generators. The process's
            own generator is not written: who loads the program has one.
        extra_files: dict of a name -> bytes or text, which stand in the archive as they are.
        examples: dict of a method -> list of tuples of inputs. The method is run on each, on the state as it is saved
            and with a new generator, and what it gives is kept for `load(verify=True)`.

    A file at the path is replaced only when all is on disk. Raises GraphError for a graph that breaks a rule, TypeError
    for state or examples that no file can hold.
    """
    if not isinstance(program, Program):
        raise TypeError(f"save(): argument 'program' must be a Program, not {type(program).__name__}")
    methods, ops = {}, {}
    for name, graph in program.methods.items():
        method_name(name)
        methods[name] = refuse_python(graph.check().copy())
        ops.update(stamp(methods[name]))
    extra = {extra_name(name): _bytes(name, data) for name, data in (extra_files or {}).items()}
    told = recorded.record(program, examples or {})
    manifest = manifest_of(program, methods, ops, told, extra)
    state = {name: _held(value) for name, value in program.state.items() if value is not default_generator}
    state = held.told(state)

    def write(file):
        with _buffered(file) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            write_entry(archive, MANIFEST, json.dumps(manifest, indent=1, allow_nan=False).encode())
            for name, graph in methods.items():
                write_entry(archive, f"graphs/{name}.txt", str(graph).encode("utf-8", "surrogatepass"))
            write_entry(archive, WEIGHTS, lambda entry: files.save(state, entry))
            if told:
                write_entry(archive, EXAMPLES, lambda entry: files.save(told, entry))
            for name, data in extra.items():
                write_entry(archive, f"extra/{name}", data)

    write_to(f, write)


def _held(value):
    return value.get_state() if isinstance(value, Generator) else value


def _bytes(name, data):
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"save(): extra file '{name}' must be bytes or str, not {type(data).__name__}")


@contextlib.contextmanager
def _buffered(file):
    """The file, through a buffer where it may write less than it is given."""
    if not isinstance(file, io.RawIOBase):
        yield file
        return
    target = io.BufferedWriter(file)
    yield target
    target.detach()


# ---- load ----------------------------------------------------------------------------------------------------------


@boundary
def load(f, map_location=None, verify=False, extra_files=None, *, mmap=False, max_objects=MOST_OBJECTS):
    """The Program of an archive. Nothing of the file is run.

    Args:
        f: path, or a file open for binary reading. map_location: "cpu" or "meta", or None: where the tensors were.
        verify: run the recorded examples and compare every bit. That runs the graphs: for files that you trust.
        extra_files: a dict whose keys are names of extra files; their bytes become its values.
        mmap: True leaves the weights in the file, see `tinygrad_ext.load`.
        max_objects: the most containers, numbers, values and texts that the file may hold.

    Raises RuntimeError for a damaged or foreign file, and for one whose ops are not here or are newer than what is
    here: the message names the file, the entry, and the pip command.
    """
    onto = files.target(map_location)
    if verify and onto is not None and onto.type == "meta":
        raise ValueError("load(): verify=True needs numbers, which map_location='meta' leaves out")
    with files.opened(f, mmap) as (source, name):
        archive = _Archive(source, name, max_objects)
        program = archive.program(onto)
        for wanted in extra_files or ():
            extra_files[wanted] = archive.extra(wanted)
        if verify:
            recorded.verify(program, archive.examples(onto), name)
    return program


@boundary
def info(f, *, max_objects=MOST_OBJECTS):
    """What an archive holds, as a dict that `print` and JSON take; no weights are read and no plugin is loaded.

    Its keys: format, made_by, methods (name -> signature, nodes, examples), state (name -> dtype and shape, or the
    value), ops (name -> version, owner), owners (name -> the pip command), extra_files (name -> bytes), bytes.
    """
    with files.opened(f) as (source, name):
        archive = _Archive(source, name, max_objects)
        manifest = archive.manifest
        methods = {
            method: {
                "signature": signature_told(graph),
                "nodes": sum(1 for _ in graph.walk()),
                "examples": manifest["examples"].get(method, 0),
            }
            for method, graph in archive.graphs().items()
        }
        return {
            "format": manifest["format"],
            "made_by": manifest["made_by"],
            "methods": methods,
            "state": archive.state_told(),
            "ops": {op: {"version": row["version"], "owner": row["owner"]} for op, row in manifest["ops"].items()},
            "owners": manifest["owners"],
            "extra_files": {n: archive.entries.size(f"extra/{n}") for n in manifest["extra_files"]},
            "bytes": source.size,
        }


class _Archive:
    """An open archive whose table of contents and manifest are in order."""

    def __init__(self, source, name, max_objects):
        self.name, self.budget = name, Budget(max_objects)
        with self.reading("the table of contents"):
            try:
                self.entries = Entries(source, self.budget)
            except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
                raise ValueError(str(error)) from None
        with self.reading(MANIFEST):
            if MANIFEST not in self.entries.names():
                raise ValueError(f"it has none{_other_kind(self.entries.names())}")
            self.manifest = checked(read_json(self.entries.bytes(MANIFEST).decode(), self.budget))
            wanted = {MANIFEST, WEIGHTS, *(f"graphs/{m}.txt" for m in self.manifest["methods"])}
            wanted |= {f"extra/{n}" for n in self.manifest["extra_files"]}
            wanted |= {EXAMPLES} if self.manifest["examples"] else set()
            if wanted != set(self.entries.names()):
                odd = sorted(wanted ^ set(self.entries.names()))[0]
                raise ValueError(f"the entry {odd[:200]!r} is told by it or is there, but not both")

    @contextlib.contextmanager
    def reading(self, entry):
        """What goes wrong inside is told with the names of file and entry."""
        try:
            yield
        except Unfit as error:
            raise RuntimeError(f"load: {self.name}, {entry}: {error}") from None
        except (*files.DAMAGES, LookupError) as error:
            why = files.said(error).removeprefix("load: ")
            raise RuntimeError(f"load: {self.name} is damaged or no archive of graphs; {entry}: {why}") from None

    def graphs(self):
        """The graphs as they were saved."""
        found = {}
        for method in self.manifest["methods"]:
            with self.reading(f"graphs/{method}.txt"):
                text = self.entries.bytes(f"graphs/{method}.txt").decode("utf-8", "surrogatepass")
                self.budget.spend(text.count("%") + text.count(",") + text.count("\n"))
                found[method] = Graph.parse(text)
        return found

    def program(self, onto):
        graphs = self.graphs()
        for method, graph in graphs.items():
            with self.reading(f"graphs/{method}.txt"):
                bring_up(graph, self.manifest["ops"])
                refuse_python(graph.check())
        with self.reading(WEIGHTS):
            state = files.read_safetensors(self.entries.source(WEIGHTS), "it", onto, self.budget)
            if type(state) is not dict or not all(type(name) is str for name in state):
                raise ValueError("it holds no dict of names")
            state = held.made(state)
            for name in self.manifest["generators"]:
                state[name] = _generator(name, state.get(name))
            state.setdefault(DEFAULT, default_generator)
            program = Program(graphs, state, self.manifest["notes"])
            for graph in graphs.values():
                recorded.fits(graph, program.state_of(graph))
        return program

    def extra(self, name):
        if name not in self.manifest["extra_files"]:
            known = ", ".join(self.manifest["extra_files"]) or "none"
            raise RuntimeError(f"load: {self.name} has no extra file '{name}'; it has {known}")
        return self.entries.bytes(f"extra/{name}")

    def examples(self, onto):
        if not self.manifest["examples"]:
            raise RuntimeError(f"load: {self.name} has no examples to verify: save it with examples=")
        with self.reading(EXAMPLES):
            found = files.read_safetensors(self.entries.source(EXAMPLES), "it", onto, self.budget)
            return recorded.checked(found, self.manifest["methods"])

    def state_told(self):
        """The state by name: a word for a tensor, else the value."""
        with self.reading(WEIGHTS):
            return held.named(files.told(self.entries.source(WEIGHTS), self.budget))


def _generator(name, given):
    if not isinstance(given, Tensor):
        raise ValueError(f"it has no state of the generator '{name}'")
    return Generator() if given.is_meta else Generator().set_state(given)


def _other_kind(names):
    """What a zip of others is, by the names of its entries."""
    if any(name.endswith("/constants.pkl") for name in names):
        return ": it is a TorchScript archive, whose code only PyTorch runs; load its state_dict() and script it here"
    if any(name.endswith("/data.pkl") for name in names):
        return ": it is a file of torch.save, which tinygrad_ext.load reads"
    return ""
