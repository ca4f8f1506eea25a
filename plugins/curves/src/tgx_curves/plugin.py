"""The hooks: the loops first, then the records that they were compiled from, then the pass that puts an op to use."""

from pathlib import Path

from tinygrad_ext import hookimpl

from . import ops

requires_api = ">=1,<2"


@hookimpl
def tgx_register_ops(register):
    """Fill `tinygrad_ext.ops.curves`."""
    register.loops(Path(__file__).with_name("_loops.so"))
    ops.register_all(register)


@hookimpl
def tgx_register_passes(register):
    """Let graphs call `curves::bend` where a program spells it out."""
    from .passes import Bends

    register("curves::bends", Bends())
