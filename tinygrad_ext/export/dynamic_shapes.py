"""Names for sizes that an exported program leaves open."""

import inspect
import math

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor


class Hint:
    """What is said of a size that gets no name."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Dim.{self.name}"

    __reduce__ = __repr__


class Sum:
    """a * Dim + b, a size that follows from a named one."""

    def __init__(self, root, scale, offset):
        self.root, self.scale, self.offset = root, scale, offset

    @property
    def __name__(self):
        text = self.root.__name__ if self.scale == 1 else f"{self.scale}*{self.root.__name__}"
        return f"{text} {'+' if self.offset > 0 else '-'} {abs(self.offset)}" if self.offset else text

    def __repr__(self):
        return self.__name__

    def __add__(self, other):
        return Sum(self.root, self.scale, self.offset + _whole(other))

    __radd__ = __add__

    def __sub__(self, other):
        return self + -_whole(other)

    def __mul__(self, other):
        if _whole(other) <= 0:
            raise NotImplementedError(f"a Dim is multiplied by whole numbers above 0, not by {other}")
        return Sum(self.root, self.scale * other, self.offset * other)

    __rmul__ = __mul__


def _whole(number):
    if type(number) is not int:
        raise NotImplementedError(f"a Dim is added to and multiplied by whole numbers, not {type(number).__name__}")
    return number


class Dim(Sum):
    """A size with a name: all dimensions of one name have the same size.

    Arguments:
        name: a Python identifier. min, max: the smallest and the largest size, both allowed.

    `2 * batch + 1` is a size that follows from another. Dim.AUTO leaves a size open where the program allows it,
    Dim.DYNAMIC is one without a name that must be open, Dim.STATIC the example's.

    >>> from tinygrad_ext.export import Dim
    >>> 2 * Dim("batch", min=2, max=64)
    2*batch
    """

    AUTO, DYNAMIC, STATIC = Hint("AUTO"), Hint("DYNAMIC"), Hint("STATIC")

    def __init__(self, name, *, min=None, max=None):
        if not isinstance(name, str) or not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.min, self.max = 0 if min is None else min, math.inf if max is None else max
        if not self.max > self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self._name = name
        super().__init__(self, 1, 0)

    @property
    def __name__(self):
        return self._name

    def __repr__(self):
        given = [f"min={self.min}"] * (self.min > 0) + [f"max={self.max}"] * (self.max < math.inf)
        return f"Dim({', '.join([repr(self._name), *given])})"


@boundary
def dims(*names, min=None, max=None):
    """A Dim of each name, all from `min` to `max`.

    >>> from tinygrad_ext.export import dims
    >>> dims("height", "width", max=64)
    (Dim('height', max=64), Dim('width', max=64))
    """

    return tuple([Dim(name, min=min, max=max) for name in names])


@boundary
class ShapesCollection:
    """What is said of the sizes of tensors, by the tensors themselves, where arguments are nested deeply.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.export import Dim, ShapesCollection
    >>> x, shapes = tg.ones(3, 2), ShapesCollection()
    >>> shapes[x] = {0: Dim("batch")}
    >>> shapes.dynamic_shapes(lambda pair: pair[0], ((x, 1),))
    {'pair': ({0: Dim('batch')}, None)}
    """

    def __init__(self):
        self._said = {}

    def __setitem__(self, t, shape):
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        if id(t) in self._said and self._said[id(t)][1] != shape:
            raise AssertionError(f"Shapes assigned to tensor do not match: {self._said[id(t)][1]} and {shape}")
        self._said[id(t)] = t, shape

    def __getitem__(self, t):
        if id(t) not in self._said:
            self[t] = {}
        return self._said[id(t)][1]

    def __len__(self):
        return len(self._said)

    def dynamic_shapes(self, m, args, kwargs=None):
        """What `export(m, args, kwargs, dynamic_shapes=...)` takes. ValueError for a tensor that is no argument."""
        seen = set()

        def told(tree):
            if isinstance(tree, Tensor):
                seen.add(id(tree))
                return self._said[id(tree)][1] if id(tree) in self._said else None
            if isinstance(tree, dict):
                return {key: told(part) for key, part in tree.items()}
            return type(tree)(map(told, tree)) if type(tree) in (tuple, list) else None

        bound = inspect.signature(getattr(m, "forward", m)).bind(*args, **(kwargs or {})).arguments
        found = {name: told(value) for name, value in bound.items()}
        for key, (tensor, shape) in self._said.items():
            if key not in seen:
                raise ValueError(f"no argument is the tensor of sizes {list(tensor.shape)} of which {shape} is said")
        return found
