"""Jacobians and Hessians: products with the rows or columns of the identity, all in one vmap."""

import functools

from tinygrad_ext.autograd.modes import enable_grad
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.registry import functions
from tinygrad_ext.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .reverse import Pass, split_aux
from .vmap import vmap


@boundary
def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """The Jacobian of a function, row by row: best where it has fewer outputs than inputs.

    Arguments:
        func: function of tensors, in containers too, that returns tensors.
        argnums: which argument to differentiate by: a number, or a tuple of them, for which a tuple is returned.
        has_aux: func returns (output, others), and the result is (jacobian, others).
        chunk_size: so many rows are computed at once; None: all.

    Returns a function of the same arguments. For each output there is what belongs to the inputs, in their structure,
    with the shape of the output followed by that of the input.

    Example::

        jacrev(torch.sin)(torch.rand(3))                               # (3, 3), diagonal
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @boundary
    def wrapped(*args, **kwargs):
        task = Pass()
        with enable_grad():
            inputs, spec, given = task.arguments(func, argnums, args, "jacrev")
            output, aux = split_aux(func(*given, **kwargs), has_aux, "jacrev")
            aux = tree_map(task.released, aux)
            flat, made = _tensors(output, "jacrev")
            blocks = [_rows(task, o, inputs, chunk_size) for o in flat]
        found = tree_unflatten([_chosen(tree_unflatten(b, spec), argnums) for b in blocks], made)
        return (found, aux) if has_aux else found

    return functools.update_wrapper(wrapped, func, updated=())


def _tensors(output, who):
    flat, spec = tree_flatten(output)
    for o in flat:
        if not isinstance(o, Tensor):
            raise RuntimeError(
                f"{who}: Expected f(*primals) to return only tensors, got unsupported type {type(o).__name__}"
            )
    return flat, spec


def _chosen(parts, argnums):
    return parts[0] if isinstance(argnums, int) else tuple(parts)


def _rows(task, output, inputs, chunk_size):
    """The Jacobian of one output by each input."""
    count = output.numel()
    if not count:
        return [x.new_zeros((*output.shape, *x.shape)) for x in inputs]
    basis = functions["eye"](count, dtype=output.dtype, device=output.device).reshape(count, *output.shape)

    def row(seed):
        return tuple(task.gradients([output], inputs, [seed], keep=True))

    blocks = vmap(row, chunk_size=chunk_size)(basis)
    return [b.reshape(*output.shape, *x.shape) for b, x in zip(blocks, inputs)]
