"""Which bytes of a file a tensor is, and which tensor some bytes of a file are.

Tensors that share memory are written once. Where they are the same window, the file holds that tensor; where they
are different windows, it holds the bytes they span. Each distinct tensor has a row in the table "tensors":

    [name in the file, dtype, shape, strides, offset, requires_grad, is a Parameter]    name null: on meta, no data

"strides" tells of names whose memory is not row-major; complex numbers stand in the file as pairs of real ones.
An array of NumPy has a row in the table "arrays": [name, NumPy's word for its dtype, shape, column-major].
"""

import re

from tinygrad_ext.archive.safetensors_file import Part
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data.coded import owner_of
from tinygrad_ext.core.data.dtype import by_name, find_dtype
from tinygrad_ext.core.data.table import DTYPES
from tinygrad_ext.core.data.tensor import Parameter, Tensor

CODES = {row.code: row.name for row in DTYPES if row.name != "complex128"}  # which the format does not know
_CODE_OF = {name: code for code, name in CODES.items()}
_PAIRS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
PIECE = 1 << 21  # bytes of what is copied into row-major order at a time


# ---- tensors into the file -----------------------------------------------------------------------------------------


def lay_out(tensors):
    """The parts to write by name, the table of tensors, and the strides of names that are not row-major.

    tensors: list of (path, tensor), each tensor once.
    """
    tensors = [(path, t, t.detach().clone() if _core.flips(t) else t) for path, t in tensors]  # as they show themselves
    groups = {}
    for _, _, t in tensors:
        if not t.is_meta:
            groups.setdefault(id(_core.storage_of(t)), []).append(t)
    parts, rows, strides, taken = {}, [], {}, {}
    for path, given, t in tensors:
        flags = [given.requires_grad, isinstance(given, Parameter)]
        if t.is_meta:
            rows.append([None, t.dtype.name, list(t.shape), list(t.stride()), 0, *flags])
            continue
        group = groups[id(_core.storage_of(t))]
        if id(group) not in taken:
            name = taken[id(group)] = free_name(path, parts)
            parts[name] = _part(_span(group) if _windows(group) > 1 else _compact(t, name, strides))
        name = taken[id(group)]
        window = _in_span(t, group) if _windows(group) > 1 else _in_compact(t, strides.get(name))
        rows.append([name, t.dtype.name, *window, *flags])
    return parts, rows, strides


def brought(tensors):
    """{name: [who brings it, bytes]} of the dtypes of plugins among the tensors."""
    found = {t.dtype for _, t in tensors if owner_of(t.dtype)}
    return {d.name: [str(owner_of(d)), d.itemsize] for d in sorted(found, key=lambda d: d.name)}


def check_brought(dtypes):
    """RuntimeError unless all the dtypes of plugins that a file names are here, as wide as they were."""
    for name, (owner, itemsize) in dtypes.items():
        dtype = find_dtype(name, owner)
        if dtype is None:
            raise RuntimeError(f"it holds tensors of the dtype '{name}', which is not here. {_from(owner)}")
        if dtype.itemsize != itemsize:
            raise RuntimeError(
                f"it holds tensors of a dtype '{name}' of {itemsize} bytes, and the one here has {dtype.itemsize}. "
                f"{_from(owner)}"
            )


def _from(owner):
    """Who brings a dtype, and the command; the text comes from a file, so that only a name and a version are shown."""
    distribution, _, version = str(owner).partition(" ")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", distribution) or not re.fullmatch(
        r"([0-9][A-Za-z0-9.+!_-]*)?", version
    ):
        return "The program that saved it brings it itself: call library.register_dtype() before loading"
    return f"It comes with {owner}: python -m pip install '{distribution}{f'=={version}' if version else ''}'"


def free_name(path, parts):
    """A name for what stands at this place of the object, unlike all others."""
    base = name = ".".join(str(p) for p in path).encode("utf-8", "replace").decode() or "tensor"
    n = 1
    while name in parts or name == "__metadata__":
        n += 1
        name = f"{base}#{n}"
    return name


def _windows(group):
    return len({(t.dtype, t.shape, t.stride(), t.storage_offset()) for t in group}) if len(group) > 1 else 1


def _unrepeated(t):
    """t without what expand() repeats."""
    sizes = [1 if stride == 0 else size for size, stride in zip(t.shape, t.stride())]
    return t.detach().as_strided(sizes, t.stride())


def _compact(t, name, strides):
    """t's distinct elements; notes in `strides` when their order in memory can be restored from a row-major one."""
    base = _unrepeated(t)
    if not base.is_contiguous() and _dense_strides(base) == base.stride():
        strides[name] = list(base.stride())
    return base


def _dense_strides(t):
    return functions["empty_like"](t, device="meta").stride()


def _in_compact(t, order):
    """Shape, strides and offset of t over its compact form."""
    if order is None:
        order = _core.row_strides(_unrepeated(t).shape)
    return list(t.shape), [0 if s == 0 else o for s, o in zip(t.stride(), order)], 0


def _bounds(group):
    """First and last byte that the tensors of a group touch in their storage, the first at a multiple of 16."""
    starts = [t.storage_offset() * t.itemsize for t in group]
    ends = [
        start + (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))) * t.itemsize if t.numel() else start
        for start, t in zip(starts, group)
    ]
    return min(starts) // 16 * 16, max(ends)


def _span(group):
    low, high = _bounds(group)
    return _core.window(_core.storage_of(group[0]), by_name["uint8"], [high - low], [1], low)


def _in_span(t, group):
    low, _ = _bounds(group)
    return list(t.shape), list(t.stride()), (t.storage_offset() * t.itemsize - low) // t.itemsize


def _part(t):
    """What is written of a tensor: its elements in row-major order, complex ones as pairs of real ones."""
    pair = _PAIRS.get(t.dtype.name)
    shape = [*t.shape, 2] if pair else list(t.shape)
    code = _CODE_OF.get(pair or t.dtype.name) or ("U8", "U16")[t.itemsize - 1]  # of a plugin's dtype the codes
    return Part(code, shape, t.nbytes, lambda: pieces(t))


def pieces(t):
    """The bytes of t, row-major, from its own memory where they lie in that order, else a piece at a time."""
    if t.numel() == 0:
        return
    t = t.detach().clone() if _core.flips(t) else t
    if t.is_contiguous():
        at = t.storage_offset() * t.itemsize
        yield memoryview(_core.window(_core.storage_of(t), by_name["uint8"], [t.nbytes], [1], at))
    elif t.nbytes <= PIECE:
        yield from pieces(t.contiguous())
    else:
        rows = max(1, PIECE * len(t) // t.nbytes)
        for i in range(0, len(t), rows):
            yield from pieces(t[i : i + rows] if t.nbytes // len(t) <= PIECE else t[i])


# ---- and back ------------------------------------------------------------------------------------------------------


def storage_of(source, entry):
    """The bytes of an entry as a storage."""
    return source.storage(entry.begin, entry.nbytes, 8)


def plain(source, entry, key, dtype=None):
    """One entry of a safetensors file as a tensor of its own."""
    if entry.code not in CODES:
        raise ValueError(f"'{key}' has the dtype {entry.code}, which has no match here; convert it where it was made")
    shape = entry.shape if dtype not in _PAIRS else entry.shape[:-1]
    dtype = by_name[dtype if dtype in _PAIRS or (dtype in by_name and owner_of(by_name[dtype])) else CODES[entry.code]]
    return _core.window(storage_of(source, entry), dtype, shape, _core.row_strides(shape), 0)


def tensors(table, strides, entries, source):
    """The tensors of the table, those over one name sharing its memory."""
    storages, out = {}, []
    for key, dtype, shape, stride, offset, requires_grad, is_parameter in table:
        if key is not None and key not in storages:
            order = strides.get(key)
            if order is None:
                storages[key] = storage_of(source, entries[key])
            else:
                storages[key] = _core.storage_of(_ordered(plain(source, entries[key], key, dtype), order))
        storage = storages[key] if key is not None else None
        cls = Parameter if is_parameter else Tensor
        out.append(_core.window(storage, by_name[dtype], shape, stride, offset, bool(requires_grad), cls))
    return out


def _ordered(t, stride):
    """t in the memory order it was saved from."""
    order = sorted(zip(stride, t.shape))
    if any(s != n for (s, _), n in zip(order, _products(order))):
        raise ValueError(f"strides {stride} leave gaps in shape {list(t.shape)}")
    return functions["empty_strided"](t.shape, stride, dtype=t.dtype).copy_(t)


def _products(order):
    """Strides that dimensions, innermost first, have without gaps."""
    n = 1
    for _, size in order:
        yield n
        n *= max(size, 1)


# ---- arrays --------------------------------------------------------------------------------------------------------

_ARRAY_DTYPES = re.compile(r"[<>|][biufcSUmM][0-9]{1,9}(\[[0-9]*[A-Za-z]+\])?")
_ARRAY_CODES = {"|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<u2": "U16", "<i2": "I16", "<f2": "F16", "<u4": "U32"}
_ARRAY_CODES |= {"<i4": "I32", "<f4": "F32", "<u8": "U64", "<i8": "I64", "<f8": "F64", "<c8": "C64"}


def lay_out_arrays(arrays, parts):
    """The table of arrays; what is written of them joins the parts."""
    rows = []
    for path, a in arrays:
        word = a.dtype.str
        if not _ARRAY_DTYPES.fullmatch(word) or a.dtype.names is not None or (a.dtype.kind == "f" and a.itemsize > 8):
            place = "state" + "".join(f"[{p!r}]" for p in path)
            raise TypeError(f"save: {place} is an array of {a.dtype}; numbers, text, dates and bytes can be saved")
        columns = bool(a.flags.f_contiguous and not a.flags.c_contiguous)
        name, code = free_name(path, parts), _ARRAY_CODES.get(word)
        shape = list(a.shape[::-1] if columns else a.shape) if code else [a.nbytes]
        parts[name] = Part(code or "U8", shape, a.nbytes, lambda a=a.T if columns else a: _array_pieces(a))
        rows.append([name, word, list(a.shape), columns])
    return rows


def _array_pieces(a):
    import numpy

    if a.nbytes:
        yield memoryview(numpy.ascontiguousarray(a).reshape(-1).view(numpy.uint8))


def arrays(table, entries, source):
    """The arrays of the table."""
    if not table:
        return []
    import numpy

    out, read = [], set()
    for name, word, shape, columns in table:
        if name in read:
            raise ValueError(f"two arrays of the bytes '{name}'")  # each would be a copy
        read.add(name)
        if not isinstance(word, str) or not _ARRAY_DTYPES.fullmatch(word):
            raise ValueError(f"an array of {word!r}")
        dtype, entry = numpy.dtype(word), entries[name]
        nbytes = dtype.itemsize
        for n in shape:
            nbytes *= n
        if min(shape, default=0) < 0 or nbytes != entry.nbytes:
            raise ValueError(f"an array of {word} and shape {shape} in {entry.nbytes} bytes")
        a = numpy.empty(shape[::-1] if columns else shape, dtype)
        if nbytes:
            source.read_into(entry.begin, memoryview(a.reshape(-1).view(numpy.uint8)))
        out.append(a.T if columns else a)
    return out
