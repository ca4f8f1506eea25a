"""The object that a file held, its tensors on another device.

A pickle may hold one list a thousand times, in itself, or a million lists in each other. So nothing here recurses, and
each container is visited once, whatever the number of ways to it.
"""

from tinygrad_ext.archive import sparse_parts
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.tensor.typed_storage import TypedStorage


class Part:
    """A storage of a file with the dtype its tensors have, None for bytes."""

    def __init__(self, storage, dtype):
        self.storage, self.dtype = storage, dtype

    def shown(self):
        """The storage as PyTorch has it: numbers of the dtype, or bytes."""
        bare = _core.window(self.storage, self.dtype or by_name["uint8"], (0,), (1,), 0, False).untyped_storage()
        return bare if self.dtype is None else TypedStorage(wrap_storage=bare, dtype=self.dtype)


def memory_of(held):
    """The block of a Part, or of a storage that was shown of one."""
    if type(held) is Part:
        return held.storage
    typed = held if isinstance(held, TypedStorage) else TypedStorage(wrap_storage=held, dtype=by_name["uint8"])
    return _core.storage_of(typed._shown)


DEEPEST = 1000  # levels; what prints or copies the object afterwards recurses


def settled(obj, onto):
    """obj with its tensors on a device (where they are, for None).

    Dicts and lists are changed in place, tuples made anew where they must. ValueError for an object that contains
    itself or is nested too deep.
    """
    done, depth, waiting = {}, {}, [(obj, False)]
    while waiting:
        value, ready = waiting.pop()
        if ready:
            parts = list(_parts(value))
            done[id(value)] = _rebuilt(value, done, onto)
            depth[id(value)] = 1 + max((depth.get(id(p), 0) for p in parts), default=0)
            if depth[id(value)] > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST:,} levels deep")
        elif id(value) in done:
            if done[id(value)] is _OPEN:
                raise ValueError("it contains itself")
        elif isinstance(value, Part):
            done[id(value)] = value.shown()
        elif isinstance(value, _NESTS):
            done[id(value)] = _OPEN
            waiting.append((value, True))
            waiting.extend((p, False) for p in _parts(value) if isinstance(p, (*_NESTS, Part)))
    return done.get(id(obj), obj)


_OPEN = object()
_NESTS = (Tensor, dict, list, tuple, set)


def _parts(value):
    if isinstance(value, Tensor):
        return sparse_parts.attributes(value).values()
    return (
        (*(key for key in value if isinstance(key, (Part, tuple))), *value.values())
        if isinstance(value, dict)
        else value
    )


def _rebuilt(value, done, onto):
    """A tensor with its attributes, or a container, of the parts in `done`; numbers and text stand for themselves."""
    if isinstance(value, Tensor):
        told = {name: done.get(id(part), part) for name, part in sparse_parts.attributes(value).items()}
        value = value if onto is None else _moved(value, onto)
        vars(value).update(told)
    elif isinstance(value, dict):
        if any(done.get(id(key), key) is not key for key in value):
            found = [(done.get(id(key), key), part) for key, part in value.items()]
            value.clear()
            value.update(found)
        for key, part in value.items():
            new = done.get(id(part), part)
            if new is not part:
                value[key] = new
    elif isinstance(value, set):
        found = [done.get(id(part), part) for part in value]
        value.clear()
        value.update(found)
    elif isinstance(value, list):
        value[:] = [done.get(id(part), part) for part in value]
    elif any(done.get(id(part), part) is not part for part in value):
        return type(value)(done.get(id(part), part) for part in value)
    return value


def _moved(t, onto):
    if t.device == onto or t.device.type == "meta":  # which has no elements to move
        return t
    made = t.detach().to(onto)
    return Parameter(made, t.requires_grad) if isinstance(t, Parameter) else made.requires_grad_(t.requires_grad)
