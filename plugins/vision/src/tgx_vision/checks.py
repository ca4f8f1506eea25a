"""What the compiled loops rely on, checked before them, and the words for what is wrong.

Every call passes through here, so a check is quick to say that all is well, and looks for words only when it is not.
"""

from tinygrad_ext import float32, float64

FLOATS = {float32, float64}


def require_float(op, **tensors):
    """NotImplementedError unless all tensors are float32 or float64, RuntimeError unless they are of one dtype."""
    dtypes = {t.dtype for t in tensors.values()}
    if len(dtypes) == 1 and dtypes <= FLOATS:
        return
    for name, t in tensors.items():
        if t.dtype not in FLOATS:
            raise NotImplementedError(
                f"\"vision::{op}\" not implemented for '{t.dtype}': argument '{name}' must be float32 or float64; "
                "convert it with .float()"
            )
    (first, a), (second, b) = tensors.items()
    raise RuntimeError(
        f"vision::{op}: {second} is {b.dtype} and {first} is {a.dtype}; they must be of one dtype, "
        f"for example {second}.to({first}.dtype)"
    )


def require_shape(op, name, t, *sizes):
    """RuntimeError unless t has these sizes; a str stands for any size and names it."""
    shape = t.shape
    if len(shape) == len(sizes):
        for have, wanted in zip(shape, sizes):
            if have != wanted and type(wanted) is not str:
                break
        else:
            return
    wanted = ", ".join(map(str, sizes))
    raise RuntimeError(f"vision::{op}: {name} must have the shape ({wanted}), but has {list(shape)}")


def require_positive(op, **numbers):
    """ValueError unless all numbers are positive."""
    for name, n in numbers.items():
        if not n > 0:
            raise ValueError(f"vision::{op}: {name} must be positive, not {n}")


def require_rois(op, rois, bad, batch):
    """Raise for what first_bad_roi found: IndexError for a batch number, ValueError for a coordinate."""
    if bad is None:
        return
    row, column = bad
    value = rois[row, column].item()
    if column == 0:
        raise IndexError(
            f"vision::{op}: rois[{row}, 0] is {value}, but it must be the number of an image of the batch, "
            f"0 to {batch - 1}"
        )
    raise ValueError(
        f"vision::{op}: rois[{row}] = {rois[row].tolist()} is no box: entry {column} times spatial_scale, and the "
        "box's extent, must be finite"
    )
