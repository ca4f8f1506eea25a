"""Python's built-in functions, those of math, and functions of the package that are no ops."""

import ast
import builtins
import math
from collections import OrderedDict

import tinygrad_ext as tg
from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.primitives.numbers import MATH
from tinygrad_ext.graph.types import BOOL, COMPLEX, FLOAT, INT, SCALAR, STR, TENSOR, Type, list_of

from .expressions import KINDS
from .types import NUMBERS, parts_of
from .values import DictLiteral, ListLiteral, Static, TupleOfList, TupleValue, as_list, is_constant, type_of

BUILTINS = {}  # Python object -> function(c, args, kwargs)


def builtin(*objects):
    """Decorator: how a call of these Python objects is compiled."""
    return lambda function: BUILTINS.update(dict.fromkeys(objects, function)) or function


MANY = 1000
# how many arguments Python's own functions take
_COUNTS = {
    **dict.fromkeys((list, tuple, str, int, float, bool), (0, 1)),
    **dict.fromkeys((len, reversed, any, all, abs, ord, chr, hex, oct, bin), (1, 1)),
    **dict.fromkeys((enumerate, round, sum, sorted), (1, 2)),
    **dict.fromkeys((divmod, math.pow), (2, 2)),
    range: (1, 3),
    dict: (0, MANY),
    complex: (0, 2),
    pow: (2, 2),
    min: (1, MANY),
    max: (1, MANY),
}


class Builtin(Static):
    """A function that script knows by itself."""

    kind = "a built-in function"

    def __init__(self, python, name):
        self.python, self.name, self.cls = python, name, python

    def told(self):
        return f"the function {self.name}"

    def call(self, c, args, kwargs):
        least, most = _COUNTS.get(self.python, (0, MANY))
        if not least <= len(args) + len(kwargs) <= most:
            _miscounted(c, self.name, least, most, len(args) + len(kwargs))
        return BUILTINS[self.python](c, args, kwargs)


def _miscounted(c, name, least, most, count):
    told = f"{least} to {most}" if most < MANY else f"at least {least}"
    bound = f"at least {least}" if count < least else f"at most {most}"
    c.fault(f"{name}() takes {told} arguments, got {count}: {name} expected {bound} arguments, got {count}")


def _known(c, value, name):
    try:
        return Builtin(value, name) if value in BUILTINS else None
    except TypeError:
        return None


KINDS.insert(0, (object, _known))


def _only(c, name, args, kwargs, count):
    if kwargs or len(args) not in count:
        c.fault(f"{name}() takes {' or '.join(map(str, count))} arguments, got {len(args) + len(kwargs)}")


# ---- sizes and iteration -------------------------------------------------------------------------------------------


@builtin(len)
def _len(c, args, kwargs):
    _only(c, "len", args, kwargs, (1,))
    operand = args[0]
    own = operand.own_method("__len__") if hasattr(operand, "own_method") else None
    if own is not None:
        return own.call(c, [], {})
    items = operand.items(c) if isinstance(operand, Static) else None
    if items is not None:
        return len(list(items))
    value = c.value(as_list(operand))
    type = type_of(value)
    if type is TENSOR:
        return c.emit("prim::size", (value, 0), INT)
    if c.tuple_types(type) is not None:
        return len(c.tuple_types(type))
    if type is STR or type.word in ("List", "Dict"):
        return c.emit("prim::len", (value,), INT)
    made = c.call_magic("__len__", value, [])
    if made is None:
        c.fault(f"a value of type {type} has no len()")
    return made


@builtin(range)
def _range(c, args, kwargs):
    return c.range_(args)


@builtin(enumerate)
def _enumerate(c, args, kwargs):
    return c.enumerate_(args[0], (*args[1:], *kwargs.values(), 0)[0])


@builtin(zip)
def _zip(c, args, kwargs):
    return c.zip_(args)


@builtin(reversed)
def _reversed(c, args, kwargs):
    return c.reversed_(args[0])


@builtin(list)
def _list(c, args, kwargs):
    if not args:
        return ListLiteral([])
    operand = args[0]
    if isinstance(operand, TupleValue):
        return ListLiteral(operand.values)
    type = type_of(operand)
    if isinstance(operand, ListLiteral):
        return operand
    if type is not None and type.word == "List":
        return c.emit("prim::to_list", (c.value(operand),), type)
    if type is STR:
        return c.emit("prim::to_list", (operand,), list_of(STR))
    if type is not None and type.word == "Dict":
        return c.emit("prim::dict.keys", (c.value(operand),), list_of(type.args[0]))
    target = ast.Name("$item", ast.Store())
    generator = ast.comprehension(target, ast.Name("$over", ast.Load()), [], 0)
    c.scope.bound["$over"] = operand
    found = c.comprehension([generator], lambda: c.scope.find("$item"))
    del c.scope.bound["$over"]
    return found


@builtin(tuple)
def _tuple(c, args, kwargs):
    if not args:
        return TupleValue([])
    type = type_of(args[0])
    if isinstance(args[0], Value) and type.word == "List":
        return TupleOfList(c.emit("prim::to_list", (args[0],), type))
    return TupleValue(c.unpacked(args[0], None))


@builtin(dict, OrderedDict)
def _dict(c, args, kwargs):
    if not args:
        return DictLiteral(kwargs.keys(), kwargs.values())
    operand = args[0]
    type = type_of(operand)
    if isinstance(operand, ListLiteral) and not operand.values:
        return DictLiteral(kwargs.keys(), kwargs.values())
    if isinstance(operand, DictLiteral):
        return DictLiteral([*operand.keys, *kwargs], [*operand.values, *kwargs.values()])
    if type is not None and type.word == "Dict":
        made = c.emit("prim::dict.copy", (c.value(operand),), type)
    else:
        pairs = c.value(operand if type is not None else _list(c, [operand], {}))
        inner = type_of(pairs).args[0]
        if inner.word != "Tuple" or len(inner.args) != 2:
            c.fault(f"dict() takes a dict or a list of pairs, not {type_of(pairs)}")
        made = c.emit("prim::dict.from_items", (pairs,), Type("Dict", inner.args))
    for key, item in kwargs.items():
        c.effect("prim::set_item", made, key, c.value(item, made.type.args[1]))
    return made


def _reduce(name):
    def run(c, args, kwargs):
        operand = args[0]
        if type_of(operand) is TENSOR:
            return c.emit("prim::bool", (c.call_method(operand, name, []),), BOOL)
        return c.emit(f"prim::{name}_of", (c.value(operand),), BOOL)

    return run


BUILTINS[any], BUILTINS[all] = _reduce("any"), _reduce("all")


# ---- numbers -------------------------------------------------------------------------------------------------------


def _conversion(name, type):
    def run(c, args, kwargs):
        if not args and not kwargs:
            return {"int": 0, "float": 0.0, "bool": False, "str": ""}[name]
        _only(c, name, args, kwargs, (1,))
        operand = c.value(args[0]) if type is not BOOL else args[0]
        if type is BOOL:
            return c.truth(operand)
        given = type_of(operand)
        if set(parts_of(given)) <= {TENSOR, STR, *NUMBERS}:
            if is_constant(operand) and given is not STR:
                return getattr(builtins, name)(operand)
            return c.emit(f"prim::{name}", (operand,), type)
        made = c.call_magic(f"__{name}__", operand, [])
        if made is None:
            c.fault(f"{name}() takes a number, a string or a tensor of one element, not {given}")
        return made

    return run


for _name, _type in (("int", INT), ("float", FLOAT), ("bool", BOOL)):
    BUILTINS[getattr(builtins, _name)] = _conversion(_name, _type)


@builtin(str)
def _str(c, args, kwargs):
    _only(c, "str", args, kwargs, (0, 1))
    if not args:
        return ""
    operand = c.for_text(args[0])
    made = c.call_magic("__str__", operand, [])
    if made is not None:
        return made
    return operand if type_of(operand) is STR else c.emit("prim::str", (operand,), STR)


@builtin(complex)
def _complex(c, args, kwargs):
    args = [c.value(a) for a in (*args, *kwargs.values())]
    row = (*args, 0.0)[:2] if args else (0.0, 0.0)
    row = [c.emit("prim::item", (a,), SCALAR) if type_of(a) is TENSOR else a for a in row]
    return c.emit("prim::complex", row, COMPLEX)


@builtin(abs)
def _abs(c, args, kwargs):
    type = type_of(args[0])
    if type is TENSOR:
        return c.call_method(args[0], "abs", [])
    if type not in NUMBERS:
        made = c.call_magic("__abs__", args[0], [])
        return made if made is not None else c.fault(f"abs() takes a number or a tensor, not {type}")
    return c.emit("prim::abs", (args[0],), FLOAT if type is COMPLEX else INT if type is BOOL else type)


@builtin(round)
def _round(c, args, kwargs):
    args = [*args, *kwargs.values()]
    type = type_of(args[0])
    if type is TENSOR:
        return c.call_method(args[0], "round", [])
    if len(args) == 2 and args[1] is not None:
        return c.emit("prim::round_to", (c.value(args[0]), c.value(args[1], INT)), type)
    return c.emit("prim::round", (c.value(args[0]),), INT)


@builtin(id)
def _id(c, args, kwargs):
    _only(c, "id", args, kwargs, (1,))
    operand = c.value(args[0])
    if (is_constant(operand) and operand is not None) or type_of(operand) in (STR, *NUMBERS):
        c.fault(f"id(): Expected a value that is an object, not one of type {type_of(operand)}", "Compare with ==.")
    return c.emit("prim::id", (operand,), INT)


@builtin(divmod)
def _divmod(c, args, kwargs):
    type = FLOAT if FLOAT in (type_of(args[0]), type_of(args[1])) else INT
    made = c.emit("prim::divmod", (c.value(args[0]), c.value(args[1])), Type("Tuple", (type, type)))
    return TupleValue(c.unpacked(made, 2))


@builtin(pow)
def _pow(c, args, kwargs):
    return c.binary(ast.Pow(), args[0], args[1])


def _extreme(name):
    def run(c, args, kwargs):
        if kwargs:
            c.fault(f"{name}() takes no {next(iter(kwargs))}= in script")
        if len(args) == 1:
            value = c.value(ListLiteral(args[0].values) if isinstance(args[0], TupleValue) else args[0])
            if type_of(value) is TENSOR:
                return c.call_method(value, name, [])
            if type_of(value).word != "List":
                c.fault(f"{name}() takes numbers, or a list of them, not {type_of(value)}")
            return c.emit(f"prim::{name}_of", (value,), type_of(value).args[0])
        types = [type_of(a) for a in args]
        if TENSOR in types:
            found = args[0]
            for other in args[1:]:
                found = c.call_op(name + "imum", tg_candidates(name + "imum"), [found, other], {})
            return found
        if not set(types) <= set(NUMBERS):
            if len(set(types)) == 1 and types[0] is not None and types[0].word in ("List", "Tuple", "str"):
                return c.emit(f"prim::{name}_of", (c.value(ListLiteral(args)),), types[0])
            c.fault(f"{name}() takes numbers, not {', '.join(map(str, types))}")
        if all(map(is_constant, args)):
            return getattr(builtins, name)(args)
        type = FLOAT if FLOAT in types else SCALAR if SCALAR in types else INT
        found = args[0]
        for other in args[1:]:
            found = c.emit(f"prim::{name}", (found, other), type)
        return found

    return run


def tg_candidates(name):
    return getattr(tg, name).candidates


BUILTINS[min], BUILTINS[max] = _extreme("min"), _extreme("max")


@builtin(sum)
def _sum(c, args, kwargs):
    operand = args[0]
    if type_of(operand) is TENSOR:
        return c.call_method(operand, "sum", [])
    if isinstance(operand, (TupleValue, ListLiteral)):
        found = args[1] if len(args) > 1 else 0
        for other in operand.values:
            found = c.binary(ast.Add(), found, other)
        return found
    value = c.value(operand)
    inner = type_of(value).args[0]
    return c.emit("prim::sum_of", (value,), INT if inner is BOOL else inner)


@builtin(sorted)
def _sorted(c, args, kwargs):
    if "key" in kwargs:
        c.fault("sorted(key=...) is not taken in script; sort pairs")
    operand = args[0] if type_of(args[0]) is not None else _list(c, args[:1], {})
    value = c.value(ListLiteral(operand.values) if isinstance(operand, TupleValue) else operand)
    if type_of(value).word == "Dict":
        value = _list(c, [value], {})
    if type_of(value).word != "List":
        c.fault(f"sorted() takes a list, tuple or dict, not {type_of(value)}")
    reverse = c.value(kwargs.get("reverse", False), BOOL)
    made = c.in_order(value, reverse, "sorted()")
    return c.emit("prim::sorted", (value, reverse), type_of(value)) if made is None else made


def _math(name, count):
    result = MATH_RESULTS.get(name, FLOAT)

    def run(c, args, kwargs):
        _only(c, f"math.{name}", args, kwargs, (count,))
        row = [c.value(a) for a in args]
        row = [c.emit("prim::float", (a,), FLOAT) if type_of(a) is TENSOR else a for a in row]
        for operand in row:
            if type_of(operand) not in NUMBERS:
                c.fault(f"math.{name}() takes numbers, not {type_of(operand)}")
        return c.emit(f"prim::math.{name}", row, result)

    return run


MATH_RESULTS = {
    **dict.fromkeys(("floor", "ceil", "trunc", "gcd", "factorial"), INT),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), BOOL),
    **{name: Type("Tuple", (FLOAT, second)) for name, second in (("modf", FLOAT), ("frexp", INT))},
}
for _name, _count in {**MATH, "modf": 1, "frexp": 1}.items():
    BUILTINS.setdefault(getattr(math, _name), _math(_name, _count))


# ---- text, output --------------------------------------------------------------------------------------------------


@builtin(print)
def _print(c, args, kwargs):
    if kwargs:
        c.fault(f"print doesn't accept any keyword arguments in script, such as {next(iter(kwargs))}=")
    c.effect("prim::print", *[c.value(a) for a in args])


def _text_of(name, given, result):
    def run(c, args, kwargs):
        return c.emit(f"prim::{name}", (c.value(args[0], given),), result)

    return run


BUILTINS[ord] = _text_of("ord", STR, INT)
for _name in ("chr", "hex", "oct", "bin"):
    BUILTINS[getattr(builtins, _name)] = _text_of(_name, INT, STR)
