"""Where what a branch or a loop gives is what the graph was passed in: a call returns that itself then, as eager mode
does, and not the slot that holds a copy of it for the steps of the plan.

A slot has a register beside it, with the number of the source that it was filled from last, or OWN. Registers that no
result asks for are not kept.
"""

from tinygrad_ext.core.data.tensor import Tensor

from .lowering import Number, Way, base_of

OWN = -1


class Ways:
    """Attributes: sources, the stand-ins of what is passed in, and of windows on it, that slots were filled from."""

    def __init__(self, lowering, changed):
        """changed: numbers of the inputs that hold something else after the call."""
        self.lowering, self.changed, self.sources = lowering, changed, []
        self._registers = {}  # id of a slot -> Number
        self._moves = []  # (Number, number or Number, step)

    def open(self, slot):
        """Note from now on what a slot is filled from."""
        if isinstance(slot, Tensor) and id(slot) not in self._registers:
            self._registers[id(self.lowering.keep(slot))] = self.lowering.slot(OWN)

    def of(self, value):
        """The number of a source, OWN, or a register with one of these."""
        found = self._registers.get(id(value), OWN)
        if found == OWN and isinstance(value, Tensor) and self._is_source(value):
            at = [i for i, source in enumerate(self.sources) if source is value]
            if not at:
                self.sources.append(value)
            found = at[0] if at else len(self.sources) - 1
        return found

    def _is_source(self, value):
        base = base_of(value)
        return base >= 0 and base not in self.changed

    @property
    def count(self):
        """How many registers were filled so far."""
        return len(self._moves)

    def is_read(self, slot, since):
        """Whether what a slot was filled from has been asked for since there were so many."""
        return any(way is self._registers.get(id(slot)) for _, way, _ in self._moves[since:])

    def copied(self, way):
        """A way that stays what it is when its slot is filled anew."""
        return way if type(way) is not Number else self._noted(self.lowering.slot(OWN), way)

    def fill(self, slot, way):
        """A slot is filled with what came this way."""
        register = self._registers.get(id(slot))
        if register is not None:
            self._noted(register, way)

    def _noted(self, register, way):
        self.lowering.move(register, way)
        self._moves.append((register, way, self.lowering.steps[-1]))
        return register

    def results(self, outputs):
        """What is returned, with a `Way` for what is a source on some way. Registers that no result needs go."""
        reached = self._closed({to for to, way, _ in self._moves if type(way) is int and way != OWN}, back=False)
        wanted = set()
        outputs = [self._result(o, reached, wanted) for o in outputs]
        self._closed(wanted, back=True)
        for to, _, step in self._moves:
            step.effect = to in wanted
        return outputs

    def _closed(self, registers, back):
        """Registers, and those that are moved to or, back, from them."""
        while True:
            pairs = [(way, to) if back else (to, way) for to, way, _ in self._moves]
            more = {new for new, known in pairs if known in registers and type(new) is Number} - registers
            if not more:
                return registers
            registers |= more

    def _result(self, o, reached, wanted):
        if type(o) in (list, tuple):
            return type(o)([self._result(x, reached, wanted) for x in o])
        register = self._registers.get(id(o))
        if register not in reached:
            return o
        wanted.add(register)
        return Way(o, register, self.sources)
