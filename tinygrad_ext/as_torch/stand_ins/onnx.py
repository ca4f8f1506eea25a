"""torch.onnx: what libraries ask of it; `tinygrad_ext.export` writes ONNX files."""

from . import absent

globals().update(absent.functions("onnx", "export", "write ONNX files with tinygrad_ext.export"))


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Do nothing: what would ask for it is refused."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Do nothing."""


def is_in_onnx_export():
    """False."""
    return False
