"""What a compiled function takes and gives, with the questions that PyTorch's schemas answer."""

import json

from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.graph.types import Type


class Argument:
    """One argument or result.

    Attributes: name ("" of a result), type, default_value, kwarg_only; N, how often a number that is given for a list
    stands in it, or None.
    """

    __slots__ = ("N", "_has_default", "default_value", "kwarg_only", "name", "type")
    alias_info = None
    is_out = False

    def __init__(self, name, type, default=(), kwarg_only=False, N=None):
        """default: nothing, or a tuple that holds it."""
        self.name, self.type, self.kwarg_only, self.N = name, type, kwarg_only, N
        self._has_default, self.default_value = bool(default), default[0] if default else None

    def has_default_value(self):
        return self._has_default

    def __str__(self):
        default = f"={_told(self.default_value)}" if self._has_default else ""
        type = self.type.str() if self.N is None else self.type.str().replace("[]", f"[{self.N}]")
        return f"{type} {self.name}{default}".rstrip()

    @property
    def real_type(self):
        return self.type

    def __repr__(self):
        return f"<Argument {self}>"


class FunctionSchema:
    """A declaration, written in the form of PyTorch's: "f(Tensor x, int[] sizes, int? n=None) -> Tensor".

    Attributes: name, overload_name, arguments (those of a method begin with self), returns.
    """

    overload_name, is_vararg, is_mutable = "", False, False

    def __init__(self, name, arguments, returns):
        self.name, self.arguments, self.returns = name, arguments, returns

    def __str__(self):
        told = [str(a) for a in self.arguments if not a.kwarg_only]
        keywords = [str(a) for a in self.arguments if a.kwarg_only]
        told += ["*", *keywords] if keywords else []
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1 or returns.startswith("("):
            returns = f"({returns})"  # so that a tuple is told from several results
        return f"{self.name}({', '.join(told)}) -> {returns}"

    def __repr__(self):
        return str(self)

    def __eq__(self, other):
        return str(self) == str(other) if isinstance(other, FunctionSchema) else NotImplemented

    def __hash__(self):
        return hash(str(self))


def _told(value):
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value) if isinstance(value, dtypes.device) else repr(value)


def told_class(cls):
    """The type that stands for self of a module: its class below "__torch__", where PyTorch keeps all it compiles."""
    place = "" if cls.__module__ == "__main__" else f"{cls.__module__}."
    return Type(f"__torch__.{place}{cls.__name__}")
