"""What type checkers know of `tinygrad_ext.ops`: `tinygrad_ext.ops.<namespace>`.

`tinygrad-ext stubs` writes the package tinygrad_ext_plugin_ops, with the ops of the plugins that are installed. Without
it, and for what it does not hold, everything goes.
"""

from typing import Any

from tinygrad_ext_plugin_ops import *  # type: ignore[import-not-found, unused-ignore]

def __getattr__(name: str) -> Any: ...
