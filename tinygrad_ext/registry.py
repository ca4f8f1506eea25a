"""Turns records into callables: ops, functions, methods, in-place and out= forms.

The built-in families go through `register` exactly as a plugin's records do.
"""

import sys
from collections import namedtuple

from tinygrad_ext.core import callables, loops
from tinygrad_ext.core.callables import OpFunction, OpMethod
from tinygrad_ext.core.dispatch import Op
from tinygrad_ext.core.tensor import Tensor
from tinygrad_ext.ops.schema import Schema

ops = {}  # "aten::add.Tensor" -> Op
functions = {}  # "nn.functional.relu" -> OpFunction
methods = {}  # "add", "add_" -> OpMethod

_KINDS = {
    name: i
    for i, name in enumerate(
        (
            "Tensor",
            "Scalar",
            "int",
            "float",
            "bool",
            "str",
            "ScalarType",
            "Device",
            "Layout",
            "MemoryFormat",
            "Generator",
            "complex",
            "Dict",
            "Any",
        )
    )
}
_KINDS["SymInt"] = _KINDS["int"]
_KINDS["number"] = _KINDS["Scalar"]
_OPTIONAL, _LIST, _KEYWORD, _DEFAULT, _NUMBER, _WRITE, _ELEM_OPTIONAL, _VARARGS = (1 << i for i in range(8))
_GRAD, _INPUT, _RESULT, _SHAPE, _NEEDS, _GRADS, _DTYPE, _GEOMETRY = (i << 8 for i in range(8))
_OUTPUT = {None: -1, "real": -2, "bool": 0}  # fixed_out of core/dispatch.pxd


def _arg_rows(schema, record):
    numbers = (record.numbers or "").split()
    rows = []
    for a in schema.args:
        flags = (
            _OPTIONAL * bool(a.optional)
            | _LIST * bool(a.is_list)
            | _KEYWORD * bool(a.kwarg_only)
            | _DEFAULT * bool(a.has_default)
            | _NUMBER * (a.name in numbers)
            | _WRITE * bool(a.is_write)
            | _ELEM_OPTIONAL * bool(a.elem_optional)
            | _VARARGS * (bool(a.is_list) and a.type in ("Tensor", "Any") and "varargs" in (record.tags or ""))
        )
        rows.append((sys.intern(a.name), _KINDS[a.type], flags, a.size or 0, a.default))
    return rows


def _node_name(schema):
    """AddBackward0 for aten::add.Tensor, as PyTorch calls its nodes."""
    return "".join(part[:1].upper() + part[1:] for part in schema.name.split("_")) + "Backward0"


def _rule_function(rule):
    """(callable, parameter names) of a rule: a function, or the text of one call such as "mul(grad, other)"."""
    if not isinstance(rule, str):
        code = rule.__code__
        return rule, code.co_varnames[: code.co_argcount]
    name, _, rest = rule.rstrip(")").partition("(")
    fn = (
        functions.get("_fused." + name)
        or functions.get(name)
        or functions.get("nn.functional." + name)
        or methods.get(name)
    )
    return fn, tuple(p.strip() for p in rest.split(","))


def _rule_params(record, schema, names):
    """Codes of what a rule's parameters ask for; the names are the contract."""
    places = {a.name: i for i, a in enumerate(schema.args)}
    returns = {r.name: j for j, r in enumerate(schema.returns) if r.name}
    out = []
    for name in names:
        if name == "grad":
            out.append(_GRAD)
        elif name == "grads":
            out.append(_GRADS)
        elif name == "needs":
            out.append(_NEEDS)
        elif name in places:
            out.append(_INPUT | places[name])
        elif name == "result":
            out.append(_RESULT)
        elif name in returns:
            out.append(_RESULT | returns[name])
        elif name.startswith("grad_") and name[5:] in returns:
            out.append(_GRAD | returns[name[5:]])
        elif name.endswith("_shape") and name[:-6] in places:
            out.append(_SHAPE | places[name[:-6]])
        elif name.endswith("_dtype") and name[:-6] in places:
            out.append(_DTYPE | places[name[:-6]])
        elif name.endswith("_geometry") and name[:-9] in places:
            out.append(_GEOMETRY | places[name[:-9]])
        else:
            raise TypeError(
                f"{record.schema}: a derivative rule asks for '{name}'; it may ask for grad, result, needs, "
                f"{', '.join(places)}, and <argument>_shape"
            )
    return out


def _rules(record, schema):
    tensors = [a.name for a in schema.args if a.type == "Tensor"]
    rules, saved = [], []
    for names, rule in (record.grad or {}).items():
        targets = [tensors.index(n.strip()) for n in names.split(",")]
        if rule in ("zero", "none"):
            continue
        if rule == "grad":
            rules.append((targets, None, []))
            continue
        fn, names = _rule_function(rule)
        params = _rule_params(record, schema, names)
        rules.append((targets, fn, params))
        for code in params:
            if code & 0xFF00 in (_INPUT, _RESULT, _SHAPE, _DTYPE, _GEOMETRY) and code not in saved:
                saved.append(code)
    return rules, saved


def make_op(record):
    """The compiled Op of a record."""
    schema = Schema.parse(record.schema)
    full = f"{schema.namespace or 'aten'}::{schema.name}" + (f".{schema.overload}" if schema.overload else "")
    o = Op(full, schema.name, record, schema, _arg_rows(schema, record), max(len(schema.returns), 1))
    if record.scalar is not None:
        tensors = [a.name for a in schema.args if a.type == "Tensor"]
        fixed = sum(1 << i for i, n in enumerate(tensors) if (record.inputs or {}).get(n) == "bool")
        scalars = [i for i, a in enumerate(schema.args) if a.type != "Tensor"]
        o.set_pointwise(loops.tables[full], scalars, (record.promote or "").split(), _OUTPUT[record.returns], fixed)
        o.set_refusals(record.refuses, record.failure, {k: tuple(v.split()) for k, v in (record.choices or {}).items()})
    elif callable(record.kernel):
        o.set_python(record.kernel, False)
    elif record.kernel is not None:
        o.set_kernel(record.kernel, bool(record.takes_out))
    elif isinstance(record.compose, str):
        o.set_composite(record.compose)
    else:
        o.set_python(record.compose, True)
    names = [r.name for r in schema.returns]
    several = None
    if len(names) > 1 and all(names):
        several = namedtuple(schema.name, names, module="tinygrad_ext.return_types")
    o.set_traits(
        is_view=bool(record.view),
        has_out="out" in variants(record),
        shape_rule=record.shape,
        node_type=_node_name(schema),
        returns=several,
    )
    _set_rules(o)
    return o


_unresolved = []  # ops with a rule that names an op which was not registered yet


def _set_rules(o):
    rules, saved = _rules(o.record, o.schema)
    if any(fn is None and params for _, fn, params in rules):
        _unresolved.append(o)
    else:
        o.set_rules(rules, saved, _read_outputs(rules))


def _read_outputs(rules):
    """Mask of the outputs whose gradients some rule reads, 0 for all: the others carry none."""
    mask = 0
    for _, fn, params in rules:
        for code in params if fn is not None else (_GRAD,):
            if code == _GRADS:
                return 0
            if code & 0xFF00 == _GRAD:
                mask |= 1 << (code & 0xFF)
    return mask


def _resolve():
    waiting = _unresolved[:]
    _unresolved.clear()
    for o in waiting:
        _set_rules(o)


def variants(record):
    """Words of: function method inplace out, and function_ for an in-place form that is a public function too."""
    if record.variants is not None:
        return record.variants.split()
    kinds = ["function", "method", "inplace", "out"] if record.scalar is not None else ["function", "method"]
    alone = record.scalar is not None and record.schema.split("->")[0].count(" ") == 2
    return kinds + ["function_"] * alone


def places(record):
    """Prefixes of the op's functions below the package: "" at its top, "nn.functional."."""
    return ["" if w == "." else w + "." for w in (record.where or ".").split()]


def register(record):
    """Add one record: its op, and all callables that are derived from it. Returns the op."""
    o = make_op(record)
    if o.name in ops:
        raise RuntimeError(f"{o.name} is registered already, by {ops[o.name].record.source}:{ops[o.name].record.line}")
    ops[o.name] = o
    kinds = variants(record)
    for name in [o.schema.name, *(record.aliases or "").split()]:
        if "method" in kinds:
            _add_method(name, o, record, False)
        if "inplace" in kinds and ("method" in kinds or "function" not in kinds or "function_" in kinds):
            _add_method(name + "_", o, record, True)
        for place in places(record) if "function" in kinds or "function_" in kinds else ():
            if "function" in kinds:
                _add(functions, place + name, OpFunction, name, o, record, place)
            if "inplace" in kinds:
                where = place if "function_" in kinds else "_fused."
                _add(functions, where + name + "_", OpFunction, name + "_", o, record, where, inplace=True)
    if record.operator:
        _operators(record.operator, o, "inplace" in kinds)
    return o


def _add(table, key, cls, name, o, record, place="", inplace=False):
    found = table.get(key)
    if found is not None:
        found.set_ops([*found.overloads, o])
        return found
    f = cls(
        name,
        [o],
        module="tinygrad_ext" + ("." + place[:-1] if place else ""),
        doc=record.doc,
        owner=record.owner,
        inplace=inplace,
    )
    table[key] = f
    return f


def _add_method(name, o, record, inplace):
    known = name in methods
    m = _add(methods, name, OpMethod, name, o, record, inplace=inplace)
    if not known and name.startswith("__"):
        from tinygrad_ext.core import operators

        operators.show(name, m)
    elif not known:
        setattr(Tensor, name, m)


def _operators(root, o, inplace):
    from tinygrad_ext.core import operators

    if root[0] == "r" and root[1:] in operators.ROOTS:
        operators.bind_reflected(root[1:], methods[o.schema.name])
    else:
        operators.bind(root, methods[o.schema.name], methods.get(o.schema.name + "_") if inplace else None)


def register_all(records):
    """Register many records, in order."""
    for r in records:
        register(r)
    _resolve()
    if _unresolved:
        o = _unresolved[0]
        raise TypeError(f"{o.name}: a derivative rule of {o.record.grad} calls an op that does not exist")


# ---- reading back --------------------------------------------------------------------------------------------------


def function_by_path(module, qualname):
    """A public function or method by where it stands; for pickle."""
    if qualname.startswith("Tensor."):
        return methods[qualname[7:]]
    place = module[len("tinygrad_ext") :].lstrip(".")
    return functions[(place + "." if place else "") + qualname]


def signature_of(f):
    """inspect.Signature of a function or method, from its first overload."""
    import inspect
    from keyword import iskeyword

    o = f.overloads[0]
    out = []
    for a in o.schema.args:
        kind = inspect.Parameter.KEYWORD_ONLY if a.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        name = "input" if a.name == "self" and not isinstance(f, OpMethod) else a.name
        name += "_" * iskeyword(name)  # random_(from, to): a Python signature cannot spell it
        out.append(inspect.Parameter(name, kind, default=a.default if a.has_default else inspect.Parameter.empty))
    if "out" in variants(o.record) and not isinstance(f, OpMethod):
        out.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(out)


callables.set_readers(signature_of=signature_of, function_by_path=function_by_path)
