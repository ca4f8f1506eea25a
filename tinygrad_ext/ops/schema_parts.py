"""The parts of an operator schema: arguments and returns, and what they share."""

from tinygrad_ext.core.data.table import kind_numbers

from .schema_default import write_default

TYPES = [*kind_numbers(), "Stream"]


class Alias:
    """What an argument shares: ``(a!)`` is the set a, written to; ``(a -> *)`` may end up anywhere.

    Attributes: before and after (tuples of set names; after is empty where there is no arrow), write (bool).
    """

    __slots__ = ("after", "before", "write")

    def __init__(self, before, write=False, after=()):
        self.before, self.write, self.after = before, write, after

    def __str__(self):
        arrow = f" -> {'|'.join(self.after)}" if self.after else ""
        return f"({'|'.join(self.before)}{'!' if self.write else ''}{arrow})"

    def __repr__(self):
        return f"<Alias {self}>"


class Arg:
    """One argument or return of an op. Treat as constant: equal parts may be shared.

    Attributes:
        name: its name; "" for a return without one.
        spelling: the whole type in canonical form, "Tensor(a!)[]?".
        type: the base type alone, "Tensor".
        optional, is_list, elem_optional: ``T?``, ``T[]`` and ``T?[]``.
        size: the 2 of ``int[2]``, else None.
        alias: an `Alias` or None.
        has_default, default: the default as a Python value; lists are tuples.
        kwarg_only: it stands after "*".
    """

    __slots__ = (
        *("name", "spelling", "type", "optional", "is_list", "size", "elem_optional", "alias"),
        *("has_default", "default", "kwarg_only"),
    )

    def __init__(self, name, fields, kwarg_only=False):
        self.name = name
        (
            self.spelling,
            self.type,
            self.optional,
            self.is_list,
            self.size,
            self.elem_optional,
            self.alias,
        ) = fields
        self.has_default = False
        self.default = None
        self.kwarg_only = kwarg_only

    @property
    def is_write(self):
        """Whether the op changes this argument."""
        return self.alias is not None and self.alias.write

    def __str__(self):
        text = f"{self.spelling} {self.name}" if self.name else self.spelling
        return f"{text}={write_default(self)}" if self.has_default else text

    def __repr__(self):
        return f"<Arg {self}>"
