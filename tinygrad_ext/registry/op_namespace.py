"""`ops.<namespace>`: the ops of a namespace by name, `ops.vision.roi_align`, and their overloads, `.default`."""

from tinygrad_ext import ops
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpFunction, OpPacket, enable_vectorcall


@boundary
class Namespace:
    """Ops of one namespace, as attributes. `dir()` lists all of them."""

    __slots__ = ("__dict__", "__weakref__", "_tgx_find", "_tgx_name", "_tgx_names")

    def __init__(self, name, find, names):
        """find(namespace, name): an op that is no attribute yet, or AttributeError; names(namespace): all of them."""
        object.__setattr__(self, "_tgx_name", name)
        object.__setattr__(self, "_tgx_find", find)
        object.__setattr__(self, "_tgx_names", names)

    def __getattr__(self, name):
        if name.startswith("__") and name not in dir(self):  # Python's own questions load nothing
            raise AttributeError(name)
        return self._tgx_find(self._tgx_name, name)

    def __dir__(self):
        return sorted(self._tgx_names(self._tgx_name))

    def __repr__(self):
        return f"<ops of namespace '{self._tgx_name}'>"

    def __setattr__(self, name, value):
        raise AttributeError(
            f"ops.{self._tgx_name} is filled by registering '{self._tgx_name}::{name}', in a hook, with a registrar or "
            "with tinygrad_ext.library"
        )

    def __reduce__(self):
        return _by_name, (self._tgx_name,)


def _by_name(name):
    return getattr(ops, name)


class OpOverload(OpFunction):
    """`ops.aten.add.Tensor`, `ops.vision.roi_align.default`: a function that takes one overload of an op only."""

    def __init__(self, packet, op):
        inplace = packet.__name__ != op.schema.name and packet.__name__.endswith("_")
        super().__init__(packet.__name__, [op], module=packet.__module__, owner=packet.owner, inplace=inplace)
        self.__qualname__ = f"{packet.__name__}.{self._overloadname}"
        self.overloadpacket = packet

    __doc__ = vars(OpFunction)["__doc__"]  # the instances' property, which this class's docstring would hide

    def name(self):
        """The op's identity, "aten::add.Tensor"."""
        return self.candidates[0].name

    @property
    def namespace(self):
        """The part of the name before "::"."""
        return self.candidates[0].schema.namespace

    @property
    def _schema(self):
        return self.candidates[0].schema

    @property
    def _overloadname(self):
        return self.candidates[0].schema.overload or "default"

    @property
    def tags(self):
        """What is said about the op, as a list of `library.Tag`."""
        from tinygrad_ext.registry.tags import Tag  # lazy: few ask, and it brings `enum`

        return [Tag[word] for word in (self.candidates[0].record.tags or "").split() if word in Tag.__members__]

    def __str__(self):
        return f"{self.namespace}.{self.__qualname__}"


enable_vectorcall(OpOverload)


class OutOverload(OpOverload):
    """`ops.aten.add.out`: the form of one overload that writes to ``out=``, which has to be given."""

    def __init__(self, packet, op):
        super().__init__(packet, op)
        self._overloadname = out_name(packet, op)
        self.__qualname__ = f"{packet.__name__}.{self._overloadname}"

    _overloadname = None


enable_vectorcall(OutOverload)


def out_name(packet, op):
    """The first form of an op that writes to a target is called "out", another has its overload's name before that."""
    return "out" if op is packet.candidates[0] or not op.schema.overload else f"{op.schema.overload}_out"


class OpArgumentError(RuntimeError, TypeError):
    """Arguments that no overload of `ops.<namespace>.<op>` takes; the same call of a function is a TypeError alone."""


def refused(ops, count, keywords, error):
    """The error for a call of `ops.<namespace>.<op>` that no overload takes: why each does not, behind what a function
    of this name says. count: how many positional arguments were given."""
    lines = [f"{_why_not(op.schema, count, keywords)} Declaration: {op.schema}" for op in ops]
    made = OpArgumentError("\n".join([error.args[0], *dict.fromkeys(lines)]))
    made.__dict__.update(vars(error))
    return made


def _why_not(schema, count, keywords):
    name, args = f"{schema.namespace}::{schema.name}()", schema.args
    most = sum(not a.kwarg_only for a in args)
    if count > len(args):
        return f"{name} expected at most {len(args)} argument(s) but received {count} argument(s)."
    if count > most:
        return f"{name} takes {most} positional argument(s) but {count} were given."
    unknown = next((k for k in keywords if k not in [a.name for a in args]), None)
    if unknown is not None:
        return f"Unknown keyword argument '{unknown}' for operator '{name[:-2]}'."
    rest = [a for a in args[min(count, most) :] if not a.has_default and a.name not in keywords]
    return f"{name} is missing value for argument '{rest[0].name}'." if rest else f"{name} takes other types."


def packet(name, ops, namespace, *, inplace=False):
    """The callable over the overloads of one op."""
    record = ops[0].record
    return OpPacket(name, ops, module=f"tinygrad_ext.ops.{namespace}", owner=record.owner, inplace=inplace)


def _of_another_name(packet, name):
    """The overload that does what PyTorch's of this name does, and is the one that modes see; or None.

    A tensor's op takes a number too, and `empty` has one way to be called.
    """
    known = {op.schema.overload: op for op in packet.candidates}
    if name.startswith("Scalar"):
        return known.get(name.replace("Scalar", "Tensor")) or (
            known.get("self") if packet.__name__ == "where" else None
        )
    return known.get("") if name == "memory_format" and packet.__name__ == "empty" else None


def overload_of(packet, name):
    """packet.<name>: a callable that takes one overload only."""
    for op in packet.candidates:
        if (op.schema.overload or "default") == name:
            fn = OpOverload(packet, op)
            setattr(packet, name, fn)
            return fn
    for op in packet.candidates if name.endswith("out") else ():
        if op.writes_out and out_name(packet, op) == name:
            fn = OutOverload(packet, op)
            setattr(packet, name, fn)
            return fn
    if name.startswith("__"):
        raise AttributeError(f"'{type(packet).__name__}' object has no attribute '{name}'")
    found = _of_another_name(packet, name)
    if found is not None:
        return overload_of(packet, found.schema.overload or "default")
    found = of_pytorch and of_pytorch[-1](packet, name)
    if not found:
        raise AttributeError(f"{packet!r} has no overload '{name}'; it has {', '.join(packet.overloads())}")
    return found


of_pytorch = []  # under the alias: what stands for overloads of an op that are none here
