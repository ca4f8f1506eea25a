"""Variable: the wrapper that tensors needed before they knew about gradients themselves."""

import warnings

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.engine import current_pass


class _VariableMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class _Engine:
    """What libraries reach by `Variable._execution_engine`."""

    def queue_callback(self, callback):
        """Call callback() when the backward pass that runs now is over. RuntimeError where none runs."""
        running = current_pass()
        if running is None:
            raise RuntimeError(
                "Final callbacks can only be installed during backward pass: call queue_callback() in a hook or in the "
                "backward of a Function"
            )
        if not callable(callback):
            raise TypeError(f"queue_callback(): argument 'callback' must be callable, not {type(callback).__name__}")
        running.call_at_end(callback)


class Variable(metaclass=_VariableMeta):
    """`Variable(tensor, requires_grad=False)`: a tensor of its own over the same memory, outside the graph.

    Every tensor is an instance of Variable. `volatile` has no effect and warns: grad mode took its place.

        >>> import tinygrad_ext as tg
        >>> x = tg.autograd.Variable(tg.ones(2), requires_grad=True)
        >>> type(x) is tg.Tensor, x.requires_grad
        (True, True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=False):
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
        if data is None:
            return Tensor().requires_grad_(requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type(data).__name__}: make one with torch.tensor(...)"
            )
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients: Variable() was given a tensor "
                f"of {data.dtype}. Convert it first, for example with .float()."
            )
        return data.detach().requires_grad_(requires_grad)
