"""Functions of the package that are no ops: `torch.is_tensor`, `torch.device`, `torch.as_tensor`."""

import cmath
import math
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.graph.primitives.numbers import COMPLEX_MATH
from tinygrad_ext.graph.primitives.objects import keep_function
from tinygrad_ext.graph.types import ANY, BOOL, COMPLEX, DEVICE, DTYPE, FLOAT, INT, NONE, STR, TENSOR, list_of, optional
from tinygrad_ext.nn.modules import utils
from tinygrad_ext.tensor.legacy import LEGACY

from ..tracing import is_tracing
from .builtins import BUILTINS, builtin
from .markers import _unwrap_optional
from .types import NUMBERS, parts_of
from .values import ListLiteral, TupleValue, as_list, is_constant, type_of


@builtin(hash)
def _hash(c, args, kwargs):
    return c.emit("prim::hash", (c.value(args[0]),), INT)


@builtin(math.prod)
def _prod(c, args, kwargs):
    if len(args) != 1 or kwargs:
        c.fault("math.prod() takes a list or tuple of numbers")
    value = c.value(ListLiteral(args[0].values) if isinstance(args[0], TupleValue) else as_list(args[0]))
    inner = type_of(value).args[0] if type_of(value).word == "List" else None
    if inner not in NUMBERS:
        c.fault(f"math.prod() takes a list or tuple of numbers, not {type_of(value)}")
    return c.emit("prim::prod_of", (value,), INT if inner is BOOL else inner)


@builtin(tg.save)
def _save(c, args, kwargs):
    row = _arguments(c, "save", args, kwargs, {"obj": None, "f": None})
    c.node("prim::python", (keep_function(tg.save), c.value(row["obj"]), c.value(row["f"], STR, "a path")), (ANY,))


@builtin(warnings.warn)
def _warn(c, args, kwargs):
    c.effect("prim::warn", c.value(args[0], STR, "a message"), str(c.line))


@builtin(tg.autograd.grad)
def _grad(c, args, kwargs):
    row = _arguments(c, "autograd.grad", args, kwargs, {
        "outputs": None, "inputs": None, "grad_outputs": None, "retain_graph": None, "create_graph": False,
        "only_inputs": True, "allow_unused": False,
    })  # fmt: skip
    operands = [_whole(c, row[n]) for n in ("outputs", "inputs", "grad_outputs", "retain_graph")]
    operands += [row["create_graph"], bool(row["allow_unused"])]
    return c.emit("prim::autograd.grad", operands, list_of(optional(TENSOR)))


@builtin(tg.lu)
def _lu(c, args, kwargs):
    row = _arguments(c, "lu", args, kwargs, {"A": None, "pivot": True, "get_infos": False})
    infos = row["get_infos"]
    if type(infos) is not bool:
        c.fault("lu(): get_infos is True or False in script, since it says how many tensors there are")
    options = {"pivot": row["pivot"], "check_errors": not infos}
    found = c.call_op("linalg.lu_factor_ex", tg.linalg.lu_factor_ex.candidates, [row["A"]], options)
    return TupleValue(c.unpacked(found)[: 2 + infos])


@builtin(tg.autograd.backward)
def _backward(c, args, kwargs):
    row = _arguments(c, "autograd.backward", args, kwargs, {
        "tensors": None, "grad_tensors": None, "retain_graph": None, "create_graph": False,
    })  # fmt: skip
    c.effect("prim::autograd.backward", *[_whole(c, row[n]) for n in ("tensors", "grad_tensors", "retain_graph")],
             row["create_graph"])  # fmt: skip


def _arguments(c, name, args, kwargs, defaults):
    found = {**defaults, **dict(zip(defaults, args)), **kwargs}
    if len(args) > len(defaults) or len(found) > len(defaults):
        c.fault(f"{name}() takes {', '.join(defaults)}")
    return found


def _whole(c, operand):
    return c.value(ListLiteral(operand.values) if isinstance(operand, TupleValue) else operand)


@builtin(tg.manual_seed)
def _manual_seed(c, args, kwargs):
    c.emit("prim::manual_seed", (c.value(args[0], INT),), INT)


@builtin(is_tracing)
def _is_tracing(c, args, kwargs):
    return c.emit("prim::is_tracing", (), BOOL)


def _complex_math(name):
    def run(c, args, kwargs):
        operand = c.value(args[0])
        if type_of(operand) not in NUMBERS:
            c.fault(f"cmath.{name}() takes a number, not {type_of(operand)}")
        return c.emit(
            f"prim::cmath.{name}", (operand,), BOOL if name[:2] == "is" else FLOAT if name == "phase" else COMPLEX
        )

    return run


@builtin(cmath.rect)
def _rect(c, args, kwargs):
    if len(args) != 2 or kwargs or not {type_of(a) for a in args} <= set(NUMBERS):
        c.fault("cmath.rect() takes a length and an angle")
    return c.emit("prim::cmath.rect", args, COMPLEX)


for _name in COMPLEX_MATH:
    BUILTINS[getattr(cmath, _name)] = _complex_math(_name)


@builtin(tg.is_tensor)
def _is_tensor(c, args, kwargs):
    return type_of(args[0]) is TENSOR


def _asked(name):
    return lambda c, args, kwargs: c.call_method(args[0], name, [])


for _name in ("is_floating_point", "is_complex", "numel"):
    BUILTINS[getattr(tg, _name)] = _asked(_name)


def _as_method(name):
    def run(c, args, kwargs):
        given = dict(kwargs)
        tensor = args[0] if args else given.pop("input", given.pop("self", None))
        return c.call_method(c.value(tensor, TENSOR, "argument 'input'"), name, args[1:], given)

    return run


for _name in ("unique", "unique_consecutive"):
    BUILTINS[getattr(tg, _name)] = _as_method(_name)


@builtin(dtypes.device)
def _device(c, args, kwargs):
    if all(map(is_constant, (*args, *kwargs.values()))):
        return dtypes.device(*args, **kwargs)
    row = _arguments(c, "device", args, kwargs, {"type": None, "index": None})
    if row["type"] is None:
        c.fault("device() takes a text such as 'cpu', and an index behind it")
    told = c.value(row["type"], STR)
    if row["index"] is not None:
        told = c.emit("prim::format", ("{}:{}", told, c.value(row["index"], INT)), STR)
    return c.emit("prim::device_of", (told,), DEVICE)


@builtin(tg.broadcast_shapes)
def _broadcast_shapes(c, args, kwargs):
    if kwargs:
        c.fault("broadcast_shapes() takes sizes by position")
    shapes = [ListLiteral(c.unpacked(a)) if c.is_tuple(a) else a for a in args]
    shapes = [c.value(ListLiteral([a]) if type_of(a) is INT else as_list(a), list_of(INT)) for a in shapes]
    return c.emit("prim::broadcast_shapes", tuple(shapes), list_of(INT))


@builtin(slice)
def _slice(c, args, kwargs):
    if kwargs:
        c.fault("Slice does not accept any keyword arguments")
    if not 1 <= len(args) <= 3:
        c.fault(f"slice() takes 1 to 3 arguments, got {len(args)}")
    return slice(*[None if a is None else c.value(a, INT, "a bound of a slice") for a in args])


@builtin(dtypes.Size)
def _make_size(c, args, kwargs):
    return args[0]


@builtin(tg.is_grad_enabled)
def _is_grad_enabled(c, args, kwargs):
    return c.emit("prim::grad_enabled", (), BOOL)


@builtin(tg.get_default_dtype)
def _default_dtype(c, args, kwargs):
    return c.emit("prim::dtype", (c.op("aten::tensor", (0.0, None, None, False, False)),), DTYPE)


@builtin(tg.as_tensor)
def _as_tensor(c, args, kwargs):
    if type_of(args[0]) is TENSOR:
        return c.call_method(args[0], "to", list(kwargs.values())) if kwargs else args[0]
    return c.call_op("tensor", tg.tensor.candidates, args, kwargs)


@builtin(_unwrap_optional)
def _unwrapped(c, args, kwargs):
    value = c.value((*args, *kwargs.values())[0])
    type = type_of(value)
    if type is NONE:
        c.fault("Unwrapping null optional: what it holds could not be inferred from actual type None")
    if not type.is_optional:
        return value
    inner = parts_of(type)[0]
    return c.emit("prim::expect", (value, str(inner), "Unwrapping null optional"), inner)


def _repeating(n):
    """`_pair(x)` and its kin: a list of n, or the one that was given."""

    @builtin(getattr(utils, ("_single", "_pair", "_triple", "_quadruple")[n - 1]))
    def _ntuple(c, args, kwargs):
        given = as_list((*args, *kwargs.values())[0])
        if c.is_tuple(given):
            return ListLiteral(c.unpacked(given, None))
        return ListLiteral([given] * n) if type_of(given) in NUMBERS else given


for _n in range(1, 5):
    _repeating(_n)


def _of_dtype(name):
    """Constructors from before dtypes, such as `torch.BoolTensor([True])`: of a list, or of sizes."""

    @builtin(getattr(tg, name))
    def _make(c, args, kwargs):
        dtype = getattr(tg, name).dtype
        if len(args) == 1 and not kwargs and type_of(as_list(args[0])) is not INT:
            return c.call_op("tensor", tg.tensor.candidates, args, {"dtype": dtype})
        if len(args) > 1 and any(type_of(a) is not INT for a in args):
            c.fault(f"{name}() takes a list or sizes; it got multiple positional arguments that were not all integers")
        return c.call_op("empty", tg.empty.candidates, args or [ListLiteral([0])], {**kwargs, "dtype": dtype})


for _name in LEGACY:
    _of_dtype(_name)
