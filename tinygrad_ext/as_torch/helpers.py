"""Private functions of PyTorch's modules that libraries call, by the place and name that they have there.

They are wanted under the alias alone, so they stand here and not in the rooms.
"""

import contextlib
import importlib
import operator
import os
import tempfile
import unittest

import tinygrad_ext as _tg
from tinygrad_ext.as_torch.stand_ins import _C_types

_found = {}
_DYNAMO, _INQUIRIES = "tinygrad_ext.as_torch.stand_ins._dynamo", "tinygrad_ext.as_torch.inquiries"
_SEARCH, _NO_DEVICE = "tinygrad_ext.as_torch.line_search", "tinygrad_ext.as_torch.stand_ins.xpu"
_OPTIMIZER = "tinygrad_ext.as_torch.optimizer_helpers"
_OPTIMIZERS = [
    "_default_to_fused_or_foreach",
    "_get_value",
    "_stack_if_compiling",
    "_to_scalar",
    "_get_scalar_dtype",
    "_get_capturable_supported_devices",
    "_view_as_real",
    "_use_grad_for_differentiable",
    "_disable_dynamo_if_unsupported",
    "_device_dtype_check_for_fused",
]
_FORMS = [
    *["_adafactor", "_muon", "adadelta", "adagrad", "adam", "adamax", "adamw"],
    *["asgd", "nadam", "radam", "rmsprop", "rprop", "sgd"],
]
_OF_DYNAMO = [("eval_frame", "OptimizedModule"), ("utils", "is_compile_supported"), ("utils", "disable_cache_limit")]
_FUNCTORCH = "tinygrad_ext.as_torch.stand_ins.functorch"
_ELSEWHERE = {
    **{(f"_dynamo.{place}", name): _DYNAMO for place, name in _OF_DYNAMO},
    **{(place, "_disable_dynamo"): _DYNAMO for place in ("", "_compile")},
    **dict.fromkeys([("autograd.function", "_iter_filter"), ("autograd.function", "_nested_map")], _INQUIRIES),
    ("_functorch.eager_transforms", "_slice_argnums"): _INQUIRIES,
    **{
        ("_functorch.make_functional", name): _FUNCTORCH for name in ("functional_init", "functional_init_with_buffers")
    },
    **dict.fromkeys([("_subclasses.meta_utils", "assert_metadata_eq"), ("serialization", "_is_zipfile")], _INQUIRIES),
    **dict.fromkeys([("", "Argument"), ("", "FunctionSchema")], "tinygrad_ext.jit.script.schema"),
    **{("optim.optimizer", name): _OPTIMIZER for name in _OPTIMIZERS},
    **{("utils._foreach_utils", f"_get_{kind}_kernels_supported_devices"): _OPTIMIZER for kind in ("foreach", "fused")},
    **{(f"optim.{name}", name.lstrip("_")): "tinygrad_ext.optim._functional" for name in _FORMS},
    ("", "Type"): "tinygrad_ext.graph.types",
    ("", "FileCheck"): "tinygrad_ext.testing",
    ("", "Storage"): "tinygrad_ext.tensor.legacy_storage",
    **dict.fromkeys([("optim.lbfgs", "_cubic_interpolate"), ("optim.lbfgs", "_strong_wolfe")], _SEARCH),
    **dict.fromkeys([("mtia", "device_count"), ("mtia", "is_available")], _NO_DEVICE),
    **{("", name): f"{__package__}.removed" for name in ("eig", "lstsq", "matrix_rank", "solve", "symeig")},
}


def _of(place):
    def enter(function):
        _found[place, function.__name__] = function
        return function

    return enter


def find(place, name):
    """The function of a place, or None."""
    if (place, name) in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[place, name]), name)
    if place == "" and name in _C_types.NAMES:
        return getattr(_C_types, name)
    return _found.get((place, name))


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


# ---- compiled parts, files and tests -------------------------------------------------------------------------------

_found["_dynamo.test_case", "TestCase"] = unittest.TestCase
_found.update({("", f"__{name}__"): getattr(operator, f"__{name}__") for name in ("and", "or", "xor")})
_found.update({("", f"__{name}__"): getattr(operator, f"__{name}__") for name in ("lshift", "rshift")})
_found.update({("", f"has_{part}"): False for part in ("cuda", "cudnn", "mkldnn", "mps")})


@_of("")
def _nnpack_available():
    """False: NNPACK is not here."""
    return False


@_of("_utils_internal")
def get_file_path_2(*path_components):
    """The path of these parts."""
    return os.path.join(*path_components)


@_of("_utils_internal")
def get_writable_path(path):
    """The path, or a new folder where it cannot be written to."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


@_of("masked")
def _reduction_identity(op_name, input, *args):
    """What a masked reduction puts in place of elements that take no part; None for means and variances."""
    dtype, device = input.dtype, input.device
    name = op_name.rpartition(".")[2]
    if name in ("sum", "cumsum"):
        number = 0
    elif name in ("prod", "cumprod"):
        number = 1
    elif name in ("amax", "argmax", "logaddexp", "logsumexp"):
        number = _tg.masked._least(input, "logsumexp" if name.startswith("log") else name)
    elif name in ("amin", "argmin"):
        number = _tg.masked._most(input, name)
    elif name in ("mean", "var", "std"):
        return None
    elif name == "norm":
        order = args[0] if args else 2
        number = _tg.masked._most(input, name) if order == float("-inf") else 0
    elif name == "median":
        dtype, number = dtype if input.is_floating_point() else _tg.float32, float("nan")
    else:
        raise NotImplementedError(f"identity of {op_name} on {dtype} input")
    return _tg.tensor(number, dtype=dtype, device=device)


@_of("masked")
def _canonical_dim(dim, ndim):
    """Sorted dimensions from 0 on; None and () are all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    count = max(ndim, 1)
    found = set()
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -count <= d < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {d})"
            )
        if d % count in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.add(d % count)
    return tuple(sorted(found))


@_of("masked")
def _input_mask(input, *args, **kwargs):
    """The mask in the input's shape, of bools."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.expand(input.shape).to(_tg.bool)


_REDUCTIONS = set(
    ["sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp"]
)
_NORMALIZATIONS = set(["softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"])


@_of("masked")
def _output_mask(op, input, *args, **kwargs):
    """Which elements of a masked operation's result have an element that takes part."""
    name = op.__name__ if callable(op) else type(op).__name__
    if name not in _REDUCTIONS and name not in _NORMALIZATIONS:
        raise ValueError(f"_output_mask expected masked operation (got {name})")
    if name in _NORMALIZATIONS:
        return _input_mask(input, *args, **kwargs)
    args = args[1:] if name == "norm" else args
    dims = _canonical_dim(args[0] if args else kwargs.get("dim"), input.ndim)
    mask = _input_mask(input, *args, **kwargs)
    return mask.any(dims, bool(kwargs.get("keepdim", False))) if dims else mask


@_of("masked")
def _where(mask, input, fill_value):
    """The input where the mask is true, else the value."""
    return _tg.where(mask, input, fill_value)


@_of("utils._mode_utils")
def no_dispatch():
    """Without modes and types that see ops."""
    return _tg.overrides.dispatched._DisableTorchDispatch()


@_of("cuda")
def is_tf32_supported():
    """False: there is no such device."""
    return False


# ---- products ------------------------------------------------------------------------------------------------------


@_of("")
def _int_mm(self, mat2, *, out=None):
    """Product of two matrices of int8, summed in int32."""
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.dim() != 2 or matrix.dtype is not _tg.int8:
            raise RuntimeError(f"_int_mm: Expected {name} to be a matrix of int8, got {matrix.dim()}D {matrix.dtype}")
    return _tg.mm(self.int(), mat2.int(), out=out)


def _choice(place, name, former):
    """A function that keeps what is chosen, since one library computes all of it, and gives back the choice before."""
    chosen = [former]

    def choose(backend=None):
        before = chosen[0]
        chosen[0] = before if backend is None else backend
        return before

    choose.__name__ = choose.__qualname__ = name
    choose.__doc__ = "Keep a choice that changes nothing; gives back the one before."
    _found[place, name] = choose


_choice("backends.cuda", "preferred_blas_library", "cublas")
_choice("backends.cuda", "preferred_linalg_library", "default")


@_of("_C")
def _infer_size(a, b):
    """The sizes of two that are broadcast."""
    return _tg.broadcast_shapes(a, b)


@_of("_C")
def _swap_tensor_impl(a, b):
    """Let each of two tensors be what the other is, whoever refers to them weakly; class and attributes stay."""
    if not (isinstance(a, _tg.Tensor) and isinstance(b, _tg.Tensor)):
        raise TypeError(f"_swap_tensor_impl(): expected two tensors, got {type(a).__name__} and {type(b).__name__}")
    _tg.utils.swapping.exchange(a, b)


@_of("nn._reduction")
def get_enum(reduction):
    """The number of a reduction: 0 for none, 1 for mean, 2 for sum."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return ("none", "mean", "sum").index(reduction)


@_of("utils")
def set_module(obj, mod):
    """Say which module an object is of."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


_halves = [True]


@_of("_C")
def _get_cpu_allow_fp16_reduced_precision_reduction():
    """What `_set_cpu_allow_fp16_reduced_precision_reduction` was told; sums of half are in float32 all the same."""
    return _halves[0]


@_of("_C")
def _set_cpu_allow_fp16_reduced_precision_reduction(arg):
    """Keep a switch that changes nothing."""
    _halves[0] = bool(arg)


# ---- modes and copies of what a tensor is --------------------------------------------------------------------------

_found["_C", "_EnableTorchFunction"] = _tg.overrides.protocol._EnableTorchFunction


@_of("_C")
def _are_functorch_transforms_active():
    """Whether vmap or forward mode carries values now; gradients of transforms need nothing that carries them."""
    rooms = [importlib.import_module(f"tinygrad_ext.func.{name}") for name in ("carrying", "pairing")]  # lazy: few ask
    return any(isinstance(level, (rooms[0].Rows, rooms[1].Pairs)) for level in _tg.overrides.active_levels())


@_of("_C")
@contextlib.contextmanager
def _DisableFuncTorch():
    """Outside of transforms, nothing, whatever modes there are; inside there is no way around them."""
    if _are_functorch_transforms_active():
        raise NotImplementedError("torch._C._DisableFuncTorch: a transform cannot be left for a while; compute outside")
    yield


@_of("autograd")
@contextlib.contextmanager
def _force_original_view_tracking(mode):
    """Nothing: there is one way in which views know their bases."""
    yield
