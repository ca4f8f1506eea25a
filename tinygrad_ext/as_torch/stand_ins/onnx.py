"""torch.onnx: what libraries ask of it; `tinygrad_ext.export` writes ONNX files."""

from . import absent

globals().update(
    absent.functions("onnx", "export register_custom_op_symbolic", "write ONNX files with tinygrad_ext.export")
)


def is_in_onnx_export():
    """False."""
    return False
