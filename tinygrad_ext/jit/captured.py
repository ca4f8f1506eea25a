"""One graph of a traced program together with the objects that its states stand for, and how they are read and
written."""

from functools import cached_property

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import passes
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.graph.ir import State
from tinygrad_ext.graph.keys import key_of
from tinygrad_ext.graph.operands import as_name
from tinygrad_ext.graph.plan import Executor
from tinygrad_ext.graph.program import wants_grad
from tinygrad_ext.graph.reading import Unreached
from tinygrad_ext.graph.trees import at, leaves_of, put
from tinygrad_ext.utils.nested import plain

from ._state import written_for
from .answers import answers_of
from .calls import Binding
from .effects import Effects
from .results import apart, refuse_unknown
from .state import keeps_grad


def capture_program(name, function, given, keywords, surroundings, check=True):
    """Run a function on arguments and write it down; nothing that it uses is changed.

    given: (name, value) of each argument; keywords: names of the last ones, which are given by keyword. check: whether
    the graph keeps the rules is looked at.
    """
    while True:
        try:
            return _written_down(name, function, given, keywords, surroundings, check)
        except Unreached as error:  # once more, with the state and the rate of that optimizer looked after
            if not surroundings.meet(error):
                raise


def _written_down(name, function, given, keywords, surroundings, check):
    level = Capture(name, surroundings.name_of)
    level.alike = {} if written_for() == "compile" and surroundings.constants.compares() else None
    before = Effects(None, ())
    rates, entries, attributes = [], [], [(path, m, dict(vars(m))) for path, m in surroundings.parts()]
    for optimizer in surroundings.optimizers.values():
        level.optimized.update(id(p) for group in optimizer.param_groups for p in group["params"])
    try:
        with level:
            rates += _carry_rates(level, surroundings.optimizers)
            values = [level.argument(value, n) for n, value in given]
            count = len(values) - len(keywords)
            if written_for() == "compile":
                before = Effects(surroundings, [(n, value) for (n, _), value in zip(given, values)])
            result = function(*values[:count], **dict(zip(keywords, values[count:])))
            entries += _new_entries(level, surroundings)
            before.refuse(name, level, result)
            nested = again = None
            if written_for() == "compile":
                result, again = apart(result)
            elif written_for():
                result, nested = plain(result)
                refuse_unknown((result,))
            graph = level.finish(result, check)
    finally:
        before.changed()
        for _, group, rate, *_ in rates:
            group["lr"] = rate
        for _, states, _, param, key in entries or _new_entries(level, surroundings, dry=True):
            del states[param][key]
            if not states[param]:
                del states[param]
        level.reader.restore()
        left = [_put_back(level, *row) for row in attributes]
    values = tuple([value for _, value in given])
    captured = _with_holders(level, graph, dict(leaves_of(values)), rates, entries, surroundings)
    captured.answers, captured.alike = answers_of(level, surroundings, captured.holders, values), bool(level.alike)
    captured.left_out, captured.nested, captured.again = [name for names in left for name in names], nested, again
    return captured


def _put_back(level, path, module, before):
    """Give a module the attributes that it had; the names of those that the program set to what a level carries."""
    names = [n for n, value in vars(module).items() if isinstance(value, Tensor) and level.owns(value)]
    for name in names:
        table = next((t for t in (module._buffers, module._parameters) if name in t), vars(module))
        if name in before:
            table[name] = before[name]
        else:
            del table[name]
    return [f"{path}.{name}".lstrip(".") for name in names]


def _with_holders(level, graph, given, rates, entries, surroundings):
    """The Captured of what a level wrote down. given: path in the arguments -> tensor."""
    places = {id(tensor): path for path, tensor in given.items()}
    shown = {key: places[id(argument.tensor)] for key, argument in level.arguments.items()}
    of_grads = {id(level.reader.swapped[key][1]): path for key, path in shown.items() if key in level.reader.swapped}
    holders = {}
    for traced in level.roots.values():
        root = traced.root
        path, kind = surroundings.name_of(root.tensor) or (None, None)
        if id(root.tensor) in of_grads:
            holders[id(root.state)] = ArgumentGradHolder(of_grads[id(root.tensor)], True)
        elif kind == "grad":
            holders[id(root.state)] = GradHolder(surroundings.at[path.removesuffix(".grad")], surroundings, root.tensor)
        else:
            holders[id(root.state)] = Holder(root.tensor, path)
    holders.update((id(state), GeneratorHolder(generator)) for generator, state in level.drawn())
    for state, leaf in level.reader.new_grads:
        of_argument = id(leaf) in shown
        holders[id(state)] = ArgumentGradHolder(shown[id(leaf)]) if of_argument else GradHolder(leaf, surroundings)
    holders.update((id(state), RateHolder(*place)) for state, _, _, *place in rates)
    holders.update((id(state), EntryHolder(*place, surroundings)) for state, _, *place in entries)
    written = {argument.name: shown[key] for key, argument in level.arguments.items()}
    holders.update((id(s), ArgumentHolder(written[s.name])) for s in graph.state if s.kind == "argument")
    captured = Captured(graph, [holders[id(s)] for s in graph.state], level.reader.derived)
    captured.gradients = Gradients(level, surroundings, shown)
    captured.returned = tuple([(path, graph.state.index(state)) for path, state in level.returned])
    return captured


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
    """One graph, and where its states are.

    Attributes:
        differentiates: it has its own backward pass, so that nothing is recorded while it runs.
        gradients: which `.grad` have to be there.
        returned: (path in the result, number of a state) of results that are what was written to.
        takes: what it was captured for, see keys.py. left_out: attributes that only the program sets.
        answers: what the program was told besides, see answers.py; alike: among that, which tensors are one.
        again: makes the program's result of the graph's, see results.py; None where they are one.
        nested: of what is exported, spec of the result where the graph gives it in other containers; else None.
    """

    def __init__(self, graph, holders, differentiates):
        self.graph, self.holders, self.differentiates = graph, holders, differentiates
        self.gradients, self.returned, self.takes, self.left_out = None, (), None, []
        self.again, self.nested, self.answers, self.alike = None, None, (), False
        self.written = [i for i, s in enumerate(graph.state) if s.written]

    def forget_examples(self):
        """Keep sizes and dtypes of what was computed while it was captured, for who looks at the graph."""
        made = [*self.graph.inputs, *(s.value for s in self.graph.state)]
        for node in self.graph.walk():
            made += [*node.outputs, *(v for block in node.blocks for v in block.inputs)]
        for value in made:
            if isinstance(value.hint, Tensor):
                value.hint = value.hint.to("meta")

    @cached_property
    def runner(self):
        """What runs the graph by plans."""
        in_place = [i for i, holder in enumerate(self.holders) if holder.in_place]
        known = not any(node.blocks for node in self.graph.nodes)  # the dtypes that were seen hold on each way
        return Executor(passes.optimize(self.graph.copy(hints=known)), updates=in_place)

    def plan(self, args):
        """The graph.plan.Plan that a call with such arguments runs; what it writes to is copied first."""
        row = list(args)
        for holder in self.holders:
            value = holder.read(args)
            row.append(value.detach().clone() if holder.in_place and isinstance(value, Tensor) else value)
        return self.runner.plan(*row)

    def explain(self):
        """Why it was planned, and what no plan has: lines."""
        lines = self.runner.explain().split("\n") if "runner" in self.__dict__ else []
        return lines + (self.graph.derivative.explain() if self.graph.derivative is not None else [])

    def bound(self, args, keywords, surroundings):
        """A calls.Binding to what the surroundings are now; None where a state is of another kind than it was, or an
        argument lies in memory that is written to."""
        for holder in self.holders:
            if not holder.find(surroundings):
                return None
        tensors = [id(holder.owner) for holder in self.holders if holder.holding == "tensor"]
        if len(set(tensors)) < len(tensors) or not self.gradients.fit(surroundings, args):
            return None
        grad = is_grad_enabled()
        state = [holder.read(args) for holder in self.holders]
        plain = self.differentiates or not (grad and (wants_grad(args) or wants_grad(state)))
        binding = Binding(self, key_of(args), keywords, grad, surroundings.watch, plain)
        return binding if binding.takes(*args) else None

    def write(self, i, value, args):
        """Leave the new value of a state with its owner."""
        with no_grad():
            self.holders[i].write(value, args)

    def with_own(self, output, state):
        """The result in its containers, with those tensors in it that were written to, in the place of their new
        values."""
        for path, i in self.returned:
            output = put(output, path, state[i])
        return output if self.again is None else self.again(output)


class Gradients:
    """Whose `.grad` is there, or not, as it was when a program was captured: of all tensors that have a name, if the
    program has to do with gradients at all, and of its arguments.

    Attributes:
        rows: (tensor, whether it has none). asked: (path of an argument, whether it has none).
    """

    def __init__(self, level, surroundings, shown):
        reader, self.paths = level.reader, {}
        known = surroundings.at.items() if reader.derived or reader.swapped else ()
        self.paths = {path: leaf.grad is None for path, leaf in known if keeps_grad(leaf)}
        swapped = [(leaf, before is None) for leaf, before, _ in reader.swapped.values()]
        self.asked = [(shown[id(leaf)], absent) for leaf, absent in swapped if id(leaf) in shown]
        self.others = [
            (leaf, absent) for leaf, absent in swapped if not level.owns(leaf) and not surroundings.name_of(leaf)
        ]
        self.fit(surroundings)

    def fit(self, surroundings, args=None):
        """Find the tensors in the surroundings; whether their gradients, and those of arguments, are as they were."""
        for path, absent in self.asked if args is not None else ():
            tensor = at(args, path)
            if not tensor.is_leaf or (tensor.grad is None) is not absent:
                return False
        self.rows = [*self.others, *((surroundings.at.get(path), absent) for path, absent in self.paths.items())]
        return all([t is not None and keeps_grad(t) and (t.grad is None) is absent for t, absent in self.rows])


class Holder:
    """A tensor: written to in place.

    Attributes:
        owner: the tensor, or what it is found with. path: of the owner in the surroundings; None: it stays.
        holding: how the value is read, a word of calls.Binding. kind: of the owner, or of its `.grad`.
        in_place: the new value is written into the tensor.
    """

    holding, in_place, kind = "tensor", True, None

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

    def read(self, args=()):
        return self.owner

    def write(self, value, args=()):
        self.owner.detach().copy_(value)


class GeneratorHolder(Holder):
    """A generator: takes over the state."""

    holding, in_place = "object", False

    def kind_now(self):
        return None

    def write(self, value, args=()):
        self.owner.set_state(value.get_state())


class GradHolder(Holder):
    """The `.grad` of a tensor: another tensor, or None. With `grad`, which is there, it is written to in place."""

    holding = "grad"

    def __init__(self, leaf, surroundings, grad=None):
        self.in_place = grad is not None
        super().__init__(leaf, (surroundings.name_of(leaf) or (None,))[0])

    def kind_now(self):
        return key_of((self.owner.grad,))[0] if self.in_place else None

    def read(self, args=()):
        return self.owner.grad

    def write(self, value, args=()):
        if self.in_place:
            self.owner.grad.detach().copy_(value)
        else:
            self.owner.grad = value


class RateHolder(Holder):
    """The learning rate of a parameter group."""

    holding, in_place = "rate", False

    def __init__(self, optimizer, number):
        self.optimizer, self.number = optimizer, number
        super().__init__(optimizer.param_groups[number])

    def find(self, surroundings):
        self.owner = self.optimizer.param_groups[self.number]
        return True

    def kind_now(self):
        return None

    def read(self, args=()):
        return float(self.owner["lr"])


class EntryHolder(Holder):
    """What an optimizer keeps of a parameter, which is not there yet."""

    holding, in_place = "nothing", False

    def __init__(self, optimizer, param, key, surroundings):
        self.optimizer, self.key = optimizer, key
        super().__init__(param, surroundings.name_of(param)[0])

    def read(self, args=()):
        return None

    def write(self, value, args=()):
        self.optimizer.state.setdefault(self.owner, {})[self.key] = value


class ArgumentHolder(Holder):
    """A tensor that the program was given: written to in place. The owner is its path in the arguments."""

    holding = "argument"

    def kind_now(self):
        return None

    def at(self, args):
        """What stands in arguments where this one does."""
        return at(args, self.owner)

    read = at

    def write(self, value, args=()):
        self.read(args).detach().copy_(value)


class ArgumentGradHolder(ArgumentHolder):
    """The `.grad` of such a tensor."""

    holding = "argument.grad"

    def __init__(self, path, in_place=False):
        super().__init__(path)
        self.in_place = in_place

    def read(self, args=()):
        return at(args, self.owner).grad

    def write(self, value, args=()):
        if self.in_place:
            self.read(args).detach().copy_(value)
        else:
            at(args, self.owner).grad = value
