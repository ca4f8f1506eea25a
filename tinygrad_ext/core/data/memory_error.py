"""The exception for memory that there is not."""


class AllocationError(MemoryError, RuntimeError):
    """No memory for a tensor, or for what an op keeps while it works: PyTorch's RuntimeError, Python's MemoryError."""
