"""Jacobians and Hessians: products with the rows or columns of the identity, all in one vmap."""

import functools

from tinygrad_ext.autograd.modes import recording
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.registry import functions
from tinygrad_ext.utils._pytree import tree_map
from tinygrad_ext.utils._trees import flattened, unflatten

from .differentiation import Differentiation, checked_input, positions
from .forward import jvp
from .reverse import check_outputs, split_aux
from .vmap import over_rows


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
    _check_chunk(chunk_size, "jacrev")

    @boundary
    def wrapped(*args, **kwargs):
        task = Differentiation()
        with recording():
            inputs, spec, given = task.arguments(func, argnums, args, "jacrev")
            output, aux = split_aux(func(*given, **kwargs), has_aux, "jacrev")
            aux = tree_map(task.released, aux)
            flat, made = _tensors(output, "jacrev")
            blocks = [_rows(task, o, inputs, chunk_size) for o in flat]
        found = unflatten([_chosen(unflatten(b, spec), argnums) for b in blocks], made)
        return (found, aux) if has_aux else found

    return functools.update_wrapper(wrapped, func, updated=())


def _check_chunk(size, who):
    if not (size is None or size > 0):
        raise ValueError(f"{who}: `chunk_size` should be greater than 0, or None for all, got {size}")


def _tensors(output, who):
    flat, spec = flattened(output)
    check_outputs(flat, f"{who} by vjp(f, *primals)")
    return flat, spec


def _chosen(parts, argnums):
    return parts[0] if isinstance(argnums, int) else tuple(parts)


def _rows(task, output, inputs, chunk_size):
    """The Jacobian of one output by each input."""
    count = output.numel()
    if not count:
        return [x.new_zeros((*output.shape, *x.shape)) for x in inputs]
    if not output.dim() and not output.is_complex():
        return task.gradients([output], inputs, keep=True)
    basis = functions["eye"](count, dtype=output.dtype, device=output.device).reshape((count, *output.shape))

    def row(seed):
        return tuple(task.gradients([output], inputs, [seed], keep=True))

    blocks = over_rows(row, [basis], chunk_size)
    return [b.reshape((*output.shape, *x.shape)) for b, x in zip(blocks, inputs)]


@boundary
def jacfwd(func, argnums=0, has_aux=False, *, chunk_size=None, randomness="error"):
    """The Jacobian of a function, column by column, by forward mode: best where it has fewer inputs than outputs.

    Arguments as for `jacrev`; randomness: what random ops in it do, as for `vmap`.
    """
    _check_chunk(chunk_size, "jacfwd")

    @boundary
    def wrapped(*args, **kwargs):
        chosen = positions(argnums, len(args))
        flat, spec = flattened([args[i] for i in chosen])
        inputs = [checked_input(x, "jacfwd") for x in flat]
        sizes = [x.numel() for x in inputs]

        def column(*tangents):
            def of_inputs(*parts):
                given = list(args)
                for i, part in zip(chosen, unflatten(parts, spec)):
                    given[i] = part
                return func(*given, **kwargs)

            found = jvp(of_inputs, tuple(inputs), tangents, has_aux=has_aux)
            if not has_aux:
                return found[1], []
            leaves, others[:] = flattened(found[2])[0], [found[2]]
            return found[1], [leaf for leaf in leaves if isinstance(leaf, Tensor)]

        others = []
        got = over_rows(column, _basis(inputs, sizes), chunk_size, randomness)
        flat_out, made = flattened(got[0])
        blocks = [_split_columns(o, inputs, sizes) for o in flat_out]
        found = unflatten([_chosen(unflatten(b, spec), argnums) for b in blocks], made)
        return (found, _first_rows(others[0], got[1])) if has_aux else found

    return functools.update_wrapper(wrapped, func, updated=())


def _first_rows(tree, stacked):
    """A tree with the first row of each stacked tensor in the place of its tensors: all rows are the same."""
    rows = iter(stacked)
    return tree_map(lambda leaf: next(rows)[0] if isinstance(leaf, Tensor) else leaf, tree)


def _basis(inputs, sizes):
    """For each input the rows of the identity over all of them that belong to it."""
    total, at, rows = sum(sizes), 0, []
    for x, size in zip(inputs, sizes):
        whole = functions["eye"](total, dtype=x.dtype, device=x.device)
        rows.append((whole.narrow(1, at, size) if size < total else whole).reshape((total, *x.shape)))
        at += size
    return rows


def _split_columns(columns, inputs, sizes):
    """(all, *output) as one block (*output, *input) for each input."""
    moved = columns.movedim(0, -1)
    parts = moved.split(sizes, -1) if len(sizes) > 1 else [moved]
    return [p.reshape((*columns.shape[1:], *x.shape)) for p, x in zip(parts, inputs)]


@boundary
def hessian(func, argnums=0):
    """The matrix of second derivatives of a function, by forward mode over reverse mode.

    Arguments and structure as for `jacrev`, which it is twice.

    Example::

        hessian(lambda x: x.sin().sum())(torch.rand(3))                # (3, 3), diagonal
    """
    return jacfwd(jacrev(func, argnums), argnums)
