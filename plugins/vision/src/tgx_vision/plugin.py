"""The hooks: what tinygrad_ext calls when the namespace `vision` is first used."""

from tinygrad_ext import hookimpl

requires_api = ">=1,<2"


@hookimpl
def tgx_register_ops(register):
    from tgx_vision import box_ops, region_ops

    region_ops.register_all(register)
    box_ops.register_all(register)


@hookimpl
def tgx_register_modules(register):
    from tgx_vision.modules import RoIAlign, RoIPool, samples

    register("vision::RoIAlign", RoIAlign, samples=samples)
    register("vision::RoIPool", RoIPool, samples=samples)
