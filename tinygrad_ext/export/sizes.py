"""What is declared of the sizes of arguments, and asked of them at each call.

A size is a number, which is fixed; [name, scale, offset], which follows from a named one; or None, which is any.
"""

import math

from tinygrad_ext.core.data.tensor import Tensor


def tensors(tree, path):
    """(path, tensor) of each tensor of an argument, with tuples, lists and dicts: `x`, `x[0]`, `x['k']`."""
    if isinstance(tree, Tensor):
        yield path, tree
    elif isinstance(tree, (tuple, list)):
        for i, part in enumerate(tree):
            yield from tensors(part, f"{path}[{i}]")
    elif isinstance(tree, dict):
        for key, part in tree.items():
            yield from tensors(part, f"{path}[{key!r}]")


class Sizes:
    """What is known of the sizes of all arguments.

    Attributes:
        of: path of a tensor -> list of sizes.
        ranges: name -> (smallest, largest).
    """

    def __init__(self, of, ranges):
        self.of, self.ranges = of, ranges

    def check(self, arguments):
        """AssertionError for a size that was not declared, ValueError where there are other tensors. arguments: (name,
        value) pairs."""
        given = dict(pair for name, value in arguments for pair in tensors(value, name))
        if given.keys() != self.of.keys():
            raise ValueError(
                f"the program was exported with tensors as {', '.join(self.of) or 'no arguments'}, but got "
                f"{', '.join(given) or 'none'}"
            )
        known = {}
        for path, sizes in self.of.items():
            shape = tuple(given[path].shape)
            if len(shape) != len(sizes):
                raise AssertionError(
                    f"{path} has {len(shape)} dimensions, but the program was exported for {len(sizes)}"
                )
            for dim, (size, declared) in enumerate(zip(shape, sizes)):
                if declared is not None:
                    self._check(f"{path}.shape[{dim}]", size, declared, known)

    def _check(self, place, size, declared, known):
        if type(declared) is int:
            if size != declared:
                raise AssertionError(
                    f"{place} is {size}, but the program was exported for {declared}. To leave a size open, name that "
                    "dimension in dynamic_shapes of export()"
                )
            return
        name, scale, offset = declared
        count, rest = divmod(size - offset, scale)
        if rest or count < 0:
            raise AssertionError(f"{place} is {size}, which is no {scale}*{name} + {offset}")
        low, high = self.ranges[name]
        if not low <= count <= high:
            raise AssertionError(f"{place} is {size}: {name} is from {low} to {high}")
        other, first = known.setdefault(name, (count, place))
        if other != count:
            raise AssertionError(f"{place} makes {name} {count}, but {first} makes it {other}")

    # ---- as JSON --------------------------------------------------------------------------------------------------

    def told(self):
        """JSON values, where an end that is open is None."""
        ranges = {name: [low, None if high == math.inf else high] for name, (low, high) in self.ranges.items()}
        return {"of": [[path, sizes] for path, sizes in self.of.items()], "ranges": ranges}

    @classmethod
    def of_told(cls, told):
        """What `told` gave. ValueError for anything else."""
        try:
            ranges = {
                str(n): (_whole(low), math.inf if high is None else _whole(high))
                for n, (low, high) in told["ranges"].items()
            }
            of = {str(path): [_size(s, ranges) for s in sizes] for path, sizes in told["of"]}
        except (TypeError, KeyError, ValueError, AttributeError):
            raise ValueError("its 'sizes' are not as export() writes them") from None
        return cls(of, ranges)


def _whole(n):
    if type(n) is not int:
        raise TypeError
    return n


def _size(s, ranges):
    if s is None or type(s) is int:
        return s
    name, scale, offset = s
    if name not in ranges or _whole(scale) < 1:
        raise ValueError
    return [name, scale, _whole(offset)]
