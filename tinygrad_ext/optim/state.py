"""The optimizer's ``state``: a dict per parameter, which tells when it was edited.

A fused update wants one list per quantity (all ``exp_avg``, all ``exp_avg_sq``, ...).
Building the lists costs more than the update of a tiny model, so they are kept from step to
step, and every way to edit ``state`` marks them as stale.
"""


class _Edits:
    """The mark that all dicts of one optimizer share."""

    __slots__ = ("stale",)

    def __init__(self):
        self.stale = True

    def __reduce__(self):
        return _Edits, ()


class ParameterState(dict):
    """What an optimizer remembers about one parameter, by name."""

    __slots__ = ("edits",)

    def __init__(self, edits, entries=()):
        super().__init__(entries)
        self.edits = edits

    def __reduce__(self):
        return dict, (dict(self),)


class OptimizerState(dict):
    """``state[parameter]`` gives its `ParameterState`, an empty one the first time.

    ``edits.stale`` is true when anything here was edited since it was last cleared.
    """

    __slots__ = ("edits",)

    def __init__(self, entries=()):
        super().__init__()
        self.edits = _Edits()
        for parameter, state in dict(entries).items():
            self[parameter] = state

    def __missing__(self, parameter):
        self[parameter] = {}
        return self[parameter]

    def __setitem__(self, parameter, state):
        self.edits.stale = True
        # Only a dict can be watched; a plugin's optimizer may keep something else.
        dict.__setitem__(self, parameter, ParameterState(self.edits, state) if type(state) is dict else state)

    def __reduce__(self):
        return OptimizerState, (dict(self),)


def _marking(name):
    plain = getattr(dict, name)

    def edit(self, *args, **kwargs):
        self.edits.stale = True
        return plain(self, *args, **kwargs)

    edit.__name__ = name
    return edit


for _name in ("__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(ParameterState, _name, _marking(_name))
    if _name not in ("__ior__", "setdefault", "update"):
        setattr(OptimizerState, _name, _marking(_name))
ParameterState.__setitem__ = _marking("__setitem__")
