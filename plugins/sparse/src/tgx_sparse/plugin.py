"""The hooks. The overrides are loaded when a type of scipy.sparse first reaches a function of tinygrad_ext, the ops
when one of them is first used."""

from tinygrad_ext import hookimpl

requires_api = ">=1,<2"


@hookimpl
def tgx_register_ops(register):
    from tgx_sparse import products

    products.register_all(register)


@hookimpl
def tgx_register_overrides(register):
    from tgx_sparse.functions import handle

    register("scipy.sparse", handle)
