"""Operators: tensors by the ops of eager mode, numbers by Python's rules, text and containers."""

import ast
import operator

from tinygrad_ext.core.call.op_tables import methods
from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.primitives.objects import class_of
from tinygrad_ext.graph.types import ANY, BOOL, COMPLEX, FLOAT, INT, SCALAR, STR, TENSOR

from .compiler import expression, hook
from .conversions import as_declared
from .errors import CompileError
from .types import NUMBERS, is_enum, is_number, parts_of, unify, union
from .values import ListLiteral, Static, TupleOfList, TupleValue, is_constant, type_of

# operator -> (method of a tensor, reflected method or function for a number on the left, primitive, Python's, symbol)
BINARY = {
    ast.Add: ("add", "add", "add", operator.add, "+"),
    ast.Sub: ("sub", "__rsub__", "sub", operator.sub, "-"),
    ast.Mult: ("mul", "mul", "mul", operator.mul, "*"),
    ast.Div: ("div", "__rdiv__", "truediv", operator.truediv, "/"),
    ast.FloorDiv: ("floor_divide", "__rfloordiv__", "floordiv", operator.floordiv, "//"),
    ast.Mod: ("remainder", "__rmod__", "mod", operator.mod, "%"),
    ast.Pow: ("pow", "__rpow__", "pow", operator.pow, "**"),
    ast.MatMult: ("matmul", "__rmatmul__", None, operator.matmul, "@"),
    ast.BitAnd: ("bitwise_and", "bitwise_and", "bitand", operator.and_, "&"),
    ast.BitOr: ("bitwise_or", "bitwise_or", "bitor", operator.or_, "|"),
    ast.BitXor: ("bitwise_xor", "bitwise_xor", "bitxor", operator.xor, "^"),
    ast.LShift: ("bitwise_left_shift", "__rlshift__", "lshift", operator.lshift, "<<"),
    ast.RShift: ("bitwise_right_shift", "__rrshift__", "rshift", operator.rshift, ">>"),
}
_MAGIC = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_LARGEST = 1 << 64  # numbers beyond are not folded


@expression(ast.BinOp)
def _binary(c, node):
    return c.binary(node.op, c.expression(node.left), c.expression(node.right))


@hook
def binary(c, op, a, b):
    """What an operator makes of two operands."""
    method, reflected, primitive, python, symbol = BINARY[type(op)]
    x, y = type_of(a), type_of(b)
    if x is TENSOR and (y is TENSOR or y in NUMBERS):
        return c.call_method(a, method, [b])
    if y is TENSOR and x in NUMBERS:
        return c.call_method(b, reflected, [a])
    if is_number(x) and is_number(y):
        return _of_numbers(c, op, a, b, x, y)
    found = _of_containers(c, op, a, b, x, y)
    if found is None:
        found = c.call_magic(f"__{_MAGIC[type(op)]}__", a, [b])
    if found is None:
        c.fault(_no_operator(a, b, symbol, _MAGIC[type(op)]))
    return found


def _no_operator(a, b, symbol, magic):
    owner = class_of(type_of(a).word) if type_of(a) is not None else None
    lacks = f"; '{owner.__name__}' object has no attribute or method '__{magic}__'" if owner is not None else ""
    return f"Arguments for call are not valid: operator {symbol} takes no {_told(a)} and {_told(b)}{lacks}"


def _told(operand):
    type = type_of(operand)
    return str(type) if type is not None else operand.told()


def _of_numbers(c, op, a, b, x, y):
    _, _, primitive, python, symbol = BINARY[type(op)]
    if primitive is None:
        c.fault(f"operator {symbol} takes tensors, not {x} and {y}")
    if isinstance(op, _BITS) and not {x, y} <= {INT, BOOL}:
        c.fault(f"operator {symbol} takes whole numbers, not {x} and {y}")
    result = union([_promoted(op, b, p, q) for p in parts_of(x) for q in parts_of(y)])
    if is_constant(a) and is_constant(b) and not isinstance(op, (ast.LShift, ast.Pow)):
        folded = _folded(python, a, b)
        if folded is not None:
            return folded
    args = [c.emit("prim::int", (n,), INT) if isinstance(op, _BITS) and t is BOOL else n for n, t in ((a, x), (b, y))]
    made = c.emit(f"prim::{primitive}", args, INT if isinstance(op, _BITS) else result)
    return c.emit("prim::bool", (made,), BOOL) if isinstance(op, _BITS) and result is BOOL else made


def _folded(python, a, b):
    try:
        found = python(a, b)
    except (ArithmeticError, ValueError):
        return None
    return found if not isinstance(found, int) or abs(found) < _LARGEST else None


def _promoted(op, b, x, y):
    if COMPLEX in (x, y):
        return COMPLEX
    if SCALAR in (x, y):
        return SCALAR
    if FLOAT in (x, y) or isinstance(op, ast.Div):
        return FLOAT
    if isinstance(op, ast.Pow) and is_constant(b) and b < 0:
        return FLOAT
    if x is y is BOOL and isinstance(op, _BITS[:3]):
        return BOOL
    return INT


def _of_containers(c, op, a, b, x, y):
    if isinstance(a, TupleOfList) or isinstance(b, TupleOfList):
        a, b = _listed(c, a), _listed(c, b)
        made = _of_containers(c, op, a, b, type_of(a), type_of(b))
        return made if made is None else TupleOfList(c.value(made))
    if isinstance(op, ast.Add):
        if isinstance(a, TupleValue) and isinstance(b, TupleValue):
            return TupleValue([*a.values, *b.values])
        if x is not None and y is not None and x.word == y.word == "Tuple":
            return TupleValue([*c.unpacked(a), *c.unpacked(b)])
        a, b = _as_lists(c, a, b)
        x, y = type_of(a), type_of(b)
        if isinstance(a, ListLiteral) and isinstance(b, ListLiteral):
            if None not in (x, y) and unify(x, y) is None and a.values and b.values:
                c.fault(f"List[t] of {b.told()} to add was previously matched to type {x}, but this is {y}")
            return ListLiteral([*a.values, *b.values])
        if x is STR and y is STR:
            return a + b if is_constant(a) and is_constant(b) else c.emit("prim::concat", (a, b), STR)
        if x is not None and y is not None and x.word == y.word == "List":
            wanted = y if isinstance(a, ListLiteral) and not isinstance(b, ListLiteral) else x
            if unify(x, y) is None and not _is_empty(a) and not _is_empty(b):
                c.fault(f"lists to add have items of one type, not {x} and {y}")
            return c.emit("prim::concat", (c.value(a, wanted), c.value(b, wanted)), wanted)
    if isinstance(op, ast.Mult):
        if BOOL in (x, y):
            a, b = _counted(c, a, b), _counted(c, b, a)
            x, y = type_of(a), type_of(b)
        if y is INT and (x is STR or (x is not None and x.word == "List")):
            return c.emit("prim::repeat", (c.value(a), b), x)
        if x is INT and (y is STR or (y is not None and y.word == "List")):
            return c.emit("prim::repeat", (c.value(b), a), y)
        if c.is_tuple(b) and x is INT:
            a, b, y = b, a, x
        if isinstance(a, TupleValue) and type(b) is int:
            return TupleValue(a.values * b)
        if c.is_tuple(b) and x is INT:
            a, b, y = b, a, INT
        if c.is_tuple(a) and y is INT:
            listed = c.value(_listed(c, a))
            return TupleOfList(c.emit("prim::repeat", (listed, b), listed.type))
    if isinstance(op, ast.Mod) and x is STR:
        items = b.values if isinstance(b, TupleValue) else [b]
        return c.emit("prim::percent", (a, *[c.value(i) for i in items]), STR)
    return None


def _counted(c, operand, other):
    """A bool beside a text, list or tuple as how many times that is meant."""
    word = getattr(type_of(other), "word", None)
    if type_of(operand) is not BOOL or not (c.is_tuple(other) or word in ("str", "List")):
        return operand
    return int(operand) if is_constant(operand) else c.emit("prim::int", (operand,), INT)


def _listed(c, operand):
    """A tuple, also of as many items as a list has, as a list; another operand as it is."""
    if isinstance(operand, TupleOfList):
        return operand.listed
    return ListLiteral(c.unpacked(operand)) if c.is_tuple(operand) else operand


def _as_lists(c, a, b):
    """Two operands; a tuple beside a list is one, as where an op takes a list: `x.shape[:-1] + (n,)`."""
    if _is_word(a, "List") and _is_word(b, "Tuple"):
        return a, ListLiteral(c.unpacked(b))
    if _is_word(b, "List") and _is_word(a, "Tuple"):
        return ListLiteral(c.unpacked(a)), b
    return a, b


def _is_word(operand, word):
    if isinstance(operand, TupleValue):
        return word == "Tuple"
    type = type_of(operand)
    return type is not None and type.word == word


def _is_empty(operand):
    return isinstance(operand, ListLiteral) and not operand.values


@hook
def augment(c, operand, op, other):
    """`operand += other`: what stands in its place afterwards; a tensor or list is changed itself."""
    x = type_of(operand)
    if x is TENSOR:
        name = BINARY[type(op)][0] + "_"
        if name in methods:
            return c.call_method(operand, name, [other])
    if isinstance(operand, Value) and x.word == "List" and isinstance(op, ast.Add):
        c.effect("prim::list.extend", operand, c.value(other, x if isinstance(other, ListLiteral) else None))
        return operand
    if isinstance(operand, Value) and x.word == "List" and isinstance(op, ast.Mult) and type_of(other) is INT:
        repeated = c.emit("prim::repeat", (operand, other), x)
        c.effect("prim::list.clear", operand)
        c.effect("prim::list.extend", operand, repeated)
        return operand
    if isinstance(operand, Value) and x.word == "Dict" and isinstance(op, ast.BitOr):
        c.effect("prim::dict.update", operand, c.value(other, x))
        return operand
    made = c.call_magic(f"__i{_MAGIC[type(op)]}__", operand, [other])
    return made if made is not None else _made_anew(c, op, operand, other)


def _made_anew(c, op, operand, other):
    cls = class_of(type_of(operand).word) if type_of(operand) is not None else None
    if cls is not None and not hasattr(cls, f"__{_MAGIC[type(op)]}__"):
        c.fault(f"Cannot emit inplace op: {_no_operator(operand, other, BINARY[type(op)][4], f'i{_MAGIC[type(op)]}')}")
    return binary(c, op, operand, other)


@expression(ast.UnaryOp)
def _unary(c, node):
    if isinstance(node.op, ast.Not):
        return c.condition(node).operand
    operand = c.expression(node.operand)
    type = type_of(operand)
    if type is TENSOR:
        if isinstance(node.op, ast.UAdd):
            return c.call_method(operand, "positive", []) if "positive" in methods else operand
        name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
        return c.call_method(operand, name, [])
    if type in NUMBERS:
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, ast.USub):
            whole = INT if type is BOOL else type
            return -operand if is_constant(operand) else c.emit("prim::neg", (operand,), whole)
        if type in (INT, BOOL):
            return ~operand if is_constant(operand) else c.emit("prim::invert", (operand,), INT)
    magic = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}[node.op.__class__]
    made = c.call_magic(magic, operand, [])
    if made is None:
        c.fault(f"this operator takes numbers and tensors, not {_told(operand)}")
    return made


# ---- comparison ----------------------------------------------------------------------------------------------------

_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@hook
def compare(c, op, a, b):
    """What one comparison makes of two operands."""
    if isinstance(op, (ast.In, ast.NotIn)):
        return _contained(c, a, b, isinstance(op, ast.NotIn))
    name = _COMPARE[type(op)]
    a, b = _as_lists(c, *(c.value(o) if isinstance(o, TupleOfList) else o for o in (a, b)))
    x, y = type_of(a), type_of(b)
    if x is TENSOR and (y is TENSOR or y in NUMBERS):
        return c.call_method(a, name, [b])
    if y is TENSOR and x in NUMBERS:
        return c.call_method(b, _SWAPPED[name], [a])
    if isinstance(a, Static) or isinstance(b, Static):
        found = _compare_known(c, name, a, b)
        if found is not None:
            return found
    if is_constant(a) and is_constant(b):
        try:
            return bool(getattr(operator, name)(a, b))
        except TypeError:
            c.fault(f"{_told(a)} and {_told(b)} have no order")
    made = c.call_magic(f"__{name}__", a, [b])
    if made is not None:
        return made
    if name == "ne":
        made = c.call_magic("__eq__", a, [b])
        if made is not None:
            return c.emit("prim::not", (made,), BOOL)
    a, b = c.value(a, y if _is_empty(a) else None), c.value(b, x if _is_empty(b) else None)
    x, y = type_of(a), type_of(b)
    numbers = is_number(x) and is_number(y)
    if name in ("eq", "ne") and (ANY in (x, y) or x.is_optional or y.is_optional or x.word == y.word or numbers):
        return c.emit(f"prim::{name}", (a, b), BOOL)
    if name in ("eq", "ne") and is_enum(x) and is_enum(y):
        return name == "ne"
    if name in ("eq", "ne"):
        c.fault(f"values of types {x} and {y} are never equal")
    if not (numbers or x is y is STR or (x.word == y.word and x.word in ("List", "Tuple"))):
        c.fault(f"values of types {x} and {y} have no order")
    return c.emit(f"prim::{name}", (a, b), BOOL)


_ORDERED = (INT, FLOAT, BOOL, STR, SCALAR, TENSOR, ANY)  # Any: Python says when it runs


def _is_order(c, type):
    """Whether the __lt__ of a class gives a bool; what is written down to see it is taken back."""
    block, count, effects = c.block, len(c.block.nodes), c.graph.effects
    one = c.emit("prim::undefined", (), type)
    try:
        return type_of(c.call_magic("__lt__", one, [one])) is BOOL
    except CompileError:
        return False
    finally:
        del block.nodes[count:]
        c.graph.effects = effects


@hook
def check_ordered(c, type, what):
    """Raise where items of a type cannot be put in order."""
    cls = class_of(type.word)
    if type in _ORDERED or (cls is not None and cls.__lt__ is not object.__lt__ and _is_order(c, type)):
        return
    if type.word in ("List", "Tuple"):
        for inner in type.args:
            c.check_ordered(inner, what)
        return
    c.fault(
        f"{what}: values of type {type} are not sortable",
        "Numbers, texts, lists and tuples of them are; a class must define a __lt__ method, which takes another of "
        "its objects and gives a bool.",
    )


def _compare_known(c, name, a, b):
    """Tuples item by item; classes and modules by identity."""
    if type_of(a) is None or type_of(b) is None:
        same = getattr(a, "python", a) is getattr(b, "python", b)
        return same if name == "eq" else not same if name == "ne" else None
    return None


def _contained(c, item, container, turned):
    items = container.items(c) if isinstance(container, Static) else None
    if isinstance(container, ListLiteral):
        items = container.values
    if items is not None and is_constant(item) and all(map(is_constant, items)):
        return (item in items) is not turned
    if items is not None and isinstance(container, TupleValue):
        container = ListLiteral(items)
    type = type_of(container)
    if type is TENSOR:
        found = c.emit("prim::bool", (c.call_method(c.call_method(container, "eq", [item]), "any", []),), BOOL)
    elif type is not None and type.word not in ("List", "Dict", "Tuple", "str"):
        found = c.call_magic("__contains__", container, [item])
        if found is None:
            c.fault(
                f"'in' takes a list, dict, tuple or str, not {type}, which has no attribute or method '__contains__'"
            )
    else:
        if type is not None and type.word == "Dict":
            item = as_declared(c, c.value(item), type.args[0], "a key")
        found = c.emit("prim::contains", (c.value(container), c.value(item)), BOOL)
    return c.emit("prim::not", (found,), BOOL) if turned else found
