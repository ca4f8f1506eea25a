"""`ops.<namespace>`: the ops of a namespace by name, `ops.vision.roi_align`, and their overloads, `.default`."""

from tinygrad_ext.core.callables import OpFunction, OpPacket


class Namespace:
    """Ops of one namespace, as attributes. `dir()` lists all of them."""

    __slots__ = ("__dict__", "__weakref__", "_tgx_find", "_tgx_name")

    def __init__(self, name, find):
        """name: of the namespace. find(namespace, name): an op that is no attribute yet, or AttributeError."""
        object.__setattr__(self, "_tgx_name", name)
        object.__setattr__(self, "_tgx_find", find)

    def __getattr__(self, name):
        if name.startswith("__") and name not in dir(self):  # Python's own questions load nothing
            raise AttributeError(name)
        return self._tgx_find(self._tgx_name, name)

    def __dir__(self):
        from tinygrad_ext import registry

        return sorted(registry.names(self._tgx_name))

    def __repr__(self):
        return f"<ops of namespace '{self._tgx_name}'>"

    def __setattr__(self, name, value):
        raise AttributeError(
            f"ops.{self._tgx_name} is filled by registering '{self._tgx_name}::{name}', in a hook or with a registrar"
        )

    def __reduce__(self):
        return _by_name, (self._tgx_name,)


def _by_name(name):
    from tinygrad_ext import ops

    return getattr(ops, name)


def packet(name, ops, namespace, *, inplace=False):
    """The callable over the overloads of one op."""
    record = ops[0].record
    return OpPacket(
        name, ops, module=f"tinygrad_ext.ops.{namespace}", doc=record.doc, owner=record.owner, inplace=inplace
    )


def overload_of(packet, name):
    """packet.<name>: a callable that takes one overload only."""
    for op in packet.overloads:
        if (op.schema.overload or "default") == name:
            inplace = packet.__name__ != op.schema.name and packet.__name__.endswith("_")
            fn = OpFunction(
                packet.__name__, [op], module=packet.__module__, doc=packet.__doc__, owner=packet.owner, inplace=inplace
            )
            fn.__qualname__ = f"{packet.__name__}.{name}"
            setattr(packet, name, fn)
            return fn
    if name.startswith("__"):
        raise AttributeError(f"'{type(packet).__name__}' object has no attribute '{name}'")
    known = ", ".join(op.schema.overload or "default" for op in packet.overloads)
    raise AttributeError(f"{packet!r} has no overload '{name}'; it has {known}")
