"""Files with one thing wrong in their structure: numbers near 2**62, lengths, offsets, overlaps, nesting, cuts.

Good files of both formats are made from random objects and then changed where a change means something, by the
generator that the tests of the readers have; files of those tests are changed further. What a file gives is read and
written in every element, and may not be larger than the file.
"""

import functools
import io
import json
import time

from tinygrad_ext.core.data.storage import storage_facts

import tinygrad_ext as tg
from tests.helpers import hostile_archives as hostile
from tests.helpers import pickles
from tinygrad_ext.core.call import interop as core

from .case import Case, Fault, refused
from .operands import tensors, touch

BLOCK = 200
SLOW = 10.0  # seconds of processor for one file
LARGEST = 200_000  # bytes of the tests' files that are changed further
KINDS = {"Float": 4, "Double": 8, "Long": 8, "Char": 1, "Bool": 1, "Half": 2, "ComplexFloat": 8, "BFloat16": 2}


class Archive(Case):
    """The bytes of a file, loaded."""

    def __init__(self, rng):
        data = rng.choice((_saved, _saved, _pytorch, _pytorch, _refused))(rng)
        self.data = data if rng.random() < 0.05 else next(hostile.mutations(data, rng, 1))
        self.options = rng.choice(({}, {}, {"map_location": "meta"}, {"map_location": "cpu"}))

    def text(self):
        return (
            f"import io\n\nimport tinygrad_ext as tg\n\nprint(tg.load(io.BytesIO({self.data!r}), **{self.options}))\n"
        )

    def run(self):
        began = time.process_time()
        try:
            found = tg.load(io.BytesIO(self.data), **self.options)
        except Exception as error:
            found = None
            refused(error)
        if time.process_time() - began > SLOW:
            raise Fault(f"{len(self.data)} bytes took {time.process_time() - began:.1f} s")
        for t in tensors(found):
            if t.layout != tg.strided and t.numel() <= 1 << 20:
                t.to_dense()
        rooms = {id(core.storage_of(t)): core.storage_of(t) for t in tensors(found) if not t.is_meta}
        rooms.pop(id(None), None)  # of sparse tensors, which have none of their own
        held = sum(storage_facts(room)[1] for room in rooms.values())
        if held > 2 * len(self.data) + 4096:
            raise Fault(f"{len(self.data)} bytes gave tensors of {held}")
        touch(found)
        with tg.no_grad():
            for t in tensors(found):
                if t.numel() <= 1 << 20 and not t.is_meta and t.layout == tg.strided:
                    _write(t)
        return 1


def _write(t):
    try:
        t.detach().zero_()
    except RuntimeError as error:  # a window whose elements share memory, or memory that is read-only
        refused(error)


def _saved(rng):
    """What `save` writes of a small object with tensors of several dtypes, some of which share memory."""
    base = tg.arange(rng.choice((0, 1, 6, 24)), dtype=rng.choice((tg.float32, tg.float64, tg.int8, tg.int64)))
    base = base.reshape(2, -1) if base.numel() > 1 else base
    state = {"a": base, "b": base.t() if base.dim() == 2 else base, "c": [base[:1], (tg.ones(3), 1.5, None)]}
    if rng.random() < 0.5:
        state["p"] = tg.nn.Parameter(tg.zeros(2, 2))
    if rng.random() < 0.3:
        state["z"] = tg.ones(3, dtype=tg.complex64)
    if rng.random() < 0.2:
        state["m"] = tg.empty(3, device="meta")
    if rng.random() < 0.3:
        state["s"] = _sparse(rng)
    if rng.random() < 0.3:
        state["c"][0].told = [1, {"a": base}]
    file = io.BytesIO()
    if rng.random() < 0.3:
        tg.save(state, file, format="torch")
        return file.getvalue()
    tg.save(state, file)
    data = file.getvalue()
    length = int.from_bytes(data[:8], "little")
    header = _sorted(json.loads(data[8 : 8 + length]))
    if rng.random() < 0.2:
        header.pop("__metadata__")
    return hostile.safetensors(header, data[8 + length :])


def _sparse(rng):
    """A small tensor of each of the sparse layouts."""
    places = [[rng.randrange(3) for _ in range(4)] for _ in range(2)]
    made = tg.sparse_coo_tensor(places, tg.arange(4.0), (3, 3))
    return rng.choice((made, made.coalesce(), made.to_sparse_csr(), made.to_sparse_csc()))


def _sorted(tree):
    """Keys in one order: safetensors writes them in another each time, and a case has to be the same again."""
    return {k: _sorted(tree[k]) for k in sorted(tree)} if isinstance(tree, dict) else tree


def _pytorch(rng):
    """A dict of tensors as torch.save writes it."""
    rebuild, hooks = pickles.Name("torch._utils", "_rebuild_tensor_v2"), pickles.Name("collections", "OrderedDict")
    entries, state = {}, {}
    for key in map(str, range(rng.choice((1, 1, 2, 3)))):
        kind, size = rng.choice(list(KINDS)), rng.choice((0, 16, 64, 96))
        count = size // KINDS[kind]
        shape = rng.choice(((count,), (2, count // 2), (), (0, count), (1, 1, count)))
        part = pickles.Reference(("storage", pickles.Name("torch", f"{kind}Storage"), key, "cpu", count))
        made = pickles.Call(rebuild, part, 0, shape, tuple(core.row_strides(shape)), False, pickles.Call(hooks))
        if rng.random() < 0.2:
            made = pickles.Call(
                pickles.Name("torch._utils", "_rebuild_parameter"), made, rng.random() < 0.5, pickles.Call(hooks)
            )
        state[f"t{key}"], entries[f"archive/data/{key}"] = made, rng.randbytes(size)
    state["rest"] = rng.choice((None, 3, 2**70, "x", (1, (2, [3])), {"a": 1.5}, pickles.Call(hooks)))
    return hostile.zipped({"archive/data.pkl": hostile.pickled(state), "archive/version": b"3\n", **entries})


def _refused(rng):
    """One of the files that the tests of the readers want refused."""
    return rng.choice(_hostile())


@functools.cache
def _hostile():
    return [data for _, data in hostile.archives() if len(data) <= LARGEST]


def case(rng):
    """A random file."""
    return Archive(rng)
