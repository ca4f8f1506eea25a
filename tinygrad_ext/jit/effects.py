"""What Python does besides while a program is written down for `compile`: attributes, lists, dicts, arrays and names
that it changes, and numbers that it draws by generators of Python's or NumPy's.

A call of a graph would do none of it, and what was read would be a constant, so such a program is not compiled; and
because it then runs as it was written, what it changed meanwhile is put back. (A program that is traced is run for its
graph, and does these things that once.)
"""

import inspect
import pickle
import random
import sys
from collections import OrderedDict, deque

from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.graph.aliases import CaptureError
from tinygrad_ext.nn import Module
from tinygrad_ext.optim import Optimizer
from tinygrad_ext.optim.schedule import LRScheduler
from tinygrad_ext.utils._pytree import tree_leaves

from .constants import in_slots, is_own, is_same, owner_of, written_names

_COPIED = (list, set, deque)
_KINDS = (OrderedDict, dict, *_COPIED)  # whose own methods are called: a class that derives from one may do more
_NOT_SET = object()
_MOST_BYTES = 1 << 20  # of an array that is looked at


class Changes(CaptureError):
    """A program changes what a call of its graph would leave. It may do so at its first call alone."""


class Effects:
    """What there is before a program runs, told by `changed` and put back by it.

    surroundings: of the program, None where nobody asks. values: its arguments.
    """

    def __init__(self, surroundings, values):
        self._rows, self._known, self._cells, self._random = [], set(), [], None
        self._states = []  # (path, what has numbers of its own, those as bytes)
        self._slots = []  # (path, object, {name: what its slot held})
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
        for path, part in surroundings.parts():
            for table in (vars(part), part._buffers, part._parameters, part._modules):
                self._note(path, table, True)
            for name, table in vars(part).items():
                if "_hooks" in name and isinstance(table, (dict, set)):
                    self._note(f"{path}.{name}".lstrip("."), table)
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
                held = in_slots(value, _NOT_SET)
                self._slots.append((path, value, held))
                for name, inner in held.items():
                    if isinstance(inner, (dict, *_COPIED)):
                        self._note(f"{path}.{name}", inner)
            elif isinstance(value, LRScheduler):
                self._note(path, vars(value))
            state = None if isinstance(value, (Module, Tensor)) else _state(value)
            if state is not None:
                self._states.append((path, value, state))
        for table, entries in surroundings.used_of():
            if id(table) not in self._known:
                held = {name: table[name] for name in entries if name in table}
                self._rows.append(("", table, held, list(entries), False))

    def _note(self, path, table, owned=False):
        if id(table) not in self._known:
            self._known.add(id(table))
            self._rows.append((path, table, _kind(table)(table), None, owned))

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
            if not is_same(_content(cell), content):
                found.append(path)
                if content is _NOT_SET:
                    del cell.cell_contents
                else:
                    cell.cell_contents = content
        for path, value, held in self._slots:
            for name in [name for name, was in held.items() if not is_same(getattr(value, name, _NOT_SET), was)]:
                found.append(f"{path}.{name}")
                if held[name] is _NOT_SET:
                    object.__delattr__(value, name)
                else:
                    object.__setattr__(value, name, held[name])  # what the class does besides is not done again
        for path, value, state in self._states:
            if _state(value) != state:
                found.append(path)
                _set_state(value, state)
        if self._random is not None:
            found += self._drawn()
        self._rows, self._cells, self._states, self._slots, self._random = [], [], [], [], None
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
    kind = _kind(table)
    if not issubclass(kind, dict):
        if len(table) == len(held) and all(map(is_same, table, held)):
            return []
        kind.clear(table)
        (kind.update if kind is set else kind.extend)(table, held)
        return [path]
    now = dict.get
    keys = dict.fromkeys([*held, *kind.keys(table)] if names is None else names)
    changed = [k for k in keys if not is_same(now(table, k, _NOT_SET), held.get(k, _NOT_SET))]
    if owned:
        changed = [k for k in changed if type(now(table, k)) is not Carried]
    found = [f"{path}.{key}".lstrip(".") if isinstance(key, str) else path for key in changed]
    owner = None if names is None else owner_of(table)
    for key in changed:
        if owner is not None:
            type.__setattr__(owner, key, held[key]) if key in held else type.__delattr__(owner, key)
        elif key in held:
            kind.__setitem__(table, key, held[key])
        else:
            kind.pop(table, key)
    order = list(kind.keys(table))
    if names is None and order != list(held) and len(order) == len(held):
        for key in held if set(order) == set(held) else ():
            kind.__setitem__(table, key, kind.pop(table, key))
        return found or [path]
    return found


def _kind(table):
    return next(kind for kind in _KINDS if isinstance(table, kind))


# ---- what has numbers of its own -----------------------------------------------------------------------------------


def _state(value):
    """The bytes or the state of a generator, of an array or a bytearray; None of others."""
    if type(value) is bytearray:
        return bytes(value)
    if type(value) is random.Random:
        return value.getstate()
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        plain = value.nbytes <= _MOST_BYTES and not value.dtype.hasobject
        return (value.tobytes(), value.flags.writeable) if plain else None
    generators = sys.modules.get("numpy.random")
    if generators is not None and isinstance(value, generators.RandomState):
        return pickle.dumps(value.get_state(legacy=False))
    if generators is not None and isinstance(value, generators.Generator):
        return pickle.dumps(value.bit_generator.state)
    return None


def _set_state(value, state):
    if type(value) is bytearray:
        value[:] = state
    elif type(value) is random.Random:
        value.setstate(state)
    elif isinstance(value, sys.modules["numpy"].ndarray):
        written, writeable = state
        if value.tobytes() != written:
            value.flags.writeable = True
            value[...] = sys.modules["numpy"].frombuffer(written, value.dtype).reshape(value.shape)
        value.flags.writeable = writeable
    elif isinstance(value, sys.modules["numpy.random"].RandomState):
        value.set_state(pickle.loads(state))
    else:
        value.bit_generator.state = pickle.loads(state)


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _NOT_SET


def _is_builtin(value):
    return type(value).__module__ in ("builtins", "itertools")


def _of_numpy():
    numpy = sys.modules.get("numpy.random")
    return None if numpy is None else numpy.get_state()
