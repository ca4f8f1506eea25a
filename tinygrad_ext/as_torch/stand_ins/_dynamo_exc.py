"""torch._dynamo.exc: what programs catch around `compile`."""

from tinygrad_ext.graph.aliases import CaptureError as Unsupported
from tinygrad_ext.jit.compiling import BackendCompilerFailed

__all__ = ["BackendCompilerFailed", "InternalTorchDynamoError", "TorchDynamoException", "Unsupported"]
TorchDynamoException = InternalTorchDynamoError = RuntimeError  # all of them are such
