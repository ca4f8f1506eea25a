"""torch._vmap_internals: vmap under the name that it had before, for libraries that still ask for it."""

import functools

from tinygrad_ext.func import vmap

__all__ = ["vmap"]


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """`vmap`; None among the results is allowed where that is asked for, and comes out as None."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    @functools.wraps(func)
    def wrapped(*args):
        found = []

        def there(*inner):
            results = func(*inner)
            found[:] = [results]
            listed = results if isinstance(results, tuple) else (results,)
            return tuple(result for result in listed if result is not None)

        if not isinstance(out_dims, int):
            raise NotImplementedError(
                f"torch._vmap_internals._vmap: out_dims is {out_dims}, expected one int where results may be None"
            )
        made = iter(vmap(there, in_dims, out_dims)(*args))
        if not isinstance(found[0], tuple):
            return None if found[0] is None else next(made)
        return tuple(None if result is None else next(made) for result in found[0])

    return wrapped
