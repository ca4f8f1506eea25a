"""A small compiled tensor, autograd and graph engine whose parts are extended by a pip install.

The names follow PyTorch: ``import tinygrad_ext as torch`` runs code written for its extension notes.
"""

import math as _math
import os as _os
import sys as _sys

from tinygrad_ext.core.at_rest import collector_at_rest as _collector_at_rest

__version__ = "0.1.0"

_LAZY = (
    "nn",
    "func",
    "fx",
    "optim",
    "multiprocessing",
    "futures",
    "distributions",
    "amp",
    "backends",
    "cuda",
    "utils",
    "profiler",
    "testing",
    "overrides",
    "_overrides",
    "plugins",
    "ops",
    "hookspecs",
    "serialization",
    "fft",
    "linalg",
    "masked",
    "signal",
    "sparse",
    "special",
    "quasirandom",
    "random",
    "return_types",
    "registry",
    "config",
    "library",
    "graph",
    "jit",
    "export",
    "_higher_order_ops",
)
_LAZY_NAMES = {
    "vmap": "func.vmap",
    "compile": "jit.compiling",
    "cond": "_higher_order_ops",
    "while_loop": "_higher_order_ops",
    "hookimpl": "hookspecs",
    "Tag": "library",
    "get_default_device": "overrides",
    "set_default_device": "overrides",
    "set_default_tensor_type": "tensor.legacy",
    "save": "serialization",
    "load": "serialization",
    "set_printoptions": "tensor.printing",
    "get_printoptions": "tensor.printing",
    "show_config": "config",
    "get_rng_state": "random",
    "set_rng_state": "random",
    "memory_stats": "config",
    "reset_peak_memory_stats": "config",
    "empty_cache": "config",
    "autocast": "amp",
    "GradScaler": "amp",
    **dict.fromkeys(
        (
            "autocast_decrement_nesting",
            "autocast_increment_nesting",
            "clear_autocast_cache",
            "get_autocast_cpu_dtype",
            "get_autocast_gpu_dtype",
            "get_autocast_dtype",
            "is_autocast_cache_enabled",
            "is_autocast_cpu_enabled",
            "is_autocast_enabled",
            "set_autocast_cache_enabled",
            "set_autocast_cpu_dtype",
            "set_autocast_gpu_dtype",
            "set_autocast_cpu_enabled",
            "set_autocast_dtype",
            "set_autocast_enabled",
        ),
        "amp.state",
    ),
    "broadcast_shapes": "tensor.sizes",
    **dict.fromkeys(
        ("SymBool", "SymFloat", "SymInt", *map("sym_".__add__, ("float", "int", "max", "min", "not", "sqrt", "sum"))),
        "tensor.symbols",
    ),
    **dict.fromkeys(
        ("detach_", "empty_permuted", "is_signed", "is_storage", "lobpcg", "lu", "range", "resize_as_"), "tensor.top"
    ),
    **dict.fromkeys(
        (
            "_assert",
            "affine_grid_generator",
            "alpha_dropout_",
            "dropout_",
            "embedding_renorm_",
            "feature_alpha_dropout_",
            "feature_dropout_",
            "get_device",
            "index_put_",
            "is_conj",
            "is_inference",
            "is_neg",
            "is_nonzero",
            "is_same_size",
            "native_norm",
            "to_dlpack",
            "typename",
        ),
        "tensor.asked",
    ),
    **dict.fromkeys(
        (
            "_assert_async",
            "_assert_tensor_metadata",
            "_check",
            "_check_index",
            "_check_is_size",
            "_check_not_implemented",
            "_check_tensor_all",
            "_check_tensor_all_with",
            "_check_type",
            "_check_value",
            "_check_with",
        ),
        "tensor.checked",
    ),
    "Future": "futures",
    "svd_lowrank": "ops.lowrank",
    "pca_lowrank": "ops.lowrank",
    **dict.fromkeys(
        ("sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "dsmm", "spmm"),
        "sparse",
    ),
    "_C_API": "extension.table",
    "OutOfMemoryError": "cuda",
    "TypedStorage": "tensor.typed_storage",
    **dict.fromkeys(
        (
            "BFloat16Storage",
            "BoolStorage",
            "ByteStorage",
            "CharStorage",
            "ComplexDoubleStorage",
            "ComplexFloatStorage",
            "DoubleStorage",
            "FloatStorage",
            "HalfStorage",
            "IntStorage",
            "LongStorage",
            "ShortStorage",
        ),
        "tensor.legacy_storage",
    ),
    "UntypedStorage": "tensor.untyped_storage",
    **dict.fromkeys(
        (
            "are_deterministic_algorithms_enabled",
            "get_deterministic_debug_mode",
            "get_float32_matmul_precision",
            "get_num_interop_threads",
            "is_deterministic_algorithms_warn_only_enabled",
            "is_warn_always_enabled",
            "set_deterministic_debug_mode",
            "set_float32_matmul_precision",
            "set_flush_denormal",
            "set_num_interop_threads",
            "set_warn_always",
            "use_deterministic_algorithms",
        ),
        "backends.whole_program",
    ),
    **dict.fromkeys(
        (
            "BoolTensor",
            "ByteTensor",
            "CharTensor",
            "ShortTensor",
            "IntTensor",
            "LongTensor",
            "HalfTensor",
            "BFloat16Tensor",
            "FloatTensor",
            "DoubleTensor",
            "ComplexFloatTensor",
            "ComplexDoubleTensor",
        ),
        "tensor.legacy",
    ),
}


def _look_up(name):
    if name in _LAZY:
        import importlib

        return importlib.import_module("tinygrad_ext." + name)
    if name in _LAZY_NAMES:
        import importlib

        value = getattr(importlib.import_module("tinygrad_ext." + _LAZY_NAMES[name]), name)
        globals()[name] = value
        return value
    if name.startswith("_foreach_"):
        from tinygrad_ext.tensor import foreach  # lazy: optimizers of libraries alone ask for it

        if name in foreach.names():
            return globals().setdefault(name, foreach.make(name))
    answer = _assemble.stand_in(name)
    if answer is not None:
        return answer
    raise _assemble.unknown_name(name, __dir__())


def __dir__():
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})


def is_tensor(obj):
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """Whether the tensor's dtype is a floating one."""
    return input.dtype.is_floating_point


def is_complex(input):
    """Whether the tensor's dtype is a complex one."""
    return input.dtype.is_complex


def numel(input):
    """Number of elements."""
    return input.numel()


inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None

with _collector_at_rest():
    from tinygrad_ext.core.call.boundary import boundary as _boundary
    from tinygrad_ext.core.call.overridable import overridable as _overridable
    from tinygrad_ext.core.data import dtype as _dtype
    from tinygrad_ext.core.data import tensor as _tensor
    from tinygrad_ext.core.data.dtype import (
        Size,
        can_cast,
        channels_last,
        channels_last_3d,
        contiguous_format,
        device,
        dtype,
        finfo,
        get_default_dtype,
        iinfo,
        jagged,
        layout,
        memory_format,
        preserve_format,
        promote_types,
        set_default_dtype,
        sparse_bsc,
        sparse_bsr,
        sparse_coo,
        sparse_csc,
        sparse_csr,
        strided,
    )
    from tinygrad_ext.core.data.promotion import result_type as _result_type
    from tinygrad_ext.core.data.random import Generator, default_generator, initial_seed, manual_seed, seed
    from tinygrad_ext.core.data.tensor import Parameter, Tensor
    from tinygrad_ext.core.grad import engine as _engine
    from tinygrad_ext.core.grad import record as _record
    from tinygrad_ext.core.loops.parallel import get_num_threads, set_num_threads

    globals().update(_dtype.by_name)

    from tinygrad_ext import _assemble, autograd
    from tinygrad_ext.autograd.modes import (
        enable_grad,
        inference_mode,
        is_anomaly_check_nan_enabled,
        is_anomaly_enabled,
        is_grad_enabled,
        is_inference_mode_enabled,
        no_grad,
        set_grad_enabled,
    )
    from tinygrad_ext.tensor.interop import as_tensor, asarray, from_dlpack, from_file, from_numpy, frombuffer

    __getattr__ = _boundary(_look_up)  # not before: what is imported here asks for what is not there yet
    is_floating_point, is_complex, numel, result_type = map(
        _overridable, (is_floating_point, is_complex, numel, _result_type)
    )
    _assemble.publish(_sys.modules[__name__], _os.path.dirname(__file__))
