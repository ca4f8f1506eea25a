"""Max pooling without places, which are noted only where the caller or a gradient asks for them."""

from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops import batching_layers
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _with_places(dims, self, *window):
    return functions[f"nn.functional.max_pool{dims}d_with_indices"](self, *window)


def largest(dims):
    """max_pool of so many dimensions; places are noted where a gradient will ask for them."""

    def run(self, *window):
        return (
            _with_places(dims, self, *window)[0] if self.requires_grad else fused._max_pool_values(self, *window, dims)
        )

    return run


def largest_or_places(dims):
    """The same, with the places where they are asked for."""
    alone = largest(dims)
    return lambda *args: tuple(_with_places(dims, *args[:-1])) if args[-1] else alone(*args[:-1])


def _places(self, *window):
    """Places of the largest, found again."""
    return _with_places(window[-1], self.detach(), *window[:-1])[1]


def _values_rule(grad, self, kernel_size, stride, padding, dilation, ceil_mode, dims):
    places = _places(self, kernel_size, stride, padding, dilation, ceil_mode, dims)
    return grad._max_pool_backward(places, self.shape, dims)


def _values_tangent(self, self_tangent, kernel_size, stride, padding, dilation, ceil_mode, dims):
    return self_tangent._max_pool_gather(_places(self, kernel_size, stride, padding, dilation, ceil_mode, dims), dims)


def _values_batched(b, self, *window):
    return batching_layers.pool("_max_pool_values", window[-1])(b, self, *window)


def _private_values(make):
    yield Sample(make.distinct(2, 3, 7), 3, 2, 1, 1, True, 1)
    yield Sample(make.distinct(1, 2, 5, 6), (2, 3), None, 0, (2, 1), False, 2)
    yield Sample(make.distinct(1, 2, 4, 3, 5), 2, 1, 1, 1, False, 3)


op(
    "aten::_max_pool_values(Tensor self, int[1] kernel_size, int[1]? stride, int[1] padding, int[1] dilation, "
    "bool ceil_mode, int dims) -> Tensor",
    batch=_values_batched,
    kernel="max_pool_values",
    types="int float",
    variants="function",
    where="_fused",
    samples=_private_values,
    grad={"self": _values_rule},
    jvp=_values_tangent,
    doc="Largest element of each window, without its place.",
)
