"""Reading, writing and deleting by `x[...]`: tensors by any index, lists, dicts, tuples, strings."""

import ast

from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.types import BOOL, INT, NONE, STR, TENSOR

from .compiler import expression, hook
from .environment import ABSENT
from .types import parts_of
from .values import ListLiteral, Static, TupleValue, is_constant, type_of


@expression(ast.Subscript)
def _read(c, node):
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        owner = c.expression(node.value.value)
        shape = c.attribute(owner, "shape") if type_of(owner) is not TENSOR else None
        if shape is None and not isinstance(node.slice, ast.Slice):
            return c.emit("prim::size", (owner, c.value(c.expression(node.slice), INT, "an index")), INT)
        return item(c, shape if shape is not None else c.attribute(owner, "shape"), node.slice)
    return item(c, c.expression(node.value), node.slice)


@hook
def item(c, operand, index):
    """operand[index], the index as it stands in the source."""
    index = _cut(c, index)
    if isinstance(index, ast.Slice) and isinstance(operand, Static) and operand.items(c) is not None:
        return TupleValue(list(operand.items(c))[slice(*(_known(c, p) for p in _parts(index)))])
    if isinstance(operand, Static) and (isinstance(operand, TupleValue) or type_of(operand) is None):
        key = c.expression(index)
        listed = isinstance(operand, TupleValue) and not is_constant(key)
        if listed and c.are_modules(operand.values):
            return c.chosen(None, operand.values, c.value(key, INT, "an index"))
        if listed and len(set(map(type_of, operand.values))) == 1:
            operand = ListLiteral(operand.values)
        else:
            return operand.index(c, key)
    value = c.value(operand)
    type = type_of(value)
    if type is TENSOR:
        return _of_tensor(c, value, _index(c, index))
    types = c.tuple_types(type)
    if types is not None:
        return item(c, TupleValue(c.unpacked(value, None)), index)
    if type.word in ("List", "str"):
        if isinstance(index, ast.Slice):
            return c.emit("prim::slice", (value, *(_bound(c, p) for p in _parts(index))), type)
        key = c.value(c.expression(index), INT, "an index")
        return c.emit("prim::getitem", (value, key), STR if type is STR else type.args[0])
    if type.word == "Dict":
        key = c.value(c.expression(index), type.args[0], "a key")
        return c.emit("prim::getitem", (value, key), type.args[1])
    made = c.call_magic("__getitem__", value, [c.expression(index)])
    if made is None:
        c.fault(f"'{type}' object is not subscriptable: a value of type {type} cannot be indexed", _way_out(type))
    return made


class _Given(ast.expr):
    """A part of a slice that is an operand already."""

    def __init__(self, operand):
        super().__init__()
        self.operand = operand


@expression(_Given)
def _given(c, node):
    return node.operand


def _cut(c, node):
    """`slice(a, b)`, or a name for it, as the a:b that it stands for; other indices as they are."""
    kept = c.scope.find(node.id) if isinstance(node, ast.Name) else None
    if type(kept) is slice:
        parts = [None if p is None else _Given(p) for p in (kept.start, kept.stop, kept.step)]
        return ast.copy_location(ast.Slice(*parts), node)
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Name)
        or c.scope.find(node.func.id) is not ABSENT
    ):
        return node
    try:
        named = c.frame.lookup(node.func.id)
    except LookupError:
        return node  # which is refused where it is compiled
    if named is slice and node.keywords:
        c.fault("Slice does not accept any keyword arguments")
    if named is not slice or not 1 <= len(node.args) <= 3:
        return node
    parts = [None if isinstance(a, ast.Constant) and a.value is None else a for a in node.args]
    row = (None, parts[0], None) if len(parts) == 1 else (*parts, None)[:3]
    return ast.copy_location(ast.Slice(*row), node)


def _way_out(type):
    return "Check `is not None` before, on a local variable." if type.is_optional else ""


def _parts(index):
    return (index.lower, index.upper, index.step)


def _known(c, node):
    operand = None if node is None else c.expression(node)
    if not is_constant(operand):
        c.fault("a tuple is cut by numbers that are known while compiling")
    return operand


def _bound(c, node):
    if node is None:
        return None
    return c.value(c.expression(node), INT, "a bound of a slice")


def _index(c, node):
    """An index of a tensor as an argument: a value, a constant, or a tuple of those and slices."""
    if isinstance(node, ast.Tuple):
        return tuple([_index_part(c, n) for n in node.elts])
    part = _index_part(c, node)
    listed = type(part) is tuple or (isinstance(part, Value) and part.type.word == "List")
    return (part,) if listed else part


def _index_part(c, node):
    node = _cut(c, node)
    if isinstance(node, ast.Slice):
        return slice(*(_index_bound(c, p) for p in _parts(node)))
    operand = c.expression(node)
    if operand is None or operand is Ellipsis or type(operand) is bool:
        return operand
    if isinstance(operand, ListLiteral):
        return tuple([c.value(v) for v in operand.values])
    if isinstance(operand, TupleValue):
        return tuple([c.value(v) for v in operand.values])
    operand = c.value(operand)
    kinds = [p for p in parts_of(type_of(operand)) if p is not NONE]
    if not all(k in (INT, BOOL, TENSOR) or k.word == "List" for k in kinds):
        c.fault(f"a tensor is indexed by int, bool, slice, None, ..., tensors and lists of int, not {type_of(operand)}")
    return operand


def _index_bound(c, node):
    if node is None:
        return None
    operand = c.expression(node)
    if type_of(operand) is TENSOR:
        return c.emit("prim::int", (operand,), INT)
    operand = c.value(operand)
    if operand is not None and not all(p in (INT, NONE) for p in parts_of(type_of(operand))):
        c.fault(f"a bound of a slice is an int, not {type_of(operand)}")
    return operand


def _of_tensor(c, tensor, index):
    """tensor[index]: the views that ints, slices, None and ... mean; with tensors or lists among them, one op."""
    parts = list(index) if type(index) is tuple else [index]
    if not all(_is_basic(p) for p in parts) or sum(p is Ellipsis for p in parts) > 1:
        if len(parts) == 1 and not isinstance(parts[0], bool):
            return c.op("aten::__getitem__", (tensor, parts[0]))
        return c.op("aten::__getitem__", (tensor, tuple([_as_tensor(c, p) for p in parts])))
    cut = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    window, dim = tensor, 0
    for part in parts[:cut]:
        window = _step(c, window, dim, part)
        dim += part is None or type(part) is slice
    dim = -1
    for part in reversed(parts[cut + 1 :]):
        window = _step(c, window, dim, part)
        dim -= part is None or type(part) is slice
    return c.op("aten::_alias", (tensor, Ellipsis)) if window is tensor else window


def _is_basic(part):
    return part is None or part is Ellipsis or type(part) is slice or (type_of(part) is INT and type(part) is not tuple)


def _step(c, window, dim, part):
    if part is None:
        return c.op("aten::unsqueeze", (window, dim))
    if type(part) is slice:
        if part == slice(None):
            return window
        return c.op("aten::slice.Tensor", (window, dim, part.start, part.stop, 1 if part.step is None else part.step))
    return c.op("aten::select.int", (window, dim, part))


def _as_tensor(c, part):
    """A list among several parts of an index, as a tensor: a graph has one kind of sequence."""
    listed = not isinstance(part, (slice, tuple)) and type_of(part).word == "List"
    if type(part) is not tuple and not listed:
        return part
    whole = type_of(part).args[0] is INT if listed else not part
    return c.op("aten::tensor", (part, dtypes.by_name["int64"] if whole else None, None, False, False))


# ---- writing -------------------------------------------------------------------------------------------------------


@hook
def set_item(c, target, operand):
    """target = operand, for a target such as x[1:, 0]."""
    _store(c, c.value(c.expression(target.value)), target.slice, operand)


@hook
def augment_item(c, target, op, node):
    """target += expression; the index is computed once."""
    owner = c.value(c.expression(target.value))
    type = type_of(owner)
    if type is TENSOR:
        index = _index(c, target.slice)
        part = c.augment(_of_tensor(c, owner, index), op, c.expression(node))
        c.effect("prim::tensor.set_item", owner, index, c.value(part))
        return
    if type.word not in ("List", "Dict") or isinstance(target.slice, ast.Slice):
        c.fault(f"an item of a value of type {type} does not support augmented assignment")
    key = c.value(c.expression(target.slice), INT if type.word == "List" else type.args[0], "an index")
    old = c.emit("prim::getitem", (owner, key), type.args[-1])
    new = c.augment(old, op, c.expression(node))
    c.effect("prim::set_item", owner, key, c.value(new, type.args[-1], "an item"))


def _store(c, owner, index, operand):
    type = type_of(owner)
    if type is TENSOR:
        where = _index(c, index)
        value = c.value(operand)
        if not (type_of(value) is TENSOR or type_of(value).word in ("int", "float", "bool", "complex", "Scalar")):
            c.fault(f"an item of a tensor is set to a tensor or number, not {type_of(value)}")
        c.effect("prim::tensor.set_item", owner, where, value)
    elif type.word == "List" and isinstance(index, ast.Slice):
        bounds = [_bound(c, p) for p in _parts(index)]
        c.effect("prim::set_slice", owner, *bounds, c.value(operand, type))
    elif type.word in ("List", "Dict"):
        key = c.value(c.expression(index), INT if type.word == "List" else type.args[0], "an index")
        c.effect("prim::set_item", owner, key, c.value(operand, type.args[-1], "an item"))
    else:
        key = c.expression(index)
        if c.call_magic("__setitem__", owner, [key, operand], returns=False) is None:
            c.fault(f"a value of type {type} takes no subscripted assignment: Class does not define __setitem__")


@hook
def delete_item(c, target):
    """del target"""
    owner = c.value(c.expression(target.value))
    type = type_of(owner)
    if type.word == "List" and isinstance(target.slice, ast.Slice):
        c.effect("prim::delete_slice", owner, *[_bound(c, p) for p in _parts(target.slice)])
    elif type.word in ("List", "Dict"):
        key = c.value(c.expression(target.slice), INT if type.word == "List" else type.args[0], "an index")
        c.effect("prim::delete_item", owner, key)
    elif c.call_magic("__delitem__", owner, [c.expression(target.slice)], returns=False) is None:
        c.fault(f"an item of a value of type {type} cannot be deleted: Class does not define __delitem__")
