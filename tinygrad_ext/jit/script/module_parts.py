"""What a module says of its parts: children, all modules below, parameters, buffers, by name or not."""

from .values import Method, Static, TupleValue


class ModuleTable(Static):
    """`module._modules`: children by name."""

    kind = "the table of a module's children"

    def __init__(self, owner):
        self.owner = owner

    def attribute(self, c, name):
        if name in OF_CONTAINERS:
            return Method(name, lambda c, args, kwargs: OF_CONTAINERS[name](self.owner, c))
        return super().attribute(c, name)

    def items(self, c):
        return list(self.owner.table())


def _pairs(owner, c):
    return [(name, owner.attribute(c, name)) for name in owner.table()]


def _children(owner, c):
    """(name, operand) of each child; one that is annotated with an interface is known by that alone."""
    return [(n, owner.child_as_told(c, n)) for n, child in owner.module._modules.items() if child is not None]


def _modules(owner, c, prefix=""):
    """(path, operand) of a module and those below."""
    yield prefix, owner
    for name, child in _children(owner, c) if hasattr(owner, "child_as_told") else ():
        yield from _modules(child, c, f"{prefix}.{name}" if prefix else name)


def _walked(owner, prefix=""):
    """(path, ModuleValue) of a module and those below, whatever they are annotated with: all have tensors."""
    yield prefix, owner
    for name, child in owner.module._modules.items():
        if child is not None:
            yield from _walked(owner.child(name), f"{prefix}.{name}" if prefix else name)


def _tensors(owner, c, table):
    return [
        (f"{path}.{name}" if path else name, part.attribute(c, name))
        for path, part in _walked(owner)
        for name, value in getattr(part.module, table).items()
        if value is not None
    ]


def _both(name, rows):
    """The method that gives pairs, and the one that gives their second parts."""
    return {
        f"named_{name}": lambda owner, c: TupleValue([TupleValue(pair) for pair in rows(owner, c)]),
        name: lambda owner, c: TupleValue([value for _, value in rows(owner, c)]),
    }


OF_MODULES = {
    **_both("parameters", lambda owner, c: _tensors(owner, c, "_parameters")),
    **_both("buffers", lambda owner, c: _tensors(owner, c, "_buffers")),
    **_both("modules", lambda owner, c: list(_modules(owner, c))),
    **_both("children", _children),
}
OF_CONTAINERS = {
    "keys": lambda owner, c: TupleValue(list(owner.table())),
    "values": lambda owner, c: TupleValue([v for _, v in _pairs(owner, c)]),
    "items": lambda owner, c: TupleValue([TupleValue(pair) for pair in _pairs(owner, c)]),
    "__len__": lambda owner, c: len(owner.table()),
}
