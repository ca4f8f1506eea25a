"""Numbers while a program is captured: sizes, and numbers that were passed in. Arithmetic on them is written down.

A `Symbol` is no int. C code that was handed a subclass of int would read its value unseen, and the graph would be good
for that value alone. A Symbol shows its value only by being asked (`int()`, `==`, `hash`, an index of a list), and
then the graph holds a guard: it is good for this answer only.
"""

import math

from .primitives import TABLE
from .types import BOOL, FLOAT, INT

TYPES = {int: INT, float: FLOAT, bool: BOOL}


class _Plain:
    """What stands for the dtype of a Python number."""

    is_complex = is_floating_point = False


class Symbol:
    """A number of a program that is captured. Attributes: value (in the graph), hint (what it is this time)."""

    __slots__ = ("capture", "hint", "of_data", "value")

    stands_for_a_size = True  # so that a Size takes it as it is
    dtype, ndim = _Plain(), 0  # what the binding of arguments knows a number of another library by

    def __init__(self, capture, value, hint, of_data=False):
        """of_data: it hangs on elements of a tensor, so no graph can hold for one answer."""
        self.capture, self.value, self.hint, self.of_data = capture, value, hint, of_data

    # ---- answers that the graph is then bound to -------------------------------------------------------------------

    def known(self):
        """What it is this time; the graph is good for nothing else from now on."""
        self.capture.guard(self)
        return self.hint

    def __index__(self):
        if type(self.hint) is float:
            raise TypeError("'float' object cannot be interpreted as an integer")
        return int(self.known())

    def __int__(self):
        return int(self.known())

    def __float__(self):
        return float(self.known())

    def __bool__(self):
        return bool(self.known()) if self.of_data else self != 0

    def checked(self, text):
        """Whether it holds now; a condition on elements is one that the graph asks again each time. text: in words."""
        if not self.of_data:
            return bool(self)
        if self.hint:
            self.capture.guard_checked(self, text)
        return bool(self.hint)

    def __hash__(self):
        return hash(self.known())

    def __round__(self, digits=None):
        return round(self.known(), digits)

    def __trunc__(self):
        return math.trunc(self.known())

    def __format__(self, spec):
        return format(self.known(), spec)

    def __str__(self):
        return str(self.known())

    def __repr__(self):
        return repr(self.hint)

    def computed(self, name, *operands):
        """A primitive of numbers, this one among them."""
        return self.capture.compute(f"prim::{name}", TABLE[f"prim::{name}"].run, *operands)

    def is_integer(self):
        return True if type(self.hint) is not float else self.known().is_integer()


def hint_of(number):
    return number.hint if type(number) is Symbol else number


def named(number):
    """A number as it is told in a message."""
    if type(number) is not Symbol:
        return repr(number)
    node = number.value.node
    if node is not None and node.op == "prim::size":
        return f"{_plain(node.args[0].name)}.shape[{node.args[1]}]"
    return _plain(number.value.name)


def _plain(name):
    return f"%{name}" if name[:1].isdigit() else name


def _number(o):
    return type(o) in (Symbol, int, float, bool)


def _arithmetic(name, function):
    def forward(self, other):
        if not _number(other):
            return NotImplemented
        return self.capture.compute(f"prim::{name}", function, self, other)

    def reflected(self, other):
        if not _number(other):
            return NotImplemented
        return self.capture.compute(f"prim::{name}", function, other, self)

    return forward, reflected


def _comparison(name, function):
    def compare(self, other):
        if not _number(other):
            return NotImplemented
        return self.capture.decide(f"prim::{name}", function, self, other)

    return compare


def _install():
    import operator  # lazy: names only

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        forward, reflected = _arithmetic(name, getattr(operator, name))
        setattr(Symbol, f"__{name}__", forward)
        setattr(Symbol, f"__r{name}__", reflected)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Symbol, f"__{name}__", _comparison(name, getattr(operator, name)))
    for name, function in (("neg", operator.neg), ("abs", abs)):
        setattr(Symbol, f"__{name}__", lambda self, f=function, n=name: self.capture.compute(f"prim::{n}", f, self))
    Symbol.__pos__ = lambda self: self
    Symbol.__divmod__ = lambda self, other: (self // other, self % other)
    Symbol.__rdivmod__ = lambda self, other: (other // self, other % self)


_install()
