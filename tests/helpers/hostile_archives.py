"""Archives that lie: safetensors files and zips of PyTorch's kind, made by hand so that any number can be wrong.

`archives()` names one of each fault that a reader must refuse. `mutations(data, rng)` takes a good archive of either
kind and yields damaged ones whose structure is whole, so that the reader goes on to the number that was changed.
"""

import io
import json
import pickle
import pickletools
import struct
import zipfile

from tests.helpers.hostile_geometry import WINDOWS
from tests.helpers.pickles import SPARSE, Call, Name, Reference, nest, pickled, rebuilt, sparse

EDGES = [-(2**63), -(2**31), -1, 0, 1, 2, 7, 255, 2**16, 2**31, 2**32, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**64, 2**80]


# ---- safetensors ---------------------------------------------------------------------------------------------------


def safetensors(header, data=b"", length=None):
    """A file of this header (an object, or text) and data; `length` is what it says of the header's."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensors(rows, obj=None, strides=None, data=bytes(24), **changes):
    """A file of our own format with six float32 under the name "x" and this table of tensors."""
    meta = {
        "format": "tinygrad_ext 1",
        "object": json.dumps({"tensor": 0} if obj is None else obj),
        "tensors": json.dumps(rows),
        "strides": json.dumps(strides or {}),
        **changes,
    }
    entry = {"dtype": "F32", "shape": [6], "data_offsets": [0, len(data)]}
    return safetensors({"__metadata__": meta, "x": entry}, data)


def _entries(**entries):
    return {name: {"dtype": d, "shape": s, "data_offsets": o} for name, (d, s, o) in entries.items()}


def safetensors_archives():
    """(name, bytes) of files that must be refused."""
    for name, (sizes, strides, offset) in WINDOWS.items():
        if len(sizes) < 1000:
            yield f"row: {name}", tensors([["x", "float32", list(sizes), list(strides), offset, False, False]])
    for name, rows in {
        "of nothing": [["y", "float32", [1], [1], 0, False, False]],
        "of a dtype twice as wide": [["x", "complex128", [6], [1], 0, False, False]],
        "on meta beyond 63 bits": [[None, "float32", [2**62, 2**62], [0, 0], 0, False, False]],
        "with a text for an offset": [["x", "float32", [1], [1], "0", False, False]],
        "too short": [["x"]],
    }.items():
        yield f"row {name}", tensors(rows)
    rows = json.dumps([["x", "<f4", [6], False]] * 3)
    yield "the same bytes as three arrays", tensors([], {"ndarray": 0}, arrays=rows)
    for shape in ([7], [-6], [2**62, 2**62], [2**64 + 6], [1] * 65 + [6], [6.0], ["6"]):
        yield (
            f"an array of shape {shape}"[:60],
            tensors([], {"ndarray": 0}, arrays=json.dumps([["x", "<f4", shape, False]])),
        )
    yield "order near 2**62", tensors([["x", "float32", [6], [1], 0, False, False]], strides={"x": [2**62]})
    yield "order of zero", tensors([["x", "float32", [6], [1], 0, False, False]], strides={"x": [0]})
    for name, header in {
        "data beyond the file": _entries(x=("F32", [7], [0, 28])),
        "data that ends before it begins": _entries(x=("F32", [6], [24, 0])),
        "data at 2**62": _entries(x=("F32", [6], [2**62, 2**62 + 24])),
        "data from before the file": _entries(x=("F32", [6], [-24, 0])),
        "data that overlap": _entries(x=("F32", [6], [0, 24]), y=("F32", [6], [0, 24])),
        "data that overlap by half": _entries(x=("F32", [4], [0, 16]), y=("F32", [4], [8, 24])),
        "data with a gap": _entries(x=("F32", [2], [0, 8]), y=("F32", [2], [16, 24])),
        "data that nothing names": _entries(x=("F32", [2], [0, 8])),
        "fewer bytes than elements": _entries(x=("F32", [2**62], [0, 24])),
        "sizes whose product wraps to 6": _entries(x=("F32", [2**63 - 1, 2**63 - 1, 6], [0, 24])),
        "a negative size": _entries(x=("F32", [-6], [0, 24])),
        "two negative sizes": _entries(x=("F32", [-2, -3], [0, 24])),
        "half a size": _entries(x=("F32", [1.5, 4], [0, 24])),
        "a size that is a truth": _entries(x=("F32", [True, 6], [0, 24])),
        "65 sizes": _entries(x=("F32", [1] * 64 + [6], [0, 24])),
        "an unknown dtype": _entries(x=("F77", [6], [0, 24])),
        "three offsets": _entries(x=("F32", [6], [0, 12, 24])),
        "a list": [1, 2],
        "entries that are no objects": {"x": 3},
    }.items():
        yield name, safetensors(header, bytes(24))
    one = b'"x":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}'
    yield "a name twice", safetensors(b"{" + one + b"," + one + b"}", bytes(24))
    yield "a header of 2**62 bytes", safetensors(b"{}", length=2**62)
    yield "a header of 2**64 - 1 bytes", safetensors(b"{}", length=2**64 - 1)
    yield "a header longer than the file", safetensors(b"{}", length=100)
    yield "a header nested 100,000 deep", safetensors(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    yield "an object nested 100,000 deep", tensors([], object="[" * 100_000 + "]" * 100_000)
    yield "a number of a million digits", safetensors(b'{"__metadata__":{"a":' + b"9" * 1_000_000 + b"}}")


# ---- zips of PyTorch's -----------------------------------------------------------------------------------------------


def pytorch(pkl, data=bytes(24), **entries):
    """A zip as torch.save writes it, with a pickle and one storage."""
    return zipped({"archive/data.pkl": pkl, "archive/data/0": data, **{f"archive/{k}": v for k, v in entries.items()}})


def zipped(entries, compression=zipfile.ZIP_STORED):
    """The same bytes at any time: entries bear no date."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return file.getvalue()


def overlapping(copies, size):
    """A zip whose storages 1, 2, ... all point at the bytes of storage 0, and a pickle that wants each."""
    wanted = [Reference(("storage", Name("torch", "FloatStorage"), str(i), "cpu", size // 4)) for i in range(copies)]
    rebuild = Name("torch._utils", "_rebuild_tensor_v2")
    hooks = Call(Name("collections", "OrderedDict"))
    pkl = pickled([Call(rebuild, w, 0, (1,), (1,), False, hooks) for w in wanted])
    whole = zipped({"archive/data.pkl": pkl, "archive/data/0": bytes(size)})
    start, count, length = directory(whole)
    rows = list(central_rows(whole))
    last = whole[rows[-1] :][: 46 + len("archive/data/0")]
    more = b""
    for i in range(1, copies):
        name = f"archive/data/{i}".encode()
        more += last[:28] + struct.pack("<H", len(name)) + last[30:46] + name
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count + copies - 1, count + copies - 1, length + len(more), start, 0)
    return whole[: start + length] + more + end


def directory(data):
    """(start, entries, length) of a zip's table of contents."""
    end = data.rindex(b"PK\5\6")
    _, _, _, _, count, length, start, _ = struct.unpack("<4s4H2LH", data[end : end + 22])
    return start, count, length


def central_rows(data):
    """Where each row of the table of contents begins."""
    at, count, _ = directory(data)
    for _ in range(count):
        yield at
        at += 46 + sum(struct.unpack("<3H", data[at + 28 : at + 34]))


def edited(data, row, field, value):
    """A zip with one number of one row of its table of contents changed."""
    offset, code = FIELDS[field]
    at = list(central_rows(data))[row] + offset
    out = bytearray(data)
    struct.pack_into("<" + code, out, at, value & (2 ** (8 * struct.calcsize(code)) - 1))
    return bytes(out)


FIELDS = {
    "flags": (8, "H"),
    "method": (10, "H"),
    "crc": (16, "L"),
    "compressed": (20, "L"),
    "size": (24, "L"),
    "name length": (28, "H"),
    "extra length": (30, "H"),
    "header": (42, "L"),
}


def pytorch_archives():
    """(name, bytes) of zips that must be refused."""
    for name, (sizes, strides, offset) in WINDOWS.items():
        yield f"tensor: {name}", pytorch(rebuilt(sizes, strides, offset))
    storage = ("storage", Name("torch", "FloatStorage"), "0", "cpu", 6)
    for name, reference in {
        "a storage of 2**62": (*storage[:4], 2**62),
        "a storage of 2**70": (*storage[:4], 2**70),
        "a storage of minus one": (*storage[:4], -1),
        "a storage of a word": (*storage[:4], "6"),
        "a storage that is not there": (*storage[:2], "1", "cpu", 6),
        "a storage outside the folder": (*storage[:2], "../data.pkl", "cpu", 1),
        "a storage under a number": (*storage[:2], 0, "cpu", 6),
        "a reference to a module": ("module", *storage[1:]),
        "a reference of one word": ("storage",),
    }.items():
        yield name, pytorch(rebuilt((1,), (1,), 0, Reference(reference)))
    key = b"\x80\x02}" + nest(40) + b"K\x01s."
    yield "a key of 2**40 tuples", pytorch(key)
    yield "a key of 2**40 tuples among others", pytorch(b"\x80\x02}(" + nest(40) + b"K\x01u.")
    yield "an element of 2**40 tuples", pytorch(b"\x80\x04\x8f(" + nest(40) + b"\x90.")
    yield "a frozen set of 2**40 tuples", pytorch(b"\x80\x04(" + nest(40) + b"\x91.")
    yield (
        "an argument of 2**40 tuples",
        pytorch(b"\x80\x02ccollections\nOrderedDict\n](" + nest(40) + b"K\x01\x86e\x85R."),
    )
    yield "a call of 2**40 tuples", pytorch(b"\x80\x02" + nest(40) + b")R.")
    yield "a size of 2**40 tuples", pytorch(b"\x80\x02ctorch\nSize\n" + nest(40) + b"\x85R.")
    yield "a class of 2**40 tuples", pytorch(b"\x80\x02" + nest(40) + b")\x81.")
    yield "a storage named by 2**40 tuples", pytorch(b"\x80\x02(" + nest(40) + b"NNNNtQ.")
    for name, (layout, *indices) in SPARSE.items():
        yield f"a sparse tensor: {name}", pytorch(sparse(layout, *indices), struct.pack("<10q", *range(10)))
    good = SPARSE["one dimension too few"][:-1]
    for own in ("_parts", "_compressed", "_assigned"):
        yield (
            f"a sparse tensor: {own} of its own",
            pytorch(sparse(*good, (9, 9), own={own: 1}), struct.pack("<10q", *range(10))),
        )
    wraps = sparse("sparse_csr", (0, (4,), (1,)), (4, (1,), (1,)), (3, 3)).replace(b"LongStorage", b"IntStorage")
    yield "a sparse tensor: rows that wrap around", pytorch(wraps, struct.pack("<20i", 0, 2**31 - 1, -2, 1, *[0] * 16))
    yield "a key nested 100,000 deep", pytorch(b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s.")
    yield "a list nested 10,000 deep", pytorch(b"\x80\x02" + b"]" * 10_000 + b"a" * 9_999 + b".")
    yield "a list that holds itself", pytorch(b"\x80\x02]q\x00h\x00a.")
    yield (
        "text turned into bytes 100,000 times",
        pytorch(
            b"\x80\x02c_codecs\nencode\nq\x00X"
            + struct.pack("<L", 10**6)
            + b"a" * 10**6
            + b"q\x01X\6\0\0\0latin1q\x020]"
            + b"("
            + b"h\x00h\x01h\x02\x86R" * 100_000
            + b"e."
        ),
    )
    yield "bytes of 2**62", pytorch(b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"abc.")
    yield "bytes of 2**40", pytorch(b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"abc.")
    yield "a text of 2**62", pytorch(b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"abc.")
    yield "a number of 2**31 bytes", pytorch(b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"abc.")
    yield "overlapping entries", overlapping(100, 10_000)
    good = pytorch(rebuilt((6,), (1,), 0))
    yield "compressed entries", zipped({"archive/data.pkl": pickled(1)}, zipfile.ZIP_DEFLATED)
    bomb = zipped({"archive/data.pkl": rebuilt((6,), (1,), 0), "archive/data/0": bytes(10**7)}, zipfile.ZIP_DEFLATED)
    yield "ten megabytes in ten kilobytes", bomb
    for field, value in {
        "flags": 1,
        "method": 8,
        "compressed": 2**31,
        "size": 2**31,
        "name length": 60_000,
        "extra length": 60_000,
        "header": 2**31,
    }.items():
        yield f"an entry whose {field} is {value}", edited(good, 0 if "length" in field else 1, field, value)
    yield "an entry that begins in another", edited(good, 1, "header", 10)
    yield "an entry that is another", edited(good, 1, "header", 0)
    yield "an entry twice", good.replace(b"archive/data/0", b"archive/data.pk").replace(b"data.pkl", b"data.pk")
    yield "half a zip", good[: len(good) // 2]


def archives():
    """(name, bytes) of every archive above."""
    yield from safetensors_archives()
    yield from pytorch_archives()


# ---- mutation ------------------------------------------------------------------------------------------------------


def mutations(data, rng, n):
    """n damaged versions of a good archive of either kind, each with one to three numbers, texts or bytes changed."""
    for _ in range(n):
        out = data
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            try:
                out = (_mutated_zip if out[:2] == b"PK" else mutated_safetensors)(out, rng)
            except Exception:  # what was changed before left no structure
                out = flipped(out, rng)
        yield out


def flipped(data, rng):
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def mutated_safetensors(data, rng):
    if rng.random() < 0.1:
        return rng.choice([flipped(data, rng), data[: rng.randrange(len(data))], data + b"\0" * 8])
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    meta = header.get("__metadata__", {})
    inner = [k for k in meta if meta[k][:1] in ("[", "{")]
    if inner and rng.random() < 0.7:
        key = rng.choice(inner)
        meta[key] = json.dumps(changed(json.loads(meta[key]), rng))
    else:
        header = changed(header, rng)
    return safetensors(header, data[8 + n :])


def changed(value, rng):
    """A JSON value with one leaf changed, or one part repeated or left out."""
    if isinstance(value, (list, dict)) and value and rng.random() < 0.95:
        out = value.copy()
        key = rng.choice(list(out) if isinstance(out, dict) else range(len(out)))
        if rng.random() < 0.1:
            del out[key]
        elif rng.random() < 0.1 and isinstance(out, list):
            out.append(out[key])
        else:
            out[key] = changed(out[key], rng)
        return out
    if isinstance(value, int) and rng.random() < 0.8:
        return rng.choice([*EDGES, value + 1, value - 1, 2 * value])
    return rng.choice([None, True, -1, 1.5, "", "x", [], {}, [value], {"tuple": [value]}, {"dict": [[value, value]]}])


def _mutated_zip(data, rng):
    kind = rng.random()
    if kind < 0.1:
        return rng.choice([flipped(data, rng), data[: rng.randrange(len(data))], data[-(len(data) // 2) :]])
    if kind < 0.4:
        rows = directory(data)[1]
        return edited(data, rng.randrange(rows), rng.choice(list(FIELDS)), rng.choice([*EDGES, rng.randrange(300)]))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    name = next(n for n in entries if n.endswith(".pkl"))
    entries[name] = _changed_pickle(entries[name], rng)
    return zipped(entries)


def _changed_pickle(pkl, rng):
    """A pickle with one opcode's number changed, or one opcode repeated, left out or exchanged with another."""
    starts = [(op, arg, at) for op, arg, at in pickletools.genops(pkl)]
    i = rng.randrange(1, len(starts) - 1)
    op, arg, at = starts[i]
    after = starts[i + 1][2]
    numbers = [j for j, (o, a, _) in enumerate(starts) if type(a) is int and ("INT" in o.name or o.name == "LONG1")]
    if numbers and rng.random() < 0.6:
        j = rng.choice(numbers)
        at, after = starts[j][2], starts[j + 1][2]
        return pkl[:at] + pickle.dumps(rng.choice([*EDGES, starts[j][1] + 1]), 2)[2:-1] + pkl[after:]
    k = rng.randrange(1, len(starts) - 1)
    other = pkl[starts[k][2] : starts[k + 1][2]]
    return pkl[:at] + rng.choice([b"", other, pkl[at:after] * 2, other + pkl[at:after]]) + pkl[after:]
