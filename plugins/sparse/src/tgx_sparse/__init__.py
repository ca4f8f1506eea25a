"""SciPy's sparse arrays in functions of tinygrad_ext, and `SparseTensor` for gradients by their values."""

__all__ = ["Pattern", "SparseTensor"]


def __getattr__(name):
    """SparseTensor and Pattern, imported when asked for: the hooks do not need SciPy."""
    if name not in __all__:
        raise AttributeError(f"module 'tgx_sparse' has no attribute '{name}'; it has {' and '.join(__all__)}")
    from tgx_sparse import functions

    return getattr(functions, name)
