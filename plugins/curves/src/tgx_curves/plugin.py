"""The hook: the loops first, then the records that they were compiled from."""

from pathlib import Path

from tinygrad_ext import hookimpl

from . import ops

requires_api = ">=1,<2"


@hookimpl
def tgx_register_ops(register):
    """Fill `tinygrad_ext.ops.curves`."""
    register.loops(Path(__file__).with_name("_loops.so"))
    ops.register_all(register)
