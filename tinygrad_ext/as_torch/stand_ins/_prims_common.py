"""torch._prims_common and torch._prims.utils: what PyTorch's own tests ask about dtypes, sizes and strides."""

import enum
import functools
import inspect
from numbers import Number

import tinygrad_ext as _tg

_WIDER = {_tg.float16: _tg.float32, _tg.bfloat16: _tg.float32, _tg.complex32: _tg.complex64}
_REAL_OF = {_tg.complex32: _tg.float16, _tg.complex64: _tg.float32, _tg.complex128: _tg.float64}
_COMPLEX_OF = {**{real: of for of, real in _REAL_OF.items()}, _tg.bfloat16: _tg.complex64}
_KINDS = (bool, int, float, complex)  # from the lowest


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """What a pointwise function makes of the dtype that its arguments have together."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(enum.Enum):
    """What a reduction makes of the dtype of its argument."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


# ---- dtypes --------------------------------------------------------------------------------------------------------


def is_boolean_dtype(dtype):
    """Whether it is bool."""
    return dtype is _tg.bool


def is_float_dtype(dtype):
    """Whether it has floats."""
    return dtype.is_floating_point


def is_complex_dtype(dtype):
    """Whether it has complex numbers."""
    return dtype.is_complex


def is_integer_dtype(dtype):
    """Whether it has integers, of which truth values are none."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is _tg.bool)


def is_grad_dtype(dtype):
    """Whether there are gradients of it."""
    return dtype.is_floating_point or dtype.is_complex


def is_low_precision_dtype(dtype):
    """Whether PyTorch computes with wider numbers than it has."""
    return dtype in _WIDER


def corresponding_real_dtype(dtype):
    """The dtype of the parts of complex numbers."""
    return _REAL_OF[dtype]


def corresponding_complex_dtype(dtype):
    """The complex dtype whose parts have a dtype."""
    return _COMPLEX_OF[dtype]


def get_computation_dtype(dtype):
    """The dtype that PyTorch computes in."""
    return _WIDER.get(dtype, dtype)


def dtype_to_type(dtype):
    """The type of Python's whose numbers a dtype has."""
    if not isinstance(dtype, _tg.dtype):
        raise AssertionError(f"dtype_to_type: expected a dtype, got {type(dtype).__name__}")
    return complex if dtype.is_complex else float if dtype.is_floating_point else bool if dtype is _tg.bool else int


dtype_to_type_ctor = dtype_to_type


def type_to_dtype(typ):
    """The dtype of a type of Python's numbers."""
    default = _tg.get_default_dtype()
    of = {bool: _tg.bool, int: _tg.int64, float: default, complex: _COMPLEX_OF[default]}
    if typ not in of:
        raise ValueError(f"type_to_dtype: expected bool, int, float or complex, got {typ!r}")
    return of[typ]


def get_dtype(x):
    """The dtype of a tensor or number."""
    return x.dtype if isinstance(x, _tg.Tensor) else type_to_dtype(type(x))


def number_type(x):
    """The type of a number."""
    return type(x)


def get_higher_type(a, b):
    """The later of two types in bool, int, float, complex."""
    return max(a, b, key=_KINDS.index)


def get_higher_dtype(a, b):
    """What two dtypes, tensors or numbers make together; None takes no part."""
    a, b = (x if x is None or isinstance(x, _tg.dtype) else get_dtype(x) for x in (a, b))
    return b if a is None else a if b is None else _tg.promote_types(a, b)


def _together(values):
    """The dtype of tensors and numbers: those with dimensions go before those without, and these before numbers."""
    ranks = ([], [], [])
    for x in values:
        if isinstance(x, _tg.Tensor):
            ranks[0 if x.dim() else 1].append(x.dtype)
        elif isinstance(x, Number):
            ranks[2].append(type_to_dtype(type(x)))
        else:
            raise ValueError(f"elementwise_dtypes: expected tensors and numbers, got {type(x).__name__}")
    ranks = [functools.reduce(_tg.promote_types, rank) for rank in ranks if rank]
    made = ranks[0]
    for dtype in ranks[1:]:
        made = _tg.result_type(_tg.empty(1, dtype=made), _tg.empty((), dtype=dtype))
    return made


def elementwise_dtypes(*_args, type_promotion_kind):
    """(dtype that is computed in, dtype of the result) of a pointwise function of tensors and numbers."""
    kind, of = type_promotion_kind, ELEMENTWISE_TYPE_PROMOTION_KIND
    dtype = _together([x for x in _args if x is not None])
    if kind is of.NO_OPMATH:
        return dtype, dtype
    if kind is of.INT_TO_FLOAT and not is_grad_dtype(dtype):
        dtype = _tg.get_default_dtype()
    if kind is of.BOOL_TO_LONG and dtype is _tg.bool:
        dtype = _tg.int64
    result = (
        _REAL_OF.get(dtype, dtype) if kind is of.COMPLEX_TO_FLOAT else _tg.bool if kind is of.ALWAYS_BOOL else dtype
    )
    return get_computation_dtype(dtype), result


def reduction_dtypes(arg, output_dtype_kind, dtype=None):
    """(dtype that is computed in, dtype of the result) of a reduction; None: the first as it is."""
    of = REDUCTION_OUTPUT_TYPE_KIND
    own = dtype or arg.dtype
    results = {of.SAME: own, of.COMPLEX_TO_FLOAT: _REAL_OF.get(own, own), of.KEEP_PROMOTED_TYPE: None}
    return get_computation_dtype(own), results.get(output_dtype_kind, _tg.bool)


# ---- sizes and strides ---------------------------------------------------------------------------------------------


def same_shape(a, b):
    """Whether two shapes are the same."""
    return tuple(a) == tuple(b)


is_same_shape = same_shape


def canonicalize_dim(rank, idx, wrap_scalar=True):
    """A dimension counted from the first."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    rank = rank or int(wrap_scalar)
    if not rank:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank, indices, wrap_scalar=True):
    """A dimension, or a tuple of some, counted from the first."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)


def make_contiguous_strides_for(shape, row_major=True):
    """Strides of a dense tensor, or with the last two dimensions of its matrices changed for each other."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    if not row_major and len(shape) > 1:
        strides[:2] = max(shape[-2], 1), 1
    return tuple(reversed(strides))


def check_significant_strides(a, b, *, only_cuda=True):
    """(Whether strides agree in dimensions of more than one element, the first dimension where they do not)."""
    if not only_cuda and a.numel():
        for i, (size, one, other) in enumerate(zip(a.shape, a.stride(), b.stride())):
            if size > 1 and one != other:
                return False, i
    return True, None


def compare_tensor_meta(a, b, check_sizes=True, check_strides=False, *, check_conj=True):
    """RuntimeError where two tensors differ in what is known without their elements."""
    asked = {"dtype": lambda t: t.dtype, "device": lambda t: t.device, "is_neg": _tg.Tensor.is_neg}
    if check_sizes:
        asked = {"shape": lambda t: tuple(t.shape), **asked}
    if check_conj:
        asked["is_conj"] = _tg.Tensor.is_conj
    if check_strides:
        same, at = check_significant_strides(a, b, only_cuda=False)
        if not same:
            raise RuntimeError(f"Stride mismatch! Strides are {a.stride()} and {b.stride()} (mismatched at {at})!")
        asked["storage_offset"] = _tg.Tensor.storage_offset
    for name, ask in asked.items():
        if ask(a) != ask(b):
            raise RuntimeError(f"compare_tensor_meta: {name} of the two is {ask(a)} and {ask(b)}")


# ---- functions -----------------------------------------------------------------------------------------------------


def _maybe_remove_out_wrapper(fn):
    """The function inside of what gave it `out=`; one that was not wrapped as it is."""
    return inspect.unwrap(fn, stop=lambda f: not hasattr(f, "_torch_decompositions_out_wrapper"))
