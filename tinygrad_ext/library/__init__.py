"""Ops from Python functions, by PyTorch's names: custom_op, Library, register_autograd and the rest; see README.md."""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.call.later import later as _later
from tinygrad_ext.library.absent import register_torch_dispatch, wrap_triton
from tinygrad_ext.library.autocast import register_autocast
from tinygrad_ext.library.definition import CustomOpDef, custom_op, triton_op, undefine
from tinygrad_ext.library.fake import get_ctx
from tinygrad_ext.library.infer import infer_schema
from tinygrad_ext.library.libraries import (
    Library,
    define,
    fallthrough_kernel,
    impl,
    register_autograd,
    register_device,
    register_dtype,
    register_fake,
    register_jvp,
    register_kernel,
    register_vmap,
)
from tinygrad_ext.registry.tags import Tag

impl_abstract = register_fake  # its old name


@_boundary
def __getattr__(name):
    if name != "opcheck":
        raise AttributeError(f"module 'tinygrad_ext.library' has no attribute '{name}'")
    return _later("opcheck").opcheck


__all__ = [
    "CustomOpDef",
    "Library",
    "Tag",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_device",
    "register_dtype",
    "register_fake",
    "register_jvp",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "undefine",
    "wrap_triton",
]
