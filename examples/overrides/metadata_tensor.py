"""A wrapper: a tensor with a dictionary of notes that travels through every function."""

import tinygrad_ext as tg


class MetadataTensor:
    """A tensor and what is known about it. Results carry the notes of all operands; of equal keys the first one counts.

    Arguments:
        data: a tensor or what `as_tensor` takes. metadata: a dict.

        >>> m = MetadataTensor([[1, 2], [3, 4]], {"owner": "ministry"})
        >>> tg.add(tg.ones(2), m)
        MetadataTensor(tensor([[2., 3.],
                [4., 5.]]), {'owner': 'ministry'})
    """

    def __init__(self, data, metadata=None):
        self.data = tg.as_tensor(data)
        self.metadata = dict(metadata or {})

    def __repr__(self):
        return f"MetadataTensor({self.data!r}, {self.metadata})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        found = []
        args, kwargs = _unwrap(args, found), _unwrap(kwargs or {}, found)
        metadata = {}
        for wrapper in reversed(found):
            metadata.update(wrapper.metadata)
        return _wrap(func(*args, **kwargs), cls, metadata)

    def __add__(self, other):
        return tg.add(self, other)

    def __mul__(self, other):
        return tg.mul(self, other)

    __radd__ = __add__
    __rmul__ = __mul__


def _unwrap(value, found):
    """The value with plain tensors, which `found` collects the wrappers of."""
    if isinstance(value, MetadataTensor):
        found.append(value)
        return value.data
    if isinstance(value, dict):
        return {k: _unwrap(v, found) for k, v in value.items()}
    return type(value)(_unwrap(v, found) for v in value) if type(value) in (list, tuple) else value


def _wrap(result, cls, metadata):
    if isinstance(result, tg.Tensor):
        return cls(result, metadata)
    if isinstance(result, (list, tuple)):  # max(dim=0) returns a tuple with names
        wrapped = [_wrap(r, cls, metadata) for r in result]
        return type(result)(wrapped)
    return result
