"""Layers that take the size of their input from the first batch.

Until then their parameters have no shape (`nn.parameter.UninitializedParameter`). The first call gives them one and
draws them, as the constructor of the ordinary layer would, and the layer becomes an ordinary one.
"""

import itertools

import tinygrad_ext as tg

from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from . import batchnorm, conv, instancenorm, linear
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase

__all__ = [
    "LazyLinear",
    *(f"Lazy{layer}{dims}d" for layer in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm") for dims in (1, 2, 3)),
]


class LazyModuleMixin:
    """Makes a layer lazy: ``class LazyLayer(LazyModuleMixin, Layer)``.

    The class has `initialize_parameters`, which is called with the arguments of the first call and gives each
    uninitialized parameter its shape, and may have ``cls_to_become``, the class of the layer from then on. A state
    dict that is loaded gives shapes too.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs):
        """Give each parameter its shape and values, for inputs like these."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}: a lazy module defines it"
        )

    def has_uninitialized_params(self):
        """Return whether a parameter or buffer of this module has no shape yet."""
        return any(is_lazy(part) for part in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _replicate_for_data_parallel(self):
        if self.has_uninitialized_params():
            raise RuntimeError(
                f"{type(self).__name__} has uninitialized parameters, which have no replicas: call it once first"
            )
        return super()._replicate_for_data_parallel()

    def _lazy_load_hook(self, state_dict, prefix, *rest):
        """Give what has no shape that of the tensor to be loaded."""
        for name, part in itertools.chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if is_lazy(part) and given is not None and not is_lazy(given):
                part.materialize(given.shape)

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {type(self).__name__} has not been fully initialized: its initialize_parameters left a "
                "parameter or buffer without a shape"
            )
        for hook in ("_initialize_hook", "_load_hook"):
            getattr(module, hook).remove()
            delattr(module, hook)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose ``in_features`` is the last size of its first input.

    Args:
        out_features: last size of the output.
        bias: whether to add a learned offset.
    """

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        where = {"device": device, "dtype": dtype}
        self.weight = UninitializedParameter(**where)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(**where)

    def reset_parameters(self):
        """Draw weight and bias anew, if they have a shape."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Give weight and bias their shapes and values."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        elif self.in_features == 0:  # the parameters were loaded
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"LazyLinear: the in_features inferred from input: {input.shape[-1]} is not equal to in_features "
                    f"from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class _LazyConvXdMixin(LazyModuleMixin):
    """What the lazy convolutions share.

    Args:
        out_channels: number of the output's channels.

    The others are those of the convolution.
    """

    def _start(self, out_channels, bias, device, dtype):
        """Make weight and bias, of a convolution that was made without channels."""
        where = {"device": device, "dtype": dtype}
        self.weight = UninitializedParameter(**where)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(**where)

    def reset_parameters(self):
        """Draw weight and bias anew, if they have a shape."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Give weight and bias their shapes and values."""
        if self.has_uninitialized_params():
            self.in_channels = self._channels_of(input)
            self._check()
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        elif self.in_channels == 0:  # the parameters were loaded
            shape = self.weight.shape
            self.in_channels = shape[0] if self.transposed else shape[1] * self.groups

    def _channels_of(self, input):
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise RuntimeError(
                f"Expected {self.dims + 1}D (unbatched) or {self.dims + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {list(input.shape)}"
            )
        return input.shape[-self.dims - 1]


class _LazyConvNd(_LazyConvXdMixin):
    def __init__(
        self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._start(out_channels, bias, device, dtype)


class _LazyConvTransposeNd(_LazyConvXdMixin):
    def __init__(
        self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._start(out_channels, bias, device, dtype)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """What the lazy norms share.

    Args:
        eps, momentum, affine, track_running_stats, bias: those of the norm.
    """

    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        where = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**where)
            if bias:
                self.bias = UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**where)
            self.running_var = UninitializedBuffer(**where)
            self.num_batches_tracked = tg.tensor(0, device=device, dtype=tg.int64)

    def reset_parameters(self):
        """Set scale to one, offset to zero, and start the statistics anew, if they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Give scale, offset and statistics their shape and values."""
        parts = [part for part in (self.weight, self.bias, self.running_mean, self.running_var) if part is not None]
        if self.has_uninitialized_params():
            self.num_features = self._channels_of(input)
            for part in parts:
                part.materialize((self.num_features,))
            self.reset_parameters()
        elif self.num_features == 0 and parts:  # they were loaded
            self.num_features = parts[0].shape[0]


class _LazyBatchNorm(_LazyNormBase):
    def _channels_of(self, input):
        self._check_input_dim(input)
        return input.shape[1]


class _LazyInstanceNorm(_LazyNormBase):
    def _channels_of(self, input):
        self._check_input_dim(input)
        return input.shape[-self.dims - 1]


def _lazy(mixin, layer):
    arguments = next(base.__doc__ for base in mixin.__mro__ if base.__doc__).partition("\n\n")[2]
    doc = f"{layer.__name__} that takes the number of channels from its first input.\n\n{arguments}"
    given = {"cls_to_become": layer, "__doc__": doc}
    return type(f"Lazy{layer.__name__}", (mixin, layer), given)


def _place(layer, family):
    """PyTorch has each lazy layer beside the ordinary one, and pickles name that place."""
    layer.__module__ = family.__name__
    globals()[layer.__name__] = layer
    setattr(family, layer.__name__, layer)


_place(LazyLinear, linear)
conv._LazyConvXdMixin = _LazyConvXdMixin
batchnorm._LazyNormBase = _LazyNormBase
for _mixin, _family, _layers in (
    (_LazyConvNd, conv, (Conv1d, Conv2d, Conv3d)),
    (_LazyConvTransposeNd, conv, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)),
    (_LazyBatchNorm, batchnorm, (BatchNorm1d, BatchNorm2d, BatchNorm3d)),
    (_LazyInstanceNorm, instancenorm, (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)),
):
    for _layer in _layers:
        _place(_lazy(_mixin, _layer), _family)
