"""Files with one thing wrong in their structure: numbers near 2**62, lengths, offsets, overlaps, nesting, cuts.

Both formats are built from parts here, and a part is changed where it means something: flipped bytes alone seldom get
past the first check. What a file gives is read and written in every element, and may not be larger than the file.
"""

import contextlib
import io
import json
import struct
import time
import zipfile

from tinygrad_ext.core.storage import storage_facts

import tinygrad_ext as tg
from tinygrad_ext.core import interop as core

from . import pickles
from .case import Case, Fault, refused
from .operands import tensors, touch

BLOCK = 200
SLOW = 10.0  # seconds of processor for one file
NUMBERS = (0, 1, 2, 3, 4, 8, 16, 64, -1, -2, 255, 2**31, 2**32, 2**53, 2**60, 2**61, 2**62, 2**63 - 1, -(2**63), 2**63,
           2**64, 10**40, 1.5, 1e400, -0.0, None, True, "1", "", [], {}, [1], "\ud800", "F32", "BOOL", "float64",
           "complex64")  # fmt: skip


class Archive(Case):
    """The bytes of a file; subclasses make them."""

    def __init__(self, rng):
        self.data = _cut(rng, self.made(rng))
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
        rooms = {id(core.storage_of(t)): core.storage_of(t) for t in tensors(found) if not t.is_meta}
        held = sum(storage_facts(room)[1] for room in rooms.values())
        if held > 2 * len(self.data) + 4096:
            raise Fault(f"{len(self.data)} bytes gave tensors of {held}")
        touch(found)
        with tg.no_grad():
            for t in tensors(found):
                if t.numel() <= 1 << 20 and not t.is_meta:
                    _written(t)
        return 1


def _written(t):
    try:
        t.detach().zero_()
    except RuntimeError as error:  # a window whose elements share memory, or memory that is read-only
        refused(error)


class Safetensors(Archive):
    """What `save` writes, with values of its header or table exchanged."""

    def made(self, rng):
        file = io.BytesIO()
        tg.save(_state(rng), file)
        data = file.getvalue()
        length = int.from_bytes(data[:8], "little")
        header, body = _sorted(json.loads(data[8 : 8 + length])), data[8 + length :]
        if rng.random() < 0.2:
            header.pop("__metadata__", None)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 0))):
            with contextlib.suppress(TypeError, IndexError, KeyError, ValueError):  # the change before left no place
                _changed_header(rng, header)
        text = json.dumps(header).encode("utf-8", "surrogatepass")
        if rng.random() < 0.05:
            text = rng.choice((text + b" " * 1000, text[:-1], text * 2, b"[" * 5000, b"{}", b"", b'{"a":' * 3000))
        size = rng.choice(NUMBERS[:20]) if rng.random() < 0.05 else len(text)
        return struct.pack("<Q", size % 2**64) + text + body


class PyTorch(Archive):
    """A zip with a pickle as torch.save writes it, built from opcodes."""

    def made(self, rng):
        program, sizes = pickles.state(rng)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            kind = zipfile.ZIP_DEFLATED if rng.random() < 0.02 else zipfile.ZIP_STORED
            archive.writestr("archive/data.pkl", program, compress_type=kind)
            for key, size in sizes.items():
                archive.writestr(f"archive/data/{key}", rng.randbytes(size), compress_type=kind)
            for name in rng.sample(
                ("version", "byteorder", "constants.pkl", "data/0", "x/y", ".data/serialization_id"), 1
            ):
                if rng.random() < 0.3:
                    archive.writestr(f"archive/{name}", rng.choice((b"little", b"big", b"3", b"")))
        data = bytearray(file.getvalue())
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            _changed_directory(rng, data)
        return bytes(data)


def _sorted(tree):
    """Keys in one order: safetensors writes them in another each time, and a case has to be the same again."""
    return {k: _sorted(tree[k]) for k in sorted(tree)} if isinstance(tree, dict) else tree


def _state(rng):
    """A small object with tensors of several dtypes, some of which share memory."""
    base = tg.arange(rng.choice((0, 1, 6, 24)), dtype=rng.choice((tg.float32, tg.float64, tg.int8, tg.int64)))
    base = base.reshape(2, -1) if base.numel() > 1 else base
    state = {"a": base, "b": base.t() if base.dim() == 2 else base, "c": [base[:1], (tg.ones(3), 1.5, None)]}
    if rng.random() < 0.5:
        state["p"] = tg.nn.Parameter(tg.zeros(2, 2))
    if rng.random() < 0.3:
        state["z"] = tg.ones(3, dtype=tg.complex64)
    if rng.random() < 0.2:
        state["m"] = tg.empty(3, device="meta")
    return state


def _changed_header(rng, header):
    """One value exchanged, removed or doubled: of the header itself, or of one of the JSON texts in its metadata."""
    meta = header.get("__metadata__", {})
    inner = rng.choice([k for k in meta if k != "format"]) if meta and rng.random() < 0.75 else None
    tree = json.loads(meta[inner]) if inner else header
    paths = [p for p in _paths(tree) if p]
    if paths:
        path = rng.choice(paths)
        place = tree
        for key in path[:-1]:
            place = place[key]
        kind = rng.random()
        if kind < 0.7:
            place[path[-1]] = _near(rng, place[path[-1]])
        elif kind < 0.8:
            del place[path[-1]]
        elif kind < 0.9 and isinstance(place, list):
            place.insert(rng.randrange(len(place) + 1), rng.choice(NUMBERS))
        else:
            place[path[-1]] = _nested(rng, place[path[-1]])
    if inner:
        meta[inner] = json.dumps(tree)


def _paths(tree, path=()):
    yield path
    if isinstance(tree, dict):
        for k in tree:
            yield from _paths(tree[k], (*path, k))
    elif isinstance(tree, list):
        for i, v in enumerate(tree):
            yield from _paths(v, (*path, i))


def _near(rng, value):
    """Another value, for an integer perhaps one that wraps to it."""
    if type(value) is int and rng.random() < 0.3:
        return value + rng.choice((1, -1, 2**62, 2**63, 2**64, -(2**64), 2**61))
    if isinstance(value, list) and rng.random() < 0.5:
        return [rng.choice(NUMBERS[:21]) for _ in range(rng.choice((len(value), len(value), len(value) + 1, 70)))]
    return rng.choice(NUMBERS)


def _nested(rng, value):
    kind = rng.choice(("tuple", "list", "dict"))
    for _ in range(rng.choice((3, 40, 150))):
        value = {"tuple": [value]} if kind == "tuple" else [value] if kind == "list" else {"dict": [[1, value]]}
    return value


def _changed_directory(rng, data):
    """A field of a zip's directory or of a local header: lengths, offsets, so that entries overlap or lie outside."""
    kind = rng.choice((b"PK\x01\x02", b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"))
    places, at = [], data.find(kind)
    while at >= 0:
        places.append(at)
        at = data.find(kind, at + 4)
    if places:
        offsets = {
            b"PK\x01\x02": (10, 20, 24, 28, 30, 42),
            b"PK\x03\x04": (8, 18, 22, 26, 28),
            b"PK\x05\x06": (8, 10, 12, 16),
        }
        at = rng.choice(places) + rng.choice(offsets[kind])
        data[at : at + 4] = struct.pack(
            "<I", rng.choice((0, 1, 30, 64, 100, 2**16, 2**31, 2**32 - 1, rng.randrange(400)))
        )


def _cut(rng, data):
    """Now and then with the end missing, a byte changed or something behind it."""
    chance = rng.random()
    if chance < 0.06:
        return data[: rng.randrange(len(data) + 1)]
    if chance < 0.10 and data:
        at = rng.randrange(len(data))
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    return data + b"\0" * 100 if chance < 0.12 else data


def case(rng):
    """A file of either format."""
    return rng.choice((Safetensors, PyTorch))(rng)
