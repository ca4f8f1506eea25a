"""Saving and loading: one safetensors file holds the numbers, and its metadata, as JSON, the object they belong to.

Loading executes nothing: the JSON names dicts, lists, plain values and tensors, and there is nothing else to name.
Any program that reads safetensors finds each tensor under its path in the object ("layer.weight"), row-major.
"""

import contextlib
import json
import os
import sys
import warnings

from tinygrad_ext.archive import layout, safetensors_file
from tinygrad_ext.archive.budget import MOST_OBJECTS, Budget
from tinygrad_ext.archive.moving import settled
from tinygrad_ext.archive.object_tree import Decoder, Encoder, read_json
from tinygrad_ext.archive.replace import write_to
from tinygrad_ext.archive.source import Source
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import device as _device

__all__ = ["load", "save"]

FORMAT = "tinygrad_ext 1"


# ---- save ----------------------------------------------------------------------------------------------------------


@boundary
def save(
    obj, f, pickle_module=None, pickle_protocol=None, _use_new_zipfile_serialization=True, *, format=None
):  # fmt: skip
    """Write tensors, nested in dicts, lists and tuples together with plain values, to a file.

    Args:
        obj: dicts (keys of any plain type), OrderedDicts, lists, tuples, Size, numbers, str, None, dtypes, devices,
            Tensors and Parameters, of any layout and dtype, and NumPy arrays. Memory that tensors share is written
            once, and from where it is: saving takes no further memory.
        f: path, or a file open for binary writing. A file at the path is replaced only when all is on disk, and keeps
            its mode; a save that is killed leaves nothing.
        format: "safetensors", the default; "torch" for files that PyTorch reads with weights_only=True, which hold
            storages, too; "object" for objects of any class, which only `load` with weights_only=False reads. Under
            the alias that is what becomes of an object that safetensors cannot hold, as in PyTorch.
        pickle_module, pickle_protocol, _use_new_zipfile_serialization: accepted for PyTorch's sake.

    Raises TypeError that names the place of anything else (``state['a'][0]``).

    >>> import tempfile, os, tinygrad_ext as tg
    >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> tg.save({"step": 3, "weight": tg.ones(2)}, path)
    >>> tg.load(path)
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    if format == "torch":
        from tinygrad_ext.archive import pytorch_writer  # lazy: brings pickle and zipfile

        return write_to(f, lambda file: pytorch_writer.write(file, obj))
    if format == "object":
        return _save_pickled(obj, f)
    if format not in (None, "safetensors"):
        raise ValueError(f"save(): format {format!r} is unknown: it is 'safetensors', 'torch' or 'object'")
    encoder = Encoder()
    try:
        tree = encoder.encode(obj)
    except (TypeError, ValueError):
        if format is None and pickles_the_rest():
            return _save_pickled(obj, f)
        raise
    parts, table, strides = layout.lay_out(encoder.tensors)
    meta = {"format": FORMAT, "object": json.dumps(tree), "tensors": json.dumps(table), "strides": json.dumps(strides)}
    brought = layout.brought(encoder.tensors)
    if brought:
        meta["dtypes"] = json.dumps(brought)
    if encoder.arrays:
        meta["arrays"] = json.dumps(layout.lay_out_arrays(encoder.arrays, parts))
    write_to(f, lambda file: safetensors_file.write(file, parts, meta))


def pickles_the_rest():
    """Whether `save` pickles what safetensors cannot hold: what runs under the alias expects that."""
    alias = sys.modules.get("tinygrad_ext.as_torch")
    return alias is not None and alias.installed()


def _save_pickled(obj, f):
    from tinygrad_ext.archive import pickled  # lazy: brings pickle and zipfile

    write_to(f, lambda file: pickled.write(file, obj))


# ---- load ----------------------------------------------------------------------------------------------------------


@boundary
def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, max_objects=MOST_OBJECTS, **texts):
    """The object that `save` wrote, or a PyTorch checkpoint's, or the tensors of any safetensors file as a dict.

    Args:
        f: path, or a file open for binary reading. map_location: "cpu" or "meta", or None: where the tensors were.
        weights_only: False lets a file of PyTorch's or of ``save(format="object")`` import and call whatever it names:
            for files from those who may run any code here. Without it no file can make this function run code.
        pickle_module: accepted for PyTorch's sake.
        mmap: True leaves the numbers in the file at a path, which the system reads when they are used; a write stays in
            this process. Whoever cuts that file off meanwhile ends this process (SIGBUS) at the next use.
        max_objects: the most containers, numbers and texts that a file may hold.
        encoding: of the texts of Python 2, with weights_only=False, by default utf-8; else it warns.

    Raises RuntimeError for a damaged or foreign file, with what is wrong about it. Takes no more memory than the file
    is large, beside its objects.
    """
    onto = target(map_location)
    with opened(f, mmap) as (source, name):
        if weights_only is not None and not weights_only and _is_pytorchs(source):
            from tinygrad_ext.archive import pickled  # lazy: brings pickle and zipfile

            return pickled.read(source, onto, Budget(max_objects), **texts)
        _check_texts(weights_only is None or weights_only, **texts)
        return _load(source, name, onto, Budget(max_objects))


def _check_texts(weights_only, encoding=None, **others):
    """Refuse what only pickle's own reader knows, and say that an encoding is not used."""
    if weights_only and others:
        raise TypeError(
            f"load() got an unexpected keyword argument '{next(iter(others))}': weights_only=True knows none"
        )
    if weights_only and encoding is not None:
        warnings.warn(f"load(): encoding={encoding!r} has an effect with weights_only=False only", stacklevel=4)


def target(map_location):
    """The device that `map_location` names, or None."""
    onto = _device(map_location) if isinstance(map_location, (str, _device)) else None
    if onto is not None and onto.type not in ("cpu", "meta"):
        raise RuntimeError(f"load(): Attempting to deserialize object on {onto}, which is not here: map_location='cpu'")
    return onto


@contextlib.contextmanager
def opened(f, mmap=False):
    """(Source, name for messages) of a path or a file open for reading."""
    if hasattr(f, "read") and not isinstance(f, os.PathLike):  # a path may have a method that reads its text
        if mmap:
            raise ValueError("load(): f must be a file path in order to use the mmap argument")
        yield Source(f), getattr(f, "name", "the file")
    else:
        with open(f, "rb") as file:
            yield Source(file, bool(mmap)), os.fspath(f)


def _is_pytorchs(source):
    from tinygrad_ext.archive import pytorch  # lazy: as below

    return _is_zip(source.bytes(0, min(9, source.size))) or pytorch.is_row(source)


def _is_zip(head):
    return head[:4] == b"PK\x03\x04" and head[8:9] != b"{"  # not the length before a safetensors header


def _load(source, name, onto, budget):
    head = source.bytes(0, min(9, source.size))
    if _is_zip(head):
        from tinygrad_ext.archive import pytorch  # lazy: brings pickle and zipfile, which our own files do not need

        return pytorch.read(source, name, onto, budget)
    if head[:1] == b"\x80" and head[8:9] != b"{":
        from tinygrad_ext.archive import pytorch  # lazy: as above

        if pytorch.is_row(source):
            return pytorch.read(source, name, onto, budget)
        raise RuntimeError(
            f"load: {name} is a bare pickle, which can run any code when read, so it is not: save what it holds with "
            "torch.save, whose files are read without running anything"
        )
    return read_safetensors(source, name, onto, budget)


def read_safetensors(source, name, onto, budget):
    """The object in a safetensors file. RuntimeError when it is damaged, with its name."""
    try:
        meta, entries = safetensors_file.read_header(source, budget)
    except DAMAGES as e:
        raise RuntimeError(f"load: {name} is no safetensors file, or is damaged or cut off: {said(e)}") from None
    if "dtypes" in meta:
        try:
            rows = read_json(meta["dtypes"], budget).items()
            dtypes = {str(dtype): [str(owner), int(size)] for dtype, (owner, size) in rows}
        except DAMAGES as e:
            raise RuntimeError(f"load: {name} is damaged: its metadata does not fit together ({said(e)})") from None
        try:
            layout.check_brought(dtypes)
        except RuntimeError as e:
            raise RuntimeError(f"load: {name}: {e}") from None
    try:
        return settled(_object(source, meta, entries, budget), onto)
    except DAMAGES as e:
        raise RuntimeError(f"load: {name} is damaged: its metadata does not fit together ({said(e)})") from None


class _Words(Decoder):
    """Decodes what has a word for each tensor."""

    def set_attributes(self, out, found):
        """A tensor's stay untold."""
        if not isinstance(out, str):
            super().set_attributes(out, found)

    def _sparse(self, parts):
        name, *given, _ = (self.decode(v) for v in parts)
        return f"{name.removeprefix('torch.')} of {', '.join(map(str, given))}"


def told(source, budget):
    """What `save` wrote, with a word such as 'float32[2, 3]' for each tensor, whose numbers are not read."""
    meta, _ = safetensors_file.read_header(source, budget)
    rows = read_json(meta["tensors"], budget)
    words = [f"{dtype}{shape}" for _, dtype, shape, *_ in rows]
    return _Words(words, [row[1] for row in read_json(meta.get("arrays", "[]"), budget)], budget).decode(
        read_json(meta["object"], budget)
    )


# all that hostile metadata can raise on its way through checks that say what is wrong
DAMAGES = (KeyError, TypeError, ValueError, IndexError, OverflowError, RuntimeError, AttributeError)


def said(error):
    """What is wrong, in the words of the check that found it."""
    return str(error) if type(error) in (ValueError, RuntimeError) else f"{type(error).__name__}: {error}"


def _object(source, meta, entries, budget):
    """The object in a safetensors file."""
    if meta.get("format", "").partition(" ")[0] != "tinygrad_ext":
        return {name: layout.plain(source, entry, name) for name, entry in entries.items()}
    if meta["format"] != FORMAT:
        raise ValueError(
            f"it was written in the format '{meta['format']}', this version reads '{FORMAT}': update tinygrad_ext"
        )
    table, strides = read_json(meta["tensors"], budget), read_json(meta["strides"], budget)
    tensors = layout.tensors(table, strides, entries, source)
    arrays = layout.arrays(read_json(meta.get("arrays", "[]"), budget), entries, source)
    return Decoder(tensors, arrays, budget).decode(read_json(meta["object"], budget))
