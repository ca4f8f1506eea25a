"""What a traced program reads of its surroundings besides tensors, modules and optimizers: numbers, words, functions
and whatever else it closes over, globals, attributes of its objects, modules and classes. In a graph they are
constants; where another one stands there, it is noticed, and captured anew.

Which names a program reads is told by its code. A name that the program writes as well, such as a count of its own
calls, is left out: Python runs while a program is captured alone.
"""

import builtins
import dis
import functools
import gc
import inspect
import sys
import types
import weakref

from tinygrad_ext.core.data.dtype import dtype

from .watch import ABSENT

NUMBERS = (int, float, bool)
PLAIN = (*NUMBERS, str, bytes, complex, type(None), dtype)
# where objects are nobody's settings
_OTHERS = (
    "builtins", "tinygrad_ext", "numpy", "functools", "types", "logging", "threading", "_thread", "re", "weakref",
    "_weakref", "_io", "io", "typing", "abc", "enum", "_abc",
)  # fmt: skip
_OF_TENSORS = ("tinygrad_ext", "torch")
_LIBRARIES = {*_OF_TENSORS, "numpy", *sys.stdlib_module_names}
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_CONSTANT = {"LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT"}
_WRITES = {"STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_NAME"}


class Accesses:
    """What code reads and writes. Attributes: names, attributes: name -> "file:line" that reads it; written: names;
    compares: whether it asks which objects are one."""

    def __init__(self):
        self.names, self.attributes, self.written, self.compares = {}, {}, set(), False

    def add(self, code):
        names, attributes, written, compares = _accesses(code)
        self.compares |= compares
        self.names = {**names, **self.names}
        self.attributes = {**attributes, **self.attributes}
        self.written |= written

    def add_class(self, cls, base=object):
        """The methods of a class, up to a base."""
        for c in cls.__mro__:
            if c is base or c is object:
                break
            self.add_methods(c)

    def add_methods(self, cls):
        """The methods that a class itself has."""
        for value in vars(cls).values():
            function = getattr(value, "__func__", getattr(value, "fget", value))
            while function is not None:  # and what decorators have wrapped
                if inspect.isfunction(function) and function.__name__ != "__init__":
                    self.add(function.__code__)
                function = getattr(function, "__dict__", {}).get("__wrapped__")


@functools.lru_cache(4096)
def _accesses(code):
    names, attributes, written, line = {}, {}, set(), code.co_firstlineno
    compares, before = False, None
    for step in dis.get_instructions(code):
        line = step.starts_line if type(step.starts_line) is int and step.starts_line is not True else line
        place = f"{code.co_filename}:{line}"
        if step.opname in _GLOBAL:
            names.setdefault(step.argval, place)
        elif step.opname in _ATTRIBUTE:
            attributes.setdefault(step.argval, place)
        elif step.opname in _WRITES and step.argval not in code.co_cellvars:
            written.add(step.argval)
        if step.opname == "IS_OP":
            compares |= not (before.opname in _CONSTANT or isinstance(vars(builtins).get(before.argval), type))
        before = step
    for inner in code.co_consts:
        if inspect.iscode(inner):
            found = _accesses(inner)
            names, attributes, written = {**found[0], **names}, {**found[1], **attributes}, written | found[2]
            compares |= found[3]
    return names, attributes, written, compares or "id" in names


def written_names(code):
    """Names of globals that a function writes, in functions inside it too."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
    return found.union(*(written_names(inner) for inner in code.co_consts if inspect.iscode(inner)))


_firsts = {}  # name of a module of the library -> {name: what stood there when it was first seen}
_owners = weakref.WeakValueDictionary()  # id of the dict of a class -> the class


class Same:
    """A value in a key, which is equal to itself alone; it lives as long, so nothing else gets its address."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Same and other.value is self.value

    def __hash__(self):
        return id(self.value)


def mark(value):
    """What a key says of a value: 1, 1.0 and True differ."""
    if type(value) is tuple:
        return tuple([mark(v) for v in value])
    return (type(value), value) if type(value) in PLAIN else Same(value)


def is_same(a, b):
    """Whether two values are one object, or numbers, texts or tuples of such that no program tells apart."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return type(a) in (int, float, str) and a == b


class Constants:
    """What is no tensor, module or optimizer among what a program can reach.

    Attributes: told: (path, number or word, "file:line" that reads it) of those that a graph holds for.
    """

    def __init__(self):
        self.read, self.held, self.told = Accesses(), [], []
        self._classes, self._modules = {}, {}  # class -> what its methods read

    def take(self, path, value, trail, line=None):
        """What the program reaches; its own objects and functions tell what it reads. line: that reads it."""
        if trail and trail[-1][2] is value:  # else it is a part of what stands there, such as a bound method's function
            self.held.append((path, value, trail, line))
        if inspect.isfunction(value):
            self.read.add(value.__code__)
        elif is_own(value):
            self.read.add_class(type(value))

    def compares(self):
        """Whether the program asks which objects are one."""
        return self.read.compares or any(accesses.compares for accesses in self._modules.values())

    def all_read(self):
        """Names of attributes that the program reads, of whatever."""
        return dict.fromkeys(name for a in (self.read, *self._modules.values()) for name in a.attributes)

    def line_of(self, name):
        """ "file:line" that reads a name or an attribute; None where none does."""
        return self.read.names.get(name) or self.read.attributes.get(name)

    def settle(self):
        """(path, mark, what leads there) of what the program reads and does not write."""
        for path, value, trail, line in self.held:
            parts = path.split(".")
            name = next((p for p in reversed(parts) if not p.isdigit()), path)
            line = line or self.line_of(name) or next(filter(None, map(self.line_of, parts)), None)
            if line is None or name in self.read.written:
                continue
            if type(value) in (*NUMBERS, str):
                self.told.append((path, value, line))
            yield path, mark(value), trail

    def of_class(self, kind):
        """Names that the program's own methods read of an instance of a class, without those that they write."""
        if kind not in self._classes:
            accesses = Accesses()
            for cls in kind.__mro__:
                if is_own_class(cls):
                    accesses.add_methods(cls)
            names = [name for name in accesses.attributes if name not in accesses.written and name[:2] != "__"]
            self._classes[kind] = ["forward", *names], set(accesses.written)
        return self._classes[kind][0]

    def written_by(self, kind):
        """Names that they write."""
        self.of_class(kind)
        return self._classes[kind][1]

    def of_module(self, module, base):
        """(name, value, line) of the attributes of a module that its methods or functions of the program read, methods
        in the place of those of its class too; not what its methods write."""
        accesses = self._modules.get(type(module))
        if accesses is None:
            accesses = self._modules[type(module)] = Accesses()
            accesses.add_class(type(module), base)
        for name, line in {**self.read.attributes, **accesses.attributes}.items():
            if name in module.__dict__ and name != "training" and name not in accesses.written:
                yield name, module.__dict__[name], line


def is_own(value):
    """Whether a value is an object of a class of the program's own."""
    return is_own_class(type(value)) or type(value) is types.SimpleNamespace


def is_own_class(cls):
    """Whether a class is the program's own, not one of Python's insides or of the library."""
    return not cls.__module__.startswith(_OTHERS)


def in_slots(value, unset):
    """name -> what the slots of an object hold."""
    members = [n for cls in type(value).__mro__ for n, m in vars(cls).items() if inspect.ismemberdescriptor(m)]
    return {name: getattr(value, name, unset) for name in members}


def table_of(cls):
    """The dict that a class keeps its attributes in."""
    table = next(d for d in gc.get_referents(cls.__dict__) if type(d) is dict)
    _owners[id(table)] = cls
    return table


def owner_of(table):
    """The class that keeps its attributes in a dict, which is told of changes to it; None for another dict."""
    cls = _owners.get(id(table))
    return cls if cls is not None and table_of(cls) is table else None


def names_of(code):
    """(names that a function reads as globals or of what is around it, names of attributes that it reads)."""
    names, attributes, *_ = _accesses(code)
    return names, attributes


def members(owner, names):
    """(name, value, dict) of what a module or class of the program's own has of these names, and where a class could
    come to have it before."""
    if inspect.ismodule(owner) and owner.__name__.partition(".")[0] not in _LIBRARIES:
        tables = [vars(owner)]
    elif isinstance(owner, type) and is_own_class(owner):
        tables = [table_of(cls) for cls in owner.__mro__ if is_own_class(cls)]
    else:
        return
    for name in names:
        at = next((i for i, table in enumerate(tables) if name in table), None)
        if at is not None:
            yield name, tables[at][name], tables[at]
            yield from ((name, ABSENT, table) for table in tables[:at])


def swapped(owner, names, done):
    """(dict, names, {name: what stands there in the place of what was first seen}) of modules of the library, and of
    those in them that the names lead to."""
    if id(owner) in done or owner.__name__.partition(".")[0] not in _OF_TENSORS:
        return
    done.add(id(owner))
    table = vars(owner)
    found = {name: table[name] for name in names if name in table}
    firsts = _firsts.setdefault(owner.__name__, {})
    for name, value in found.items():
        firsts.setdefault(name, value)
    yield table, tuple(found), {name: value for name, value in found.items() if value is not firsts[name]}
    for value in found.values():
        if inspect.ismodule(value):
            yield from swapped(value, names, done)
