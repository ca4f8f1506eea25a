"""Methods of str, list and dict, and the text that repr gives."""

from tinygrad_ext.graph.primitives.texts import METHODS
from tinygrad_ext.graph.types import BOOL, INT, STR, Type, list_of, optional

from .builtins import builtin
from .compiler import hook
from .values import ListLiteral, Method, TupleValue, type_of


@hook
def container_attribute(c, value, name):
    """A method of a str, list or dict."""
    type = type_of(value)
    table = {"str": _text, "List": _LIST.get(name), "Dict": _DICT.get(name)}[type.word]
    if table is None or (type is STR and name != "format" and name not in METHODS):
        c.fault(f"'{type}' object has no attribute or method '{name}' in script")
    return Method(name, lambda c, args, kwargs: table(c, value, type, name, args, kwargs))


# ---- str -----------------------------------------------------------------------------------------------------------


@builtin(repr)
def _repr(c, args, kwargs):
    if kwargs or len(args) != 1:
        c.fault(f"repr() takes 1 argument, got {len(args) + len(kwargs)}")
    operand = c.for_text(args[0])
    made = c.call_magic("__repr__", operand, [])
    return c.emit("prim::format", ("{!r}", operand), STR) if made is None else made


def _text(c, value, type, name, args, kwargs):
    if name == "format":
        if kwargs:
            c.fault("format() takes positional arguments only in script; write an f-string")
        return c.emit("prim::format", (value, *[c.for_text(a) for a in args]), STR)
    required, more, result = METHODS[name]
    required, more = required.split(), more.split()
    names = {"split": ["sep", "maxsplit"], "rsplit": ["sep", "maxsplit"], "splitlines": ["keepends"], "replace": [],
             "expandtabs": ["tabsize"]}.get(name, [])  # fmt: skip
    args = list(args)
    for key in names[len(args) :]:
        if key in kwargs:
            while len(args) < names.index(key):
                args.append(None)
            args.append(kwargs.pop(key))
    if kwargs:
        c.fault(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if not len(required) <= len(args) <= len(required) + len(more):
        c.fault(f"str.{name}() takes {len(required)} to {len(required) + len(more)} arguments, got {len(args)}")
    given = []
    for operand, wanted in zip(args, [*required, *more]):
        wanted = Type.parse(wanted)
        given.append(None if operand is None and more else c.value(operand, wanted, f"an argument of {name}()"))
    return c.emit(f"prim::str.{name}", (value, *given), Type.parse(result))


# ---- list ----------------------------------------------------------------------------------------------------------


def _count(c, name, args, least, most):
    if not least <= len(args) <= most:
        c.fault(f"{name}() takes {least if least == most else f'{least} to {most}'} arguments, got {len(args)}")


def _append(c, value, type, name, args, kwargs):
    _count(c, name, args, 1, 1)
    c.effect("prim::list.append", value, c.value(args[0], type.args[0], "an item"))


def _extend(c, value, type, name, args, kwargs):
    _count(c, name, args, 1, 1)
    operand = ListLiteral(args[0].values) if isinstance(args[0], TupleValue) else args[0]
    c.effect("prim::list.extend", value, c.value(operand, type, "a list"))


def _insert(c, value, type, name, args, kwargs):
    _count(c, name, args, 2, 2)
    c.effect("prim::list.insert", value, c.value(args[0], INT), c.value(args[1], type.args[0], "an item"))


def _pop(c, value, type, name, args, kwargs):
    _count(c, name, args, 0, 1)
    return c.emit("prim::list.pop", (value, c.value(args[0], INT, "an index") if args else -1), type.args[0])


def _plain(c, value, type, name, args, kwargs):
    _count(c, name, args, 0, 0)
    c.effect(f"prim::list.{name}", value)


def _remove(c, value, type, name, args, kwargs):
    _count(c, name, args, 1, 1)
    c.effect("prim::list.remove", value, c.value(args[0], type.args[0], "an item"))


def _find(c, value, type, name, args, kwargs):
    _count(c, name, args, 1, 1)
    return c.emit(f"prim::list.{name}", (value, c.value(args[0], type.args[0], "an item")), INT)


def _sort(c, value, type, name, args, kwargs):
    if "key" in kwargs:
        c.fault("sort(key=...) is not taken in script; give the class __lt__, or sort pairs")
    reverse = c.value((*args, *kwargs.values(), False)[0], BOOL, "argument 'reverse'")
    made = c.in_order(value, reverse, "sort()")
    if made is None:
        c.effect("prim::list.sort", value, reverse)
    else:
        c.effect("prim::set_slice", value, None, None, None, c.value(made, type))


def _copy(c, value, type, name, args, kwargs):
    _count(c, name, args, 0, 0)
    return c.emit(f"prim::{type.word.lower()}.copy", (value,), type)


_LIST = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "clear": _plain,
    "reverse": _plain,
    "remove": _remove,
    "index": _find,
    "count": _find,
    "sort": _sort,
    "copy": _copy,
}

# ---- dict ----------------------------------------------------------------------------------------------------------


def _views(c, value, type, name, args, kwargs):
    _count(c, name, args, 0, 0)
    key, item = type.args
    inner = {"keys": key, "values": item, "items": Type("Tuple", (key, item))}[name]
    return c.emit(f"prim::dict.{name}", (value,), list_of(inner))


def _get(c, value, type, name, args, kwargs):
    args = [*args, *kwargs.values()]
    _count(c, name, args, 1, 2)
    key = c.value(args[0], type.args[0], "a key")
    if len(args) == 1 or args[1] is None:
        return c.emit("prim::dict.get", (value, key, None), optional(type.args[1]))
    return c.emit("prim::dict.get", (value, key, c.value(args[1], type.args[1], "an item")), type.args[1])


def _pop_key(c, value, type, name, args, kwargs):
    _count(c, name, args, 1, 2)
    key = c.value(args[0], type.args[0], "a key")
    if len(args) == 1:
        return c.emit("prim::dict.pop", (value, key), type.args[1])
    return c.emit("prim::dict.pop_or", (value, key, c.value(args[1], type.args[1], "an item")), type.args[1])


def _pop_item(c, value, type, name, args, kwargs):
    return c.emit("prim::dict.popitem", (value,), Type("Tuple", type.args))


def _set_default(c, value, type, name, args, kwargs):
    _count(c, name, args, 2, 2)
    row = value, c.value(args[0], type.args[0], "a key"), c.value(args[1], type.args[1], "an item")
    return c.emit("prim::dict.setdefault", row, type.args[1])


def _update(c, value, type, name, args, kwargs):
    _count(c, name, args, 1, 1)
    c.effect("prim::dict.update", value, c.value(args[0], type, "a dict"))


def _clear(c, value, type, name, args, kwargs):
    c.effect("prim::dict.clear", value)


_DICT = {
    **dict.fromkeys(("keys", "values", "items"), _views),
    "get": _get,
    "pop": _pop_key,
    "popitem": _pop_item,
    "setdefault": _set_default,
    "update": _update,
    "clear": _clear,
    "copy": _copy,
}
