"""PyTorch's place of Module and of the hooks that watch all modules.

Their tables have PyTorch's private names here. Programs put an empty dict in their place to be rid of all hooks: the
table that calls look at takes its contents, for it stays the same.
"""

import sys
import types

from .. import hooks
from ..hooks import (  # noqa: F401
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from ..module import Module
from ..registration import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ..registry import HookTable
from ..state import EXTRA as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401 - libraries import it from here
from ..state import _IncompatibleKeys  # noqa: F401 - as well

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_TABLES = {name: table for name, table in vars(hooks).items() if isinstance(table, HookTable)}


_set_aside = {}  # what a table held when another was put in its place, until it is put back


class _Place(types.ModuleType):
    def __setattr__(self, name, value):
        if name not in _TABLES:
            return super().__setattr__(name, value)
        table, entries = _TABLES[name], dict(value)
        if value is table:
            entries = _set_aside.pop(name, entries)
        else:
            _set_aside.setdefault(name, dict(table))
        table.clear()
        table.update(entries)


sys.modules[__name__].__class__ = _Place
