"""Putting the items of a batch together."""

from collections.abc import Mapping, Sequence

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary


@boundary
def default_collate(batch):
    """Stack a list of items into one: tensors and arrays get a new first dimension, numbers become a tensor.

    Mappings, tuples, named tuples and lists are put together entry by entry; strings stay a list.

    Raises:
        TypeError: the items are of another type.
        RuntimeError: sequences of different lengths.
    """
    first = batch[0]
    if len(default_collate_fn_map) != _OWN:
        found = _found(type(first), first, default_collate_fn_map)
        if found not in (None, _plain):
            return found(batch, collate_fn_map=default_collate_fn_map)
    if isinstance(first, tg.Tensor):
        return tg.stack(list(batch))
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):  # np.str_ is both
        return _collate_numpy(batch, first)
    if isinstance(first, float):
        return tg.tensor(batch, dtype=tg.float64)
    if isinstance(first, int):
        return tg.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _rebuild(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, Sequence):
        return _collate_sequences(batch, first, default_collate)
    raise _unsupported("default_collate: batch", first)


def _plain(batch, *, collate_fn_map=None):
    """What default_collate does with the types that it knows."""
    return default_collate(batch)


# type -> function(batch, *, collate_fn_map) that puts its items together; libraries add theirs
default_collate_fn_map = dict.fromkeys((tg.Tensor, np.ndarray, np.generic, float, int, str, bytes), _plain)
_OWN = len(default_collate_fn_map)


def _found(kind, item, table):
    return table.get(kind) or next((function for other, function in table.items() if isinstance(item, other)), None)


@boundary
def collate(batch, *, collate_fn_map=None):
    """Put a list of items together by the functions of their types, entry by entry in mappings and sequences.

    Args:
        collate_fn_map: type -> function(batch, *, collate_fn_map); a type's own entry goes before those of its bases.

    Raises:
        TypeError: an item is of none of the types.
    """
    first, table = batch[0], collate_fn_map or {}
    function = _found(type(first), first, table)
    if function is not None:
        return function(batch, collate_fn_map=table)

    def inner(items):
        return collate(items, collate_fn_map=table)

    if isinstance(first, Mapping):
        return _rebuild(first, {key: inner([item[key] for item in batch]) for key in first})
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        return _collate_sequences(batch, first, inner)
    raise _unsupported("default_collate: batch", first)


def _collate_numpy(batch, first):
    if first.dtype.kind in "SUOV":
        raise _unsupported("default_collate: batch", first.dtype, first.dtype)
    return tg.stack([tg.as_tensor(item) for item in batch])


def _collate_sequences(batch, first, inner):
    if any(len(item) != len(first) for item in batch):
        raise RuntimeError(
            "each element in list of batch should be of equal size, "
            f"but their lengths are {sorted({len(item) for item in batch})}; pass collate_fn to pad them"
        )
    columns = [inner(column) for column in zip(*batch)]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*columns)
    # A plain tuple becomes a list, as in PyTorch; other sequence types are kept.
    return columns if isinstance(first, tuple) else _rebuild(first, columns)


def _rebuild(example, values):
    """Return ``values`` in the type of ``example`` if that can be made from them."""
    try:
        return type(example)(values)
    except TypeError:
        return values


@boundary
def default_convert(data):
    """Turn arrays in ``data`` into tensors, through mappings and sequences; everything else stays."""
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUOV" else tg.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild(data, [default_convert(value) for value in data])
    return data


def _unsupported(what, value, found=None):
    return TypeError(
        f"{what} must contain tensors, numpy arrays, numbers, dicts or lists; found {found or type(value)}. "
        "Pass collate_fn to put other items together."
    )
