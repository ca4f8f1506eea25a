"""Comprehensions of lists and dicts: a loop that appends, or one item after the other where the items are known."""

import ast

from tinygrad_ext.graph.types import ANY, STR, TENSOR, Type
from tinygrad_ext.graph.types import list_of as list_type

from .compiler import expression, hook
from .errors import NotSupportedError
from .iteration import assigned
from .types import parts_of, unify
from .values import DictLiteral, ListLiteral, Static, type_of


@expression(ast.ListComp)
def _list(c, node, declared=None):
    return comprehension(c, node.generators, lambda: c.expression(node.elt), declared)


@hook
def comprehended(c, node, type):
    """A comprehension of a list or dict that has a type by the program's word."""
    word, make = ("List", _list) if isinstance(node, ast.ListComp) else ("Dict", _dict)
    found = [t for t in parts_of(type) if t.word == word]
    if not found and type is not ANY:
        whole = "an Union type annotation with an inner" if type.word == "Union" else "an annotation of type"
        c.fault(f"Expected {whole} {word}{' type' * (type.word == 'Union')}, but got {type}")
    return make(c, node, found[0] if len(found) == 1 else None)


@hook
def comprehension(c, generators, element, declared=None):
    """A list of what element() gives for each turn; declared: its type, where the program says it."""
    if len(generators) == 1 and not generators[0].ifs:
        operand = c.expression(generators[0].iter)
        items = operand.items(c) if isinstance(operand, Static) else None
        if items is not None:
            return _unrolled_list(c, generators[0], items, element)
        return _filled(c, generators, element, operand, declared)
    return _filled(c, generators, element, c.expression(generators[0].iter), declared)


def _unrolled_list(c, generator, items, element):
    found = []
    for item in items:
        with _own_names(c, generator.target):
            c.assign(generator.target, item)
            found.append(element())
    return ListLiteral(found)


class _own_names:
    """The target of a comprehension is a name of its own."""

    def __init__(self, c, target):
        self.c, self.names = c, set(assigned([target]))

    def __enter__(self):
        self.hidden = self.names - self.c.scope.own
        self.c.scope.own |= self.hidden
        self.was = {n: self.c.scope.bound.pop(n) for n in self.names if n in self.c.scope.bound}

    def __exit__(self, *error):
        for name in self.names:
            self.c.scope.bound.pop(name, None)
        self.c.scope.own -= self.hidden
        self.c.scope.bound.update(self.was)


def _filled(c, generators, element, first, declared):
    made = c.node("prim::list", (), (declared or list_type(ANY),)).output

    def add():
        value = c.value(element(), declared and declared.args[0], "an item")
        if declared is None:
            _grow(c, made, type_of(value))
        c.effect("prim::list.append", made, value)

    _generate(c, generators, add, first)
    if made.type is list_type(ANY):
        made.type = list_type(TENSOR)
    return made


def _grow(c, made, type):
    inner = made.type.args[0]
    together = type if inner.word == "Any" else unify(inner, type)
    if together is None:
        c.fault(f"items of a list have one type, but these have {inner} and {type}")
    made.type = list_type(together)


def _generate(c, generators, add, first=None):
    if not generators:
        add()
        return
    generator = generators[0]
    if generator.is_async:
        c.fault("async comprehensions aren't supported in script", kind=NotSupportedError)

    def body(item):
        with _own_names(c, generator.target):
            c.assign(generator.target, item)
            filtered(generator.ifs)

    def filtered(tests):
        if not tests:
            _generate(c, generators[1:], add)
            return
        c.branch(c.condition(tests[0]), lambda: filtered(tests[1:]), lambda: None)

    c.for_each(c.expression(generator.iter) if first is None else first, [], body)


@expression(ast.DictComp)
def _dict(c, node, declared=None):
    if len(node.generators) == 1 and not node.generators[0].ifs:
        operand = c.expression(node.generators[0].iter)
        items = operand.items(c) if isinstance(operand, Static) else None
        if items is not None:
            pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
            pairs = _unrolled_list(c, node.generators[0], items, lambda: c.expression(pair)).values
            return DictLiteral([p.values[0] for p in pairs], [p.values[1] for p in pairs])
    made = c.node("prim::dict", (), (declared or Type("Dict", (STR, Type("Any"))),)).output
    wanted = (None, None) if declared is None else declared.args

    def add():
        key = c.value(c.expression(node.key), wanted[0], "a key")
        value = c.value(c.expression(node.value), wanted[1], "a value")
        made.type = declared or Type("Dict", (type_of(key), type_of(value)))
        c.effect("prim::set_item", made, key, value)

    _generate(c, node.generators, add)
    return made
