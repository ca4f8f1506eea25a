"""Tuples, lists and dicts. Lists and dicts are objects that several values may name: what changes one is an effect."""

import math
import operator

from .table import primitive


def _slice(items, start, stop, step):
    if step == 0:
        raise ValueError("slice step cannot be zero: a slice should have non-zero step")
    return items[start:stop:step]


def _sort(items, reverse):
    try:
        items.sort(reverse=reverse)
    except TypeError as error:
        raise TypeError(f"Only values of same type can be compared: {error}") from None


def _index(items, item):
    try:
        return items.index(item)
    except ValueError:
        raise ValueError(f"'{item}' is not in list") from None


primitive("list", "...", None, lambda *items: list(items))
primitive("tuple", "...", None, lambda *items: tuple(items))
primitive("dict", "...", None, lambda *items: dict(zip(items[::2], items[1::2])))
primitive("unpack", "Any", None, lambda items: tuple(iter(items)))
primitive("getitem", "Any Any", None, operator.getitem)
primitive("slice", "Any Any Any Any", None, _slice)
primitive("len", "Any", "int", len)
primitive("contains", "Any Any", "bool", operator.contains)
primitive("concat", "Any Any", None, operator.add)
primitive("repeat", "Any Any", None, operator.mul)
primitive("cast", "Any", None, lambda value: value)  # the same value, of a type that is known by now
primitive("undefined", "", None, lambda: None)  # in the place of a value on a way on which nobody reads it
primitive("min_of", "Any", None, min)
primitive("max_of", "Any", None, max)
primitive("sum_of", "Any", None, sum)
primitive("prod_of", "Any", None, math.prod)
primitive("sorted", "Any bool", None, lambda items, reverse: sorted(items, reverse=reverse))
primitive("reversed", "Any", None, lambda items: list(reversed(items)))
primitive("to_list", "Any", None, list)
primitive("any_of", "Any", "bool", lambda items: any(bool(i) for i in items))
primitive("all_of", "Any", "bool", lambda items: all(bool(i) for i in items))
primitive("to_tuple", "Any", "Any", tuple)
primitive("range_length", "int int int", "int", lambda start, stop, step: len(range(start, stop, step)))


def _set_item(items, key, value):
    items[key] = value


def _set_slice(items, start, stop, step, value):
    items[start:stop:step] = value


def _delete_item(items, key):
    del items[key]


def _delete_slice(items, start, stop, step):
    del items[start:stop:step]


def _unpacked(items, count):
    if len(items) != count:
        raise ValueError(f"expected {count} values to unpack, got {len(items)}")
    return tuple(items)


primitive("unpack_list", "Any int", None, _unpacked)
primitive("set_item", "Any Any Any", "", _set_item, effect=True)
primitive("set_slice", "Any Any Any Any Any", "", _set_slice, effect=True)
primitive("delete_item", "Any Any", "", _delete_item, effect=True)
primitive("delete_slice", "Any Any Any Any", "", _delete_slice, effect=True)
primitive("list.append", "Any Any", "", list.append, effect=True)
primitive("list.extend", "Any Any", "", lambda items, more: items.extend(more), effect=True)
primitive("list.insert", "Any int Any", "", list.insert, effect=True)
primitive("list.pop", "Any int", None, list.pop, effect=True)
primitive("list.remove", "Any Any", "", list.remove, effect=True)
primitive("list.clear", "Any", "", list.clear, effect=True)
primitive("list.reverse", "Any", "", list.reverse, effect=True)
primitive("list.sort", "Any bool", "", _sort, effect=True)
primitive("list.index", "Any Any", "int", _index)
primitive("list.count", "Any Any", "int", list.count)
primitive("list.copy", "Any", None, list.copy)
primitive("dict.keys", "Any", None, lambda d: list(d.keys()))
primitive("dict.values", "Any", None, lambda d: list(d.values()))
primitive("dict.items", "Any", None, lambda d: list(d.items()))
primitive("dict.get", "Any Any Any", None, dict.get)
primitive("dict.copy", "Any", None, dict.copy)
primitive("dict.from_items", "Any", None, dict)
primitive("dict.pop", "Any Any", None, dict.pop, effect=True)
primitive("dict.pop_or", "Any Any Any", None, dict.pop, effect=True)
primitive("dict.popitem", "Any", None, dict.popitem, effect=True)
primitive("dict.setdefault", "Any Any Any", None, dict.setdefault, effect=True)
primitive("dict.update", "Any Any", "", lambda d, more: d.update(more), effect=True)
primitive("dict.clear", "Any", "", dict.clear, effect=True)
