"""`testing.make_tensor`: a tensor of a shape and dtype with random values in a range."""

import math
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary as _boundary


def _range_of(dtype, low, high):
    """The range to draw from: what was asked for, cut to what the dtype holds; by default some digits around zero."""
    if dtype is tg.bool:
        least, most, given = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        info = tg.finfo(dtype)
        least, most, given = info.min, info.max, (-9, 9)
    else:
        info = tg.iinfo(dtype)
        # the upper end is not drawn, and no int64 is above the greatest
        least, most, given = info.min, min(info.max + 1, 2**63 - 1), (0 if info.min == 0 else -9, 10)
    low, high = (default if value is None else value for value, default in zip((low, high), given))
    if any(value != value for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn("Passing `low==high` to make_tensor gives one value only", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(f"The range [{low}, {high}) does not overlap with the values that {dtype} holds")
    return max(low, least), min(high, most)


def _drawn(shape, dtype, device, low, high):
    low, high = _range_of(dtype, low, high)
    if not (dtype.is_floating_point or dtype.is_complex):
        return tg.randint(math.ceil(low), math.ceil(high), shape, dtype=dtype, device=device)
    made = tg.empty(shape, dtype=dtype, device=device)
    numbers = tg.view_as_real(made) if dtype.is_complex else made
    if high - low >= tg.finfo(dtype).max:
        numbers.uniform_(low / 2, high / 2).mul_(2)
    elif low == high:
        numbers.fill_(low)
    else:
        numbers.uniform_(low, high)
    return made


@_boundary
def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """Return a tensor with random values in [low, high).

    Args:
        shape: sizes, or one sequence of them.
        low: by default -9, and 0 for unsigned integers and bool.
        high: by default 9, 10, and 2 for bool.
        noncontiguous: every second element of a larger tensor, where there is more than one.
        exclude_zero: put the smallest positive number, or 1, where a zero was drawn.

    Raises:
        ValueError: a range that is empty or outside of the dtype, or contradicting layouts.
    """
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if noncontiguous and shape and math.prod(shape) > 1:
        made = _drawn((*shape[:-1], 2 * shape[-1]), dtype, device, low, high)[..., 1::2]
    else:
        made = _drawn(shape, dtype, device, low, high)
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = tg.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
    return made.requires_grad_() if requires_grad else made
