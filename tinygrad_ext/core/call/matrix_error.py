"""The exception for matrices, which is `linalg.LinAlgError` for users."""


class LinAlgError(RuntimeError):
    """A matrix is not of the kind that an op needs, as a singular one for solve."""


LinAlgError.__module__ = "tinygrad_ext.linalg"
