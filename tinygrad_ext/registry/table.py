"""The tables of ops and modules, and how names are looked up in them. `op_registrar.py` is the way into that of ops."""

import importlib
import sys

from tinygrad_ext.core.call import callables
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.op_tables import functions, methods, ops
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.registry import op_namespace
from tinygrad_ext.tensor import older_calls

namespaces = {}  # "vision" -> op_namespace.Namespace
modules = {}  # "vision::RoIAlign" -> class
module_owners = {}  # class -> ("vision::RoIAlign", Owner)
module_samples = {}  # "vision::RoIAlign" -> function of a Maker, see ModuleRegistrar


def variants(record):
    """Words of: function method inplace out, and function_ for an in-place form that is a public function too."""
    if record.variants is not None:
        return record.variants.split()
    if record.owner != BUILTIN:
        return ["function"]
    kinds = ["function", "method", "inplace", "out"] if record.scalar is not None else ["function", "method"]
    alone = record.scalar is not None and record.schema.split("->")[0].count(" ") == 2
    return kinds + ["function_"] * alone


def prefixes(record):
    """Prefixes of the op's functions below the package: "" at its top, "nn.functional.", "ops.vision."."""
    if record.owner != BUILTIN:
        return [f"ops.{record.schema.partition('::')[0].strip()}."]
    return ["" if w == "." else w + "." for w in (record.where or ".").split()]


def namespace(name):
    """`ops.<name>`. What a plugin declares is loaded; that nobody declares it is told when an op is asked for."""
    if name not in namespaces:
        later("plugins").load_namespace(name)
    return namespaces.get(name) or op_namespace.Namespace(name, _attribute_of_none, names)


def _attribute_of_none(name, op):
    """`ops.<name>.<op>` where nothing was registered in the namespace when it was asked for; it may have been since."""
    if name not in namespaces:
        plugins = later("plugins")
        plugins.load_namespace(name)
        if name not in namespaces:
            raise AttributeError(plugins.why_no_namespace(name))
    return getattr(namespaces[name], op)


def attribute(namespace, name):
    """An op of a namespace that is there in part: another plugin may hold the rest of it."""
    plugins = later("plugins")
    plugins.load_namespace(namespace)
    found = functions.get(f"ops.{namespace}.{name}")
    if found is None:
        raise AttributeError(plugins.why_no_op(namespace, name))
    return found


def builtin_attribute(namespace, name):
    """`ops.aten.<name>`: made when first asked for."""
    found = [o for o in ops.values() if o.schema.name == name and o.record.owner == BUILTIN]
    inplace = not found and name.endswith("_")
    if inplace:
        found = [
            o
            for o in ops.values()
            if o.schema.name == name[:-1] and o.record.owner == BUILTIN and "inplace" in variants(o.record)
        ]
    if not found:
        raise AttributeError(later("plugins").why_no_op(namespace, name))
    made = vars(namespaces[namespace])[name] = op_namespace.packet(name, found, namespace, inplace=inplace)
    return made


def namespace_names():
    """The namespaces that hold ops, and those that a plugin declares."""
    return {*namespaces, *later("plugins").declared()}


def names(namespace):
    """All names of ops of a namespace, for `dir` and near misses."""
    if namespace != "aten":
        return set(vars(namespaces[namespace])) if namespace in namespaces else set()
    own = [o for o in ops.values() if o.record.owner == BUILTIN]
    return {o.schema.name for o in own} | {o.schema.name + "_" for o in own if "inplace" in variants(o.record)}


def find(name):
    """The ops a user may mean by 'exp', 'add.Tensor', 'aten::add.Tensor', 'multiply', 'nn.functional.gelu' or 'add_'.

    Raises LookupError, with near misses.
    """
    found = _find(name)
    if not found:  # a plugin that was not used yet may have it
        later("plugins").load_all()
        found = _find(name)
    if not found:
        import difflib  # lazy: for an error only

        known = {n for o in ops.values() for n in (o.name.partition("::")[2], o.schema.name)}
        near = difflib.get_close_matches(name, sorted({*known, *functions, *methods}), 3)
        hint = f" Near: {', '.join(near)}." if near else " `ops list` prints the names there are."
        raise LookupError(f"no op is called '{name}'.{hint}")
    return found


def _find(name):
    found = [o for o in ops.values() if name in (o.name, o.name.partition("::")[2], o.schema.name)]
    for table, key in ((functions, name), (methods, name.removeprefix("Tensor."))):
        if not found and key in table:
            found = list(table[key].candidates)
    return found


def function_by_path(module, qualname):
    """A public function or method by where it stands; for pickle."""
    if qualname.startswith("Tensor."):
        return getattr(Tensor, qualname[7:])
    if not module.startswith("tinygrad_ext"):
        return getattr(importlib.import_module(module), qualname)
    place = module[len("tinygrad_ext") :].lstrip(".")
    if place.startswith("ops."):
        found = namespace(place[4:])
        for name in qualname.split("."):
            found = getattr(found, name)
        return found
    found = functions.get((place + "." if place else "") + qualname)
    return found or getattr(importlib.import_module(module), qualname)


def why_not_handled(types):
    """What to add to the TypeError for arguments of foreign types: a plugin may be there for them."""
    plugins = sys.modules.get("tinygrad_ext.plugins")  # loaded, if one of the types was asked about
    return plugins.why_not_handled(types) if plugins is not None else ""


callables.set_readers(
    signature_of=lambda f: later("signatures").signature_of(f),
    text_signature_of=lambda f: later("signatures").text_signature_of(f),
    doc_of=lambda f: later("signatures").doc_of(f),
    function_by_path=function_by_path,
    overload_of=op_namespace.overload_of,
    refused_packet=op_namespace.refused,
    why_not_handled=why_not_handled,
    understand=older_calls.understand,
)
