"""Programs as graphs: `trace` writes a program down while it runs, `script` compiles its source.

The names are PyTorch's; docs/script.md says what script takes.

Nothing is loaded before it is used.
"""

import importlib

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.errors import no_attribute

# name -> the module of this package that has it
_PLACES = {
    **dict.fromkeys(
        (
            "TracerWarning",
            "enable_onednn_fusion",
            "fuser",
            "onednn_fusion_enabled",
            "optimized_execution",
            "set_fusion_strategy",
            "strict_fusion",
        ),
        "switches",
    ),
    **dict.fromkeys(
        ("TopLevelTracedModule", "TracedModule", "TracingCheckError", "is_tracing", "trace", "trace_module"), "tracing"
    ),
    "_state": None,
    "frontend": None,
    **dict.fromkeys(["Future", "_fork", "_wait", "fork", "wait"], "forks"),
    **dict.fromkeys(
        (
            "Attribute",
            "CompilationUnit",
            "Error",
            "Final",
            "RecursiveScriptModule",
            "ScriptFunction",
            "ScriptModule",
            "annotate",
            "export",
            "freeze",
            "ignore",
            "interface",
            "is_scripting",
            "isinstance",
            "optimize_for_inference",
            "run_frozen_optimizations",
            "script_if_tracing",
            "script_method",
            "unused",
        ),
        "script",
    ),
    "script": "script",
    **dict.fromkeys(("_drop", "_unwrap_optional"), "script.markers"),
    "_get_trace_graph": "trace_graph",
    "_unique_state_dict": "saving",
    **dict.fromkeys(("_overload", "_overload_method"), "script.overloads"),
    **dict.fromkeys(("export_opnames", "load", "save"), "saving"),
}
__all__ = sorted(name for name in _PLACES if name[0] != "_")


@boundary
def __getattr__(name):
    if name not in _PLACES:
        raise no_attribute(__name__, name, __all__)
    place = _PLACES[name]
    module = importlib.import_module(f"{__name__}.{place or name}")
    found = module if place is None else getattr(module, name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *_PLACES})
