"""What a traced graph was captured for, and what a call gives, as JSON values that can be compared.

    {"tensor": ["float32", 2, false, "cpu"]}      dtype, number of dimensions, requires_grad, kind of device
    {"number": "int"}    {"list": [...]}    {"tuple": [...]}    {"dict": [[key, ...], ...]}    {"is": "a word"}

In the process that traced it a call is looked up by numbers (graph/keys.pyx), which mean nothing in another.
"""

from tinygrad_ext.core.data.tensor import Tensor


def told(a):
    """The JSON value of an argument, or of a tuple of them."""
    if isinstance(a, Tensor):
        return {"tensor": [a.dtype.name, a.dim(), a.requires_grad, a.device.type]}
    if type(a) in (int, float):
        return {"number": type(a).__name__}
    if isinstance(a, (tuple, list)):
        return {"list" if isinstance(a, list) else "tuple": [told(part) for part in a]}
    if isinstance(a, dict):
        return {"dict": [[_word(key), told(part)] for key, part in a.items()]}
    return {"is": _word(a)}


def _word(value):
    return value if value is None or type(value) in (bool, int, str) else repr(value)


def loose(key, count=2):
    """A key without requires_grad and devices, which the ops of a graph take as they come; with a count of 1 without
    numbers of dimensions too."""
    if isinstance(key, list):
        return [loose(part, count) for part in key]
    if isinstance(key, dict):
        return {kind: part[:count] if kind == "tensor" else loose(part, count) for kind, part in key.items()}
    return key
