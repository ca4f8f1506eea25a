"""One graph of a traced program together with the objects that its states stand for, and how they are read and
written."""

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import derivative, passes
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.graph.ir import State
from tinygrad_ext.graph.keys import key_of
from tinygrad_ext.graph.operands import as_name
from tinygrad_ext.graph.plan import Executor
from tinygrad_ext.graph.program import wants_grad

from .calls import Binding


def capture_program(name, function, given, keywords, surroundings):
    """Run a function on arguments and write it down; nothing that it uses is changed.

    given: (name, value) of each argument; keywords: names of the last ones, which are given by keyword.
    """
    level = Capture(name, surroundings.name_of)
    rates, entries = [], []
    for optimizer in surroundings.optimizers.values():
        level.optimized.update(id(p) for group in optimizer.param_groups for p in group["params"])
    try:
        with level:
            rates += _carry_rates(level, surroundings.optimizers)
            values = [level.argument(value, n) for n, value in given]
            count = len(values) - len(keywords)
            result = function(*values[:count], **dict(zip(keywords, values[count:])))
            entries += _new_entries(level, surroundings)
            graph = level.finish(result)
    finally:
        for _, group, rate, *_ in rates:
            group["lr"] = rate
        for _, states, _, param, key in entries or _new_entries(level, surroundings, dry=True):
            del states[param][key]
            if not states[param]:
                del states[param]
        level.reader.restore()
    holders = {id(t.root.state): _holder(t.root, surroundings) for t in level.roots.values()}
    holders.update((id(state), GeneratorHolder(generator)) for generator, state in level.drawn())
    holders.update((id(state), GradHolder(leaf, surroundings)) for state, leaf in level.reader.new_grads)
    holders.update((id(state), RateHolder(*place)) for state, _, _, *place in rates)
    holders.update((id(state), EntryHolder(*place, surroundings)) for state, _, *place in entries)
    leaves = list(surroundings.at.values()) if level.reader.derived or level.reader.swapped else []
    return Captured(graph, [holders[id(s)] for s in graph.state], Gradients(leaves, surroundings), level.reader.derived)


def _holder(root, surroundings):
    """The holder of a tensor from outside: its own, or that of the one whose `.grad` it is."""
    path, kind = surroundings.name_of(root.tensor) or (None, None)
    if kind == "grad":
        return GradHolder(surroundings.at[path.removesuffix(".grad")], surroundings, root.tensor)
    return Holder(root.tensor, path)


def _carry_rates(level, optimizers):
    """Let learning rates be inputs of the graph: (State, group, rate, optimizer, number of the group) each."""
    for name, optimizer in optimizers.items():
        for number, group in enumerate(optimizer.param_groups):
            rate = group["lr"]
            if type(rate) in (int, float):
                group["lr"], state = level.number_state(f"{name}.{number}.lr", float(rate))
                yield state, group, rate, optimizer, number


def _new_entries(level, surroundings, dry=False):
    """What the program put into an optimizer's state: (State, states of all parameters, optimizer, parameter, key)
    each."""
    found = []
    for name, optimizer in surroundings.optimizers.items():
        for param, entry in optimizer.state.items():
            for key in [k for k, v in entry.items() if isinstance(v, Tensor) and level.owns(v)]:
                state = None if dry else _entry_state(level, name, param, key, entry[key])
                found.append((state, optimizer.state, optimizer, param, key))
    return found


def _entry_state(level, optimizer, param, key, tensor):
    path = f"{optimizer}.{level.outside(param).root.state.name}"
    state = State(f"{path}.{key}", "new", level.graph.value(name=as_name(f"{path}.{key}")))
    state.new = level.lift(tensor)
    level.graph.state.append(state)
    return state


class Captured:
    """One graph, and where its states are."""

    def __init__(self, graph, holders, gradients, differentiates):
        """gradients: which `.grad` have to be there; differentiates: it has its own backward pass, so that nothing is
        recorded while it runs."""
        self.graph, self.holders, self.gradients = graph, holders, gradients
        self.differentiates = differentiates
        self.takes = None  # what it was captured for, see keys.py
        tensors = [i for i, holder in enumerate(holders) if holder.holding == "tensor"]
        self.runner = Executor(passes.optimize(graph.copy()), updates=tensors)
        self.written = [i for i, s in enumerate(graph.state) if s.written]

    def bound(self, args, keywords, surroundings):
        """A calls.Binding to what the surroundings are now, None where a state is of another kind than it was."""
        for holder in self.holders:
            if not holder.find(surroundings):
                return None
        tensors = [id(holder.owner) for holder in self.holders if holder.holding == "tensor"]
        if len(set(tensors)) < len(tensors) or not self.gradients.fit(surroundings):
            return None
        grad = is_grad_enabled()
        state = [holder.read() for holder in self.holders]
        plain = self.differentiates or not (grad and (wants_grad(args) or wants_grad(state)))
        return Binding(self, key_of(args), keywords, grad, surroundings.watch, plain)

    def state(self):
        """The values of the states, by name."""
        return {s.name: holder.read() for s, holder in zip(self.graph.state, self.holders)}

    def __call__(self, args):
        """Run with history: a gradient is asked of what it gives."""
        state = [holder.read() for holder in self.holders]
        (output,), new = derivative.run(self.graph, args, state)
        for i in self.written:
            if new[i] is not state[i]:
                self.write(i, new[i])
        return output

    def write(self, i, value):
        """Leave the new value of a state with its owner."""
        with no_grad():
            self.holders[i].write(value)


class Gradients:
    """Tensors whose `.grad` is there, or not, as it was when a program was captured."""

    def __init__(self, leaves, surroundings):
        self.paths = {surroundings.name_of(leaf)[0]: leaf.grad is None for leaf in leaves}
        self.fit(surroundings)

    def fit(self, surroundings):
        """Find the tensors in the surroundings; whether their gradients are as they were."""
        self.rows = [(surroundings.at.get(path), absent) for path, absent in self.paths.items()]
        return all(leaf is not None and (leaf.grad is None) is absent for leaf, absent in self.rows)


class Holder:
    """A tensor: written to in place.

    Attributes:
        owner: the tensor, or what it is found with. path: of the owner in the surroundings; None: it stays.
        holding: how the value is read, a word of calls.Binding. kind: of the owner, or of its `.grad`.
    """

    holding, kind = "tensor", None

    def __init__(self, owner, path=None):
        self.owner, self.path = owner, path
        self.kind = self.kind_now()

    def find(self, surroundings):
        """Take what stands at the path now for the owner; whether it is of the kind that the graph was captured for."""
        if self.path is not None:
            self.owner = surroundings.at.get(self.path)
        return self.owner is not None and self.kind_now() == self.kind

    def kind_now(self):
        return key_of((self.owner,))[0]

    def read(self):
        return self.owner

    def write(self, value):
        self.owner.detach().copy_(value)


class GeneratorHolder(Holder):
    """A generator: takes over the state."""

    holding = "object"

    def kind_now(self):
        return None

    def write(self, value):
        self.owner.set_state(value.get_state())


class GradHolder(Holder):
    """The `.grad` of a tensor: another tensor, or None. With `grad`, which is there, it is written to in place."""

    holding = "grad"

    def __init__(self, leaf, surroundings, grad=None):
        self.added_to = grad is not None
        super().__init__(leaf, (surroundings.name_of(leaf) or (None,))[0])

    def kind_now(self):
        return key_of((self.owner.grad,))[0] if self.added_to else None

    def read(self):
        return self.owner.grad

    def write(self, value):
        if self.added_to:
            self.owner.grad.detach().copy_(value)
        else:
            self.owner.grad = value


class RateHolder(Holder):
    """The learning rate of a parameter group."""

    holding = "rate"

    def __init__(self, optimizer, number):
        self.optimizer, self.number = optimizer, number
        super().__init__(optimizer.param_groups[number])

    def find(self, surroundings):
        self.owner = self.optimizer.param_groups[self.number]
        return True

    def kind_now(self):
        return None

    def read(self):
        return float(self.owner["lr"])


class EntryHolder(Holder):
    """What an optimizer keeps of a parameter, which is not there yet."""

    holding = "nothing"

    def __init__(self, optimizer, param, key, surroundings):
        self.optimizer, self.key = optimizer, key
        super().__init__(param, surroundings.name_of(param)[0])

    def read(self):
        return None

    def write(self, value):
        self.optimizer.state.setdefault(self.owner, {})[self.key] = value
