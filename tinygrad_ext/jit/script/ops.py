"""Calls of ops: which overload takes the arguments, by the schemas."""

from tinygrad_ext.core.call.arguments import OTHER_NAMES
from tinygrad_ext.core.call.callables import OpFunction
from tinygrad_ext.core.call.op_tables import ops as known_ops
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.types import (
    BOOL,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    SCALAR,
    STR,
    TENSOR,
    Type,
    accepts,
    of_schema,
)
from tinygrad_ext.registry.table import variants

from .compiler import hook
from .expressions import kind
from .types import NUMBERS
from .values import ListLiteral, Static, TupleValue, as_list, is_constant, type_of


class Mismatch(Exception):
    """An overload does not take the arguments; args: why."""


class OpValue(Static):
    """A function over op records: `torch.add`, `ops.vision.roi_align`."""

    kind = "an op"

    def __init__(self, python, name):
        self.python, self.name = python, name

    def told(self):
        return f"the op {self.name}"

    def attribute(self, c, name):
        return c.python(getattr(self.python, name), f"{self.name}.{name}")

    def call(self, c, args, kwargs):
        return c.call_op(self.name, self.python.candidates, args, kwargs)


@kind(OpFunction)
def _op(c, value, name):
    return OpValue(value, name)


@hook
def call_op(c, name, candidates, args, kwargs):
    """The result of the first overload that takes the arguments."""
    inplace = name.endswith("_") and not name.endswith("__")
    out = kwargs.pop("out", None)
    if out is not None:
        return _into(c, name, candidates, args, kwargs, out)
    reasons = []
    for convert in (False, True):
        for op in candidates:
            block, count = c.block, len(c.block.nodes)
            try:
                row = _match(c, op, args, dict(kwargs), convert)
            except Mismatch as why:
                del block.nodes[count:]
                reasons.append((op, why.args[0]))
                continue
            return _leaf(c, op, row) or _places(c, op, row) or c.op(_form(op, inplace), row)
    return _refuse(c, name, reasons, args, kwargs)


def _leaf(c, op, row):
    """What a factory makes that is told requires_grad, which no node of a graph says itself; None for other calls."""
    at = next((i for i, arg in enumerate(op.schema.args) if arg.name == "requires_grad"), None)
    if at is None or row[at] is None or row[at] is False:
        return None
    made = c.op(op.name, (*row[:at], False, *row[at + 1 :]))
    return c.emit("prim::tensor.requires_grad_", (made, row[at]), TENSOR)


def _places(c, op, row):
    """Largest elements with their places, where a pooling is told return_indices; None for other calls."""
    at = next((i for i, arg in enumerate(op.schema.args) if arg.name == "return_indices"), None)
    if at is None or row[at] in (None, False) or op.schema.name.endswith("_with_indices"):
        return None
    if row[at] is not True:
        c.fault(f"{op.schema.name}: return_indices decides what comes back, so it has to be True or False as written")
    both = known_ops[f"{op.name.partition('.')[0]}_with_indices"]
    names = {arg.name for arg in both.schema.args}
    return c.op(both.name, tuple([a for a, arg in zip(row, op.schema.args) if arg.name in names]))


def _into(c, name, candidates, args, kwargs, out):
    """op(..., out=out): what the op gives is written into out, which is the result."""
    candidates = [op for op in candidates if "out" in variants(op.record)]
    if not candidates:
        c.fault(f"{name} takes no out=; assign the result")
    made = c.call_op(name, candidates, args, kwargs)
    given, places = (c.unpacked(o) if c.is_tuple(o) else [o] for o in (made, out))
    if len(given) != len(places) or any(type_of(p) is not TENSOR for p in places):
        c.fault(f"{name}: out= is {'a tensor' if len(given) == 1 else f'a tuple of {len(given)} tensors'}")
    for value, place in zip(given, places):
        c.effect("prim::tensor.write_out", place, value, name.rpartition(".")[2])
    return out


def _form(op, inplace):
    if not inplace or op.schema.name.endswith("_"):
        return op.name
    base, dot, overload = op.name.partition(".")
    return f"{base}_{dot}{overload}"


def _refuse(c, name, reasons, args, kwargs):
    given = [_told(a) for a in args] + [f"{k}={_told(a)}" for k, a in kwargs.items()]
    lines = [f"{name}: Arguments for call are not valid: ({', '.join(given)}). The overloads are:"]
    seen = {str(op.schema): why for op, why in reasons}
    lines += [f"  {schema}: {why}" for schema, why in seen.items()]
    way_out = ""
    if any("found type 'Tensor'" in why and "of type 'Tensor'" not in why for why in seen.values()):
        way_out = "Write x.item(), int(x) or float(x) to take the number out of a tensor."
        for operand in args:
            if isinstance(operand, Value) and id(operand) in c.untold:
                way_out += (
                    f"\nInferred the value for argument '{c.untold[id(operand)]}' to be of type 'Tensor' because "
                    "it was "
                    "not annotated with an explicit type."
                )
    return c.fault("\n".join(lines), way_out)


def _told(operand):
    type = type_of(operand)
    return str(type) if type is not None else operand.told()


def _match(c, op, args, kwargs, convert):
    """The arguments of a node of an op, all of the schema's."""
    row, positional = [], list(args)
    declared = op.schema.args
    last = max((i for i, a in enumerate(declared) if not a.kwarg_only), default=-1)
    for i, arg in enumerate(declared):
        said = _spelling(arg, i, kwargs)
        if positional and not arg.kwarg_only:
            if said is not None:
                raise Mismatch(f"argument '{said}' specified twice")
            operand = positional.pop(0)
            if i == last and positional and arg.is_list and type_of(operand) in (INT, TENSOR):
                operand, positional = ListLiteral([operand, *positional]), []
            elif i == last and arg.is_list and not arg.size and type_of(operand) in (INT, TENSOR):
                operand = ListLiteral([operand])
        elif said is not None:
            operand = kwargs.pop(said)
        elif arg.has_default:
            row.append(_default(arg))
            continue
        else:
            raise Mismatch(f"Argument {arg.name} not provided")
        row.append(_fit(c, arg, operand, op.record, convert))
    if positional:
        raise Mismatch(f"takes {last + 1} positional arguments, {len(args)} are given")
    if kwargs:
        raise Mismatch(f"takes no argument '{next(iter(kwargs))}'")
    return tuple(row)


def _spelling(arg, i, kwargs):
    """The keyword under which an argument is given, or None: its own name, NumPy's, or "input" for the first."""
    names = (arg.name, OTHER_NAMES.get(arg.name), "input" if i == 0 and arg.name == "self" else None)
    return next((n for n in names if n in kwargs), None)


def _default(arg):
    return tuple(arg.default) if isinstance(arg.default, (list, tuple)) else arg.default


def _fit(c, arg, operand, record, convert):
    """The operand as an argument, or Mismatch."""
    operand = as_list(operand)
    given = type_of(operand)
    if given is NONE:
        if arg.optional or arg.type == "Any":
            return None
        raise _mismatch(arg, given)
    if not arg.is_list:
        return _element(c, arg, operand, record, convert, arg.optional)
    if isinstance(operand, (ListLiteral, TupleValue)):
        try:
            return tuple([_element(c, arg, v, record, convert, arg.elem_optional) for v in operand.values])
        except Mismatch as why:
            raise why if given is None else _mismatch(arg, given) from None
    if given is None:
        raise _mismatch(arg, given)
    if given.word == "Tuple":
        return tuple([_element(c, arg, v, record, convert, arg.elem_optional) for v in c.unpacked(operand, None)])
    wanted = of_schema(arg)
    if accepts(wanted, given):
        return operand
    inner = wanted.args[0] if wanted.word == "Optional" else wanted
    whole = convert and inner.args[0] is FLOAT and given.word == "List" and given.args[0] is INT
    if whole or (given.word == "List" and accepts(inner.args[0], given.args[0])):
        return c.emit("prim::cast", (operand,), inner)
    if not arg.size or given.word == "List" or given is TENSOR:
        raise _mismatch(arg, given)
    return _element(c, arg, operand, record, convert, arg.elem_optional)


def _mismatch(arg, given):
    wanted = of_schema(arg) if arg.is_list else arg.spelling
    return Mismatch(f"Expected a value of type '{wanted}' for argument '{arg.name}' but instead found type '{given}'")


def _element(c, arg, operand, record, convert, optional):
    given, word = type_of(operand), arg.type
    if word == "Any":
        return anything(c, operand)
    if given is None or (isinstance(operand, Static)):
        found = _DTYPE_OF.get(getattr(operand, "python", None)) if word == "ScalarType" else None
        if found is None:
            raise _mismatch(arg, given if given is not None else operand.told())
        return found
    if given is NONE and optional:
        return None
    wanted = of_schema(_Plain(arg))
    if accepts(Type("Optional", (wanted,)) if optional and not wanted.is_optional else wanted, given):
        return operand
    if wanted is TENSOR and given in NUMBERS and arg.name in (record.numbers or "").replace("|", " ").split():
        return operand
    if wanted is DEVICE and given is STR:
        return dtypes.device(operand) if is_constant(operand) else c.emit("prim::device_of", (operand,), DEVICE)
    if convert:
        if wanted is FLOAT and given in (INT, BOOL):
            return float(operand) if is_constant(operand) else c.emit("prim::float", (operand,), FLOAT)
        if wanted is INT and given is BOOL:
            return int(operand) if is_constant(operand) else c.emit("prim::int", (operand,), INT)
        if wanted in (FLOAT, INT) and given.word == "Scalar":
            return c.emit(f"prim::{wanted}", (operand,), wanted)
        if wanted in (FLOAT, INT, SCALAR) and given is TENSOR:
            return c.emit(f"prim::tensor.{str(wanted).lower()}", (operand, f"argument '{arg.name}'"), wanted)
    raise _mismatch(arg, given)


_DTYPE_OF = {float: dtypes.by_name["float32"], int: dtypes.by_name["int64"], bool: dtypes.by_name["bool"]}


class _Plain:
    """An argument without its list and its question mark."""

    is_list = optional = elem_optional = False

    def __init__(self, arg):
        self.type = arg.type


def anything(c, operand):
    """The operand as an argument that may be anything: a list or tuple stays apart in its items."""
    if isinstance(operand, (ListLiteral, TupleValue)):
        return tuple([anything(c, v) for v in operand.values])
    return c.value(operand)
