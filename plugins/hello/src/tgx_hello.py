"""The smallest plugin: one op, in ten lines. `pip install` makes it `tinygrad_ext.ops.hello.double`."""

from tinygrad_ext import hookimpl
from tinygrad_ext.ops.samples import unary

requires_api = ">=1,<2"


@hookimpl
def tgx_register_ops(register):
    register(
        "hello::double(Tensor self) -> Tensor",
        compose=lambda self: self + self,
        reference=lambda x: x + x,
        samples=unary,
        doc="Twice each element.",
    )
