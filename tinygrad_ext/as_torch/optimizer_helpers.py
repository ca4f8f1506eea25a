"""Private functions of PyTorch's optimizers that other optimizers call."""

import functools

import tinygrad_ext as _tg


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach) where neither is asked for: plain loops, since there is one device, the cpu."""
    return False, False


def _get_value(x):
    """The number in a tensor; anything else as it is."""
    return x.item() if isinstance(x, _tg.Tensor) else x


def _stack_if_compiling(x):
    """What is given."""
    return x


def _to_scalar(x):
    """A tensor of one element without its dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, _tg.Tensor) and x.dim() else x


def _get_scalar_dtype(is_fused=None):
    """The dtype of the count of steps."""
    return _tg.float64 if not is_fused and _tg.get_default_dtype() is _tg.float64 else _tg.float32


def _get_capturable_supported_devices(supports_xla=True):
    """Devices of other kinds."""
    return ["cuda", "xpu", "hpu", *["xla"] * supports_xla]


def _view_as_real(params, *state_and_grads):
    """Put the real view of complex tensors into the lists."""
    for i, param in enumerate(params):
        if param.is_complex():
            for values in (params, *state_and_grads):
                values[i] = _tg.view_as_real(values[i])


def _use_grad_for_differentiable(func):
    """A step that records its gradient where the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with _tg.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """A decorator that does nothing."""
    return lambda function: function


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    """RuntimeError for a parameter that is no float."""
    if not p.is_floating_point():
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors")


def _get_foreach_kernels_supported_devices():
    """Devices that PyTorch updates whole lists of tensors on; none of them is here."""
    return ["cuda", "xpu", "mtia"]


def _get_fused_kernels_supported_devices():
    """Devices that PyTorch has a kernel of whole steps for; the cpu has one here too."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia"]
