"""Conditions: and, or, not, comparisons, and what they show of the types of names.

`x is not None`, `isinstance(x, int)`, also within and, or, not, let a name have a narrower type on one way.
"""

import ast

from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.types import ANY, BOOL, NONE, accepts

from .compiler import expression, hook
from .environment import Scope, refine
from .types import parts_of, union, without_none
from .values import DictLiteral, ListLiteral, Static, TupleValue, is_constant, type_of


class Condition:
    """Attributes: operand (a bool), true and false: {name, or value of an attribute: type that it has on that way}."""

    def __init__(self, operand, true=None, false=None):
        self.operand, self.true, self.false = operand, true or {}, false or {}


@hook
def branch(c, condition, then, otherwise):
    """Compile an If; of one whose condition is known while compiling only the way that is taken."""
    if condition.operand is True or condition.operand is False:
        refine(c, condition.true if condition.operand else condition.false)
        then() if condition.operand else otherwise()
        return
    c.choose(condition.operand, then, otherwise, (condition.true, condition.false))


@hook
def condition(c, node):
    """The Condition that an expression is."""
    with c.at(node):
        if isinstance(node, ast.BoolOp):
            return _joined(c, node.op, node.values)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = condition(c, node.operand)
            return Condition(_not(c, inner.operand), inner.false, inner.true)
        if isinstance(node, ast.Compare):
            return _compared(c, node)
        if isinstance(node, ast.Call):
            found = c.type_question(node)
            if found is not None:
                return found
        return Condition(truth(c, c.expression(node)))


@hook
def truth(c, operand):
    """The operand as a bool."""
    if operand is None:
        return False
    if isinstance(operand, TupleValue) and operand.values and not c.frame.ours:
        _no_truth(c, type_of(operand) or operand.told())
    if isinstance(operand, (TupleValue, ListLiteral)):
        return bool(operand.values)
    if isinstance(operand, DictLiteral):
        return bool(operand.keys)
    if isinstance(operand, Static):
        items = operand.items(c)
        if items is not None:
            return bool(list(items))
    operand = c.value(operand)
    if type_of(operand) is BOOL:
        return operand
    if is_constant(operand):
        return bool(operand)
    type = type_of(operand)
    if type.word not in (
        "Tensor",
        "int",
        "float",
        "complex",
        "Scalar",
        "str",
        "List",
        "Dict",
        "Optional",
        "Any",
        "Union",
    ):
        made = c.call_magic("__bool__", operand, [])
        if made is not None and type_of(made) is not BOOL:
            c.fault(f"expected a bool expression for condition, but __bool__ gives {type_of(made)}")
        if made is not None:
            return made
        _no_truth(c, type)
    return c.emit("prim::bool", (operand,), BOOL)


def _no_truth(c, type):
    c.fault(
        f"Could not cast value of type {type} to bool: it is always true or never asked",
        "Compare it, or ask for one of its items.",
    )


def _not(c, operand):
    return not operand if is_constant(operand) else c.emit("prim::not", (operand,), BOOL)


def _joined(c, op, nodes, first=None):
    first = condition(c, nodes[0]) if first is None else first
    if len(nodes) == 1:
        return first
    both = isinstance(op, ast.And)
    if is_constant(first.operand):
        if first.operand is not both:
            return first
        rest = _refined_rest(c, op, nodes[1:], first)
        return Condition(rest.operand, _and(first.true, rest.true), rest.false) if both else rest
    found = []

    def rest():
        found.append(_joined(c, op, nodes[1:]))
        return c.value(found[0].operand)

    refined = (first.true, {}) if both else ({}, first.false)
    if both:
        operand = c.choose(first.operand, rest, lambda: False, refined, result=True)
        return Condition(operand, _and(first.true, found[0].true), _or(c, first.false, found[0].false))
    operand = c.choose(first.operand, lambda: True, rest, refined, result=True)
    return Condition(operand, _or(c, first.true, found[0].true), _and(first.false, found[0].false))


def _refined_rest(c, op, nodes, first):
    with c.inside(c.block, Scope(c.scope), c.fields):
        refine(c, first.true if isinstance(op, ast.And) else first.false)
        return _joined(c, op, nodes)


def _and(a, b):
    return {**a, **b}


def _or(c, a, b):
    return {name: union([a[name], b[name]]) for name in a if name in b}


# ---- comparisons ---------------------------------------------------------------------------------------------------


@expression(ast.Compare)
def _compare(c, node):
    return _compared(c, node, plain=True).operand


def _compared(c, node, plain=False):
    left = c.expression(node.left)
    if len(node.ops) == 1:
        return _one(c, node.left, left, node.ops[0], node.comparators[0], plain)[0]

    def chain(left_node, left, i):
        first, right = _one(c, left_node, left, node.ops[i], node.comparators[i], False)
        if i + 1 == len(node.ops):
            return first
        if is_constant(first.operand):
            return chain(node.comparators[i], right, i + 1) if first.operand else first
        rest = []

        def go_on():
            rest.append(chain(node.comparators[i], right, i + 1))
            return rest[0].operand

        operand = c.choose(first.operand, go_on, lambda: False, (first.true, {}), result=True)
        return Condition(operand, _and(first.true, rest[0].true))

    return chain(node.left, left, 0)


def _one(c, left_node, left, op, right_node, plain):
    """(one comparison as a Condition, its right operand)."""
    right = c.expression(right_node)
    if isinstance(op, (ast.Is, ast.IsNot)) or (isinstance(op, (ast.Eq, ast.NotEq)) and (left is None or right is None)):
        return _identity(c, left_node, left, right_node, right, isinstance(op, (ast.IsNot, ast.NotEq))), right
    if isinstance(left_node, ast.Constant) and isinstance(right_node, ast.Constant) and not c.frame.ours:
        left = c.emit("prim::cast", (left,), type_of(left))  # both ways of `if 1 == 2` are checked, as of any condition
    operand = c.compare(op, left, right)
    return Condition(operand if plain else truth(c, operand)), right


def _identity(c, left_node, left, right_node, right, turned):
    if left is None:
        left_node, left, right = right_node, right, left
    if right is not None:
        return Condition(_same_object(c, left, right, turned))
    type = type_of(left)
    if left is None or type is NONE:
        return Condition(not turned)
    if type is None or not type.is_optional:
        return Condition(turned)
    operand = c.emit("prim::isnot" if turned else "prim::is", (left, None), BOOL)
    key = _narrowed(left_node, left)
    if key is None or type is ANY:
        return Condition(operand)
    there, missing = {key: without_none(type)}, {key: NONE}
    return Condition(operand, there, missing) if turned else Condition(operand, missing, there)


def _narrowed(node, operand):
    """What a condition about an operand tells of: a name, the value of an attribute, or nothing, None."""
    if isinstance(node, ast.Name):
        return node.id
    return operand if isinstance(node, ast.Attribute) and isinstance(operand, Value) else None


def _same_object(c, left, right, turned):
    if isinstance(left, Static) or isinstance(right, Static):
        same = getattr(left, "python", left) is getattr(right, "python", right)
        return same is not turned
    if is_constant(left) and is_constant(right):
        same = type(left) is type(right) and repr(left) == repr(right)  # Python holds equal constants once
        return same is not turned
    return c.emit("prim::isnot" if turned else "prim::is", (c.value(left), c.value(right)), BOOL)


# ---- and, or and ternaries as values -------------------------------------------------------------------------------


@expression(ast.BoolOp)
def _bool_op(c, node):
    if isinstance(node.values[0], (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        first = c.condition(node.values[0])
        return _joined(c, node.op, node.values, first).operand
    operand = c.expression(node.values[0])
    if type_of(operand) is BOOL:
        return _joined(c, node.op, node.values, Condition(operand)).operand
    return _valued(c, node, operand)


def _valued(c, node, operand):
    """`a or b` of values that are no bools is one of them, as in Python."""
    both = isinstance(node.op, ast.And)
    rest = node.values[1:]
    if not rest:
        return operand
    known = truth(c, operand)

    def go_on():
        return _valued(c, ast.copy_location(ast.BoolOp(node.op, rest), node), c.expression(rest[0]))

    if is_constant(known):
        return go_on() if known is both else operand
    type = type_of(operand)
    narrower = type if both or not type.is_optional else without_none(type)

    def keep():
        return c.emit("prim::cast", (operand,), narrower) if narrower is not type else operand

    first, second = (go_on, keep) if both else (keep, go_on)
    return c.choose(known, first, second, result="bool")


@expression(ast.IfExp)
def _ternary(c, node):
    return ternary(c, node)


@hook
def ternary(c, node, type=None):
    """What a ternary gives; type: what the program says of it, for both ways."""
    found = c.condition(node.test)
    if is_constant(found.operand):
        with c.inside(c.block, Scope(c.scope), c.fields):
            refine(c, found.true if found.operand else found.false)
            return _way(c, node.body if found.operand else node.orelse, type, known=True)
    return c.choose(
        found.operand,
        lambda: _way(c, node.body, type),
        lambda: _way(c, node.orelse, type),
        (found.true, found.false),
        result=True,
    )


def _way(c, node, type, known=False):
    if type is None:
        operand = c.expression(node)
        parted = isinstance(operand, (ListLiteral, DictLiteral)) and operand.values
        return c.value(operand) if parted else operand
    operand = c.hinted(node, type)
    if isinstance(operand, Static) and type_of(operand) is None:
        return operand
    operand = c.value(operand, type)
    return operand if known or type.word not in ("Any", "Union") else c.emit("prim::cast", (operand,), type)


# ---- isinstance ----------------------------------------------------------------------------------------------------


@hook
def is_of_type(c, node, operand, types):
    """Condition of isinstance(operand, types)."""
    given = type_of(operand)
    if given is None:
        c.fault("isinstance takes a value here")
    parts = parts_of(given)
    yes = [p for p in parts if any(_covers(t, p) for t in types)]
    key = _narrowed(node, operand)
    if given is ANY:
        operand = c.emit("prim::isinstance", (c.value(operand), str(union(types))), BOOL)
        return Condition(operand, {} if key is None else {key: union(types)})
    if len(yes) == len(parts):
        return Condition(True)
    if not yes:
        return Condition(False)
    no = [p for p in parts if p not in yes]
    operand = c.emit("prim::isinstance", (c.value(operand), str(union(yes))), BOOL)
    return Condition(operand) if key is None else Condition(operand, {key: union(yes)}, {key: union(no)})


def _covers(wanted, part):
    if wanted.word in ("List", "Dict", "Tuple") and set(wanted.args) == {ANY}:
        return part.word == wanted.word
    return accepts(wanted, part)
