"""torch._C, the compiled half of PyTorch: the names that libraries touch at import, most of them public here."""

import importlib

import tinygrad_ext as _tg
from tinygrad_ext import jit as _jit
from tinygrad_ext.core.call.levels import active_levels
from tinygrad_ext.core.data.dtype import Size, device, dtype, layout, memory_format
from tinygrad_ext.core.data.random import Generator, default_generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.types import Type as _Type
from tinygrad_ext.overrides import dispatched as _dispatched

from . import _C__nn, _C_types, absent

TensorBase = _TensorBase = Tensor
_VariableFunctions = _tg
_nn = _C__nn
_fft, _linalg, _special = _C__nn.Prefixed("fft"), _C__nn.Prefixed("linalg"), _C__nn.Prefixed("special")
_LinAlgError = _tg.linalg.LinAlgError
_disabled_torch_function_impl = _tg.overrides._disabled_torch_function_impl
DisableTorchFunction, DisableTorchFunctionSubclass = (
    _tg.overrides.DisableTorchFunction,
    _tg.overrides.DisableTorchFunctionSubclass,
)
_disabled_torch_dispatch_impl = _dispatched._disabled_torch_dispatch_impl
_DisableTorchDispatch = _dispatched._DisableTorchDispatch

_WHY = "the inside of PyTorch's compiler is not here; jit.trace and jit.script give graphs of tinygrad_ext's own"
globals().update(absent.types("_C", "Value Node Graph Block Use ScriptModule ScriptMethod", _WHY))
globals().update(absent.types("_C", "CompilationUnit ScriptObject StaticModule Future ErrorReport", _WHY))
globals().update(absent.types("_C", "ClassType FutureType DispatchKeySet Function", _WHY))
globals().update({name: getattr(_C_types, name) for name in _C_types.NAMES})
globals().update(
    absent.functions("_C", "parse_schema parse_ir _jit_pass_inline _jit_pass_dce _create_graph_by_tracing", _WHY)
)
ScriptFunction, Type = _jit.ScriptFunction, _Type


def _get_tracing_state():
    """What writes a program down, which has scopes for `jit._get_trace_graph`; None where none is traced."""
    return next((level for level in active_levels() if hasattr(level, "push_scope")), _jit.is_tracing() or None)


def _is_tracing():
    """Whether a program is traced."""
    return _jit.is_tracing()


def _log_api_usage_once(event):
    """Nothing is logged."""


def _get_privateuse1_backend_name():
    """The name PyTorch gives a device that nobody has named."""
    return "privateuseone"


def _get_default_device():
    """The type of the device that factories make tensors on."""
    return _tg.get_default_device().type


def _accelerator_hooks_device_count():
    """0."""
    return 0


def _cuda_getDeviceCount():
    """0."""
    return 0


def _is_alias_of(one, other):
    """Whether two tensors lie in one storage."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _is_torch_function_enabled():
    """Whether types may override functions: always, here."""
    return True


def _jit_set_profiling_executor(on):
    """There is one executor; the answer is what PyTorch's would have been before."""
    return True


_jit_set_profiling_mode = _jit_set_profiling_executor


def _set_graph_executor_optimize(on):
    """Do nothing: graphs are optimised."""


def _jit_override_can_fuse_on_cpu(on):
    """Do nothing: pointwise ops are fused."""


_jit_override_can_fuse_on_gpu = _jit_set_texpr_fuser_enabled = _jit_override_can_fuse_on_cpu


def _jit_set_bailout_depth(depth):
    """The default of PyTorch; here a graph plans for every shape it meets."""
    return 20


has_cuda = has_mps = has_xpu = False
has_lapack = has_openmp = True
__all__ = [
    "Generator",
    "Size",
    "Tensor",
    "TensorBase",
    "default_generator",
    "device",
    "dtype",
    "layout",
    "memory_format",
]


_VMAP_WARNINGS = {
    "_debug_only_are_vmap_fallback_warnings_enabled": "_are_warned",
    "_debug_only_display_vmap_fallback_warnings": "_set_vmap_fallback_warning_enabled",
}


def __getattr__(name):
    if name in ("ScriptDict", "ScriptList"):
        return getattr(importlib.import_module("tinygrad_ext.jit.script.typed"), name)  # lazy: few ask for it
    if name in ("Argument", "FunctionSchema"):
        return getattr(importlib.import_module("tinygrad_ext.jit.script.schema"), name)  # lazy: as above
    if name == "FileCheck":
        return importlib.import_module("tinygrad_ext.testing").FileCheck  # lazy: as above
    if name in _VMAP_WARNINGS:
        return getattr(importlib.import_module("torch._C._functorch"), _VMAP_WARNINGS[name])
    if name in ("_autograd", "_functions", "_functorch", "_profiler"):
        return importlib.import_module(f"torch._C.{name}")  # lazy: few ask for it
    if not name.startswith("__") and hasattr(_tg, name):
        return getattr(_tg, name)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}': torch is tinygrad_ext here")
