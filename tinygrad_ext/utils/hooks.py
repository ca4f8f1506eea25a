"""The handle that every ``register_*_hook`` returns."""

import itertools
import weakref


class RemovableHandle:
    """Remember where a hook was put, so that it can be taken out again.

    Args:
        hooks_dict: the table the hook goes into, under ``handle.id``.
        extra_dict: further tables, or a list of them, that are keyed by the same id
            (the marks "wants keyword arguments", "call always").

    The tables are held weakly: a handle never keeps a module alive, and ``remove``
    after the module is gone does nothing. It is also a context manager that removes
    the hook on leaving.

        >>> from collections import OrderedDict
        >>> table = OrderedDict()
        >>> handle = RemovableHandle(table)
        >>> table[handle.id] = print
        >>> handle.remove()
        >>> len(table)
        0
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict, *, extra_dict=None):
        extras = () if extra_dict is None else extra_dict
        if not isinstance(extras, (list, tuple)):
            extras = (extras,)
        self.id = next(RemovableHandle._ids)
        self._tables = tuple(weakref.ref(table) for table in (hooks_dict, *extras))

    @property
    def hooks_dict_ref(self):
        """The weak reference to the table of the hook."""
        return self._tables[0]

    @property
    def extra_dict_ref(self):
        """Those to the further tables, as a tuple."""
        return self._tables[1:]

    def remove(self):
        """Take the hook out; a second call does nothing."""
        for reference in self._tables:
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.remove()

    def __getstate__(self):
        return [reference() for reference in self._tables], self.id

    def __setstate__(self, state):
        tables, self.id = state
        # A table that did not survive is replaced by one nobody holds: remove() then does nothing.
        self._tables = tuple(weakref.ref(t) if t is not None else _dead for t in tables)


def unserializable_hook(f):
    """Mark a hook that files need not have; no file has hooks of tensors here."""
    f.__torch_unserializable__ = True
    return f


def _dead():
    """Stand in for a weak reference whose target is gone."""
    return None
