"""The safetensors format: eight bytes of length, a header in JSON, and the data of each entry, without gaps.

The package of that name hands out and takes in copies of everything; here the data go from and to the memory of
tensors. Its rules are kept and the tests hold both to each other.
"""

import json

from tinygrad_ext.archive.object_tree import read_json

LONGEST_HEADER = 100_000_000
METADATA = "__metadata__"
_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2}
_SIZES |= {"U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8}


class Entry:
    """An entry of a file that is read: its dtype's code, its shape, and where its bytes are."""

    __slots__ = ("begin", "code", "nbytes", "shape")

    def __init__(self, code, shape, begin, nbytes):
        self.code, self.shape, self.begin, self.nbytes = code, shape, begin, nbytes


# ---- reading -------------------------------------------------------------------------------------------------------


def read_header(source, budget):
    """(metadata, entries by name) of a file. ValueError where they do not describe its bytes exactly."""
    length = int.from_bytes(source.bytes(0, 8), "little")
    if length > min(LONGEST_HEADER, source.size - 8):
        raise ValueError(f"its header would have {length} bytes: it has {source.size}, and no header {LONGEST_HEADER}")
    text = source.bytes(8, length).decode()
    if text[:1] != "{":
        raise ValueError("its header is no JSON object")
    header = read_json(text, budget)
    meta = header.pop(METADATA, {})
    if type(meta) is not dict or not all(type(text) is str for text in meta.values()):
        raise ValueError(f"its {METADATA} is no object of texts")
    entries = {name: _entry(name, value, 8 + length) for name, value in header.items()}
    end = 8 + length
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].nbytes)):
        if entry.begin != end:
            raise ValueError(f"'{name}' begins at byte {entry.begin}, but what comes before it ends at {end}")
        end += entry.nbytes
    if end != source.size:
        raise ValueError(f"it has {source.size} bytes, its header describes {end}")
    return meta, entries


def _entry(name, value, start):
    code, shape, (begin, end) = value["dtype"], value["shape"], value["data_offsets"]
    if code not in _SIZES:
        raise ValueError(f"'{name}' has the dtype {code}, which has no match here; convert it where it was made")
    if not all(type(n) is int and n >= 0 for n in [*shape, begin, end]):
        raise ValueError(f"'{name}' has sizes {shape} and bytes {begin} to {end}")
    nbytes = _SIZES[code]
    for n in shape:
        nbytes *= n
    if nbytes != end - begin:
        raise ValueError(f"'{name}' has {end - begin} bytes, but elements of {nbytes} in sizes {shape}")
    return Entry(code, shape, start + begin, nbytes)


# ---- writing -------------------------------------------------------------------------------------------------------


class Part:
    """An entry of a file to write; `pieces()` yields its bytes one after the other."""

    __slots__ = ("code", "nbytes", "pieces", "shape")

    def __init__(self, code, shape, nbytes, pieces):
        self.code, self.shape, self.nbytes, self.pieces = code, shape, nbytes, pieces


def write(file, parts, meta):
    """Write the parts, a dict by name, and the metadata to a file open for binary writing."""
    # after lengths that a large power of two divides, each entry begins where its elements are aligned
    order = sorted(parts, key=lambda name: (-min(parts[name].nbytes & -parts[name].nbytes or 64, 64), name))
    header, at = {METADATA: meta}, 0
    for name in order:
        part = parts[name]
        header[name] = {"dtype": part.code, "shape": part.shape, "data_offsets": [at, at + part.nbytes]}
        at += part.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise ValueError(f"save: the names and plain values have {len(text)} bytes, a file holds {LONGEST_HEADER}")
    write_all(file, len(text).to_bytes(8, "little") + text)
    for name in order:
        for piece in parts[name].pieces():
            write_all(file, piece)


CHUNK = 1 << 26  # bytes between two looks at Ctrl-C


def write_all(file, data):
    """Write bytes to any kind of file, however few it takes at a time."""
    import io

    data = memoryview(data)
    own = isinstance(file, io.IOBase)  # of others we do not know whether they keep what they are handed
    for at in range(0, len(data), CHUNK):
        chunk = data[at : at + CHUNK]
        while len(chunk):
            done = file.write(chunk if own else bytes(chunk))
            chunk = chunk[done if isinstance(done, int) and isinstance(file, io.RawIOBase) else len(chunk) :]
