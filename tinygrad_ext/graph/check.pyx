# cython: language_level=3, boundscheck=True, wraparound=True
"""The rules of a graph. Every pass is followed by `check`, so a broken one is found where it broke."""

from functools import lru_cache

from .nodes cimport VALUE, args_of, blocks_of, op_of, outputs_of, type_of as declared_type

from tinygrad_ext.core.data import dtype as dtypes

from . import primitives
from .ir import Value
from .signature import output_types, signature_of
from .types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    FORMAT,
    INT,
    LAYOUT,
    NONE,
    OF_PYTHON,
    SCALAR,
    TENSOR,
    Type,
    accepts,
)  # fmt: skip
from .values import values_in

_declared = lru_cache(None)(Type.parse)  # of what the table of primitives says

cdef dict _CONSTANTS = {
    **OF_PYTHON,
    dtypes.dtype: DTYPE,
    dtypes.device: DEVICE,
    dtypes.layout: LAYOUT,
    dtypes.memory_format: FORMAT,
}


class GraphError(RuntimeError):
    """A graph breaks one of its rules."""


def check(graph):
    """Return the graph; raise GraphError naming the broken rule, and the node with its line, where there is one."""
    cdef Check run = Check()
    run.names, run.seen, run.right, run.effects = set(), set(), set(), graph.effects
    for state in graph.state:
        run.define(state.value, "a state")
    if len({s.name for s in graph.state}) != len(graph.state):
        raise GraphError("each state has a name of its own: two have the same")
    run.block(graph.block)
    seen = {id(v) for v in graph.inputs} | {id(s.value) for s in graph.state}
    for node in graph.nodes:
        for value in outputs_of(node):
            seen.add(id(value))
    for state in graph.state:
        if isinstance(state.new, Value) and id(state.new) not in seen:
            raise GraphError(
                f'what is written back is made in the outermost block: %{state.new.name} of "{state.name}" is not'
            )
    return graph


def type_of(a):
    """The type of an argument: of a value the declared one, of a constant its own."""
    if isinstance(a, Value):
        return a.type
    if type(a) is tuple:
        inner = list(dict.fromkeys(map(type_of, a)))
        if NONE in inner and len(inner) == 2:
            inner = [Type("Optional", (next(t for t in inner if t is not NONE),))]
        return Type("List", (inner[0] if len(inner) == 1 else ANY,))
    return _CONSTANTS.get(type(a), ANY)


cdef class Check:
    """One walk over a graph."""
    cdef set names, seen        # of the values so far; those that a node may use
    cdef set right              # what kind_of() says of nodes that keep the rules
    cdef bint effects

    cdef int define(self, value, str where, node=None) except -1:
        name = value.name
        if name in self.names:
            where = where or f"the node {node.op}"
            raise GraphError(f"each value has a name of its own: %{name} of {where} is taken")
        self.names.add(name)
        self.seen.add(value)
        return 0

    cdef int block(self, block) except -1:
        """Check a block that sees the values of `seen`, which has the block's own besides while it is checked."""
        cdef list own = list(block.inputs)
        for value in own:
            self.define(value, "an input")
        for node in block.nodes:
            for value in values_in(args_of(node)):
                if value not in self.seen:
                    raise GraphError(
                        _at(node, f"uses %{value.name} before it is made, or from a block that cannot see it")
                    )
            for inner in blocks_of(node):
                self.block(inner)
            for value in outputs_of(node):
                self.define(value, None, node)
                own.append(value)
                if value.node is not node:
                    raise GraphError(_at(node, f"its output %{value.name} says that {value.node!r} made it"))
            kind = None if blocks_of(node) else self.kind_of(node)
            if kind is not None and kind in self.right:
                continue
            _check_node(node)
            if not self.effects and has_effect(node):
                raise GraphError(_at(node, "has an effect, which is allowed only in a graph that says 'effects'"))
            if kind is not None:
                self.right.add(kind)
        for value in values_in(block.outputs):
            if value not in self.seen:
                raise GraphError(f"a block returns %{value.name}, which is made nowhere that it can see")
        self.seen.difference_update(own)
        return 0

    cdef tuple kind_of(self, node):
        """All that the rules of a node without blocks look at: its op and the types of what it takes and gives."""
        cdef list row = [op_of(node)]
        add_kinds(args_of(node), row)
        for value in outputs_of(node):
            row.append(declared_type(value))
        return tuple(row)


cdef int add_kinds(tuple args, list row) except -1:
    row.append(len(args))
    for a in args:
        if type(a) is VALUE:
            row.append(declared_type(a))
        elif type(a) is tuple:
            add_kinds(a, row)
        else:
            row.append(type(a))
    return 0


def has_effect(node):
    """Whether a node changes what others may hold."""
    if node.op in primitives.CONTROL:
        return False
    if node.op.startswith("prim::"):
        row = primitives.TABLE.get(node.op)
        return row is not None and row.effect is True
    return signature_of(node.op).inplace


_STACKS = {"prim::stack", "prim::push", "prim::pop"}


def _at(node, what):
    made = ", ".join(f"%{v.name}" for v in node.outputs)
    return f"{node.op} {f'that makes {made} ' if made else ''}{what}{f' ({node.line})' if node.line else ''}"


def _check_node(node):
    if node.op in primitives.CONTROL:
        _BLOCK_RULES[node.op](node)
        return
    if node.blocks:
        raise GraphError(_at(node, "holds blocks, which only control flow does"))
    if node.op.startswith("prim::"):
        _check_primitive(node)
        return
    try:
        signature = signature_of(node.op)
    except LookupError as error:
        raise GraphError(_at(node, f"is no op: {error}")) from None
    if len(node.args) != len(signature.args):
        raise GraphError(
            _at(node, f"has {len(node.args)} arguments; the schema {signature.op.schema} has {len(signature.args)}")
        )
    for arg, wanted, declared in zip(node.args, signature.args, signature.op.schema.args):
        known = arg.type if type(arg) is Value else _CONSTANTS.get(type(arg))
        if known is not wanted and not _fits(wanted, arg, declared, signature.op.record):
            raise GraphError(_at(node, f"has {type_of(arg)} for argument '{declared.name}', which is {wanted}"))
    types = output_types(signature, node.args)
    if tuple(v.type for v in node.outputs) != types:
        raise GraphError(
            _at(
                node, f"has outputs of types ({_told(v.type for v in node.outputs)}), but the op gives ({_told(types)})"
            )
        )


def _told(types):
    return ", ".join(map(str, types))


def _fits(wanted, arg, declared, record):
    """Whether an argument may stand where the schema has `wanted`."""
    if type(arg) is tuple and (wanted.word == "List" or (wanted.word == "Optional" and wanted.args[0].word == "List")):
        element = (wanted if wanted.word == "List" else wanted.args[0]).args[0]
        return all(_fits(element, a, declared, record) for a in arg)
    given = type_of(arg)
    if accepts(wanted, given) or (given is ANY and isinstance(arg, Value)):
        return True
    if wanted.word == "Optional":
        return _fits(wanted.args[0], arg, declared, record)
    if wanted.word == "List" and declared.size:  # int[2] takes one int too
        return _fits(wanted.args[0], arg, declared, record)
    if wanted is TENSOR:
        return declared.name in (record.numbers or "").replace("|", " ").split() and given in (
            INT,
            FLOAT,
            BOOL,
            COMPLEX,
            SCALAR,
        )
    if wanted in (FLOAT, COMPLEX) and given in (INT, FLOAT):
        return True
    return given is TENSOR and wanted.word in ("Scalar", "int", "float")


def _check_primitive(node):
    row = primitives.TABLE.get(node.op)
    if row is None:
        raise GraphError(_at(node, "is no primitive"))
    wanted = row.args
    if "..." not in wanted and len(wanted) != len(node.args):
        raise GraphError(_at(node, f"has {len(node.args)} arguments; it takes {len(wanted)}: {' '.join(wanted)}"))
    for i, (text, arg) in enumerate(zip(wanted, node.args)):
        if text == "..." or text == "Any":
            continue
        given, declared = type_of(arg), _declared(text)
        if given is not declared and given is not ANY and not accepts(declared, given):
            raise GraphError(_at(node, f"has {given} for argument {i}, which is {text}"))
    if row.returns is not None and [v.type for v in node.outputs] != list(map(_declared, row.returns)):
        raise GraphError(_at(node, f"gives {' '.join(row.returns)}, not ({_told(v.type for v in node.outputs)})"))
    if node.op in _STACKS:
        _check_stack(node)


def _check_stack(node):
    """push: a stack and a value for each type that it names -> such a stack; pop: the other way round.

    Whoever pops knows whether what may be None is not.
    """
    given, made = list(map(type_of, node.args)), [v.type for v in node.outputs]
    if node.op == "prim::pop":
        given, made = made, given
    stack = made[0] if made else None
    if stack is None or stack.word != "Stack" or len(made) != 1:
        raise GraphError(_at(node, f"has ({_told(made)}) where one stack stands"))
    if node.op != "prim::stack" and (
        len(given) != len(stack.args) + 1 or given[0] is not stack or not all(map(accepts, stack.args, given[1:]))
    ):
        raise GraphError(_at(node, f"has ({_told(given)}) beside {stack}, which holds ({_told(stack.args)})"))


# ---- control flow --------------------------------------------------------------------------------------------------


def _check_if(node):
    if len(node.blocks) != 2 or len(node.args) != 1 or type_of(node.args[0]) is not BOOL:
        raise GraphError(_at(node, "takes one bool and two blocks"))
    for block in node.blocks:
        if block.inputs:
            raise GraphError(_at(node, "has a block with inputs; blocks of an If see what is around them"))
        _check_yields(node, block.outputs, node.outputs)


def _check_yields(node, given, wanted):
    if len(given) != len(wanted):
        raise GraphError(_at(node, f"has a block that yields {len(given)} values for {len(wanted)}"))
    for a, value in zip(given, wanted):
        if not accepts(value.type, type_of(a)) and type_of(a) is not ANY:
            raise GraphError(
                _at(node, f"has a block that yields {type_of(a)} for %{value.name}, which is {value.type}")
            )


def _check_loop(node):
    """args: trip count or None, condition, carried values; block: number of the turn, carried -> condition, carried."""
    if len(node.blocks) != 1 or len(node.args) < 2:
        raise GraphError(_at(node, "takes a trip count or None, a condition, what it carries, and one block"))
    (block,) = node.blocks
    count, condition, *carried = node.args
    if not accepts(Type("Optional", (INT,)), type_of(count)) or type_of(condition) is not BOOL:
        raise GraphError(
            _at(node, f"takes an int or None and a bool first, not {type_of(count)} and {type_of(condition)}")
        )
    if len(block.inputs) != len(carried) + 1 or block.inputs[0].type is not INT:
        raise GraphError(_at(node, "has a block whose inputs are not the number of the turn and what is carried"))
    _check_yields(node, carried, block.inputs[1:])
    if not block.outputs or type_of(block.outputs[0]) is not BOOL:
        raise GraphError(_at(node, "has a block that does not yield a bool first: whether to go on"))
    _check_yields(node, block.outputs[1:], block.inputs[1:])
    _check_yields(node, block.inputs[1:], node.outputs)


def _check_function(node):
    """args: a name, operands; blocks: forward (operands -> outputs, then what is kept), backward (a gradient for
    each output, then what was kept -> one for each operand)."""
    if len(node.blocks) not in (1, 2) or not node.args or type(node.args[0]) is not str:
        raise GraphError(_at(node, "takes its name, its operands, and a block forward and one backward"))
    forward = node.blocks[0]
    _check_yields(node, node.args[1:], forward.inputs)
    _check_yields(node, forward.outputs[: len(node.outputs)], node.outputs)
    if len(forward.outputs) < len(node.outputs):
        raise GraphError(_at(node, "has a block forward that yields fewer values than it has outputs"))
    if len(node.blocks) == 2:
        backward, kept = node.blocks[1], len(forward.outputs) - len(node.outputs)
        if len(backward.inputs) != len(node.outputs) + kept:
            raise GraphError(
                _at(node, "has a backward block whose inputs are not a gradient an output and what was kept")
            )
        if len(backward.outputs) != len(node.args) - 1:
            raise GraphError(_at(node, "has a block backward that does not yield one gradient, or None, an operand"))


_BLOCK_RULES = {"prim::If": _check_if, "prim::Loop": _check_loop, "prim::Function": _check_function}
