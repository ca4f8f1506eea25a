"""Saving and loading: one safetensors file holds the numbers, and its metadata, as JSON, the object they belong to.

Loading executes nothing: the JSON names dicts, lists, plain values and tensors, and there is nothing else to name.
Any program that reads safetensors finds each tensor under its path in the object ("layer.weight"), row-major.

Tensors that share memory are written once. Where they are the same window, the file holds that tensor; where they
are different windows, it holds the bytes they span. Each distinct tensor has a row in the table "tensors":

    [name in the file, dtype, shape, strides, offset, requires_grad, is a Parameter]    name null: on meta, no data

"strides" tells of names whose memory is not row-major; complex numbers stand in the file as pairs of real ones.
"""

import json
import os

from tinygrad_ext.core import interop as _core
from tinygrad_ext.core import storage as _storage
from tinygrad_ext.core.dtype import by_name
from tinygrad_ext.core.dtype import device as _device
from tinygrad_ext.core.tensor import Parameter, Tensor
from tinygrad_ext.object_tree import Decoder, Encoder

__all__ = ["load", "save"]

FORMAT = "tinygrad_ext 1"
_CODES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}
_PAIRS = {"complex64": "float32", "complex128": "float64"}


# ---- save ----------------------------------------------------------------------------------------------------------


def save(obj, f):
    """Write tensors, nested in dicts, lists and tuples together with plain values, to a file.

    Args:
        obj: dicts (keys of any plain type), OrderedDicts, lists, tuples, Size, numbers, str, None, dtypes, devices,
            Tensors and Parameters; of any layout and dtype. Memory that tensors share is written once.
        f: path, or a file open for binary writing. A file at the path is replaced only when all is written.

    Raises TypeError that names the place of anything else (``state['a'][0]``).

    >>> import tempfile, os, tinygrad_ext as tg
    >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> tg.save({"step": 3, "weight": tg.ones(2)}, path)
    >>> tg.load(path)
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    encoder = Encoder()
    tree = encoder.encode(obj)
    named, table, strides = _lay_out(encoder.tensors)
    meta = {"format": FORMAT, "object": json.dumps(tree), "tensors": json.dumps(table), "strides": json.dumps(strides)}
    if hasattr(f, "write"):
        f.write(_bytes_of(named, meta))
    else:
        _write(os.fspath(f), named, meta)


def _lay_out(tensors):
    """What to write under which name, the table of tensors, and the strides of names that are not row-major.

    tensors: list of (path, tensor), each tensor once.
    """
    groups = {}
    for _, t in tensors:
        if not t.is_meta:
            groups.setdefault(id(_core.storage_of(t)), []).append(t)
    named, rows, strides, taken = {}, [], {}, {}
    for path, t in tensors:
        flags = [t.requires_grad, isinstance(t, Parameter)]
        if t.is_meta:
            rows.append([None, t.dtype.name, list(t.shape), list(t.stride()), 0, *flags])
            continue
        group = groups[id(_core.storage_of(t))]
        if id(group) not in taken:
            name = taken[id(group)] = _free_name(path, named)
            named[name] = _span(group) if _windows(group) > 1 else _compact(t, name, strides)
        name = taken[id(group)]
        window = _in_span(t, group) if _windows(group) > 1 else _in_compact(t, strides.get(name))
        rows.append([name, t.dtype.name, *window, *flags])
    return named, rows, strides


def _windows(group):
    return len({(t.dtype, t.shape, t.stride(), t.storage_offset()) for t in group})


def _free_name(path, named):
    base = name = ".".join(str(p) for p in path).encode("utf-8", "replace").decode() or "tensor"
    n = 1
    while name in named or name == "__metadata__":
        n += 1
        name = f"{base}#{n}"
    return name


def _unrepeated(t):
    """t without what expand() repeats."""
    sizes = [1 if stride == 0 else size for size, stride in zip(t.shape, t.stride())]
    return t.detach().as_strided(sizes, t.stride())


def _compact(t, name, strides):
    """A row-major tensor of t's distinct elements; notes in `strides` when t's own order can be restored."""
    base = _unrepeated(t)
    if not base.is_contiguous() and _dense_strides(base) == base.stride():
        strides[name] = list(base.stride())
    return base.contiguous()


def _dense_strides(t):
    from tinygrad_ext import empty_like

    return empty_like(t, device="meta").stride()


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


def _pairs(t):
    """A complex tensor as real numbers with a last dimension of 2."""
    from tinygrad_ext import view_as_real

    return view_as_real(t) if t.dtype.is_complex else t


def _specs(named):
    """The tensors in the form that the installed version of safetensors takes."""
    import safetensors

    spec = getattr(safetensors, "TensorSpec", None)
    if spec is not None:
        return {
            n: spec(dtype=t.dtype.name, shape=list(t.shape), data_ptr=_address(t), data_len=t.nbytes)
            for n, t in named.items()
        }
    return {n: {"dtype": t.dtype.name, "shape": list(t.shape), "data": bytes(_bytes(t))} for n, t in named.items()}


def _address(t):
    return t.data_ptr() or _storage.storage_facts(_core.storage_of(t))[0]


def _bytes(t):
    return memoryview(
        _core.window(_core.storage_of(t), by_name["uint8"], [t.nbytes], [1], t.storage_offset() * t.itemsize)
    )


def _bytes_of(named, meta):
    import safetensors

    named = {name: _pairs(t) for name, t in named.items()}  # kept alive here while their addresses are read
    return bytes(safetensors.serialize(_specs(named), meta))


def _write(path, named, meta):
    """Write beside the target and rename, so that a crash leaves the old file or the new one."""
    if os.path.exists(path) and not os.path.isfile(path):
        if os.path.isdir(path):
            raise IsADirectoryError(f"save: {path} is a directory; name a file in it")
        with open(path, "wb") as f:  # a pipe or device cannot be replaced
            f.write(_bytes_of(named, meta))
        return
    path = os.path.realpath(path)
    beside = f"{path}.{os.getpid()}-{id(named):x}.part"
    try:
        with open(beside, "xb") as f:
            f.write(_bytes_of(named, meta))
            f.flush()
            os.fsync(f.fileno())
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


# ---- load ----------------------------------------------------------------------------------------------------------


def load(f, map_location=None, *, weights_only=True, **_):
    """The object that `save` wrote, or a PyTorch checkpoint's, or the tensors of any safetensors file as a dict.

    Args:
        f: path, or a file open for binary reading. map_location: "cpu" or "meta", or None: where the tensors were.
        weights_only: accepted for PyTorch's sake; no file can make this function run code, whatever its value.

    Raises RuntimeError for a damaged or foreign file, with what is wrong about it.
    """
    place = _device(map_location) if isinstance(map_location, (str, _device)) else None
    if hasattr(f, "read"):
        data, name = f.read(), getattr(f, "name", "the file")
    else:
        name = os.fspath(f)
        with open(f, "rb") as opened:
            data = opened.read()
    if data[:4] == b"PK\x03\x04" and data[8:9] != b"{":  # not the length before a safetensors header
        from tinygrad_ext import torch_archive

        found = torch_archive.read(data, name)
    else:
        found = _read(data, name)
    return found if place is None else _moved(found, place, {})


def _read(data, name):
    """The object in the bytes of a safetensors file."""
    import safetensors

    if data[:1] == b"\x80" and data[8:9] != b"{":
        raise RuntimeError(
            f"load: {name} is a bare pickle, which can run any code when read, so it is not: if it is "
            f"an old PyTorch "
            "file, load it with PyTorch and save it again (torch.save writes a zip since 1.6)"
        )
    try:
        parts = {n: part for n, part in safetensors.deserialize(bytes(data))}
        meta = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
    except (safetensors.SafetensorError, ValueError, RecursionError) as e:
        raise RuntimeError(f"load: {name} is no safetensors file, or is damaged or cut off: {e}") from None
    if meta.get("format", "").partition(" ")[0] != "tinygrad_ext":
        return {n: _plain(part, n, name) for n, part in parts.items()}
    if meta["format"] != FORMAT:
        raise RuntimeError(
            f"load: {name} was written in the format '{meta['format']}', this version reads "
            f"'{FORMAT}': update "
            "tinygrad_ext"
        )
    try:
        tensors = _tensors(json.loads(meta["tensors"]), json.loads(meta["strides"]), parts, name)
        return Decoder(tensors).decode(json.loads(meta["object"]))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RuntimeError, AttributeError) as e:
        raise RuntimeError(
            f"load: {name} is damaged: its metadata does not fit together ({type(e).__name__}: {e})"
        ) from None


def _plain(part, key, name):
    """One tensor of a safetensors file as a tensor of its own."""
    dtype = _CODES.get(part["dtype"]) or {"C64": "complex64"}.get(part["dtype"])
    if dtype is None:
        raise RuntimeError(
            f"load: {name}: '{key}' has the dtype {part['dtype']}, which has no match here; convert it "
            f"where it was made"
        )
    storage = _storage.storage_of_bytes(part["data"])
    return _core.window(storage, by_name[dtype], part["shape"], _core.row_strides(part["shape"]), 0)


def _tensors(table, strides, parts, name):
    """The tensors of the table, those over one name sharing its memory."""
    storages, out = {}, []
    for key, dtype, shape, stride, offset, requires_grad, is_parameter in table:
        if key is not None and key not in storages:
            storages[key] = _core.storage_of(_ordered(_plain(parts[key], key, name), strides.get(key), dtype))
        out.append(
            _core.window(
                storages[key] if key is not None else None,
                by_name[dtype],
                shape,
                stride,
                offset,
                bool(requires_grad),
                Parameter if is_parameter else Tensor,
            )
        )
    return out


def _ordered(t, stride, dtype):
    """t in the memory order it was saved from."""
    from tinygrad_ext import empty_strided

    if stride is None:
        return t
    if dtype in _PAIRS:
        t = _core.window(_core.storage_of(t), by_name[dtype], t.shape[:-1], _core.row_strides(t.shape[:-1]), 0)
    order = sorted(zip(stride, t.shape))
    if any(s != n for (s, _), n in zip(order, _products(order))):
        raise ValueError(f"strides {stride} leave gaps in shape {list(t.shape)}")
    return empty_strided(t.shape, stride, dtype=t.dtype).copy_(t)


def _products(order):
    """Strides that dimensions, innermost first, have without gaps."""
    n = 1
    for _, size in order:
        yield n
        n *= max(size, 1)


def _moved(obj, place, done):
    """The object with its tensors on a device; containers are rebuilt in place of the old."""
    if isinstance(obj, Tensor):
        if obj.device == place:
            return obj
        if id(obj) not in done:
            made = obj.detach().to(place)
            if isinstance(obj, Parameter):
                done[id(obj)] = Parameter(made, obj.requires_grad)
            else:
                done[id(obj)] = made.requires_grad_(obj.requires_grad)
        return done[id(obj)]
    if isinstance(obj, dict):
        for key in obj:
            obj[key] = _moved(obj[key], place, done)
        return obj
    if type(obj) in (list, tuple):
        return type(obj)(_moved(x, place, done) for x in obj)
    return obj
