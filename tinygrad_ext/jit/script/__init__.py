"""The script front end: Python source as graphs. docs/script.md says what it takes.

The package has the name of its function, so it can be called as that: whichever of the two `jit.script` is.
"""

import sys
from types import ModuleType

from .api import CompilationUnit, script, script_if_tracing
from .errors import Error
from .freezing import freeze, optimize_for_inference, run_frozen_optimizations
from .interfaces import interface
from .markers import Attribute, Final, annotate, export, ignore, is_scripting, isinstance, unused
from .script_function import ScriptFunction
from .script_module import RecursiveScriptModule, ScriptMethod, ScriptModule, script_method

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptMethod",
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
    "script",
    "script_if_tracing",
    "script_method",
    "unused",
]


class _Package(ModuleType):
    __doc__ = __doc__

    def __call__(self, *args, **kwargs):
        return script(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
