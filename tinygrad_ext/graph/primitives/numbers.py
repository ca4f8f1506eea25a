"""Numbers: arithmetic with Python's rules, comparison, conversion."""

import cmath
import functools
import math
import operator

from tinygrad_ext.ops.folding import divided
from tinygrad_ext.ops.shapes import broadcast_sizes

from .table import primitive

for _name, _function in {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "max": max,
    "min": min,
}.items():
    primitive(_name, "Scalar Scalar", None, _function)
primitive("truediv", "Scalar Scalar", None, operator.truediv)
primitive("ratio", "Scalar Scalar", "float", divided)
primitive("broadcast", "int int", "int", lambda a, b: broadcast_sizes((a,), (b,))[0])
primitive(
    "broadcast_shapes", "List[int] ...", "List[int]", lambda *row: list(functools.reduce(broadcast_sizes, row, ()))
)
primitive("neg", "Scalar", None, operator.neg)
primitive("abs", "Scalar", None, abs)
primitive("round", "Scalar", None, round)
for _name in ("lt", "le", "gt", "ge"):
    primitive(_name, "Any Any", "bool", getattr(operator, _name))
for _name in ("eq", "ne"):
    primitive(_name, "Any Any", "bool", getattr(operator, _name))
primitive("not", "Any", "bool", operator.not_)
primitive("or", "bool bool", "bool", lambda a, b: a or b)
primitive("is", "Any Any", "bool", operator.is_)
primitive("isnot", "Any Any", "bool", operator.is_not)
for _name in ("and", "or", "xor", "lshift", "rshift"):
    primitive(
        f"bit{_name}" if _name in ("and", "or", "xor") else _name,
        "int int",
        None,
        getattr(operator, f"{_name}_" if _name in ("and", "or") else _name),
    )
primitive("invert", "int", "int", operator.invert)
primitive("int", "Any", "int", int)
primitive("float", "Any", "float", float)
primitive("bool", "Any", "bool", bool)
primitive("complex", "Scalar Scalar", "complex", complex)
primitive("str", "Any", "str", str)
primitive("divmod", "Scalar Scalar", None, divmod)
primitive("round_to", "Scalar int", None, round)
primitive("real", "Scalar", "float", lambda n: float(n.real))
primitive("imag", "Scalar", "float", lambda n: float(n.imag))
primitive("conjugate", "Scalar", None, lambda n: n.conjugate())

# the functions of `math`, and how many arguments they take
_WHOLE = ("floor", "ceil", "trunc", "gcd", "factorial")
_TRUTH = ("isnan", "isinf", "isfinite")
MATH = {
    **dict.fromkeys(
        (
            "sqrt",
            "exp",
            "log",
            "log2",
            "log10",
            "log1p",
            "expm1",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "fabs",
            "erf",
            "erfc",
            "gamma",
            "lgamma",
            "degrees",
            "radians",
            "floor",
            "ceil",
            "trunc",
            "factorial",
            "isnan",
            "isinf",
            "isfinite",
        ),
        1,
    ),
    **dict.fromkeys(["pow", "atan2", "fmod", "copysign", "remainder", "gcd", "ldexp", "hypot"], 2),
}
for _name, _count in MATH.items():
    _result = "int" if _name in _WHOLE else "bool" if _name in _TRUTH else "float"
    primitive(f"math.{_name}", " ".join(["Scalar"] * _count), _result, getattr(math, _name))

primitive("math.modf", "Scalar", "Tuple[float, float]", math.modf)
primitive("math.frexp", "Scalar", "Tuple[float, int]", math.frexp)

COMPLEX_MATH = (
    "sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "phase", "isnan", "isinf", "isfinite",
)  # fmt: skip
for _name in COMPLEX_MATH:
    _result = "bool" if _name[:2] == "is" else "float" if _name == "phase" else "complex"
    primitive(f"cmath.{_name}", "Scalar", _result, getattr(cmath, _name))
primitive("cmath.rect", "Scalar Scalar", "complex", cmath.rect)
