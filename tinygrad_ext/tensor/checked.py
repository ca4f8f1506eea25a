"""`torch._check` and the like: conditions of libraries, each with the exception it raises."""

from tinygrad_ext.core.call.boundary import boundary


@boundary
def _check_with(error_type, cond, message=None):
    """Raise an exception of a type unless a condition holds; message: a text, or what gives one when it is called."""
    if not isinstance(cond, bool) and not (hasattr(cond, "__bool__") and not hasattr(cond, "shape")):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    ask = getattr(cond, "checked", None)  # a condition in a program that is being captured
    told = "" if ask is None else _told(message)
    if not (cond if ask is None else ask(told)):
        text = (message() if callable(message) else message) if ask is None else told or None
        raise error_type(
            str(text)
            if text is not None
            else "Expected cond to be True, but got False. (Could this error message be improved?)"
        )


def _told(message):
    """A message in words, if it can be told of numbers that nobody knows yet."""
    try:
        text = message() if callable(message) else message
        return "" if text is None else str(text)
    except RuntimeError:
        return ""


def _check(cond, message=None):
    """RuntimeError unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """RuntimeError unless a number is a size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


@boundary
def _check_tensor_all_with(error_type, cond, message=None):
    """Raise an exception of a type unless all of a tensor of bools are true."""
    if not hasattr(cond, "dtype"):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype).rpartition(".")[2] != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None):
    """RuntimeError unless all of a tensor of bools are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


@boundary
def _assert_async(input, assert_msg=None):
    """RuntimeError for a tensor of one element that is zero."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


@boundary
def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """RuntimeError for a tensor whose size, stride, dtype, device or layout is not the one that is given."""
    for name, wanted in (("size", size), ("stride", stride), ("dtype", dtype), ("device", device), ("layout", layout)):
        if wanted is None:
            continue
        found = getattr(a, name)
        if name in ("size", "stride"):
            found, wanted = list(found()), list(wanted)
        if found != (type(found)(wanted) if name == "device" else wanted):
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found}")
