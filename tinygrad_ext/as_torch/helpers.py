"""Private functions of PyTorch's modules that libraries call, by the place and name that they have there.

They are wanted under the alias alone, so they stand here and not in the rooms.
"""

import contextlib
import functools
import importlib

import tinygrad_ext as _tg

_found = {}
_ELSEWHERE = {("_dynamo.eval_frame", "OptimizedModule"): "tinygrad_ext.as_torch.stand_ins._dynamo"}


def _of(place):
    def enter(function):
        _found[place, function.__name__] = function
        return function

    return enter


def find(place, name):
    """The function of a place, or None."""
    if (place, name) in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[place, name]), name)
    return _found.get((place, name))


# ---- optimizers ----------------------------------------------------------------------------------------------------


@_of("optim.optimizer")
def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach) where neither is asked for: plain loops, since there is one device, the cpu."""
    return False, False


@_of("optim.optimizer")
def _get_value(x):
    """The number in a tensor; anything else as it is."""
    return x.item() if isinstance(x, _tg.Tensor) else x


@_of("optim.optimizer")
def _stack_if_compiling(x):
    """What is given."""
    return x


@_of("optim.optimizer")
def _to_scalar(x):
    """A tensor of one element without its dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, _tg.Tensor) and x.dim() else x


@_of("optim.optimizer")
def _get_scalar_dtype(is_fused=None):
    """The dtype of the count of steps."""
    return _tg.float64 if not is_fused and _tg.get_default_dtype() is _tg.float64 else _tg.float32


@_of("optim.optimizer")
def _get_capturable_supported_devices(supports_xla=True):
    """Devices of other kinds."""
    return ["cuda", "xpu", "hpu", *["xla"] * supports_xla]


@_of("optim.optimizer")
def _view_as_real(params, *state_and_grads):
    """Put the real view of complex tensors into the lists."""
    for i, param in enumerate(params):
        if param.is_complex():
            for values in (params, *state_and_grads):
                values[i] = _tg.view_as_real(values[i])


@_of("optim.optimizer")
def _use_grad_for_differentiable(func):
    """A step that records its gradient where the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with _tg.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)

    return step


@_of("optim.optimizer")
def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """A decorator that does nothing."""
    return lambda function: function


@_of("optim.optimizer")
def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    """RuntimeError for a parameter that is no float."""
    if not p.is_floating_point():
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors")


# ---- modules -------------------------------------------------------------------------------------------------------


@_of("nn.modules.transformer")
def _get_clones(module, N):
    """A ModuleList of N deep copies."""
    from tinygrad_ext.nn.modules.transformer import _copies  # lazy: few ask for it

    return _copies(module, N)


@_of("nn.modules.transformer")
def _get_activation_fn(activation):
    """The function of a name, relu or gelu."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(_tg.nn.functional, activation)


@_of("nn.modules.utils")
def _ntuple(n, name="parse"):
    """A function that gives a tuple of n: of one number repeated, or of those there are."""

    def parse(x):
        return tuple(x) if hasattr(x, "__iter__") else (x,) * n

    parse.__name__ = name
    return parse


@_of("nn.modules.utils")
def _reverse_repeat_tuple(t, n):
    """The entries from the last on, each n times."""
    return tuple(x for x in reversed(t) for _ in range(n))


@_of("nn.modules.utils")
def _list_with_default(out_size, defaults):
    """Sizes, those that are None from the end of the defaults."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :])]


@_of("nn.modules.utils")
def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Take a prefix off the names of a state, in place."""
    for table in (state_dict, getattr(state_dict, "_metadata", {})):
        for key in [k for k in table if k.startswith(prefix) or (k + "." == prefix and table is not state_dict)]:
            table[key[len(prefix) :]] = table.pop(key)


# ---- compilers -----------------------------------------------------------------------------------------------------


@_of("fx._compatibility")
def compatibility(is_backward_compatible):
    """A decorator that does nothing."""
    return lambda function: function


# ---- checkpoints ---------------------------------------------------------------------------------------------------


@_of("utils.checkpoint")
def get_device_states(*args):
    """([], []): the devices other than the cpu, and the states of their random numbers."""
    return [], []


@_of("utils.checkpoint")
def set_device_states(devices, states, *, device_type=None):
    """Do nothing: there are no such devices."""


# ---- cuda ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _nvtx_range(msg, *args, **kwargs):
    """A context, or a decorator as libraries put it on functions that they define at import; entering it raises."""
    raise RuntimeError("torch.cuda.nvtx.range: there is no CUDA here")
    yield


_found["cuda.nvtx", "range"] = _nvtx_range
