"""Changing the dtype, device and mode of everything in a module."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from ..utils.grads import clear_grads
from . import conversion
from .parameter import Parameter


@boundary
class Converting:
    """The part of Module that applies a function to each tensor it holds."""

    def _apply(self, fn, recurse=True):
        """Replace each parameter, gradient and buffer by ``fn`` of it; the parameters stay the same objects."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._apply_to_parameter(fn, name, parameter)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _apply_to_parameter(self, fn, name, parameter):
        with tg.no_grad():
            data = fn(parameter)
            if conversion.swaps(data):
                conversion.swap_parameter(self, name, parameter, data, fn)
                return
            grad = None if parameter.grad is None else fn(parameter.grad)
        # An optimizer holds on to the object, so it is kept; only between meta and real memory it cannot be.
        if data.device == parameter.device and not conversion.get_overwrite_module_params_on_conversion():
            parameter.grad = None  # the old gradient does not fit the new dtype
            parameter.data = data
        else:
            parameter = self._parameters[name] = Parameter(data, parameter.requires_grad)
        if grad is not None:
            parameter.grad = grad.requires_grad_(False)

    def apply(self, fn):
        """Call ``fn(module)`` for every module of the tree, children first, and return this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs):
        """Move and cast in place: ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``, ``to(memory_format=...)``.

        Only floating point and complex tensors change their dtype, only those of four and five dimensions their
        memory format.

        Raises:
            TypeError: the dtype is an integer one.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, "
                f"but got desired dtype={dtype}. Cast single tensors with tensor.to() instead."
            )

        def convert(tensor):
            casts = tensor.is_floating_point() or tensor.is_complex()
            options = {"memory_format": memory_format} if memory_format is not None and tensor.dim() in (4, 5) else {}
            return tensor.to(device=device, dtype=dtype if casts else None, non_blocking=non_blocking, **options)

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Move to ``device`` without copying values; the new memory is uninitialised."""
        return self._apply(lambda tensor: tg.empty_like(tensor, device=device), recurse=recurse)

    def share_memory(self):
        """Move every parameter and buffer into memory that other processes share."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def type(self, dst_type):
        """Cast every parameter and buffer to ``dst_type``, integer ones too."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self):
        """Cast floating point parameters and buffers to float32."""
        return self._cast_floats(tg.float32)

    def double(self):
        """Cast floating point parameters and buffers to float64."""
        return self._cast_floats(tg.float64)

    def half(self):
        """Cast floating point parameters and buffers to float16."""
        return self._cast_floats(tg.float16)

    def bfloat16(self):
        """Cast floating point parameters and buffers to bfloat16."""
        return self._cast_floats(tg.bfloat16)

    def _cast_floats(self, dtype):
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def cpu(self):
        """Move to the cpu."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device=None):
        """Move to a GPU; raises what ``tensor.cuda()`` raises, as this package has no GPU kernels."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def _moved(self, kind, device):
        place = kind if device is None else tg.device(kind, device) if isinstance(device, int) else device
        return self._apply(lambda tensor: tensor.to(place))

    def ipu(self, device=None):
        """Move to such a device; raises what ``tensor.to("ipu")`` raises, as none is here unless a plugin brings it."""
        return self._moved("ipu", device)

    def xpu(self, device=None):
        """As `ipu`."""
        return self._moved("xpu", device)

    def mtia(self, device=None):
        """As `ipu`."""
        return self._moved("mtia", device)

    def train(self, mode=True):
        """Set the training flag here and below, and return this module."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, not {type(mode).__name__}: {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Clear the training flag here and below, and return this module."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` of every parameter, and return this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drop the gradients, or with ``set_to_none=False`` fill them with zeros."""
        clear_grads(list(self.parameters()), set_to_none)


def _parse_to(*args, device=None, dtype=None, non_blocking=False, tensor=None, memory_format=None):
    """Sort the arguments of ``Module.to`` by type; returns ``(device, dtype, non_blocking, memory_format)``."""
    for argument in (*args, tensor):
        if isinstance(argument, tg.Tensor):
            device, dtype = argument.device, argument.dtype
        elif isinstance(argument, tg.dtype):
            dtype = argument
        elif isinstance(argument, bool):
            non_blocking = argument
        elif isinstance(argument, (str, tg.device)):
            device = argument
        elif type(argument) is int:
            device = tg.device(argument)
        elif argument is not None:
            raise TypeError(
                f"to() received {argument!r} of type {type(argument).__name__}; "
                "expected a device, a floating point dtype, or a tensor to take both from"
            )
    if not isinstance(memory_format, (tg.memory_format, type(None))):
        raise TypeError(
            f"to(): expected memory_format to be a memory format, such as channels_last, got {memory_format!r} of type "
            f"{type(memory_format).__name__}"
        )
    return (None if device is None else tg.device(device)), dtype, non_blocking, memory_format
