"""Tensors of which only some elements are stored: places and values, PyTorch's layout `sparse_coo`.

A SparseTensor is a wrapper without memory of its own around two plain tensors. What is done with one is written with
ops on its values (handlers.py), so gradients reach the values and what they were made of; the wrapper itself records
nothing. What is in no table of handlers raises NotImplementedError and says so.
"""

import copy
import functools
import math
import operator

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import sparse_coo, sparse_csc, sparse_csr
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.overrides import DisableTorchFunctionSubclass, _EnableTorchFunction

__all__ = ["SparseTensor", "sparse_coo_tensor"]

HANDLERS = {}  # name of a function -> what it does here; handlers.py fills it
_PASSED = {"size", "dim", "numel", "is_floating_point", "is_complex", "__get__", "__set__", "__len__", "data_ptr"}


class SparseTensor(Tensor):
    """Values at the places ``indices``, zero elsewhere. Made by `sparse_coo_tensor` and `Tensor.to_sparse`.

    Places that stand there several times count with the sum of their values; `coalesce` adds them up.
    """

    @staticmethod
    def __new__(cls, indices, values, size, coalesced=False):
        self = Tensor._make_wrapper_subclass(cls, tuple(size), dtype=values.dtype, device=values.device)
        self._parts = indices, values, coalesced
        return self

    def __init__(self, *args, **kwargs):
        pass

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.__name__
        handler = HANDLERS.get(name)
        if handler is not None:
            out = kwargs.pop("out", None)
            found = handler(*args, **kwargs)
            return found if out is None else _into(name, found, out)
        if name == "apply" and isinstance(func.__self__, type):
            return _apply(func.__self__, args, kwargs)
        if name in _PASSED:
            with DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        raise NotImplementedError(
            f"{name}(): not written for tensors of the sparse layouts; to_dense() makes a plain tensor of one"
        )

    # ---- what it is ------------------------------------------------------------------------------------------------

    is_sparse = True
    layout = sparse_coo
    is_leaf = True

    @property
    def device(self):
        """Of the values."""
        return self._parts[1].device

    @property
    def requires_grad(self):
        """Whether the values require grad."""
        return self._parts[1].requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self._parts[1].requires_grad = value

    @property
    def is_meta(self):
        """Whether the values have no memory."""
        return self._parts[1].is_meta

    is_cpu = property(lambda self: self._parts[1].is_cpu)
    data = property(lambda self: self.with_values(self._parts[1].detach()))

    @property
    def grad(self):
        """What was assigned, and what backward has given to the values of a leaf since, in their places."""
        assigned, values = vars(self).get("_assigned"), self._parts[1]
        if not values.is_leaf or values.grad is None:
            return assigned
        found = self.with_values(values.grad)
        return found if assigned is None else assigned + found

    @grad.setter
    def grad(self, grad):
        if grad is not None and (not isinstance(grad, Tensor) or grad.layout is not self.layout):
            kind = TypeError if not isinstance(grad, Tensor) else RuntimeError
            told = grad.layout if isinstance(grad, Tensor) else type(grad).__name__
            raise kind(
                f"grad: assigned grad expected to be a tensor of the layout {self.layout} or None but got {told}"
            )
        if grad is not None and grad.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        if grad is not None and grad.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{grad.dtype}' to a tensor with dtype "
                f"'{self.dtype}'. Please ensure that the gradient and the tensor have the same dtype."
            )
        self._assigned = grad
        if self._parts[1].is_leaf:
            self._parts[1].grad = None

    def requires_grad_(self, requires_grad=True):
        """Let autograd record what happens to the values; returns self."""
        self._parts[1].requires_grad_(requires_grad)
        return self

    def is_coalesced(self):
        """Whether each place stands there once, in order."""
        return self._parts[2]

    def _coalesced_(self, coalesced):
        """Say whether each place stands there once, in order; returns self."""
        self._parts = *self._parts[:2], bool(coalesced)
        return self

    def sparse_dim(self):
        """How many dimensions the places have."""
        return self._parts[0].size(0)

    def dense_dim(self):
        """How many dimensions each value has."""
        return self._parts[1].dim() - 1

    def _nnz(self):
        return self._parts[1].size(0)

    def _indices(self):
        return self._parts[0]

    def _values(self):
        return self._parts[1]

    def indices(self):
        """The places, a column each. RuntimeError before `coalesce`."""
        return self._when_coalesced("indices", 0)

    def values(self):
        """The values. RuntimeError before `coalesce`."""
        return self._when_coalesced("values", 1)

    def _when_coalesced(self, name, part):
        if not self._parts[2]:
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
        return self._parts[part]

    # ---- other forms -----------------------------------------------------------------------------------------------

    def coalesce(self):
        """The same tensor with each place once, in order; self if it is so already."""
        if self._parts[2]:
            return self
        sizes = self.shape[: self.sparse_dim()]
        places, where = flat(self._parts[0], sizes).unique(sorted=True, return_inverse=True)
        values = self._parts[1]
        summed = values.new_zeros((places.numel(), *values.shape[1:])).index_add(0, where, values)
        return SparseTensor(unflat(places, sizes), summed, self.shape, True)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """A plain tensor with the zeros."""
        values = self._parts[1] if dtype is None else self._parts[1].to(dtype)
        sizes, inner = self.shape[: self.sparse_dim()], values.shape[1:]
        whole = values.new_zeros((math.prod(sizes), *inner)).index_add(0, flat(self._parts[0], sizes), values)
        return whole.reshape(self.shape)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The tensor itself, or a matrix of another sparse layout."""
        return self if layout in (None, sparse_coo) else HANDLERS["compress"](self, layout)

    def to_sparse_coo(self):
        """The tensor in the layout sparse_coo."""
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim=None):
        """The matrix in the layout sparse_csr."""
        return self.to_sparse(layout=sparse_csr)

    def to_sparse_csc(self, dense_dim=None):
        """The matrix in the layout sparse_csc."""
        return self.to_sparse(layout=sparse_csc)

    def with_values(self, values):
        """Other values at the same places."""
        return SparseTensor(self._parts[0], values, self.shape, self._parts[2])

    def __repr__(self):
        indices, values, _ = self._parts
        end = f"size={tuple(self.shape)}, nnz={self._nnz()}, layout={self.layout}"
        return f"tensor(indices={_beside(indices, 15)},\n       values={_beside(values, 14)},\n       {end})"

    __str__ = __repr__

    def __format__(self, spec):
        """As of any tensor: one without dimensions is its number, any other takes no format."""
        return format(self.to_dense().item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def __dlpack__(self, **options):
        raise BufferError(
            f"Can't export tensors with layout other than torch.strided: this one is {self.layout}; to_dense() first"
        )

    def __reduce_ex__(self, protocol):
        return SparseTensor, (*self._parts[:2], tuple(self.shape), self._parts[2]), self._told()

    def __deepcopy__(self, memo):
        indices, values, coalesced = self._parts
        values = values.detach().clone().requires_grad_(values.requires_grad)
        return self._tell(SparseTensor(indices.clone(), values, self.shape, coalesced), memo)

    def _told(self):
        """What somebody has set on it; None for nothing, as pickle takes it."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")} or None

    def _tell(self, made, memo):
        memo[id(self)] = made
        vars(made).update(copy.deepcopy(self._told() or {}, memo))
        return made


def _beside(tensor, column):
    """The text of a tensor that begins at a column."""
    return repr(tensor).replace("\n", "\n" + " " * column)


@boundary
def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    layout=None,
    pin_memory=False,
    device=None,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A tensor of ``size`` that has ``values`` at the places ``indices``, a column each, and is zero elsewhere.

    Args:
        indices: integers of shape (sparse dimensions, places). With nothing else it is the size of an empty tensor, as
            is `size` alone.
        values: one for each place, each a number or a tensor of the further dimensions; gradients go through them.
        size: by default the smallest in which the places lie.
        requires_grad: makes the values a leaf.

    Raises:
        RuntimeError: the parts do not go together.

        >>> import tinygrad_ext as tg
        >>> tg.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).to_dense().tolist()
        [[0.0, 2.0], [3.0, 0.0]]
    """
    if indices is None and size is None:
        raise TypeError("sparse_coo_tensor(): expected indices and values, or a size")
    if values is None:
        size = tuple(size if indices is None else indices)
        indices, values = tg.zeros((len(size), 0), dtype=tg.int64), tg.zeros(0, dtype=dtype, device=device)
    indices, values = tg.as_tensor(indices).to(tg.int64), tg.as_tensor(values)
    values = values.expand(indices.size(1)) if values.dim() == 0 and indices.dim() == 2 else values
    values = values.to(device or values.device, dtype or values.dtype)
    if size is None:
        largest = indices.amax(1).tolist() if indices.numel() else [-1] * indices.size(0)
        size = [at + 1 for at in largest] + list(values.shape[1:])
    check(indices, values, tuple(size))
    in_order = values.size(0) < 2 if is_coalesced is None else bool(is_coalesced)
    made = SparseTensor(indices.detach(), values, size, in_order)
    return made.requires_grad_() if requires_grad else made


def _into(name, found, out):
    """What a handler gave, written into ``out``."""
    if isinstance(found, SparseTensor) or isinstance(out, SparseTensor):
        raise NotImplementedError(f"{name}(): out= is written for results and tensors that are plain, not sparse")
    return tg.view_copy(found, found.shape, out=out)


def _apply(function, args, kwargs):
    """A Function that gets a sparse tensor: the ops of its forward meet the tensor, and ask what to do with it."""
    forward = function.forward

    @functools.wraps(forward)
    def asking(*args, **kwargs):
        with _EnableTorchFunction():
            return forward(*args, **kwargs)

    made = type(function.__name__, (function,), {"forward": staticmethod(asking), "__module__": function.__module__})
    with DisableTorchFunctionSubclass():
        return made.apply(*args, **kwargs)


def flat(indices, sizes):
    """The number of each place, counted row by row."""
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    found = indices.new_zeros(indices.size(1))
    for row, step in zip(indices, steps, strict=True):
        found = found + row * step
    return found


def unflat(places, sizes):
    """The columns of places that numbers stand for."""
    rows, rest = [], places
    for size in reversed(sizes):
        rows.append(rest.remainder(size) if size else rest)
        rest = rest.div(max(size, 1), rounding_mode="floor")
    found = places.new_empty((len(sizes), places.numel()))
    for i, row in enumerate(reversed(rows)):
        found[i] = row
    return found


def check(indices, values, size):
    """Raise PyTorch's errors for parts that do not go together."""
    if indices.dim() != 2:
        raise RuntimeError(f"sparse_coo_tensor(): indices must have two dimensions, got {list(indices.shape)}")
    if values.dim() < 1 or indices.size(1) != values.size(0):
        raise RuntimeError(
            f"sparse_coo_tensor(): number of values must be the number of places {indices.size(1)}, got values of "
            f"{list(values.shape)}"
        )
    rank = indices.size(0) + values.dim() - 1
    if len(size) != rank:
        raise RuntimeError(
            f"sparse_coo_tensor(): number of dimensions must be sparse_dim ({indices.size(0)}) + dense_dim "
            f"({values.dim() - 1}), but got {len(size)}"
        )
    if tuple(size[indices.size(0) :]) != tuple(values.shape[1:]):
        raise RuntimeError(f"sparse_coo_tensor(): values of {list(values.shape)} do not fit the size {list(size)}")
    if indices.numel() and not indices.is_meta:
        if int(indices.min()) < 0:
            raise RuntimeError(f"sparse_coo_tensor(): found negative index {int(indices.min())}")
        for i, largest in enumerate(indices.amax(1).tolist()):
            if largest >= size[i]:
                raise RuntimeError(
                    f"sparse_coo_tensor(): size is inconsistent with indices: for dim {i}, size is {size[i]} but found "
                    f"index {largest}"
                )


def from_dense(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """A SparseTensor of what is not zero: elements, or with ``sparse_dim`` the rows of the other dimensions."""
    if blocksize is not None:
        raise NotImplementedError("to_sparse(): there are no layouts of blocks, blocksize must be None")
    if layout not in (None, sparse_coo):
        return from_dense(self).to_sparse(layout=layout)
    rank = self.dim() if sparse_dim is None else operator.index(sparse_dim)
    if not 0 <= rank <= self.dim() or (rank == 0 and self.dim()):
        raise RuntimeError(f"to_sparse(): sparse_dim must lie between 1 and {self.dim()}, got {rank}")
    kept = self != 0
    if rank < self.dim():
        kept = kept.flatten(rank).any(-1)
    indices = kept.nonzero().t().to(tg.int64)
    return SparseTensor(indices, self[tuple(indices)] if rank else self.reshape(1), self.shape, True)
