"""What a node of an op takes and gives in a graph, read off the op's schema.

As the schema says, with two differences, because a graph has no effects: for each argument that the op writes to there
is one more output, its new value; and where the generator is a value there is one for its new state, the last.
"""

from collections import namedtuple

from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.registry import table

from .ir import Value
from .types import GENERATOR, of_schema

# args, returns: types; writes: positions of arguments that are written to; generator: of the generator, or None;
# inplace: it is the form that writes to its first argument and returns it, in graphs with effects; asks_grad: of
# requires_grad, or None; random: it draws, or gives what nobody has set; draws: it may do so from the default
# generator, and has no argument that is one; shares: a result may show an argument's memory; whole: a composite that
# reads elements, so that a capture cannot open it; devices: positions of arguments that are devices
Signature = namedtuple(
    "Signature", "op args returns writes generator inplace asks_grad random draws shares whole devices"
)
# kinds of kernels whose results are memory of their own where the schema says nothing else
_FRESH = {"pointwise", "kernel", "boxed"}
_found = {}  # name -> (Signature, name of the overload that the op is found by)


def op_of(name):
    """The Op of an overload's name, or of its in-place form's; its plugin is loaded where it is not yet.

    Raises LookupError where nobody has it.
    """
    found = ops.get(name) or _inplace_of(name)
    if found is None:
        namespace, _, rest = name.partition("::")
        table.namespace(namespace)  # loads the plugin that declares it, and no other
        found = ops.get(name)
        if found is None:
            raise LookupError(f"no op has the overload '{name}'. {_why_not(namespace, rest.partition('.')[0])}")
    return found


def _why_not(namespace, name):
    plugins = later("plugins")
    known = namespace in table.namespaces
    return plugins.why_no_op(namespace, name) if known else plugins.why_no_namespace(namespace)


def _inplace_of(name):
    """The Op whose in-place form this is a name of ("aten::add_.Tensor"), or None."""
    base, dot, overload = name.partition(".")
    found = ops.get(base[:-1] + dot + overload) if base.endswith("_") and name not in ops else None
    return found if found is not None and "inplace" in table.variants(found.record) else None


def signature_of(name):
    """The Signature of an op's node."""
    known = _found.get(name)
    if known is not None and ops.get(known[1]) is known[0].op:
        return known[0]
    written = _inplace_of(name)
    op = written or op_of(name)
    schema = op.schema
    generator = next((i for i, a in enumerate(schema.args) if a.type == "Generator"), None)
    writes = tuple(i for i, a in enumerate(schema.args) if a.is_write)
    returns = tuple(of_schema(r) for r in schema.returns)
    asks = next((i for i, a in enumerate(schema.args) if a.name == "requires_grad"), None)
    tags = set((op.record.tags or "").split())
    draws = generator is None and bool({"draws", "random", "nondeterministic_seeded"} & tags)
    random = generator is not None or draws or "unset" in tags
    shows = any(r.alias for r in schema.returns)
    shares = op.is_view_op or op.kernel_kind not in _FRESH or shows
    whole = op.record.compose is not None and "data_dependent" in tags and not shows
    args = tuple(map(of_schema, schema.args))
    devices = tuple([i for i, a in enumerate(schema.args) if a.type == "Device"])
    inplace = written is not None
    found = Signature(op, args, returns, writes, generator, inplace, asks, random, draws, shares, whole, devices)
    _found[name] = found, op.name
    return found


def _written(declared, arg):
    """Type of an argument that was written to: of one that may be None and is none, its own."""
    return arg.type if declared.word == "Optional" and isinstance(arg, Value) else declared


def output_types(signature, args):
    """Types of the outputs of a node with these arguments."""
    if not signature.writes and signature.generator is None:
        return signature.returns
    types = [*signature.returns, *(_written(signature.args[i], args[i]) for i in signature.writes)]
    if signature.generator is not None and isinstance(args[signature.generator], Value):
        types.append(GENERATOR)
    return tuple(types)
