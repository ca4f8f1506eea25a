"""What a node is made of while a program is captured: tensors, numbers, generators as values of the graph, or as they
are.

`Operands` is the half of a Capture that knows numbers and generators; `carrying` has the rest. Random numbers come from
a generator's state, which is a value: each draw takes it and gives the next one.
"""

import operator

from tinygrad_ext.core.call.levels import calling_line
from tinygrad_ext.core.data.random import default_generator

from .ir import State, Value
from .symbols import TYPES, Symbol, hint_of, named
from .types import GENERATOR, INT

_SIGNS = {"prim::eq": "==", "prim::ne": "!=", "prim::lt": "<", "prim::le": "<=", "prim::gt": ">", "prim::ge": ">="}

# views that drop dimensions of size 1: which of the dimensions they look at, None for all
SQUEEZES = {
    "aten::squeeze": lambda: None,
    "aten::squeeze.dim": lambda dim: (dim,),
    "aten::squeeze.dims": lambda dims: dims,
}


def as_name(path):
    return "".join(c if c.isalnum() or c in "_." else "_" for c in path)


class Operands:
    """Needs of the class it is part of: graph, block, generators, sizes, guarded, needs, detached, kept, traced()."""

    def without_grad(self, a):
        """A lifted argument that gradients do not flow to."""
        if isinstance(a, Value):
            if id(a) not in self.needs:
                return a
            if id(a) not in self.detached:
                self.detached[id(a)] = self.detached_anew(a)
            return self.detached[id(a)]
        return tuple([self.without_grad(x) for x in a]) if type(a) is tuple else a

    def detached_anew(self, value):
        """The elements of a value, under a name of their own."""
        return self.graph.make(self.block, "aten::detach", (value,), hints=(value.hint,)).output

    # ---- random numbers --------------------------------------------------------------------------------------------

    def with_generator(self, op, args):
        at = next(i for i, a in enumerate(op.schema.args) if a.type == "Generator")
        return (*args[:at], default_generator if args[at] is None else args[at], *args[at + 1 :])

    def generator_state(self, generator):
        found = self.generators.get(id(generator))
        if found is None:
            name = "default" if generator is default_generator else f"generator.{len(self.generators)}"
            value = self.graph.value(GENERATOR, name=as_name(name))
            state = State(name, "generator", value)
            self.graph.state.append(state)
            found = self.generators[id(generator)] = [state, value, generator._copy(), generator]
        return found

    def number_state(self, name, number):
        """A number that the graph finds with its owner at each call, such as a learning rate."""
        value = self.graph.value(TYPES[type(number)], None, number, as_name(name))
        self.graph.state.append(State(name, "number", value))
        return Symbol(self, value, number), self.graph.state[-1]

    def drawn(self):
        """(generator, its State) of those that were there before and were drawn from."""
        return [(found[3], found[0]) for found in self.generators.values() if found[0] is not None]

    def advance(self, generator, value):
        found = self.generator_state(generator)
        found[1] = value
        if found[0] is not None:
            found[0].new = value

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def compute(self, op, function, *operands):
        """Arithmetic on symbols."""
        hint = function(*map(hint_of, operands))
        of_data = any(type(o) is Symbol and o.of_data for o in operands)
        return Symbol(self, self.number_node(op, operands, hint), hint, of_data)

    def number_node(self, op, operands, hint):
        lifted = [o.value if type(o) is Symbol else o for o in operands]
        return self.graph.make(self.block, op, lifted, (TYPES[type(hint)],), (hint,), line=calling_line()).output

    def decide(self, op, function, *operands):
        """A comparison: its answer now, which the graph then holds for. That of elements is a number itself, which
        refuses to be asked but may be checked."""
        answer = function(*map(hint_of, operands))
        if any(type(o) is Symbol and o.of_data for o in operands):
            return self.compute(op, function, *operands)
        symbol = Symbol(self, self.number_node(op, operands, answer), answer)
        self.guard(symbol, f" {_SIGNS[op]} ".join(map(named, operands)))
        return answer

    def guard(self, symbol, what=""):
        """Let the graph hold for this value of a number alone. what: the number, in words."""
        if symbol.of_data:
            self.reader.refuse("item")
        if id(symbol.value) not in self.guarded:
            self.guarded.add(id(symbol.value))
            place = f"{calling_line()} ({what or named(symbol)})"
            self.graph.make(self.block, "prim::guard", (symbol.value, symbol.hint, place), ())

    def guard_checked(self, symbol, text):
        """Let the graph refuse to run where a condition on elements, which holds now, does not."""
        node = symbol.value.node
        row = [named(Symbol(self, a, None)) if isinstance(a, Value) else repr(a) for a in node.args]
        told = text or f" {_SIGNS.get(node.op, node.op)} ".join(row)
        place = f"{calling_line()} (_check: {told})"
        self.graph.make(self.block, "prim::guard", (symbol.value, True, place), ())

    def guard_length(self, value, length, line):
        """Let the graph hold for lists of this length alone: what comes of a list is told apart from here on."""
        node = self.graph.make(self.block, "prim::len", (value,), (INT,), (length,), line=line)
        what = f"how many tensors {value.node.op.partition('::')[2]} gives"
        self.graph.make(self.block, "prim::guard", (node.output, length, f"{line} ({what})"), ())

    def guard_rank(self, tensor, dims):
        """Let the graph hold only where squeeze drops the same ones of these dimensions."""
        traced = self.traced(tensor)
        rank = traced.example.dim()
        for dim in range(rank) if dims is None else {d % rank for d in dims if -rank <= d < rank}:
            self.decide("prim::eq", operator.eq, self.size(traced, dim), 1)

    def size(self, traced, dim):
        """The size of a dimension as a Symbol."""
        key = id(traced.value), dim
        if key not in self.sizes:
            hint = traced.example.shape[dim]
            node = self.graph.make(self.block, "prim::size", (traced.value, dim), (INT,), (hint,), line=calling_line())
            self.sizes[key] = Symbol(self, node.output, hint)
        return self.sizes[key]

    def symbol_of(self, value):
        return Symbol(self, value, value.hint)
