"""Archives of graphs with one thing wrong: bytes, the zip, the manifest, the text of a graph, the weights' header.

Good archives are changed by the generator that the tests of the reader have. What is read is a program whose graphs are
whole and whose state can be read in every element; it takes no more memory than the file, and is run by nobody.
"""

import functools
import io
import time
import tracemalloc

from tinygrad_ext.core.data.storage import storage_facts

from tests.helpers import hostile_graphs as hostile
from tinygrad_ext import jit
from tinygrad_ext.core.call import interop as core
from tinygrad_ext.graph import Graph, archive

from .case import Case, Fault, refused
from .operands import tensors, touch

BLOCK = 200
SLOW = 5.0  # seconds of processor for one file
ROOM = 4_000_000  # bytes of Python objects, besides 200 for each of the file's


class GraphArchive(Case):
    """The bytes of a file, loaded."""

    def __init__(self, rng):
        data = rng.choice(_good())
        self.data = data if rng.random() < 0.02 else next(hostile.mutations(data, rng, 1))
        self.watch = rng.random() < 0.05  # tracing memory is slow
        self.options = rng.choice(({}, {}, {"map_location": "meta"}, {"extra_files": {"notes/a.txt": ""}}))

    def text(self):
        return f"import io\n\nfrom tinygrad_ext import graph\n\nprint(graph.load(io.BytesIO({self.data!r})))\n"

    def run(self):
        began = time.process_time()
        if self.watch:
            tracemalloc.start()
        try:
            found = self._load()
            if self.watch and tracemalloc.get_traced_memory()[1] > ROOM + 200 * len(self.data):
                raise Fault(f"{len(self.data)} bytes took {tracemalloc.get_traced_memory()[1]} of Python's")
        finally:
            if self.watch:
                tracemalloc.stop()
        if time.process_time() - began > SLOW:
            raise Fault(f"{len(self.data)} bytes took {time.process_time() - began:.1f} s")
        if found is not None:
            _whole(found, len(self.data))
        return 3

    def _load(self):
        try:
            jit.load(io.BytesIO(self.data))
        except Exception as error:
            _refused(error)
        try:
            archive.info(io.BytesIO(self.data))
        except Exception as error:
            _refused(error)
        try:
            return archive.load(io.BytesIO(self.data), **self.options)
        except Exception as error:
            _refused(error)


def _refused(error):
    refused(error)
    if not isinstance(error, RuntimeError) or not str(error).startswith("load: "):
        raise Fault(f"{type(error).__name__} without the file's name: {error}") from error


def _whole(program, size):
    values = list(program.state.values())
    rooms = {id(core.storage_of(t)): core.storage_of(t) for t in tensors(values) if not t.is_meta}
    held = sum(storage_facts(room)[1] for room in rooms.values())
    if held > 2 * size + 4096:
        raise Fault(f"{size} bytes gave tensors of {held}")
    touch(values)
    for graph in program.methods.values():
        if Graph.parse(str(graph)) != graph:
            raise Fault("a graph that was read is not what its text says")
        compile(graph.code, "<code>", "exec")


@functools.cache
def _good():
    return [hostile.everything(), hostile.small(), hostile.traced(), hostile.scripted(), hostile.listed()]


def case(rng):
    """A random file."""
    return GraphArchive(rng)
