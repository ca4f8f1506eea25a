"""The hook: what tinygrad_ext calls when the namespace `gates` is first used."""

from tinygrad_ext import hookimpl

requires_api = ">=1,<2"


@hookimpl
def tgx_register_ops(register):
    """Fill `tinygrad_ext.ops.gates`."""
    from tgx_gates import ops

    ops.register_all(register)
