"""torch._tensor_str: the text of a tensor's elements, for types that show them within a text of their own."""

from tinygrad_ext.tensor import printing as _printing
from tinygrad_ext.tensor.printing import get_printoptions, printoptions, set_printoptions  # noqa: F401 - names there


class _Options:
    """What `set_printoptions` has set, read when it is asked for, and set where it is written to."""

    def __getattr__(self, name):
        try:
            return _printing._options[name]
        except KeyError:
            raise AttributeError(f"PRINT_OPTS has {', '.join(_printing._options)}, not {name}") from None

    def __setattr__(self, name, value):
        getattr(self, name)
        _printing.set_printoptions(**{"sci_mode": self.sci_mode, name: value})


PRINT_OPTS = _Options()


class _Formatter:
    """How the elements of a tensor are written: in one notation, as wide as the widest of them."""

    def __init__(self, tensor):
        self.floating_dtype = tensor.dtype.is_floating_point
        values = tensor.detach().reshape(-1).tolist()
        write, self.max_width = _printing._column(values, tensor.dtype, _printing._options)
        self._write = write

    def width(self):
        """How wide an element is."""
        return self.max_width

    def format(self, value):
        """The text of a number."""
        return self._write(value)


def _tensor_str(self, indent):
    """What stands between the parentheses of ``repr(self)``; indent: the column where it starts."""
    return _printing._contents(self, indent, _printing._options)


def _str(self, *, tensor_contents=None):
    """The text that ``repr(self)`` shows, with another text in place of the elements where one is given."""
    return _printing.tensor_repr(self, tensor_contents=tensor_contents)


_str_intern = _str


def _add_suffixes(tensor_str, suffixes, indent, force_newline):
    """A text that begins with "name(", with its suffixes and its end."""
    if force_newline and suffixes:
        tensor_str, suffixes = f"{tensor_str},\n{' ' * indent}{suffixes[0]}", suffixes[1:]
    return _printing._append(tensor_str, suffixes, indent, _printing._options["linewidth"])
