"""A sparse matrix whose values are a tensor and take part in autograd."""

import numpy as np

import tinygrad_ext as tg
from tgx_sparse.pattern import Pattern


class SparseTensor:
    """A pattern and the values at its places: gradients by the values come out as a vector of the stored entries.

    Args:
        array: a SciPy sparse array or matrix of two dimensions, or a Pattern.
        values: tensor with one value for each stored entry, row by row; a copy of the array's values by default.

    Functions of tinygrad_ext take it where `tgx_sparse.functions` serves them, and the operators are those functions.

        >>> from scipy.sparse import csr_array
        >>> weight = SparseTensor(csr_array([[0.0, 2.0], [3.0, 0.0]])).requires_grad_()
        >>> (weight @ tg.ones(2, 1, dtype=tg.float64)).sum().backward()
        >>> weight.values.grad
        tensor([1., 1.], dtype=torch.float64)
    """

    __array_ufunc__ = None  # ndarray @ SparseTensor comes to __rmatmul__

    def __init__(self, array, values=None):
        from scipy.sparse import issparse

        if isinstance(array, Pattern):
            self.pattern = array
            if values is None:
                raise TypeError("SparseTensor(pattern, values): a pattern alone has no values")
        elif issparse(array):
            self.pattern, found = Pattern.of(array)
            values = tg.tensor(found) if values is None else values
        else:
            raise TypeError(
                f"SparseTensor(array): expected a SciPy sparse array or a Pattern, got {type(array).__name__}; "
                "scipy.sparse.csr_array(array) makes one of a dense array"
            )
        if values.shape != self.pattern.indices.shape:
            raise ValueError(
                f"SparseTensor: values must be a vector of {len(self.pattern.indices)}, one for each stored entry, "
                f"but has the shape {list(values.shape)}"
            )
        self.values = values

    @classmethod
    def viewing(cls, array):
        """A SciPy array's own memory as values, for one call; it may be read-only, and gets no gradient."""
        pattern, values = Pattern.of(array)
        values = np.ascontiguousarray(values)
        return cls(pattern, tg.from_numpy(values if values.flags.writeable else values.copy()))

    # set by functions.py and not looked up there at each call: a reloaded plugin brings new modules, and what the
    # program still holds goes on working with the old ones
    _handle = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls._handle(func, types, args, kwargs or {})

    # ---- what it is ------------------------------------------------------------------------------------------------

    @property
    def shape(self):
        """(rows, columns)"""
        return self.pattern.shape

    @property
    def dtype(self):
        """Of the values."""
        return self.values.dtype

    @property
    def requires_grad(self):
        """Of the values."""
        return self.values.requires_grad

    def requires_grad_(self, requires_grad=True):
        """Let autograd record what happens to the values; returns self."""
        self.values.requires_grad_(requires_grad)
        return self

    def detach(self):
        """The same values, without their history."""
        return SparseTensor(self.pattern, self.values.detach())

    def to_dense(self):
        """The matrix with its zeros, as a tensor; differentiable."""
        rows, columns = self.shape
        return self.values.new_zeros(rows * columns).index_add(0, self.pattern.flat, self.values).reshape(self.shape)

    def to_scipy(self):
        """A csr_array over the memory of the values. RuntimeError while they require grad, as from numpy()."""
        from scipy.sparse import csr_array

        parts = (self.values.numpy(), self.pattern.indices.numpy(), self.pattern.indptr.numpy())
        return csr_array(parts, self.shape, copy=False)

    def t(self):
        """The transpose."""
        pattern, order = self.pattern.transposed()
        return SparseTensor(pattern, self.values.index_select(0, order.long()))

    T = property(t)

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"SparseTensor({self.values!r}, {self.pattern!r})"


def _function(name, doc):
    def call(self, *args, **kwargs):
        return getattr(tg, name)(self, *args, **kwargs)

    call.__name__, call.__doc__ = name, doc
    return call


def _operator(name, turned=False):
    def call(self, other):
        return getattr(tg, name)(other, self) if turned else getattr(tg, name)(self, other)

    return call


for _name in ("matmul", "mm", "mv", "add", "sub", "mul", "div", "sum", "mean", "neg", "abs", "relu", "sqrt", "square"):
    setattr(SparseTensor, _name, _function(_name, f"`tinygrad_ext.{_name}` of this matrix."))
for _name in ("matmul", "add", "sub", "mul"):
    setattr(SparseTensor, f"__{_name}__", _operator(_name))
    setattr(SparseTensor, f"__r{_name}__", _operator(_name, True))
SparseTensor.__truediv__, SparseTensor.__rtruediv__ = _operator("div"), _operator("div", True)
SparseTensor.__neg__, SparseTensor.__abs__ = SparseTensor.neg, SparseTensor.abs
