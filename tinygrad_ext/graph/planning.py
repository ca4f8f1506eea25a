"""Lowers the nodes of a row as `interpret` would run them: values become stand-ins, nodes become steps."""

import enum

from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor

from . import primitives
from .arithmetic import computed
from .flow import UNDEFINED, lower_if, lower_loop, lower_pop, lower_push, lower_stack
from .lowering import CODES, ByValue, Lowering, NotPlanned, Number, numbers_in, taken_stack
from .opening import opened
from .routine import Routine
from .signature import signature_of
from .stacks import Stack
from .types import FLOAT, INT
from .values import read_all
from .ways import Ways

# primitives that look at no element, whatever they are given
_OF_SIZES = {"prim::size", "prim::shape", "prim::rank", "prim::numel", "prim::dtype", "prim::device"}
_OF_PARTS = {f"prim::{name}" for name in ("list", "tuple", "dict", "unpack", "len", "cast", "is", "isnot")}
_TEXTS = {"prim::format", "prim::percent", "prim::str"}

_FLOW = {
    "prim::If": lower_if,
    "prim::Loop": lower_loop,
    "prim::stack": lower_stack,
    "prim::push": lower_push,
    "prim::pop": lower_pop,
}
TEXT = object()  # a text that is known while the plan runs: what an error says
_OF_ELEMENTS = {"prim::bool", "prim::int", "prim::float"}
_NUMBERS = (int, float)
_ROWS = (list, tuple)
_OF_PYTHON = 1 << 9  # the flag of a class that Python code has made
_UNKNOWING = _TEXTS | {"prim::undefined", "prim::raise"}  # what gives something that is not known before a run
_ZEROS = {"int": 0, "float": 0.0, "bool": False, "complex": 0j}


class Unplanned(Exception):
    """Attributes: node, or the input that no plan takes; reason."""

    def __init__(self, node, reason):
        self.node, self.reason = node, reason


def _is_object(value):
    """Whether it is an object of a user's class: what it holds when a plan is made is not what it holds in a run."""
    return bool(type(value).__flags__ & _OF_PYTHON) and value is not UNDEFINED and not isinstance(value, enum.Enum)


class Planner:
    """Lowers the nodes of a row for the geometry of some values.

    Attributes:
        node: that is lowered.
        all_known: nothing in the row is undefined, or a text that the run makes.
        fixed: numbers of inputs that turned out to be needed by value. What follows is lowered only to find more.
    """

    def __init__(self, row):
        self.row, self.node, self.fixed = row, None, set()

    def routine(self, values):
        self.lowering = Lowering()
        self.lowering.name = self.row.executor.graph.name
        self.ways = Ways(self.lowering, {i for _, i in self.row.updates})
        self.roots = {}  # slot of a Number -> inputs it follows from; None: elements
        given = [(self.taken(i, value), value) for i, value in enumerate(values)]
        self.frame = {id(v): made for v, (made, _) in zip(self.row.inputs, given)}
        self.all_known = not _unknown(values) and not any([n.blocks or n.op in _UNKNOWING for n in self.row.nodes])
        for i, node in enumerate(self.row.nodes):
            self.lowering.node, self.node = i, node
            self.lower(node)
        if self.fixed:
            raise ByValue(self.fixed)
        outputs = read_all(self.row.outputs, self.frame)
        if any(map(_holds_text, outputs)):
            raise Unplanned(self.row.nodes[-1], "a text follows from numbers")
        outputs = [self.lowering.result_of(None if o is UNDEFINED else o) for o in outputs]
        self.update(given, outputs)
        return Routine(self.lowering, given, self.ways.results(outputs), self.row.again)

    def update(self, given, outputs):
        """Let new states be written to the old ones, after all that reads those."""
        found = []
        for o, i in self.row.updates:
            old, new = given[i][0], outputs[o]
            if fits(old, new) and new is not old:
                found.append((old, self.lowering.part(new)))
                outputs[o] = old
        for old, new in found:
            self.lowering.write_back(old, new)

    def taken(self, i, value):
        try:
            return self.stand_in(i, value)
        except NotPlanned as error:
            raise Unplanned(self.row.inputs[i], str(error)) from None

    def stand_in(self, i, value):
        if type(value) is Generator:
            return self.lowering.stream()
        if type(value) is Stack:
            return self.known(taken_stack(self.lowering, value))
        if isinstance(value, Tensor):
            if type(value) not in _TENSORS or value.device.type != "cpu":
                raise NotPlanned(f"an input is a {type(value).__name__} on {value.device}")
            return self.lowering.input(value, i)
        if type(value) in _NUMBERS and i not in self.row.by_value:
            made = self.lowering.number(value)
            self.roots[made.slot] = {i}
            return made
        if isinstance(value, (list, tuple, dict)) or _is_object(value):
            raise NotPlanned(f"an input is a {type(value).__name__}")
        return value

    def lower(self, node):
        try:
            self.lower_one(node)
        except ByValue as error:
            inputs = self.inputs_of(error.numbers)
            if inputs is None:
                raise Unplanned(node, "what it is called with follows from elements, or changes in a loop") from None
            self.fix(inputs)
            self.lower(node)
        except Exception as error:
            if self.fixed:  # it may come of a number that only looked like the one of the run
                raise ByValue(self.fixed) from None
            if isinstance(error, NotPlanned):
                raise Unplanned(node, str(error)) from None
            raise

    def fix(self, inputs):
        """Go on with these inputs by value, and with what follows from them and no other."""
        if inputs <= self.fixed:
            raise ByValue(self.fixed)
        self.fixed |= inputs

    def by_value(self, a):
        """An argument of which what is fixed is no Number any more."""
        if type(a) is Number:
            return a.value if (self.roots[a.slot] or {None}) <= self.fixed else a
        return type(a)(map(self.by_value, a)) if type(a) in (list, tuple) else a

    def lower_one(self, node):
        frame, first = self.frame, len(self.lowering.steps)
        args = read_all(node.args, frame)
        if self.fixed:
            args = [self.by_value(a) for a in args]
        if node.op in _FLOW:
            made = _FLOW[node.op](self, node, args)
        elif node.op == "prim::undefined":
            made = (UNDEFINED,)
        elif not self.all_known and _unknown(args) and node.op != "prim::cast":
            made = self.of_unknown(node)
        else:
            made = self.primitive(node, args) if node.op.startswith("prim::") else self.op(node, args)
        self.lowering.say(first, node, args)
        for value, result in zip(node.outputs, made):
            frame[id(value)] = result

    def block(self, block, inputs=()):
        """What the nodes of a block give."""
        self.frame.update(zip(map(id, block.inputs), inputs))
        for node in block.nodes:
            try:
                self.lower_one(node)
            except NotPlanned as error:
                place = f"{node.op} in its block{f' ({node.line})' if node.line else ''}: "
                raise NotPlanned(str(error) if " in its block" in str(error) else place + str(error)) from None
        return read_all(block.outputs, self.frame)

    def of_unknown(self, node):
        """What is made of a text that is not known, or of what is undefined."""
        if node.op in _TEXTS:
            return (TEXT,)
        if node.op != "prim::raise":
            raise NotPlanned(f"{node.op} is called with what is not known before the run")
        return self.fail(node)

    def fail(self, node):
        """The program raises here: the interpreter does it."""
        self.lowering.control(CODES["fail"], name=node.op)
        return [UNDEFINED] * len(node.outputs)

    # ---- numbers of the run

    def slot(self, like):
        """A register that is filled on several ways."""
        made = self.lowering.slot(like)
        self.roots[made.slot] = None
        return made

    def truth(self, value):
        """Whether a condition holds: a bool, or a Number that is one."""
        if isinstance(value, Tensor):
            value = self.known(self.lowering.item(value))
        if isinstance(value, Number) and type(value.value) is not bool:
            value = self.follows(computed(self.lowering, "prim::bool", [value]), [value])
        return value if isinstance(value, Number) else bool(value)

    def inputs_of(self, numbers):
        """The inputs that numbers follow from, or None."""
        inputs = [self.roots[n.slot] for n in numbers]
        return None if None in inputs else {i for some in inputs for i in some}

    def follows(self, made, numbers):
        """Note what a number follows from."""
        if isinstance(made, Number):
            self.roots[made.slot] = self.inputs_of(numbers)
        return made

    # ---- nodes

    def primitive(self, node, args):
        row = primitives.TABLE[node.op]
        numbers = numbers_in(args)
        if node.op == "prim::guard":  # asked now: the plan's own guards are for all that the answer follows from
            if numbers:
                raise ByValue(*numbers)
            row.run(*args)
            return ()
        if node.op == "prim::raise":
            return self.fail(node)
        if node.op == "prim::tensor.as_written" and _alike(*args):
            return args[1:]
        own = node.op == "prim::new" or node.op.startswith("prim::generator.")  # each run has objects of its own
        if row.effect or own:
            raise NotPlanned(f"{node.op} is done by the interpreter")
        if node.op == "prim::boxed":
            raise NotPlanned("it is a function of Python")
        if node.op == "prim::once":  # concerns derivatives only
            return args[2 : 2 + len(node.outputs)]
        if node.op in _OF_ELEMENTS and isinstance(args[0], Tensor) and len(args) == 1:
            args = [self.known(self.lowering.item(args[0]))]
            numbers = numbers_in(args)
        if node.op == "prim::tensor.int" and not args[0].dim():
            number = self.known(self.lowering.item(args[0]))
            if type(number.value) is int:
                return (number,)
        looks = node.op not in _OF_PARTS and node.op != "prim::item" and not _is_entry(node, args)
        if looks and _holds_tensor(args if node.op not in _OF_SIZES else args[1:]):
            raise NotPlanned(f"{node.op} looks at a tensor")
        if node.op == "prim::item":
            return (self.known(self.lowering.item(args[0])),)
        if not numbers or node.op in _OF_PARTS or _is_entry(node, args):
            try:
                result = row.run(*args)
            except ArithmeticError:
                self.fail(node)  # where the run comes by here
                return [self.slot(_ZEROS[v.type.word]) for v in node.outputs]
            return (result,) if len(node.outputs) == 1 and node.op != "prim::unpack" else result
        if node.op in _TEXTS:
            return (TEXT,)
        if not all(type(a) in (Number, *_NUMBERS, bool) for a in args):
            raise ByValue(*numbers)
        return (self.follows(computed(self.lowering, node.op, args), numbers),)

    def known(self, made):
        """A result; Numbers in it follow from no input, but from an element."""
        if type(made) is Tensor:
            return made
        for number in numbers_in(made):
            self.roots.setdefault(number.slot, None)
        return made

    def op(self, node, args):
        """As `interpret` runs an op: what it writes to are copies, which are results too."""
        signature = signature_of(node.op)
        generator = signature.generator
        if generator is None and not signature.writes:
            result = self.result(signature.op, args)
            return (result,) if len(signature.returns) == 1 else result or ()
        if generator is not None and isinstance(args[generator], Generator):
            args[generator] = self.lowering.drawn_from(args[generator])
        else:
            generator = None
        for i in signature.writes:
            if not isinstance(args[i], Tensor):
                raise NotPlanned(f"{node.op} writes to what is no tensor")
            args[i] = self.lowering.clone(args[i])
        result = self.result(signature.op, args)
        made = [result] if len(signature.returns) == 1 else list(result or ())
        made += [args[i] for i in signature.writes]
        return [*made, args[generator]] if generator is not None else made

    def result(self, op, args):
        if self.roots and self.lowering.written_in(op) is not None and numbers_in(args):
            raise ByValue(*numbers_in(args))  # whoever opens it sees numbers
        return self.known(opened(self.lowering, op, args))


# what makes numbers of numbers
_OF_NUMBERS = {
    f"prim::{name}"
    for name in (
        "add",
        "sub",
        "mul",
        "floordiv",
        "mod",
        "neg",
        "abs",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "list",
        "tuple",
    )
}


def needed_by_value(nodes, inputs):
    """Numbers of the inputs that have to be known before a row runs, as far as that shows without lowering it: those
    that guards, and ops that are not pointwise, are called with. Lowering finds them as well, and has to begin anew."""
    roots = {v: {i} for i, v in enumerate(inputs) if v.type is INT or v.type is FLOAT}
    found = set()
    for node in nodes if roots else ():
        known = [roots[v] for v in node.values() if v in roots]
        if not known or node.blocks:
            continue
        if node.op in _OF_NUMBERS:
            roots.update((v, set().union(*known)) for v in node.outputs)
        elif node.op == "prim::guard" or not (node.op.startswith("prim::") or _takes_numbers(node.op)):
            found.update(*known)
    return found


def _takes_numbers(op):
    """Whether a plan may call an op with numbers that are known only when it runs."""
    return op == "aten::select.int" or signature_of(op).op.kernel_kind == "pointwise"


_TENSORS = {Tensor, *(c for c in Tensor.__subclasses__() if c.__name__ == "Parameter")}


def fits(old, new):
    """Whether a tensor can hold another as it is."""
    both = isinstance(old, Tensor) and isinstance(new, Tensor)
    return both and old.dtype is new.dtype and old.shape == new.shape


def _is_entry(node, args):
    """Whether it takes out of a container what is at a place that is known."""
    return node.op == "prim::getitem" and isinstance(args[0], (list, tuple, dict)) and not numbers_in(args[1])


def _unknown(args):
    """Whether one of the arguments is not known before the run, and no number or tensor."""
    return any([a is UNDEFINED or a is TEXT or (type(a) in _ROWS and _unknown(a)) for a in args])


def _holds_text(o):
    return o is TEXT or (isinstance(o, (list, tuple)) and any(map(_holds_text, o)))


def _holds_tensor(args):
    return any([isinstance(a, Tensor) or (isinstance(a, _ROWS) and _holds_tensor(a)) for a in args])


def _alike(old, new):
    """Whether what an in-place op gives may stand where the old was."""
    return isinstance(old, Tensor) and isinstance(new, Tensor) and old.shape == new.shape and old.dtype == new.dtype
