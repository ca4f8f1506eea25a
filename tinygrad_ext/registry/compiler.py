"""Compiles a record into an Op: argument rows, kernel, traits and derivative rules."""

import sys
from types import SimpleNamespace

from tinygrad_ext.core.call.dispatch import Op, set_makers
from tinygrad_ext.core.data import dtype, table
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad import custom, custom_call
from tinygrad_ext.core.grad.rules import scaled
from tinygrad_ext.core.loops import loop_tables as loops
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.ops.schema_default import name_of_number
from tinygrad_ext.return_types import declare, types_of

_KINDS = table.kind_numbers()
_rows = {}  # argument of a schema, of which equal ones are shared -> its row
_FLAGS = SimpleNamespace(**table.flag_bits())
_ASKS = SimpleNamespace(**table.rule_codes())
_KEPT = (_ASKS.INPUT, _ASKS.RESULT, _ASKS.SHAPE, _ASKS.DTYPE, _ASKS.DEVICE, _ASKS.GEOMETRY)  # until the backward pass
_OUTPUT = {None: -1, "real": -2, "bool": dtype.by_name["bool"].id}  # fixed_out of core/call/dispatch.pxd


def _arg_rows(schema, record):
    rows = [_rows.get(a) or _rows.setdefault(a, _row(a, record)) for a in schema.args]
    varargs = "varargs" in (record.tags or "")
    return rows if not varargs and record.numbers is None else _told_more(rows, schema, record, varargs)


def _told_more(rows, schema, record, varargs):
    numbers = (record.numbers or "").replace("|", " ").split()
    for i, (a, row) in enumerate(zip(schema.args, rows)):
        if a.name in numbers or (varargs and a.is_list and a.type in ("Tensor", "Any")):
            name, kind, flags, size, default = row
            flags |= _FLAGS.NUMBER * (a.name in numbers) | _FLAGS.VARARGS * (varargs and a.is_list)
            rows[i] = name, kind, flags, size, default
    return rows


def _row(a, record):
    """What the dispatcher knows of an argument, whatever op it is one of."""
    flags = (
        _FLAGS.OPTIONAL * bool(a.optional)
        | _FLAGS.LIST * bool(a.is_list)
        | _FLAGS.KEYWORD * bool(a.kwarg_only)
        | _FLAGS.DEFAULT * bool(a.has_default)
        | _FLAGS.WRITE * bool(a.is_write)
        | _FLAGS.ELEM_OPTIONAL * bool(a.elem_optional)
    )
    kind = _KINDS.get(a.type.partition("(")[0])  # Dict(str, Tensor) is a Dict
    if kind is None:
        raise TypeError(f"{record.schema}: no op takes a {a.type} yet; argument '{a.name}' is one")
    return sys.intern(a.name), kind, flags, a.size or 0, default_of(a)


def default_of(arg):
    """The default of an argument as a kernel gets it: a dtype for the number that a schema has for it."""
    if arg.type in ("ScalarType", "Layout", "MemoryFormat") and type(arg.default) is int:
        return (
            getattr(dtype, name_of_number(arg.type, arg.default), None)
            or dtype.by_name[name_of_number(arg.type, arg.default)]
        )
    if arg.type == "Device" and arg.default is not None:
        return dtype.device(arg.default)
    return arg.default


# Ops whose step PyTorch records under another name, which programs read that follow `grad_fn`
_NODES = {
    **dict.fromkeys(("reshape", "flatten", "unflatten", "reshape_as", "view_as"), "view"),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), "convolution"),
    "chunk": "split",
    "contiguous": "clone",
    **dict.fromkeys(("group_norm", "_group_norm"), "native_group_norm"),
    "layer_norm": "native_layer_norm",
    "narrow": "slice",
    "vector_norm": "linalg_vector_norm",
}


def _node_name(schema):
    """AddBackward0 for aten::add.Tensor, as PyTorch calls its nodes; AvgPool2DBackward0 for avg_pool2d."""
    name = _NODES.get(schema.name, schema.name) if schema.namespace == "aten" else schema.name
    parts = [part[:1].upper() + part[1:] for part in name.split("_")]
    return (
        "".join(part[:-1] + "D" if part[-2:-1].isdigit() and part[-1] == "d" else part for part in parts) + "Backward0"
    )


set_makers(types_of, _node_name)


def rule_function(record, rule, find):
    """(callable, parameter names) of a rule: a function, or the text of one call such as "mul(grad, other)", or of a
    product with a number such as "grad * alpha"."""
    if isinstance(rule, str) and rule.startswith("grad * "):
        return scaled, ("grad", rule.removeprefix("grad * "))
    if isinstance(rule, str):
        name, _, rest = rule.rstrip(")").partition("(")
        return find(name), tuple(p.strip() for p in rest.split(","))
    code = getattr(getattr(rule, "__wrapped__", rule), "__code__", None)
    if code is None:
        raise TypeError(
            f"{record.schema}: a derivative rule is a Python function whose parameters name what it needs, "
            f'"zero", "none", "grad", "grad * number", or the text of one call; not {rule!r}'
        )
    return rule, code.co_varnames[: code.co_argcount]


def _rule_params(record, schema, names):
    """Codes of what a rule's parameters ask for; the names are the contract."""
    places = {a.name: i for i, a in enumerate(schema.args)}
    returns = {r.name: j for j, r in enumerate(schema.returns) if r.name}
    out = []
    for name in names:
        if name == "grad":
            out.append(_ASKS.GRAD)
        elif name == "grads":
            out.append(_ASKS.GRADS)
        elif name == "arrived":
            out.append(_ASKS.GRADS | 1)
        elif name == "needs":
            out.append(_ASKS.NEEDS)
        elif name in places:
            out.append(_ASKS.INPUT | places[name])
        elif name == "result":
            out.append(_ASKS.RESULT)
        elif name in returns:
            out.append(_ASKS.RESULT | returns[name])
        elif name.startswith("grad_") and name[5:] in returns:
            out.append(_ASKS.GRAD | returns[name[5:]])
        elif name.endswith("_shape") and name[:-6] in places:
            out.append(_ASKS.SHAPE | places[name[:-6]])
        elif name.endswith("_dtype") and name[:-6] in places:
            out.append(_ASKS.DTYPE | places[name[:-6]])
        elif name.endswith("_device") and name[:-7] in places:
            out.append(_ASKS.DEVICE | places[name[:-7]])
        elif name.endswith("_geometry") and name[:-9] in places:
            out.append(_ASKS.GEOMETRY | places[name[:-9]])
        else:
            raise TypeError(
                f"{record.schema}: a derivative rule asks for '{name}'; it may ask for grad, result, needs, "
                f"{', '.join(places)}, and <argument>_shape"
            )
    return out


def _called(fn, params, schema, record):
    """The Op that a rule's text calls, where it takes all that the parameters can be: there is nothing to bind then,
    nor another overload to be asked."""
    candidates = getattr(fn, "candidates", ())
    if len(candidates) != 1 or len(schema.returns) != 1:
        return None
    (o,) = candidates
    own, wanted = _arg_rows(schema, record), _arg_rows(o.schema, o.record)
    if len(params) > len(wanted) or not all(flags & _FLAGS.DEFAULT for _, _, flags, _, _ in wanted[len(params) :]):
        return None
    return o if all(_takes(row, code, own) for row, code in zip(wanted, params)) else None


def _takes(row, code, own):
    """Whether an argument takes whatever a rule's parameter is; own: the arguments of the op that has the rule."""
    _, kind, flags, size, _ = row
    asks, is_list = code & 0xFF00, bool(flags & _FLAGS.LIST)
    if asks in (_ASKS.GRAD, _ASKS.RESULT):
        return kind == _KINDS["Tensor"] and not is_list
    if asks not in (_ASKS.INPUT, _ASKS.SHAPE):
        return False
    _, given, told, count, _ = own[code & 0xFF]
    if asks == _ASKS.SHAPE:
        return kind == _KINDS["int"] and is_list and not told & _FLAGS.LIST
    may = _FLAGS.OPTIONAL | _FLAGS.NUMBER | _FLAGS.ELEM_OPTIONAL
    return kind == given and size == count and is_list == bool(told & _FLAGS.LIST) and not told & may & ~flags


def _targets(record, names, tensors):
    """Numbers of the tensor arguments in a key of `grad`: "self" or "self, other"."""
    found = [n.strip() for n in names.split(",")]
    for name in found:
        if name not in tensors:
            raise TypeError(
                f"{record.schema}: grad has a rule for '{name}', which is no tensor argument; "
                f"they are {', '.join(tensors) or 'none'}"
            )
    return [tensors.index(n) for n in found]


def _rules(record, schema, find):
    tensors = [a.name for a in schema.args if a.type == "Tensor"]
    rules, saved = [], []
    for names, rule in (record.grad or {}).items():
        targets = _targets(record, names, tensors)
        if rule in ("zero", "none"):
            continue
        if rule == "grad":
            rules.append((targets, None, [], None, None))
            continue
        fn, names = rule_function(record, rule, find)
        params = _rule_params(record, schema, names)
        factor = params[1] if fn is scaled else None
        rules.append((targets, fn, params, _called(fn, params, schema, record), factor))
        for code in params:
            if code & 0xFF00 in _KEPT and code not in saved:
                saved.append(code)
    # by name, and outputs last: the order in which PyTorch calls pack hooks
    results = [code for code in saved if code & 0xFF00 == _ASKS.RESULT]
    inputs = [code for code in saved if code & 0xFF00 != _ASKS.RESULT]
    return rules, sorted(inputs, key=lambda code: schema.args[code & 0xFF].name) + results


def make_op(record, schema, has_out):
    """The compiled Op of a record, whose derivative rules `set_rules` fills in."""
    title = schema.name if record.owner == BUILTIN else f"{schema.namespace}::{schema.name}"
    o = Op(schema.qualname, title, record, schema, _arg_rows(schema, record), max(len(schema.returns), 1))
    _set_computation(o, record, schema)
    several = None
    if len(schema.returns) > 1 and all([r.name for r in schema.returns]):
        several = declare(schema, "linalg_" if record.where == "linalg" else "")
    words = (record.tags or "").split()
    o.set_traits(
        is_view=bool(record.view),
        has_out=has_out,
        one_tensor="|" in (record.numbers or ""),
        any_device="any_device" in words,
        shape_rule=record.shape,
        returns=several,
        makes_list=len(schema.returns) == 1 and bool(schema.returns[0].is_list),
        words=words,
    )
    return o


def _set_computation(o, record, schema):
    o.set_refusals(record.refuses, record.failure, {k: tuple(v.split()) for k, v in (record.choices or {}).items()})
    if record.scalar is not None:
        tensors = [a.name for a in schema.args if a.type == "Tensor"]
        fixed = sum(1 << i for i, n in enumerate(tensors) if (record.inputs or {}).get(n) == "bool")
        scalars = [i for i, a in enumerate(schema.args) if a.type != "Tensor"]
        promote = (record.promote or "").split()
        o.set_pointwise(loops.tables[o.name], scalars, promote, _OUTPUT[record.returns], fixed)
    elif callable(record.kernel):
        set_python_kernel(o, record.kernel)
    elif record.kernel is not None:
        o.set_kernel(record.kernel, bool(record.takes_out))
    elif isinstance(record.compose, str):
        o.set_composite(record.compose)
    else:
        set_composite(o, record.compose)


def set_composite(o, fn):
    """Let a Python function over other ops compute the op, and differentiate it by theirs."""
    o.set_python(fn, True, _keywords(o))
    custom.attach(o, None if o.record.owner == BUILTIN else _custom(o))


def set_python_kernel(o, fn):
    """Let a Python function compute the op; one that is not ours is looked after."""
    o.set_python(fn, False, _keywords(o))
    if o.record.owner != BUILTIN and not o.record.view:
        found = custom.custom_of(o)
        if found is None:
            custom.attach(o, _custom(o))
        else:
            found.watch_again()


def _custom(o):
    return custom_call.CustomCall(o, returns_of(o.schema))


def returns_of(schema):
    """What the call of an op from elsewhere knows of its returns; see core/grad/custom.pyx."""
    return [_return_row(schema, r) for r in schema.returns]


def _keywords(o):
    """Names of the arguments that a Python function gets by keyword; our own take all by position."""
    names = tuple(a.name for a in o.schema.args if a.kwarg_only)
    return names if names and o.record.owner != BUILTIN else None


_VALUES = {
    "int": int,
    "SymInt": int,
    "float": (float, int),
    "bool": bool,
    "str": str,
    "complex": (complex, float, int),
    "Scalar": (bool, int, float, complex),
    "ScalarType": dtype.dtype,
    "Device": dtype.device,
}


def _return_row(schema, r):
    """(0 tensor, 1 list of tensors or 2 value; whether None will do; which mutated argument or -1; Python types)."""
    written = -1
    if r.is_write:
        written = next((i for i, a in enumerate(schema.args) if a.is_write and a.alias.before == r.alias.before), -1)
    if r.type == "Tensor":
        return 1 if r.is_list else 0, r.optional, written, Tensor
    types = (list, tuple) if r.is_list else dict if r.type.startswith("Dict") else _VALUES.get(r.type, object)
    return 2, r.optional or r.type == "Any", written, types


def set_rules(o, find):
    """Give the op its derivative rules; False when a rule's text names a function that `find` does not know yet."""
    rules, saved = _rules(o.record, o.schema, find)
    if any(fn is None and params for _, fn, params, *_ in rules):
        return False
    o.set_rules(rules, saved, _read_outputs(rules), bool(o.record.holomorphic))
    return True


def set_rules_later(o, rules_from):
    """Let rules_from(o) give the op its rules, as `set_rules` does, when a call of it is first recorded."""
    o.set_rules_later(rules_from, any([rule not in ("zero", "none") for rule in (o.record.grad or {}).values()]))


def _read_outputs(rules):
    """Mask of the outputs whose gradients some rule reads, 0 for all: the others carry none."""
    mask = 0
    for _, fn, params, *_ in rules:
        for code in params if fn is not None else (_ASKS.GRAD,):
            if code == _ASKS.GRADS:
                return 0
            if code & 0xFF00 == _ASKS.GRAD:
                mask |= 1 << (code & 0xFF)
    return mask
