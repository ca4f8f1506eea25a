"""Receivers: what plugins have registered to take the events of recordings."""

from tinygrad_ext import plugins
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.registry.profiler_registrar import receivers


@boundary
def receiver(name, /, *args, **kwargs):
    """For on_trace_ready: a function that hands the events of each recording to a plugin's receiver.

    Args:
        name: "namespace::name"; the plugin is loaded if it was not. The others go to the receiver behind the events.

    Raises ValueError for a name that no plugin has registered. The hook is `tgx_register_profilers`.
    """
    namespace, colons, _ = name.partition("::")
    if name not in receivers and colons:
        plugins.load_namespace(namespace)
    if name not in receivers:
        known = ", ".join(sorted(receivers)) or "none is loaded"
        raise ValueError(
            f"receiver: no plugin has registered {name!r}; there are: {known}. A plugin adds one by the hook "
            "tgx_register_profilers"
        )
    receive = receivers[name].value
    return lambda prof: receive(prof.events(), *args, **kwargs)
