"""What a program was told, while it was captured, of things that a graph tells nothing of: how tensors lie in memory,
and which of them are one. A graph holds for calls in which the answers are the same."""

from tinygrad_ext.core.data.dtype import strided
from tinygrad_ext.graph.layouts import lies_by_rows
from tinygrad_ext.graph.trees import at, leaves_of


def answers_of(level, surroundings, holders, given):
    """The answers that a level gave to a program with such arguments. holders: of the states, see captured.py."""
    places = {id(tensor): path for path, tensor in leaves_of(given)}
    found = [] if level.alike is None else [Alike(surroundings)]
    for tensor, *question in level.reader.lying.values():
        if tensor is None:
            found.append(OfAll([h for h in holders if h.holding == "tensor"]))
        elif id(tensor) in places:
            found.append(OfArgument(places[id(tensor)], *question))
        else:
            path = (surroundings.name_of(tensor) or (None,))[0]
            found.append(OfState(tensor, path, surroundings, *question))
    for answer in found:
        answer.told = answer.ask(given)
    return found


class Answer:
    """One question, with what was answered."""

    told = None

    def holds(self, given):
        """Whether it is answered so for the arguments of a call."""
        return self.ask(given) == self.told


class OfArgument(Answer):
    """How an argument lies."""

    def __init__(self, path, name, more):
        self.path, self.name, self.more = path, name, more

    def ask(self, given):
        return _lying(at(given, self.path), self.name, self.more)

    def __str__(self):
        return f"{_asked(self.name, self.more)} of argument {'.'.join(map(str, self.path))}"


class OfState(Answer):
    """How a tensor lies that the program knows besides. path: its name, None where it stays."""

    def __init__(self, tensor, path, surroundings, name, more):
        self.tensor, self.path, self.surroundings = tensor, path, surroundings
        self.name, self.more = name, more

    def ask(self, given):
        tensor = self.tensor if self.path is None else self.surroundings.at.get(self.path)
        return None if tensor is None else _lying(tensor, self.name, self.more)

    def __str__(self):
        return f"{_asked(self.name, self.more)} of {self.path or 'a tensor'}"


class OfAll(Answer):
    """How all tensors lie that something was computed of."""

    def __init__(self, holders):
        self.holders = holders

    def ask(self, given):
        tensors = [tensor for _, tensor in leaves_of(given)] + [holder.owner for holder in self.holders]
        return [(t.shape, *[_lying(t, name) for name in _ALL]) for t in tensors]

    def __str__(self):
        return "how tensors lie in memory that something is computed of"


class Alike(Answer):
    """Which tensors among the arguments are one, and which are others that the program knows."""

    def __init__(self, surroundings):
        self.surroundings = surroundings

    def ask(self, given):
        firsts, found = {}, []
        for i, (_, tensor) in enumerate(leaves_of(given)):
            found.append((firsts.setdefault(id(tensor), i), self.surroundings.name_of(tensor)))
        return found

    def __str__(self):
        return "which tensors are one"


_ALL = ("stride", "storage_offset", "is_conj", "is_neg")


def _lying(tensor, name, more=()):
    if tensor.layout is not strided:
        return None
    return lies_by_rows(tensor) if name == "rows" else getattr(tensor, name)(*more)


def _asked(name, more):
    return f"{'stride' if name == 'rows' else name}({', '.join(map(str, more))})"
