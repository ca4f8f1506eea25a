"""One graph of a traced program together with the objects that its states stand for, and how they are read and
written."""

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import derivative, passes
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.graph.ir import State
from tinygrad_ext.graph.operands import as_name
from tinygrad_ext.graph.plan import Executor
from tinygrad_ext.graph.program import wants_grad


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
        for _, group, rate in rates:
            group["lr"] = rate
        for _, states, param, key in entries or _new_entries(level, surroundings, dry=True):
            del states[param][key]
            if not states[param]:
                del states[param]
        level.reader.restore()
    holders = {id(t.root.state): Holder(t.root.tensor) for t in level.roots.values()}
    holders.update((id(state), GeneratorHolder(generator)) for generator, state in level.drawn())
    holders.update((id(state), GradHolder(leaf)) for state, leaf in level.reader.new_grads)
    holders.update((id(state), RateHolder(group)) for state, group, _ in rates)
    holders.update((id(state), EntryHolder(*place)) for state, *place in entries)
    swapped = level.reader.swapped.values()
    grads = [(leaf, before is None) for leaf, before, _ in swapped if not level.owns(leaf)]
    return Captured(graph, [holders[id(s)] for s in graph.state], grads, level.reader.derived)


def _carry_rates(level, optimizers):
    """Let learning rates be inputs of the graph: (State, group, rate) each."""
    for name, optimizer in optimizers.items():
        for number, group in enumerate(optimizer.param_groups):
            rate = group["lr"]
            if type(rate) in (int, float):
                group["lr"], state = level.number_state(f"{name}.{number}.lr", float(rate))
                yield state, group, rate


def _new_entries(level, surroundings, dry=False):
    """What the program put into an optimizer's state: (State, states of all parameters, parameter, key) each."""
    found = []
    for name, optimizer in surroundings.optimizers.items():
        for param, entry in optimizer.state.items():
            for key in [k for k, v in entry.items() if isinstance(v, Tensor) and level.owns(v)]:
                state = None if dry else _entry_state(level, name, param, key, entry[key])
                found.append((state, optimizer.state, param, key))
    return found


def _entry_state(level, optimizer, param, key, tensor):
    path = f"{optimizer}.{level.outside(param).root.state.name}"
    state = State(f"{path}.{key}", "new", level.graph.value(name=as_name(f"{path}.{key}")))
    state.new = level.lift(tensor)
    level.graph.state.append(state)
    return state


class Captured:
    """One graph, and where its states are."""

    def __init__(self, graph, holders, grads, differentiates):
        """grads: (tensor, whether its .grad was None) of those whose .grad it changes; differentiates: it has its own
        backward pass, so that nothing is recorded while it runs."""
        self.graph, self.holders, self.grads = graph, holders, grads
        self.differentiates = differentiates
        self.takes = None  # what it was captured for, see keys.py
        tensors = [i for i, holder in enumerate(holders) if type(holder) is Holder]
        self.runner = Executor(passes.optimize(graph.copy()), updates=tensors)
        self.written = [(i, h) for i, (s, h) in enumerate(zip(graph.state, holders)) if s.written]

    def fits(self):
        """Whether `.grad` of what it reads and writes is there, or not, as it was."""
        return all((leaf.grad is None) is absent for leaf, absent in self.grads)

    def state(self):
        """The values of the states, by name."""
        return {s.name: holder.read() for s, holder in zip(self.graph.state, self.holders)}

    def __call__(self, args):
        state = [holder.read() for holder in self.holders]
        if not self.differentiates and is_grad_enabled() and (wants_grad(args) or wants_grad(state)):
            (output,), new = derivative.run(self.graph, args, state)
        else:
            output, *new = self.runner(*args, *state)
        if self.written:
            with no_grad():
                for i, holder in self.written:
                    if new[i] is not state[i]:  # else the plan has left it there
                        holder.write(new[i])
        return output


class Holder:
    """A tensor: written to in place."""

    def __init__(self, owner):
        self.owner = owner

    def read(self):
        return self.owner

    def write(self, value):
        self.owner.detach().copy_(value)


class GeneratorHolder(Holder):
    """A generator: takes over the state."""

    def write(self, value):
        self.owner.set_state(value.get_state())


class GradHolder(Holder):
    """The `.grad` of a tensor: another tensor, or None."""

    def read(self):
        return self.owner.grad

    def write(self, value):
        self.owner.grad = value


class RateHolder:
    """The learning rate of a parameter group."""

    def __init__(self, group):
        self.group = group

    def read(self):
        return float(self.group["lr"])


class EntryHolder:
    """What an optimizer keeps of a parameter, which is not there yet."""

    def __init__(self, states, param, key):
        self.states, self.param, self.key = states, param, key

    def read(self):
        return None

    def write(self, value):
        self.states.setdefault(self.param, {})[self.key] = value
