"""rearrange: dimensions that a pattern of names splits, orders and joins, as einops writes them."""

import functools
import math
import re

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.op_tables import functions

_TOKEN = re.compile(r"\.\.\.|[()]|[^\s()]+?(?=\.\.\.|[\s()]|$)")


def _refuse(pattern, why):
    raise ValueError(f"rearrange(): {why} in the pattern {pattern!r}, which is to be like 'b (h w) c -> b c h w'")


def _check_name(pattern, name):
    if name.isdecimal():
        if name != "1":
            _refuse(pattern, f"only axes of size 1 go without a name, got {name}")
    elif not name.isidentifier() or name[0] == "_" or name[-1] == "_":
        _refuse(pattern, f"an axis is named as a Python variable is, without underscores at its ends, got {name!r}")


def _groups(text, pattern):
    """What each dimension of one side consists of: a tuple of names, "..." being one."""
    groups, inside = [], None
    for token in _TOKEN.findall(text):
        if token in "()":
            if (token == "(") == (inside is not None):
                _refuse(pattern, "parentheses stand alone or within others")
            if token == ")":
                groups.append(tuple(inside))
            inside = [] if token == "(" else None
            continue
        if token != "...":
            if "." in token:
                _refuse(pattern, "dots stand for dimensions only by three, '...'")
            _check_name(pattern, token)
        names = [] if token == "1" else [token]
        if inside is None:
            groups.append(tuple(names))
        else:
            inside += names
    if inside is not None:
        _refuse(pattern, "parentheses are not closed")
    return groups


@functools.lru_cache(256)
def _read(pattern, given):
    """Groups of the left side and of the right one."""
    sides = pattern.split("->")
    if len(sides) != 2:
        _refuse(pattern, f"expected one '->', got {len(sides) - 1},")
    left, right = [_groups(side, pattern) for side in sides]
    for side in (left, right):
        names = [name for group in side for name in group]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            _refuse(pattern, f"{', '.join(twice)} stand(s) twice on one side")
    before, after = ({name for group in side for name in group} for side in (left, right))
    if any("..." in group and len(group) > 1 for group in left):
        _refuse(pattern, "'...' stands in parentheses on the left side")
    if before != after:
        _refuse(pattern, f"{', '.join(sorted(before ^ after))} must stand on both sides")
    if unknown := sorted(set(given) - before):
        _refuse(pattern, f"sizes are given for {', '.join(unknown)}, which do not stand")
    return left, right


def _split(pattern, group, size, known):
    """Sizes of the names that one dimension consists of, put into known."""
    missing = [name for name in group if name not in known]
    if len(missing) > 1:
        raise RuntimeError(
            f"rearrange(): cannot infer the sizes of {' and '.join(missing)} at once in {pattern!r}: give all but one "
            f"of them, as {missing[0]}=2"
        )
    rest = math.prod(known[name] for name in group if name in known)
    if missing:
        if rest < 1 or size % rest:
            raise RuntimeError(
                f"rearrange(): {' '.join(group)} of {pattern!r} cannot make up the size {size}: it is no multiple of "
                f"{rest}"
            )
        known[missing[0]] = size // rest
    elif rest != size:
        raise RuntimeError(f"rearrange(): {' '.join(group) or '1'} of {pattern!r} has the size {rest}, got {size}")


@boundary
def rearrange(tensor, pattern, **axes_lengths):
    """Split, order and join dimensions by their names.

    A dimension is a name, several names in parentheses that make it up, ``1`` or ``()`` for a size of one, or ``...``
    for all that is not named. Both sides of ``->`` have the same names.

    Args:
        tensor: a tensor, or a list or tuple of tensors of one size, whose number is then the first dimension.
        pattern: such as ``"b c (h k) w -> b (c k) h w"``.
        axes_lengths: sizes of names; those that can be computed need none.

    Returns a view where that can be.

    Raises:
        ValueError: a pattern that cannot be read, or that is not made for so many dimensions.
        RuntimeError: sizes that do not fit.

    Example::

        >>> import tinygrad_ext as tg
        >>> tg.func.rearrange(tg.zeros(2, 3, 8, 8), "b c (h k) w -> b (c k) h w", k=4).shape
        torch.Size([2, 12, 2, 8])
    """
    if isinstance(tensor, (list, tuple)):
        tensor = functions["stack"](tensor)
    if not isinstance(pattern, str):
        raise TypeError(f"rearrange(): pattern must be a str such as 'a b -> b a', got {type(pattern).__name__}")
    left, right = _read(pattern, tuple(axes_lengths))
    sizes, named = list(tensor.shape), len(left) - (("...",) in left)
    if len(sizes) != named if named == len(left) else len(sizes) < named:
        raise ValueError(
            f"rearrange(): the pattern {pattern!r} names {named} dimension(s), but the tensor has {len(sizes)}: {sizes}"
        )
    for name, size in axes_lengths.items():
        if type(size) is not int:
            raise TypeError(f"rearrange(): the size of {name} must be an int, got {type(size).__name__}")
    known, split, places, at = dict(axes_lengths), [], {}, 0
    for group in left:
        if group == ("...",):
            many = len(sizes) - named
            places["..."] = range(len(split), len(split) + many)
            split += sizes[at : at + many]
            at += many
            continue
        _split(pattern, group, sizes[at], known)
        for name in group:
            places[name] = (len(split),)
            split.append(known[name])
        at += 1
    order = [place for group in right for name in group for place in places[name]]
    joined = []
    for group in right:
        made = [split[place] for name in group for place in places[name]]
        joined += made if group == ("...",) else [math.prod(made)]
    found = tensor if split == sizes else tensor.reshape(split)
    found = found if order == list(range(len(order))) else found.permute(order)
    return found if list(found.shape) == joined else found.reshape(joined)
