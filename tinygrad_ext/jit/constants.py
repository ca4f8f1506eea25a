"""Numbers that a traced program reads of its surroundings: what it closes over, globals, attributes of its objects and
modules. In a graph they are constants; another number is noticed, and captured anew.

Which names a program reads is told by its code. A name that the program writes as well, such as a count of its own
calls, is left out: Python runs while a program is captured alone.
"""

import dis
import functools
import inspect

NUMBERS = (int, float, bool)
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_WRITES = {"STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_NAME"}


class Accesses:
    """What code reads and writes. Attributes: names, attributes: name -> "file:line" that reads it; written: names."""

    def __init__(self):
        self.names, self.attributes, self.written = {}, {}, set()

    def add(self, code):
        names, attributes, written = _accesses(code)
        self.names = {**names, **self.names}
        self.attributes = {**attributes, **self.attributes}
        self.written |= written

    def add_class(self, cls, base=object):
        """The methods of a class, up to a base."""
        for c in cls.__mro__:
            if c is base or c is object:
                break
            for value in vars(c).values():
                function = getattr(value, "__func__", getattr(value, "fget", value))
                if inspect.isfunction(function) and function.__name__ != "__init__":
                    self.add(function.__code__)


@functools.lru_cache(4096)
def _accesses(code):
    names, attributes, written, line = {}, {}, set(), code.co_firstlineno
    for step in dis.get_instructions(code):
        line = step.starts_line if type(step.starts_line) is int and step.starts_line is not True else line
        place = f"{code.co_filename}:{line}"
        if step.opname in _GLOBAL:
            names.setdefault(step.argval, place)
        elif step.opname in _ATTRIBUTE:
            attributes.setdefault(step.argval, place)
        elif step.opname in _WRITES and step.argval not in code.co_cellvars:
            written.add(step.argval)
    for inner in code.co_consts:
        if inspect.iscode(inner):
            found = _accesses(inner)
            names, attributes, written = {**found[0], **names}, {**found[1], **attributes}, written | found[2]
    return names, attributes, written


class Constants:
    """The numbers among what a program can reach.

    Attributes: told: (path, number, "file:line" that reads it) of those that a graph holds for.
    """

    def __init__(self):
        self.read, self.held, self.told = Accesses(), [], []

    def take(self, path, value, trail):
        """A number, a function, or an object of the program's own that the program reaches."""
        if type(value) in NUMBERS:
            self.held.append((path, value, trail))
        elif inspect.isfunction(value):
            self.read.add(value.__code__)
        else:
            self.read.add_class(type(value))

    def settle(self):
        """(path, number, what leads there) of the numbers that the program reads and does not write."""
        for path, value, trail in self.held:
            name = next((p for p in reversed(path.split(".")) if not p.isdigit()), path)
            line = (
                self.read.names.get(name) or self.read.attributes.get(name) or self.read.names.get(path.split(".")[0])
            )
            if line is not None and name not in self.read.written:
                self.told.append((path, value, line))
                yield path, value, trail

    def of_module(self, path, module, base):
        """Names of the numbers among a module's attributes that its methods read."""
        accesses = Accesses()
        accesses.add_class(type(module), base)
        found = []
        for name, value in module.__dict__.items():
            if type(value) in NUMBERS and name in accesses.attributes and name not in {"training", *accesses.written}:
                found.append(name)
                self.told.append((f"{path}.{name}" if path else name, value, accesses.attributes[name]))
        return found
