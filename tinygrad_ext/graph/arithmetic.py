"""Which operations of a plan's program (kernels/program.h) compute a primitive on numbers, with Python's rules.

What has no row here is a call of the primitive's Python function, from within the plan.
"""

from . import primitives
from .lowering import NotPlanned, Number

_ORDER = {"lt": "lt", "le": "le", "eq": "eq", "ne": "ne"}
_TURNED = {"gt": "lt", "ge": "le"}
_BOTH = ("add", "sub", "mul", "floordiv", "mod", "pow")
_BITS = {"bitand": "and", "bitor": "or", "bitxor": "xor"}
_MATH = (
    "sqrt",
    "exp",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "expm1",
    "log",
    "log2",
    "log10",
)
_WHOLE = {"floor": "floor", "ceil": "ceil", "trunc": "int"}
_QUESTIONS = ("isnan", "isinf", "isfinite")
_SEEN = {"int": int, "float": float, "bool": bool, "complex": complex}


def kind(o):
    return type(o.value) if isinstance(o, Number) else type(o)


def computed(lowering, op, args):
    """The number that a primitive makes of numbers, of which some are known only while the plan runs."""
    name = op.removeprefix("prim::")
    made = None
    if complex not in map(kind, args):
        made = _Arithmetic(lowering, name).of(*args)
    return _called(lowering, op, args) if made is None else made


def _called(lowering, op, args):
    row = primitives.TABLE[op]
    found = _SEEN.get(row.returns[0]) if row.returns else None
    if found is None:
        try:
            found = type(row.run(*[a.value if isinstance(a, Number) else a for a in args]))
        except (ArithmeticError, ValueError, TypeError) as error:
            raise NotPlanned(f"{op}: {error}") from None
    if found not in _SEEN.values():
        raise NotPlanned(f"{op} gives a {found.__name__}")
    return lowering.called(row.run, tuple(args), found)


class _Arithmetic:
    def __init__(self, lowering, name):
        self.lowering, self.name = lowering, name

    def make(self, code, result, a, b=None, which=0):
        return self.lowering.compute(code, result, a, b, which, self.name)

    def real(self, o):
        """As a float; one that is an int is rounded as Python does."""
        if isinstance(o, Number):
            return o if kind(o) is float else self.make("float", float, o)
        return float(o)

    def exact(self, o):
        """As a float that is the same number."""
        return self.make("exact", float, o) if isinstance(o, Number) and kind(o) is not float else self.constant(o)

    def constant(self, o):
        if isinstance(o, Number) or float(o) == o or o != o:
            return o if isinstance(o, Number) else float(o)
        raise NotPlanned("a float is compared with a large int")

    def of(self, *args):
        name, kinds = self.name, [kind(a) for a in args]
        whole = float not in kinds
        if len(args) == 2 and name in (*_BOTH, *_ORDER, *_TURNED, "max", "min", "truediv"):
            return self.of_two(name, *args, whole, kinds[0] is kinds[1])
        if name in _BITS and whole:
            return self.make(_BITS[name], bool if kinds[0] is kinds[1] is bool else int, *args)
        if name in ("lshift", "rshift") and whole:
            return self.make(name, int, *args)
        if name == "or" and kinds == [bool, bool]:
            return self.make("or", bool, *args)
        if name == "range_length" and whole:
            return self.range_length(*args)
        if name.startswith("math."):
            return self.math(name[5:], args, whole)
        return self.of_one(name, *args, whole) if len(args) == 1 else None

    def of_two(self, name, a, b, whole, alike):
        if name in _TURNED:
            name, a, b = _TURNED[name], b, a
        if name in _ORDER:
            return self.make(name, bool, a, b) if whole else self.make("f" + name, bool, self.exact(a), self.exact(b))
        if name in ("max", "min"):
            return self.make(name if whole else "f" + name, kind(a), a, b) if alike else None
        if whole:
            return self.make(name, float if name == "truediv" else int, a, b)
        return self.make("fdiv" if name == "truediv" else "f" + name, float, self.real(a), self.real(b))

    def of_one(self, name, a, whole):
        if name in ("neg", "abs"):
            return self.make(name if whole else "f" + name, int if whole else float, a)
        if name == "round" or name == "int":
            return self.make("move" if whole else name, int, a)
        if name == "invert" and whole:
            return self.make("invert", int, a)
        if name == "float":
            return self.make("float", float, a) if whole else a
        truth = a if kind(a) is bool else self.make("truth" if whole else "ftruth", bool, a)
        return truth if name == "bool" else self.make("not", bool, truth) if name == "not" else None

    def math(self, name, args, whole):
        if len(args) == 2:
            return self.make("fpow", float, *map(self.real, args)) if name == "pow" else None
        (a,) = args
        if name in _MATH:
            return self.make("math", float, self.real(a), None, _MATH.index(name))
        if name in _WHOLE:
            return self.make("move" if whole else _WHOLE[name], int, a)
        if name in _QUESTIONS:
            return self.make(name, bool, self.real(a))
        return self.make("fabs", float, self.real(a)) if name == "fabs" else None

    def range_length(self, start, stop, step):
        """Steps of a known size from start to stop."""
        if isinstance(step, Number) or step == 0:
            return None
        if step < 0:
            start, stop, step = stop, start, -step
        length = self.make("sub", int, stop, start)
        if step != 1:
            length = self.make("floordiv", int, self.make("add", int, length, step - 1), step)
        return self.make("max", int, length, 0)
