"""What may not be registered, and the words that say so."""

import keyword

from tinygrad_ext.core.call.callables import OpPacket
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.loops import loop_tables
from tinygrad_ext.ops import is_part
from tinygrad_ext.ops.record import BUILTIN, READ_BY_THE_BUILD, said
from tinygrad_ext.registry import functions, methods, ops, prefixes, variants
from tinygrad_ext.registry.op_namespace import Namespace, OpOverload

RESERVED = ("aten", "prim", "prims", "nn")
# What only the build and compiled kernels can serve, and what to write instead.
_BUILTIN_ONLY = {
    "takes_out": "only compiled kernels take `out`; every op with `out` among its variants has an out= form",
    "operator": "the operators of Tensor belong to the built-in ops; a type of your own can define __torch_function__",
    "where": "the op stands in ops.<namespace>",
}


_LETTERS = "abcdefghijklmnopqrstuvwxyz"  # the module `string` would bring `re`
_PLAIN = frozenset(_LETTERS + "0123456789_")


def is_plain_name(name):
    """Whether a text may name a device or a dtype: small letters, digits and _, a letter first."""
    return name[:1] in _LETTERS and _PLAIN.issuperset(name) and name != ""


def check(record, schema, to):
    if record.owner != BUILTIN:
        check_namespace(record.schema, schema.namespace, to)
        _check_names(record, schema)
        _check_fields(record, schema)
        _check_mutation(record, schema)
    found = ops.get(schema.qualname)
    if found is not None:
        raise RuntimeError(taken(schema.qualname, found.record, record))
    if record.owner == BUILTIN:
        return
    kinds, prefix = variants(record), prefixes(record)[0]
    for name in [schema.name, *(record.aliases or "").split()]:
        for spelling in (name, name + "_") if "inplace" in kinds else (name,):
            _check_callable(functions.get(prefix + spelling), f"{schema.namespace}::{spelling}", record)
            if "method" in kinds:
                _check_method(spelling, record)


def check_namespace(what, namespace, to):
    """Refuse a name without a namespace, and one in a namespace that is not the scope's. RuntimeError."""
    if not namespace:
        own = to.namespaces[0] if to.namespaces else "myops"
        raise RuntimeError(f"{what}: the name has no namespace; write '{own}::{what.partition('(')[0].strip()}'")
    if namespace in RESERVED:
        raise RuntimeError(
            f"{what}: the namespace '{namespace}' belongs to tinygrad_ext; {to.owner} may neither add to it nor "
            "replace what is in it. Register under a namespace of your own, and override calls with __torch_function__"
        )
    check_name(what, "the namespace", namespace)
    if namespace.startswith("__") or is_part(namespace):
        raise RuntimeError(f"{what}: '{namespace}' is a name of the package tinygrad_ext.ops; choose another namespace")
    if to.namespaces is not None and namespace not in to.namespaces:
        own = " and ".join(f"'{n}'" for n in to.namespaces) or "none"
        raise RuntimeError(
            f"{what}: {to.owner} may not register under the foreign namespace '{namespace}'; its own is {own}, "
            f"from the names of its entry points. To provide '{namespace}' declare an entry point '{namespace}' or "
            f"'{namespace}.<more>' in the group tinygrad_ext.plugins"
        )


def check_name(what, kind, name, *holders):
    """Refuse a name that nobody could write, or that would hide what Python or this package asks for. RuntimeError.

    kind: what is called so, for the message. holders: classes whose objects have the name as an attribute.
    """
    if keyword.iskeyword(name):
        why = "is a keyword of Python, which cannot be written there"
    elif name.startswith("__"):
        why = "begins with two underscores, as the names do that Python itself looks up"
    elif holder := next((h for h in holders if hasattr(h, name)), None):
        why = f"is an attribute that every {holder.__name__} has"
    else:
        return
    raise RuntimeError(f"{what}: {kind} cannot be called '{name}': that {why}. Choose another name")


def _check_names(record, schema):
    """All names of a record that become attributes, keywords of a call, or fields of its result."""
    for name in [schema.name, *(record.aliases or "").split()]:
        check_name(record.schema, "an op", name, Namespace)
    check_name(record.schema, "an overload", schema.overload, OpPacket, OpOverload)
    for a in schema.args:
        check_name(record.schema, "an argument", a.name)
    for r in schema.returns:
        check_name(record.schema, "a result", r.name, tuple)


def _check_fields(record, schema):
    for field, instead in _BUILTIN_ONLY.items():
        if getattr(record, field) is not None:
            raise TypeError(f"{record.schema}: {field}= is for built-in records ({record.owner} gave it): {instead}")
    how = record.kernel if record.kernel is not None else record.compose
    if record.scalar is not None:
        _check_loops(record, schema)
    elif not callable(how):
        raise TypeError(
            f"{record.schema}: kernel= and compose= take a function, not {how!r}; names of compiled kernels are for "
            "built-in records"
        )
    if type(record.version) is not int or record.version < 1:
        raise TypeError(
            f"{record.schema}: version={record.version!r} must be a number from 1 on, raised by one a change"
        )
    unknown = set(variants(record)) - {"function", "method", "inplace", "out"}
    if unknown or "function" not in variants(record):
        raise TypeError(
            f"{record.schema}: variants={record.variants!r} must hold 'function', and may hold 'method', 'inplace' and "
            "'out'"
        )


def _check_loops(record, schema):
    """Whether the loops of a record with scalar= are there, and made from what it says now."""
    compiled = loop_tables.said.get(schema.qualname)
    if compiled is None:
        raise TypeError(
            f"{record.schema}: a C expression is compiled when the package that holds it is built, and {record.owner} "
            "has brought no loops for it: name the file in PointwiseExtension and call register.loops(path) before; or "
            "give compose= or kernel= a function"
        )
    if compiled != said(str(schema), {name: getattr(record, name) for name in READ_BY_THE_BUILD}):
        raise RuntimeError(
            f"{record.schema}: its loops were compiled from something else, {compiled}. Build the package again"
        )


def _check_mutation(record, schema):
    written = [a.name for a in schema.args if a.is_write]
    if written and record.grad:
        raise TypeError(
            f"{record.schema}: grad= is for ops that write to no argument, and this one writes to "
            f"{', '.join(written)}; "
            "give its derivative with library.register_autograd"
        )
    if written and set(variants(record)) & {"inplace", "out"}:
        raise TypeError(
            f"{record.schema}: an op that writes to {', '.join(written)} has no in-place and out= forms of its own; "
            "leave them out of variants="
        )
    if record.kernel is not None and not record.view:
        check_kernel_returns(schema)


def check_kernel_returns(schema):
    """Refuse a kernel for an op that returns views: TypeError. Autograd would not know what they are views of."""
    for r in schema.returns:
        if r.alias is not None and not r.is_write:
            raise TypeError(
                f"{schema}: a kernel cannot return a view of its argument ('{r}'). Write the op as a composite of view "
                "ops, compose= in a record and Library.impl(..., 'CompositeImplicitAutograd'), or return a clone"
            )


def _check_callable(found, name, record):
    if found is not None and found.owner != record.owner:
        raise RuntimeError(taken(name, found.candidates[0].record, record))


def _check_method(name, record):
    found = methods.get(name)
    if found is not None and found.owner == record.owner:
        return
    if hasattr(Tensor, name):
        owner = found.owner if found is not None else BUILTIN
        raise RuntimeError(
            f"{record.schema}: Tensor.{name} exists already, from {owner}; {record.owner} may not replace it. "
            "Leave 'method' out of variants=, or rename the op"
        )


def taken(name, present, wanted):
    """Text for a name that two owners want."""
    text = f"{name} is registered already, by {present.owner} at {present.source}:{present.line}"
    if present.owner == wanted.owner:
        return (
            f"{text}; {wanted.source}:{wanted.line} registers it again. Rename one, or give it an overload name; in a "
            f"notebook, take the first one back before: library.undefine('{name}')"
        )
    return (
        f"{text}; {wanted.owner} wants it too, at {wanted.source}:{wanted.line}. Ways out: disable one of the two, "
        f"TINYGRAD_EXT_DISABLE_PLUGINS={present.owner.distribution} or ={wanted.owner.distribution}; uninstall one; or "
        "ask an author to rename the op"
    )
