"""vmap: a function of one sample applied to a batch."""

import functools
from itertools import accumulate

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.random import get_rng_state, set_rng_state
from tinygrad_ext.registry import functions
from tinygrad_ext.utils._pytree import _broadcast_to_and_flatten
from tinygrad_ext.utils._trees import flattened, unflatten

from .batch import Batch

_MODES = ("error", "different", "same")


@boundary
def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """`func` over one dimension of its arguments: a function of batches, each of whose ops runs once for all samples.

    Arguments:
        func: function of tensors, in containers too, that returns tensors. Inside it they show the shape of one sample.
        in_dims: the dimension to map over: one number, or one for each argument in the same structure; None for what
            all samples share.
        out_dims: where the batch stands in the results: one number, or one for each.
        randomness: "error": drawing numbers raises; "different": each sample draws its own; "same": all get the same.
        chunk_size: carry out so many samples at once, to need less memory; None: all.

    Returns a function of the same arguments. It raises ValueError where in_dims or out_dims do not fit the arguments or
    results, and RuntimeError for what depends on the values of one sample: `if`, `.item()`, `nonzero`.

    Example::

        rows = vmap(torch.dot)(torch.rand(5, 3), torch.rand(5, 3))         # 5 dot products
    """
    _check_mode(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = _name_of(func)

    @boundary
    def wrapped(*args, **kwargs):
        _check_out_dims(out_dims, name)
        size, dims, flat, spec = _mapped(in_dims, args, name)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, dims, flat, spec, out_dims, randomness, kwargs, name)
        return _in_chunks(func, size, dims, flat, spec, out_dims, randomness, kwargs, name, chunk_size)

    return functools.update_wrapper(wrapped, func, updated=())


def _check_mode(randomness):
    if randomness not in _MODES:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def _name_of(func):
    if isinstance(func, functools.partial):
        return f"functools.partial({_name_of(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


# ---- arguments -----------------------------------------------------------------------------------------------------


def _mapped(in_dims, args, name):
    """(size of the batch, dimension or None of each leaf, leaves, their structure)."""
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) "
            f"tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if type(in_dims) is int and all([isinstance(x, Tensor) for x in args]):
        flat, spec, dims = args, None, [in_dims] * len(args)  # as most calls are
    else:
        flat, spec = flattened(args)
        dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of "
            f"`inputs`. in_dims has structure {flattened(in_dims)[1]} but inputs has structure {spec}."
        )
    sizes = []
    for i, (value, dim) in enumerate(zip(flat, dims)):
        if dim is None:
            continue
        rank = value.dim() if isinstance(value, Tensor) else 0
        if type(dim) is not int or not -rank <= dim < rank:
            _refuse_in_dim(value, dim, f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for ")
        if dim < 0:
            dims[i] = dim + rank
        sizes.append(value.size(dim))
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if sizes.count(sizes[0]) < len(sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0], dims, flat, spec


def _refuse_in_dim(value, dim, said):
    if not isinstance(dim, int):
        raise ValueError(f"{said}an input but in_dim must be either an integer dimension or None.")
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{said}an input but the input is of type {type(value)}. We cannot vmap over non-Tensor arguments, please "
            "use None as the respective in_dim"
        )
    raise ValueError(
        f"{said}some input, but that input is a Tensor of dimensionality {value.dim()} so expected in_dim to satisfy "
        f"-{value.dim()} <= in_dim < {value.dim()}."
    )


def _check_out_dims(out_dims, name):
    if type(out_dims) is int:
        return
    for dim in flattened(out_dims)[0]:
        if not (dim is None or isinstance(dim, int)):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                "ints representing where in the outputs the vmapped dimension should appear."
            )


# ---- the call ------------------------------------------------------------------------------------------------------


def over_rows(func, rows, chunk_size=None, randomness="error"):
    """vmap(func)(*rows) for the library itself, of tensors that have the batch in front."""
    _check_mode(randomness)
    size, dims = rows[0].shape[0], [0] * len(rows)
    if chunk_size is None or chunk_size >= size:
        return _run(func, size, dims, rows, None, 0, randomness, {}, "rows")
    return _in_chunks(func, size, dims, rows, None, 0, randomness, {}, "rows", chunk_size)


def _run(func, size, dims, flat, spec, out_dims, randomness, kwargs, name):
    with Batch(size, randomness) as level:
        shown = [x if dim is None else level.wrap(x.movedim(dim, 0) if dim else x) for x, dim in zip(flat, dims)]
        result = func(*(shown if spec is None else unflatten(shown, spec)), **kwargs)
        if type(out_dims) is int and isinstance(result, Tensor):
            return _taken_out(level, result, out_dims, name)
        results, made = flattened(result)
        return unflatten(
            [_taken_out(level, r, dim, name) for r, dim in zip(results, _out_dims(out_dims, made, name))], made
        )


def _out_dims(out_dims, spec, name):
    if spec.is_leaf() and type(out_dims) is tuple and len(out_dims) == 1:
        return out_dims
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {flattened(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _taken_out(level, result, dim, name):
    """A result with its batch at dimension `dim`."""
    if dim is None:
        if level.owns(result):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return result
    if not isinstance(result, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    whole = level.whole(result)
    if dim == 0:
        return whole
    rank = whole.dim()
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return whole.movedim(0, dim)


def _in_chunks(func, size, dims, flat, spec, out_dims, randomness, kwargs, name, chunk_size):
    ends = list(accumulate([chunk_size] * (size // chunk_size)))
    if size % chunk_size:
        ends.append(size)
    state = get_rng_state() if randomness == "same" else None
    rows, made, start = [], None, 0
    for end in ends:
        if state is not None:
            set_rng_state(state)
        part = [x if dim is None else x.narrow(dim, start, end - start) for x, dim in zip(flat, dims)]
        found, made = flattened(_run(func, end - start, dims, part, spec, out_dims, randomness, kwargs, name))
        rows.append(found)
        start = end
    places = _out_dims(out_dims, made, name)
    join = functions["cat"]
    return unflatten(
        [parts[0] if dim is None else join(list(parts), dim) for parts, dim in zip(zip(*rows), places)], made
    )
