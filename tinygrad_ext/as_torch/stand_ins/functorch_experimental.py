"""functorch.experimental."""

import functools

from tinygrad_ext.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_, vmap
from tinygrad_ext.func.vmap import _mapped

replace_all_batch_norm_modules = replace_all_batch_norm_modules_


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """vmap in so many passes, to need less memory."""
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func)
    def chunked(*args, **kwargs):
        size = _mapped(in_dims, args, getattr(func, "__name__", repr(func)))[0]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=-(-size // chunks))(*args, **kwargs)

    return chunked


__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
