"""Making tensors: empty, filled, like others, ranges, from data; and the in-place fills."""

from tinygrad_ext.ops import batching
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

# what every factory takes after its own arguments
_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"
)
_FORMAT = _OPTIONS + ", MemoryFormat? memory_format=None"
_ALL = "bool int float half complex"


def _sizes(make):
    for size in ((2, 3), (), (0, 4), (5,)):
        yield Sample(size, dtype=make.dtype)


def _fulls(make):
    yield Sample((2, 3), 2, dtype=make.dtype)
    yield Sample((), 1.5)
    yield Sample((0, 2), True)
    yield Sample((3,), 7)


def _likes(make):
    yield Sample(make(2, 3))
    yield Sample(make(0, 2))
    yield Sample(make())
    yield Sample(make(4, 3).t())


def _news(make):
    yield Sample(make(2), (3, 2))
    yield Sample(make(), ())
    yield Sample(make(1), (0, 3))


def _no_grad(grad):
    return grad.new_zeros(grad.shape)


def _numpy():
    import numpy

    return numpy


# ---- by size -------------------------------------------------------------------------------------------------------

op(
    f"aten::empty(int[] size, *, {_FORMAT}) -> Tensor",
    kernel="empty",
    variants="function out",
    types=_ALL,
    samples=_sizes,
    tags="unset",
    errors=[(lambda: __import__("tinygrad_ext").empty(-1), RuntimeError, "negative dimension")],
    doc="Tensor of the given size whose elements are not set.",
)

op(
    f"aten::zeros(int[] size, *, {_OPTIONS}) -> Tensor",
    kernel="zeros",
    variants="function out",
    types=_ALL,
    samples=_sizes,
    reference=lambda size, dtype: _numpy().zeros(size, dtype.name),
    errors=[(lambda: __import__("tinygrad_ext").zeros(2, -3), RuntimeError, "negative dimension -3")],
    doc="Tensor of zeros.",
)

op(
    f"aten::ones(int[] size, *, {_OPTIONS}) -> Tensor",
    kernel="ones",
    variants="function out",
    types=_ALL,
    samples=_sizes,
    reference=lambda size, dtype: _numpy().ones(size, dtype.name),
    doc="Tensor of ones.",
)

op(
    f"aten::full(int[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor",
    kernel="full",
    variants="function out",
    samples=_fulls,
    doc="Tensor filled with one value, whose kind of number gives the dtype unless one is named.",
)

op(
    f"aten::scalar_tensor(Scalar s, *, {_OPTIONS}) -> Tensor",
    kernel="scalar_tensor",
    variants="function",
    samples=lambda make: [Sample(2, dtype=make.dtype), Sample(1.5)],
    doc="0-d tensor of one number, in the default dtype unless one is named.",
)

op(
    f"aten::empty_strided(int[] size, int[] stride, *, {_OPTIONS}) -> Tensor",
    kernel="empty_strided",
    variants="function",
    tags="unset",
    samples=lambda make: [Sample((2, 3), (1, 2), dtype=make.dtype), Sample((2, 0), (7, 1))],
    errors=[(lambda: __import__("tinygrad_ext").empty_strided((2,), (-1,)), RuntimeError, "negative strides")],
    doc="Tensor with the given strides, in elements, whose elements are not set.",
)

# ---- like another --------------------------------------------------------------------------------------------------

for _name, _text in (("empty", "not set"), ("zeros", "zero"), ("ones", "one")):
    op(
        f"aten::{_name}_like(Tensor self, *, {_FORMAT}) -> Tensor",
        batch="leading",
        kernel=f"{_name}_like",
        variants="function",
        types=_ALL,
        samples=_likes,
        reference=None if _name == "empty" else f"numpy.{_name}_like",
        tags="unset" if _name == "empty" else "",
        doc=f"Tensor of the same shape, dtype, device and order in memory, whose elements are {_text}.",
    )
    op(
        f"aten::new_{_name}(Tensor self, int[] size, *, {_OPTIONS}) -> Tensor",
        batch=batching.new_filled(f"new_{_name}"),
        kernel=f"new_{_name}",
        variants="method",
        types=_ALL,
        samples=_news,
        tags="unset" if _name == "empty" else "",
        doc=f"Tensor of the given size with self's dtype and device, whose elements are {_text}.",
    )

op(
    f"aten::full_like(Tensor self, Scalar fill_value, *, {_FORMAT}) -> Tensor",
    batch="leading",
    kernel="full_like",
    variants="function",
    reference="numpy.full_like",
    samples=lambda make: [Sample(make(2, 3), 3), Sample(make(), 1), Sample(make(0), 2), Sample(make(2, 3).t(), 1)],
    doc="Tensor of the same shape, dtype and device, filled with one value.",
)

op(
    f"aten::new_full(Tensor self, int[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor",
    batch=batching.new_filled("new_full", 1),
    kernel="new_full",
    variants="method",
    samples=lambda make: [Sample(make(2), (3, 2), 1), Sample(make(), (), 2)],
    doc="Tensor of the given size with self's dtype and device, filled with one value.",
)

op(
    f"aten::new_empty_strided(Tensor self, int[] size, int[] stride, *, {_OPTIONS}) -> Tensor",
    batch=batching.new_empty_strided,
    kernel="new_empty_strided",
    variants="method",
    types=_ALL,
    tags="unset",
    samples=lambda make: [Sample(make(2), (2, 3), (1, 2)), Sample(make(), (2, 0), (7, 1)), Sample(make(3), (), ())],
    errors=[(lambda: __import__("tinygrad_ext").ones(2).new_empty_strided((2,), (1, 1)), RuntimeError, "must match")],
    doc="Tensor of the given size and strides, in elements, with self's dtype and device, whose elements are not set.",
)

# ---- ranges --------------------------------------------------------------------------------------------------------


def _ends(make):
    for end in (5, 0, 4.5):
        yield Sample(end)


op(
    f"aten::arange(Scalar end, *, {_OPTIONS}) -> Tensor",
    kernel="arange",
    variants="function out",
    tags="fills",
    reference="numpy.arange",
    samples=_ends,
    doc="0, 1, 2, ... up to but without end: int64 for an integer, else the default dtype.",
)

op(
    f"aten::arange.start(Scalar start, Scalar end, *, {_OPTIONS}) -> Tensor",
    kernel="arange_start",
    variants="function out",
    tags="fills",
    reference="numpy.arange",
    samples=lambda make: [Sample(1, 4), Sample(1.5, 4), Sample(3, 3)],
    doc="start, start + 1, ... up to but without end.",
)

op(
    f"aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {_OPTIONS}) -> Tensor",
    kernel="arange_step",
    variants="function out",
    tags="fills",
    reference="numpy.arange",
    samples=lambda make: [Sample(0, 10, 3), Sample(5, 0, -2), Sample(0.0, 1.0, 0.1), Sample(1, 1, 5)],
    errors=[
        (lambda: __import__("tinygrad_ext").arange(0, 3, 0), RuntimeError, "step must be nonzero"),
        (lambda: __import__("tinygrad_ext").arange(0, 3, -1), RuntimeError, "inconsistent with step sign"),
    ],
    doc="start, start + step, ... up to but without end: start + i * step, rounded once.",
)

op(
    f"aten::linspace(Scalar start, Scalar end, int steps, *, {_OPTIONS}) -> Tensor",
    kernel="linspace",
    variants="function out",
    tags="fills",
    reference="numpy.linspace",
    samples=lambda make: [Sample(0, 1, 5), Sample(-2.5, 10, 8), Sample(3, 3, 1), Sample(0, 1, 0)],
    errors=[(lambda: __import__("tinygrad_ext").linspace(0, 1, -1), RuntimeError, "must be non-negative")],
    doc="steps numbers at equal distances, start and end included.",
)


def _logspace(start, end, steps, base, dtype, layout, device, pin_memory, requires_grad):
    import tinygrad_ext as tg  # lazy: not whole while this module is read

    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative: logspace() got {steps}")
    if dtype is None:
        is_complex = isinstance(start, complex) or isinstance(end, complex)
        dtype = tg.result_type(1.0, 1j) if is_complex else tg.get_default_dtype()
    elif not dtype.is_complex and (isinstance(start, complex) or isinstance(end, complex)):
        raise RuntimeError(
            f"torch.logspace(): inferred dtype {tg.result_type(1.0, 1j)} can't be safely cast to passed dtype {dtype}: "
            "the bounds are complex, so leave dtype out or give a complex one"
        )
    if not (dtype.is_complex or dtype.is_floating_point):
        start, end = int(start), int(end)
    wide = tg.complex128 if dtype.is_complex else tg.float64
    found = tg.pow(base, tg.linspace(start, end, steps, dtype=wide, device=device)).to(dtype)
    return found.requires_grad_() if requires_grad else found


op(
    f"aten::logspace(Scalar start, Scalar end, int steps, float base=10.0, *, {_OPTIONS}) -> Tensor",
    compose=_logspace,
    jvp="none",
    variants="function out",
    tags="fills adopts",
    reference=lambda start, end, steps, base=10.0: _numpy().logspace(start, end, steps, base=base),
    samples=lambda make: [Sample(0, 1, 5), Sample(-2.5, 1, 8), Sample(3, 3, 1), Sample(0, 1, 0), Sample(1, 4, 4, 2.0)],
    errors=[(lambda: __import__("tinygrad_ext").logspace(0, 1, -1), RuntimeError, "number of steps must be non-negat")],
    doc="base to the power of steps numbers at equal distances from start to end, both included.",
)

op(
    f"aten::eye(int n, *, {_OPTIONS}) -> Tensor",
    kernel="eye",
    variants="function out",
    reference="numpy.eye",
    samples=lambda make: [Sample(3), Sample(0), Sample(1)],
    errors=[(lambda: __import__("tinygrad_ext").eye(-1), RuntimeError, "must be greater or equal to 0")],
    doc="Unit matrix: ones on the diagonal.",
)

op(
    f"aten::eye.m(int n, int m, *, {_OPTIONS}) -> Tensor",
    kernel="eye_m",
    variants="function out",
    reference="numpy.eye",
    samples=lambda make: [Sample(2, 4), Sample(3, 1), Sample(0, 2)],
    doc="Ones on the diagonal of n rows and m columns.",
)

for _name, _text in (("tril", "on and below"), ("triu", "on and above")):
    op(
        f"aten::{_name}_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor",
        kernel=f"{_name}_indices",
        variants="function",
        samples=lambda make: [Sample(3, 4), Sample(3, 3, 1), Sample(2, 5, -1), Sample(0, 3), Sample(3, 2, 5)],
        doc=f"Row and column numbers of the elements {_text} a diagonal, as a tensor of two rows.",
    )

# ---- from data -----------------------------------------------------------------------------------------------------


def _data(make):
    yield Sample([[1, 2], [3, 4]], dtype=make.dtype)
    yield Sample([0.0, 1.5, 1])
    yield Sample([])
    yield Sample(True)


op(
    "aten::tensor(Any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False, bool "
    "pin_memory=False) -> Tensor",
    kernel="tensor",
    shape="kernel",
    tags="any_device",
    variants="function",
    samples=_data,
    errors=[
        (
            lambda: __import__("tinygrad_ext").tensor([[1], [2, 3]]),
            ValueError,
            "expected sequence of length 1 at dim 1 (got 2)",
        )
    ],
    doc="Tensor with a copy of data: a number, nested sequences of numbers, an array, or another tensor.",
)

op(
    "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    batch="leading",
    kernel="clone",
    tags="any_device moves",
    grad={"self": "grad"},
    jvp="linear",
    types=_ALL,
    samples=_likes,
    reference="numpy.copy",
    doc="Copy with memory of its own.",
)

op(
    "aten::detach(Tensor(a) self) -> Tensor(a)",
    batch="leading",
    kernel="detach",
    tags="any_device",
    types=_ALL,
    samples=_likes,
    doc="The same memory outside the graph.",
)

op(
    "aten::alias(Tensor(a) self) -> Tensor(a)",
    batch="leading",
    kernel="detach",
    view=True,
    variants="",
    tags="any_device",
    types=_ALL,
    grad={"self": lambda grad: grad},
    samples=_likes,
    doc="A view of all of self.",
)

# ---- writing in place ----------------------------------------------------------------------------------------------

op(
    "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    batch=batching.copy,
    kernel="copy",
    takes_out=True,
    shape="kernel",
    tags="any_device",
    variants="inplace",
    numbers="src",
    grad={"self": _no_grad, "src": "grad"},
    jvp="linear",
    types=_ALL,
    samples=lambda make: [Sample(make(2, 3), make(3)), Sample(make(2), make()), Sample(make(0, 2), make(1, 2))],
    doc="copy_: overwrite self with src, which broadcasts and converts to self's shape and dtype.",
)

op(
    "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
    batch="leading",
    kernel="fill",
    tags="any_device",
    variants="function function_ inplace",
    grad={"self": _no_grad},
    jvp=lambda self: None,
    samples=lambda make: [Sample(make(2, 3), 2), Sample(make(), 1), Sample(make(0), 3)],
    doc="Every element set to one value.",
)

op(
    "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
    batch=batching.fill,
    kernel="fill",
    tags="any_device",
    variants="function function_ inplace",
    grad={"self": _no_grad, "value": lambda grad: grad.sum()},
    jvp="linear",
    samples=lambda make: [Sample(make(2, 3), make()), Sample(make(), make())],
    doc="Every element set to the value of a 0-d tensor.",
)

op(
    "aten::zero(Tensor self) -> Tensor",
    batch="leading",
    kernel="zero",
    tags="any_device",
    variants="function_ inplace",
    grad={"self": _no_grad},
    jvp="linear",
    types=_ALL,
    samples=_likes,
    doc="zero_: set every element to zero.",
)
