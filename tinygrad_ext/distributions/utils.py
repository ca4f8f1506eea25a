"""What the distributions share: broadcasting of parameters, probabilities and logits, values that are computed once."""

import functools
from numbers import Number

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Carried

euler_constant = 0.57721566490153286060


def all_true(valid):
    """Whether a check holds everywhere. While a graph is captured, which would keep the answer, it is not asked."""
    return (type(valid) is Carried and hasattr(valid.level, "graph")) or bool(valid.all())


def _alike(values):
    """Whether all are plain tensors of one shape."""
    if type(values[0]) is not tg.Tensor:
        return False
    shape = values[0].shape
    return all([type(value) is tg.Tensor and value.shape == shape for value in values])


@boundary
def broadcast_all(*values):
    """Tensors of one shape; numbers become tensors of the dtype of the first tensor, or of the default dtype.

    Raises:
        ValueError: something that is no number and no tensor.
    """
    if values and _alike(values):
        return values
    if not all(isinstance(value, (tg.Tensor, Number)) for value in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing it")
    first = next((value for value in values if isinstance(value, tg.Tensor)), None)
    options = {"dtype": tg.get_default_dtype() if first is None else first.dtype}
    if first is not None:
        options["device"] = first.device
    return tg.broadcast_tensors(
        *[value if isinstance(value, tg.Tensor) else tg.tensor(value, **options) for value in values]
    )


@boundary
def clamp_probs(probs):
    """Probabilities that keep the distance of the dtype's eps from 0 and 1."""
    eps = tg.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


@boundary
def logits_to_probs(logits, is_binary=False):
    """Probabilities of log-odds, or of unnormalised logarithms along the last dimension."""
    return tg.sigmoid(logits) if is_binary else tg.softmax(logits, dim=-1)


@boundary
def probs_to_logits(probs, is_binary=False):
    """Log-odds of probabilities, or their logarithms."""
    clamped = clamp_probs(probs)
    return tg.log(clamped) - tg.log1p(-clamped) if is_binary else tg.log(clamped)


@boundary
def sum_rightmost(value, dim):
    """The sum over the last ``dim`` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


@boundary
def tril_matrix_to_vec(mat, diag=0):
    """The lower triangles (..., D, D) as vectors, row by row.

    Raises:
        ValueError: there is no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tg.tril_indices(n, n, diag)
    return mat[..., rows, columns]


@boundary
def vec_to_tril_matrix(vec, diag=0):
    """Vectors as lower triangles (..., D, D), zeros elsewhere.

    Raises:
        ValueError: no triangle has as many elements.
    """
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > tg.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part "
            "of a square D x D matrix."
        )
    n = round(n)
    matrix = vec.new_zeros(vec.shape[:-1] + (n, n))
    rows, columns = tg.tril_indices(n, n, diag)
    matrix[..., rows, columns] = vec
    return matrix


class lazy_property:
    """A property that is computed when it is first read, and then is an attribute."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with tg.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _standard_normal(shape, dtype, device):
    """Normal numbers of mean 0 and deviation 1, under the name that libraries import."""
    return tg.empty(shape, dtype=dtype, device=device).normal_()


_sum_rightmost = sum_rightmost
