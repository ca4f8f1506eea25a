"""The one way for plugins to receive what profiles record."""

from typing import NamedTuple

from tinygrad_ext.ops.record import Owner


class Registered(NamedTuple):
    """A receiver and who brought it."""

    value: object
    owner: Owner


receivers: dict = {}  # "namespace::name" -> Registered


class ProfilerRegistrar:
    """Adds receivers in the name of a scope's owner: register("demo::count", receive)."""

    def __init__(self, to):
        self.scope = to

    def __call__(self, name, receive):
        """Let `profiler.receiver(name, ...)` hand the events of each recording to a function.

        Args:
            name: "namespace::name", in a namespace that the distribution declares.
            receive: called as receive(events, *args, **kwargs) with an EventList and what the user has given to
                `profiler.receiver` besides the name.

        Raises ValueError for another name, TypeError for what cannot be called, RuntimeError for a name that is taken.
        """
        if self.scope is None:
            raise RuntimeError(f"{name}: `register` is for use inside the hook only, which is over")
        namespace, colons, rest = name.partition("::") if isinstance(name, str) else ("", "", "")
        if not colons or not rest or (self.scope.namespaces is not None and namespace not in self.scope.namespaces):
            own = ", ".join(f"'{n}::...'" for n in self.scope.namespaces or ()) or "'namespace::name'"
            raise ValueError(f"a receiver of profiles is registered as {own}, not {name!r}")
        if not callable(receive):
            raise TypeError(f"{name}: a receiver is a function receive(events, ...), and {receive!r} is none")
        if name in receivers:
            raise RuntimeError(f"the receiver {name} is registered by {receivers[name].owner} already")
        self.scope.put(receivers, name, Registered(receive, self.scope.owner))

    def close(self):
        """Refuse whatever comes after the end of the hook."""
        self.scope = None
