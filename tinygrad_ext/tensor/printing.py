"""The text of a tensor, character for character as PyTorch writes it, and the options for it.

Only the elements that get printed are ever read: the tensor is cut down by slicing first,
so a tensor of 10**8 elements prints as fast as one of a thousand. From there on everything
works on Python numbers. ``tolist`` widens float16, bfloat16 and float32 to double without
rounding, so the digits are those of the stored value.

A text is made in three steps, each a function below: *which* elements (`_shown`),
*how* one element is written (`_column`), *where* it goes (`_layout`).
"""

import math
import operator
import warnings
from contextlib import contextmanager

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import get_default_dtype
from tinygrad_ext.core.data.tensor import Parameter, Tensor

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
# Replaced as a whole and never changed in place: a text being made in another thread
# keeps the options it started with.
_options = {**_PROFILES["default"], "sci_mode": None}
_GAP = object()  # stands, among the shown elements, for those left out


# Options


def _count(name, value):
    """Return value as an int of at least 0, else raise what PyTorch raises when it prints."""
    kind = ValueError if name == "precision" else TypeError
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise kind(
            f"set_printoptions(): argument '{name}' must be an int of at least 0, "
            f"got {value!r} ({type(value).__name__}). Pass for example {name}=3."
        )
    value = operator.index(value)
    if value < 0:
        raise ValueError(
            f"set_printoptions(): argument '{name}' must be at least 0, got {value}. Pass for example {name}=3."
        )
    return value


def _number(name, value):
    """Return value if it compares as a number, else raise TypeError."""
    if isinstance(value, str) or not hasattr(type(value), "__float__"):
        raise TypeError(
            f"set_printoptions(): argument '{name}' must be a number, got {value!r} ({type(value).__name__}). "
            f"Pass for example {name}={_PROFILES['default'][name]}, or math.inf for no limit."
        )
    return value


_CHECKS = {"precision": _count, "threshold": _number, "edgeitems": _count, "linewidth": _number}


@boundary
def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors are printed, for the whole process.

    Args:
        precision: digits after the point (4 at the start).
        threshold: most elements printed in full (1000); ``math.inf`` always prints all.
        edgeitems: elements kept at each end of a dimension of a summarised tensor (3).
        linewidth: characters in a line (80); ``math.inf`` never wraps a row.
        profile: ``"default"``, ``"short"`` or ``"full"``: values for the four above,
            over which the ones given win.
        sci_mode: True for scientific notation, False for none, None to choose by the values.
            As in PyTorch, each call sets it: leaving it out goes back to None.

    Raises:
        TypeError, ValueError: an option is not a number or is negative. PyTorch takes it and
            fails at the next print. An unknown profile only warns, since PyTorch ignores it.

    >>> import tinygrad_ext as tg
    >>> tg.set_printoptions(precision=2)
    >>> tg.tensor([1.12345])
    tensor([1.12])
    >>> tg.set_printoptions(profile="default")
    """
    global _options
    chosen = dict(_options)
    if profile in list(_PROFILES):  # a list, for a profile that cannot be hashed
        chosen.update(_PROFILES[profile])
    elif profile is not None:
        warnings.warn(
            f"set_printoptions(): argument 'profile' is {profile!r}, which is not known and changes nothing. "
            "Use 'default', 'short' or 'full'.",
            stacklevel=2,
        )
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None:
            chosen[name] = _CHECKS[name](name, value)
    chosen["sci_mode"] = sci_mode
    _options = chosen


@boundary
def get_printoptions():
    """Return the options now in force, as a dict that `set_printoptions` takes back.

    >>> from tinygrad_ext.tensor.printing import get_printoptions
    >>> get_printoptions()["precision"]
    4
    """
    return dict(_options)


@boundary
@contextmanager
def printoptions(**options):
    """Set options as `set_printoptions` does and put the earlier ones back at the end of the block.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.tensor.printing import printoptions
    >>> with printoptions(precision=2):
    ...     print(tg.tensor([0.12345]))
    tensor([0.12])
    """
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        _options = before


# Which elements


def _shown(tensor, edge):
    """Return the elements to print as nested lists, `_GAP` where some are left out; edge None keeps all."""
    if edge is None or tensor.dim() == 0:
        return tensor.tolist()
    size = tensor.shape[0]
    if size <= 2 * edge:
        return tensor.tolist() if tensor.dim() == 1 else [_shown(tensor[i], edge) for i in range(size)]
    if tensor.dim() == 1:
        return [*tensor[:edge].tolist(), _GAP, *tensor[size - edge :].tolist()]
    head = [_shown(tensor[i], edge) for i in range(edge)]
    tail = [_shown(tensor[i], edge) for i in range(size - edge, size)]
    return [*head, _GAP, *tail]


def _leaves(shown, dim):
    """Return the elements of nested lists of this depth as one flat list without gaps."""
    row = [shown]
    for _ in range(dim):
        row = [item for part in row for item in part if item is not _GAP]
    return row


# How one element is written. A column is a pair: function from element to text, and width.


def _plain_column(values):
    width = max(map(len, map(str, values)), default=1)
    return lambda value: str(value).rjust(width), width


def _notation(scientific, whole, precision):
    """Return a function that writes one float in the chosen notation, without padding."""
    if scientific:
        return f"{{:.{precision}e}}".format
    if whole:  # "3." shows that the 3 is a float; "inf" and "nan" need no such mark
        return lambda value: f"{value:.0f}." if math.isfinite(value) else str(value)
    return f"{{:.{precision}f}}".format


def _float_column(values, options):
    """Choose one notation for all values. Zeros, NaN and infinities have no say, and none in the width either."""
    judges = [value for value in values if value and math.isfinite(value)]
    if not judges:
        return _notation(False, True, 0), 1
    low, high = min(map(abs, judges)), max(map(abs, judges))
    whole = all(map(float.is_integer, judges))
    scientific = high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4)
    if options["sci_mode"] is not None:
        scientific = options["sci_mode"]
    write = _notation(scientific, whole, options["precision"])
    width = max(map(len, map(write, judges)))
    return lambda value: write(value).rjust(width), width


def _complex_column(values, options):
    """Join a column of real parts and one of imaginary parts; only the real parts line up, as in PyTorch."""
    write_real, real_width = _float_column([value.real for value in values], options)
    write_imag, imag_width = _float_column([value.imag for value in values], options)

    def write(value):
        imag = write_imag(value.imag).lstrip()
        sign = "" if imag[0] == "-" else "+"
        return f"{write_real(value.real)}{sign}{imag}j"

    return write, real_width + imag_width + 1


def _column(values, dtype, options):
    """Return the column for values of this dtype."""
    if dtype.is_complex:
        return _complex_column(values, options)
    return _float_column(values, options) if dtype.is_floating_point else _plain_column(values)


# Where it goes


def _is_meta(tensor):
    return str(tensor.device).partition(":")[0] == "meta"


def _vector(shown, indent, write, per_line):
    """Write a row of elements in brackets, per_line of them in a line."""
    if shown[0] is _GAP:  # nothing else is left when edgeitems is 0
        return "[...]"
    texts = [" ..." if item is _GAP else write(item) for item in shown]
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _layout(shown, dim, indent, write, per_line):
    """Write nested lists of depth dim, whose first line starts in column indent."""
    if dim == 0:
        return write(shown)
    if dim == 1:
        return _vector(shown, indent, write, per_line)
    parts = ["..." if part is _GAP else _layout(part, dim - 1, indent + 1, write, per_line) for part in shown]
    # one empty line more between the blocks of each further dimension
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(parts) + "]"


def _contents(tensor, indent, options):
    """Return the text between the parentheses, before any suffix."""
    if _is_meta(tensor):
        return "..."
    if tensor.numel() == 0:
        return "[]"
    tensor = tensor.detach()  # slicing must not add nodes to the user's graph
    dim = tensor.dim()
    shown = _shown(tensor, options["edgeitems"] if tensor.numel() > options["threshold"] else None)
    values = _leaves(shown, dim) if dim else [shown]
    write, width = _column(values, tensor.dtype, options)
    room = (options["linewidth"] - (indent + dim - 1)) / (width + 2)
    per_line = int(max(1, min(room, len(values) + 1)))
    return _layout(shown, dim, indent, write, per_line)


# Suffixes


def _size_and_dtype(tensor, options):
    """Yield the suffixes for what the printed elements do not tell."""
    default = str(get_default_dtype())
    size_told, dtypes_told = False, {default}
    if not _is_meta(tensor):
        if tensor.numel() == 0:
            size_told = tensor.dim() == 1
        else:
            size_told = options["edgeitems"] > 0
            complex_default = "torch.complex128" if default == "torch.float64" else "torch.complex64"
            dtypes_told = {default, complex_default, "torch.int64", "torch.bool"}
    if not size_told:
        yield f"size={tuple(tensor.shape)}"
    if str(tensor.dtype) not in dtypes_told:
        yield f"dtype={tensor.dtype}"


def _suffixes(tensor, options):
    """Yield the parts that follow the elements, in PyTorch's order."""
    if str(tensor.device).partition(":")[0] != "cpu":
        yield f"device='{tensor.device}'"
    yield from _size_and_dtype(tensor, options)
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view whose base was changed in a way that has no derivative
        yield "grad_fn=<Invalid>"
        return
    if grad_fn is not None:
        yield f"grad_fn=<{grad_fn.name().rpartition('::')[2]}>"
    elif tensor.requires_grad:
        yield "requires_grad=True"


def _append(text, suffixes, indent, linewidth):
    """Join suffixes to text, starting a new line where one would pass linewidth."""
    # PyTorch counts two more for the line than are there; kept, as it decides where lines break.
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _wrapping(tensor):
    """Return what stands before the tensor's text, the name it is printed by, and what stands after it."""
    kind = type(tensor)
    if kind is Tensor:
        return "", "tensor", ""
    # a class that Parameter(data) made for data of a subclass goes by the name of that, as in PyTorch
    header = "Parameter containing:\n" if issubclass(kind, Parameter) and "_parameter_of" not in vars(kind) else ""
    if kind is Parameter:
        return header, "tensor", ""
    if isinstance(tensor, Parameter):  # a subclass, or another tensor type marked as a parameter
        return header + "Parameter(", kind.__name__, ")"
    return header, kind.__name__, ""


def tensor_repr(tensor, *, tensor_contents=None):
    """Return the text that ``repr(tensor)`` shows.

    Args:
        tensor: any tensor; a subclass prints under its own name.
        tensor_contents: text to put in place of the elements, for types that show something else.

    >>> import tinygrad_ext as tg
    >>> tg.ones(2, 2, dtype=tg.float64)
    tensor([[1., 1.],
            [1., 1.]], dtype=torch.float64)
    """
    options = _options
    before, name, after = _wrapping(tensor)
    indent = len(name) + 1
    text = _contents(tensor, indent, options) if tensor_contents is None else tensor_contents
    return before + _append(f"{name}({text}", _suffixes(tensor, options), indent, options["linewidth"]) + after
