"""Gradients of convolutions by their input and by their weight, as functions of their own.

Each takes the shape of what it is the gradient of; the rest is that of the convolution. They have derivatives.
"""

from ..core.call.boundary import boundary as _boundary
from ..core.data.tensor import Tensor as _Tensor
from ..errors import refuse_unknown
from ..ops.transposed import each as _each

__all__ = [f"conv{dims}d_{of}" for dims in (1, 2, 3) for of in ("input", "weight")]


def _is_size(n):
    return isinstance(n, int) or getattr(type(n), "stands_for_a_size", False)  # while a program is captured


def _window(name, dims, tensors, sizes, stride, padding, dilation):
    """Stride, padding and dilation in each dimension, of arguments that fit each other; the op looks at the rest."""
    for argument, value in tensors.items():
        if not isinstance(value, _Tensor):
            raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(value).__name__}")
    values = {"stride": stride, "padding": padding, "dilation": dilation}
    window = [_each(value, dims, name, argument) for argument, value in values.items()]
    for argument, numbers in (*sizes.items(), *zip(values, window)):
        if not isinstance(numbers, (tuple, list)) or not all(map(_is_size, numbers)):
            raise TypeError(f"{name}(): argument '{argument}' must be a tuple of ints, not {numbers!r}")
    numbers = [size[-dims:] for size in sizes.values()]
    plain = all(isinstance(n, int) for size in (*numbers, tensors["grad_output"].shape) for n in size)
    if plain and all(len(n) == dims and min(n) >= 0 for n in numbers) and min(*window[0], *window[2]) > 0:
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(*numbers, *window)]
        grad = tensors["grad_output"]
        if list(grad.shape[-dims:]) != out:
            raise RuntimeError(
                f"{name}: Expected grad_output to have the size {out} of the convolution's output in its last {dims} "
                f"dimensions, but got {list(grad.shape)}: give the stride, padding and dilation of the convolution"
            )
    return window


def _functions(dims):
    def input_gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        tensors = {"weight": weight, "grad_output": grad_output}
        sizes = {"input_size": input_size, "weight": getattr(weight, "shape", ())}
        window = _window(input_gradient.__name__, dims, tensors, sizes, stride, padding, dilation)
        return grad_output._conv_input_grad(weight, list(input_size), *window, groups)

    def weight_gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        tensors = {"input": input, "grad_output": grad_output}
        sizes = {"input": getattr(input, "shape", ()), "weight_size": weight_size}
        window = _window(weight_gradient.__name__, dims, tensors, sizes, stride, padding, dilation)
        return grad_output._conv_weight_grad(input, list(weight_size), *window, groups)

    for of, other, fn in (("input", "weight", input_gradient), ("weight", "input", weight_gradient)):
        fn.__name__ = fn.__qualname__ = f"conv{dims}d_{of}"
        fn.__doc__ = (
            f"The gradient of conv{dims}d by its {of}, of shape {of}_size, from its {other} and the gradient of its "
            "output.\n\nRaises:\n    RuntimeError: shapes that do not fit each other.\n    TypeError: no tensors.\n"
        )
        globals()[fn.__name__] = _boundary(fn)


for _dims in (1, 2, 3):
    _functions(_dims)

__getattr__ = refuse_unknown(__name__)
