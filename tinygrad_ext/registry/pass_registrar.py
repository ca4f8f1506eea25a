"""The one way for plugins to add passes over graphs."""

from typing import NamedTuple

from tinygrad_ext.ops.record import Owner


class Registered(NamedTuple):
    """A pass and who brought it."""

    value: object
    owner: Owner


passes: dict = {}  # "namespace::name" -> Registered


class PassRegistrar:
    """Adds passes in the name of a scope's owner: register("demo::gates", object with run(graph))."""

    def __init__(self, to):
        self.scope = to

    def __call__(self, name, value):
        """Let `graph.passes.optimize` run a pass before the package's own.

        Args:
            name: "namespace::name", in a namespace that the distribution declares.
            value: an object with run(graph), which changes the graph and keeps its results to the bit.

        Raises ValueError for another name, TypeError for what has no run, RuntimeError for a name that is taken.
        """
        if self.scope is None:
            raise RuntimeError(f"{name}: `register` is for use inside the hook only, which is over")
        namespace, colons, rest = name.partition("::") if isinstance(name, str) else ("", "", "")
        if not colons or not rest or (self.scope.namespaces is not None and namespace not in self.scope.namespaces):
            own = ", ".join(f"'{n}::...'" for n in self.scope.namespaces or ()) or "'namespace::name'"
            raise ValueError(f"a pass is registered as {own}, not {name!r}")
        if isinstance(value, type) or not callable(getattr(value, "run", None)):
            raise TypeError(f"{name}: a pass is an object with run(graph), and {value!r} is none; give an instance")
        if name in passes:
            raise RuntimeError(f"the pass {name} is registered by {passes[name].owner} already")
        self.scope.put(passes, name, Registered(value, self.scope.owner))

    def close(self):
        """Refuse whatever comes after the end of the hook."""
        self.scope = None
