"""What Python does besides while a program is written down for `compile`: attributes, lists, dicts and names that it
changes, and numbers that it draws by Python's own generators.

A call of a graph would do none of it, and what was read would be a constant, so such a program is not compiled; and
because it then runs as it was written, what it changed meanwhile is put back. (A program that is traced is run for its
graph, and does these things that once.)
"""

import inspect
import random
import sys
from collections import deque

from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.graph.aliases import CaptureError
from tinygrad_ext.nn import Module
from tinygrad_ext.optim import Optimizer
from tinygrad_ext.utils._pytree import tree_leaves

from .constants import is_own, written_names

_COPIED = (list, set, deque)


class Changes(CaptureError):
    """A program changes what a call of its graph would leave. It may do so at its first call alone."""


class Effects:
    """What there is before a program runs, told by `changed` and put back by it.

    surroundings: of the program, None where nobody asks. values: its arguments.
    """

    def __init__(self, surroundings, values):
        self._rows, self._known, self._cells, self._random = [], set(), [], None
        for path, value in values:
            self._note_argument(path, value)
        if surroundings is not None:
            self._note_all(surroundings)
            self._random = random.getstate(), _of_numpy()

    def _note_argument(self, path, value):
        if type(value) in (list, dict):
            self._note(path, value)
        if isinstance(value, (list, tuple, dict)):
            for part in value.values() if isinstance(value, dict) else value:
                self._note_argument(path, part)

    def _note_all(self, surroundings):
        for path, module in surroundings.modules.items():
            for inner, part in module.named_modules(prefix=path):
                for table in (vars(part), part._buffers, part._parameters, part._modules):
                    self._note(inner, table, True)
        paths = {id(value): path for path, value, *_ in surroundings.constants.held}
        for value in surroundings.seen():
            path = paths.get(id(value), "")
            if inspect.isgenerator(value) or (hasattr(value, "__next__") and _is_builtin(value)):
                raise CaptureError(
                    f"{path or 'what it uses'} is an iterator, which goes on where Python runs: make it in the program"
                )
            if inspect.isfunction(value):
                self._note_function(path, value)
            elif isinstance(value, (dict, *_COPIED)):
                self._note(path, value)
            elif is_own(value) and not isinstance(value, (Module, Optimizer, Tensor)):
                self._note(path, getattr(value, "__dict__", {}))

    def _note(self, path, table, owned=False):
        if id(table) not in self._known:
            self._known.add(id(table))
            self._rows.append((path, table, table.copy(), None, owned))

    def _note_function(self, path, function):
        self._note(path, function.__dict__)
        self._cells += [(path, cell, _content(cell)) for cell in function.__closure__ or ()]
        names = written_names(function.__code__)
        if names:
            held = {name: function.__globals__[name] for name in names if name in function.__globals__}
            self._rows.append(("", function.__globals__, held, names, False))

    def refuse(self, name, level, result):
        """Raise Changes where the program that a level wrote down changed something, and `compile` has asked."""
        asked = self._random is not None
        found = self.changed()
        if asked and level.raised is not None:
            raise CaptureError(
                f"{name}: {level.raised} raised, and the program went on, which a graph could not decide"
            )
        if asked:
            found += _flagged(level, result)
        if found:
            raise Changes(
                f"{name}: it changes {', '.join(found[:3])}, which no call of a graph would do: give what it counts or "
                "keeps to it as tensors, or let it return them"
            )

    def changed(self):
        """Names of what is something else now, in words. It is again as it was then."""
        found = []
        for row in self._rows:
            found += _put_back(*row)
        for path, cell, content in self._cells:
            if not _is_same(_content(cell), content):
                found.append(path)
                cell.cell_contents = content
        if self._random is not None:
            found += self._drawn()
        self._rows, self._cells, self._random = [], [], None
        return [path or "a name of the program" for path in dict.fromkeys(found)]

    def _drawn(self):
        found, (state, of_numpy), now = [], self._random, _of_numpy()
        if random.getstate() != state:
            random.setstate(state)
            found.append("the state of random")
        if of_numpy is None or now is None:  # NumPy loads that when it is asked for
            return found if of_numpy is now else [*found, "the state of numpy.random"]
        if now[2:] != of_numpy[2:] or (now[1] != of_numpy[1]).any():
            sys.modules["numpy.random"].set_state(of_numpy)
            found.append("the state of numpy.random")
        return found


def _flagged(level, result):
    """Which arguments and results are leaves that need a gradient since the program ran, in words."""
    reader, given = level.reader, {id(a.shown) for a in level.arguments.values()}
    leaf = lambda t: reader.read_requires_grad(t) and reader.read_is_leaf(t)
    asked = [a.name for a in level.arguments.values() if leaf(a.shown) and not a.tensor.requires_grad]
    made = any(level.owns(t) and id(t) not in given and leaf(t) for t in tree_leaves(result))
    return [f"requires_grad of {name}" for name in (*asked, *["a result"] * made)]


def _put_back(path, table, held, names, owned):
    """Let a container hold what it held; the paths of entries that were others. owned: what belongs to the capture is
    put back by that."""
    if not isinstance(table, dict):
        if len(table) == len(held) and all(map(_is_same, table, held)):
            return []
        table.clear()
        (table.update if isinstance(table, set) else table.extend)(held)
        return [path]
    keys = dict.fromkeys([*held, *table] if names is None else names)
    changed = [k for k in keys if not _is_same(table.get(k, _is_same), held.get(k, _is_same))]
    if owned:
        changed = [k for k in changed if type(table.get(k)) is not Carried]
    if not changed:
        return []
    if names is None and len(table) == len(held) and list(table) != list(held):  # the order, as well
        changed = [*held]
    for key in changed:
        table.pop(key, None)
    table.update((key, held[key]) for key in changed if key in held)
    return [f"{path}.{key}".lstrip(".") if isinstance(key, str) else path for key in changed]


def _is_same(a, b):
    return a is b or (type(a) is type(b) and type(a) in (int, float, str) and a == b)


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _is_builtin(value):
    return type(value).__module__ in ("builtins", "itertools")


def _of_numpy():
    numpy = sys.modules.get("numpy.random")
    return None if numpy is None else numpy.get_state()
