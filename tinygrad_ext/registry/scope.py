"""Who registers, and how to take it back.

A Scope belongs to one owner. Every step that puts something into a table notes how to undo that very step, never a
copy of the table: so scopes can be undone in any order, and what others registered meanwhile stays.
"""

import threading

from tinygrad_ext.ops.record import BUILTIN, Owner


class Scope:
    """What one owner has registered.

    owner: who; shown in reprs, messages and `ops where`.
    namespaces: those it may register under, or None for any that is not reserved.
    """

    __slots__ = ("_undo", "namespaces", "owner")

    def __init__(self, owner, namespaces=None):
        self.owner = owner
        self.namespaces = None if namespaces is None else tuple(namespaces)
        self._undo = []

    def note(self, function, *args):
        """Remember that function(*args) takes back what was just done."""
        self._undo.append((function, args))

    def put(self, table, key, value):
        """table[key] = value, until undone."""
        table[key] = value
        self.note(table.pop, key, None)

    def keys(self, table):
        """The keys that the scope put into a table, sorted."""
        found = set()
        for f, args in self._undo:
            of = getattr(f, "__self__", None)
            if of is table:
                found.add(args[0])
            elif isinstance(of, Scope):
                found.update(of.keys(table))
        return tuple(sorted(found))

    def child(self):
        """A scope of the same owner that can be undone alone, and is undone with this one."""
        inner = Scope(self.owner, self.namespaces)
        self.note(inner.undo)
        return inner

    def mark(self):
        """A point to which `undo` can go back."""
        return len(self._undo)

    def undo(self, mark=0):
        """Take back what was registered since `mark`: child scopes, then the rest, last first.

        So an op is gone before its kernels are, and who still holds it goes on calling it.
        """
        for function, _ in self._undo[mark:][::-1]:
            if isinstance(getattr(function, "__self__", None), Scope):
                function()
        while len(self._undo) > mark:
            function, args = self._undo[-1]
            function(*args)  # each may run twice: an interrupt can fall before the next line
            self._undo.pop()

    def __len__(self):
        return len(self._undo)

    def __repr__(self):
        return f"<scope of {self.owner}: {len(self)} steps>"


class _Kept(Scope):
    """What the package registers itself is never taken back: ten thousand objects that said how are not made."""

    __slots__ = ()

    def note(self, function, *args):
        """Nothing."""

    def put(self, table, key, value):
        """table[key] = value."""
        table[key] = value


builtin = _Kept(BUILTIN)
application = Scope(Owner("this program"))  # what is registered outside of any plugin's load

_local = threading.local()


def current():
    """The scope of the plugin that this thread is loading, else the program's own."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else application


class entered:
    """`with entered(scope):` what this thread registers inside belongs to the scope."""

    __slots__ = ("scope",)

    def __init__(self, scope):
        self.scope = scope

    def __enter__(self):
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self.scope)
        return self.scope

    def __exit__(self, *exc):
        _local.stack.pop()
