"""Discrete Fourier transforms: three kernels, and the functions of torch.fft over them.

A kernel computes sum over k of x[k] exp(-2 pi i j k / n), times a scale; norm= says which direction carries 1 / n.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data.table import NAMED
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_TITLES = {row.name: row.title for row in NAMED}
_TYPES = "bool int float complex"
_REALS = "bool int float"

# ---- the kernels ---------------------------------------------------------------------------------------------------


def _inner(t, n, factor):
    """t with all of its last dimension multiplied that stands for two of n points: not the first, nor the middle."""
    count = (n - 1) // 2
    return t.slice_scatter(t.narrow(-1, 1, count) * factor, -1, 1, 1 + count)


def _points(make):
    for shape in ((5,), (2, 4), (3, 1), (2, 7, 3), (34,), (130,), (2, 0, 3)):
        for dim, forward, scale in ((-1, True, 1.0), (0, False, 0.5)):
            if shape[dim]:
                yield Sample(make(*shape), dim, forward, scale)


def _numpy_pairs(x, dim, forward, scale):
    import numpy

    return (numpy.fft.fft(x, axis=dim) if forward else numpy.fft.ifft(x, axis=dim) * x.shape[dim]) * scale


def _numpy_reals(x, scale):
    import numpy

    return numpy.fft.rfft(x) * scale


def _numpy_to_reals(x, n, scale):
    import numpy

    return numpy.fft.irfft(x, n) * n * scale


op(
    "aten::_fft_pairs(Tensor self, int dim, bool forward, float scale) -> Tensor",
    batch="dims",
    kernel="_fft_pairs",
    types="complex",
    variants="function",
    where="_fused",
    grad={"self": lambda grad, dim, forward, scale: fused._fft_pairs(grad, dim, not forward, scale)},
    jvp="linear",
    samples=_points,
    reference=_numpy_pairs,
    doc="The transform along a dimension, or the one with +i, times scale.",
)

op(
    "aten::_fft_reals(Tensor self, float scale) -> Tensor",
    batch="leading",
    kernel="_fft_reals",
    types="float",
    variants="function",
    where="_fused",
    grad={
        "self": lambda grad, self_shape, scale: fused._fft_to_reals(
            _inner(grad, self_shape[-1], 0.5), self_shape[-1], scale
        )
    },
    jvp="linear",
    samples=lambda make: [Sample(make(*shape), 0.5) for shape in ((1,), (6,), (3, 5), (0, 4), (2, 2), (256,), (37,))],
    reference=_numpy_reals,
    errors=[(lambda: fused._fft_reals(zeros(2, 0), 1.0), RuntimeError, "Invalid number of data points (0) specified")],
    doc="n / 2 + 1 numbers of the transform of n reals along the last dimension, times scale; the others are their "
    "conjugates.",
)

op(
    "aten::_fft_to_reals(Tensor self, int n, float scale) -> Tensor",
    batch="leading",
    kernel="_fft_to_reals",
    types="complex",
    variants="function",
    where="_fused",
    grad={"self": lambda grad, n, scale: _inner(fused._fft_reals(grad, scale), n, 2)},
    jvp="linear",
    samples=lambda make: [
        Sample(make(*shape), n, 0.5)
        for shape, n in (((1,), 1), ((4,), 6), ((3, 3), 5), ((0, 3), 4), ((2, 2), 2), ((20,), 38))
    ],
    reference=_numpy_to_reals,
    errors=[
        (lambda: fused._fft_to_reals(zeros(2, dtype=tg.complex64), 5, 1.0), RuntimeError, "5 reals come of 3 numbers"),
    ],
    doc="The way back of _fft_reals, of n reals; imaginary parts of the first number, and of the middle one of an even "
    "n, count as zero.",
)


# ---- arguments -----------------------------------------------------------------------------------------------------


def _promoted(title, t, real=False):
    """The input as a tensor of floats, or of complex numbers."""
    if t.is_complex():
        if real:
            raise RuntimeError(
                f"{title} expects a real input tensor, but got {_TITLES[t.dtype.name]}: fft takes complex ones"
            )
        return t
    if t.dtype in (tg.float16, tg.bfloat16):
        raise RuntimeError(
            f"Unsupported dtype {_TITLES[t.dtype.name]}: {title} computes in float32 and float64; use .float()"
        )
    if not t.is_floating_point():
        t = t.to(tg.get_default_dtype())
    return t if real else t.to(t.dtype.to_complex())


def _resized(t, dim, n):
    """With n points along dim: the first ones, or zeros behind them."""
    size = t.shape[dim]
    if size > n:
        return t.narrow(dim, 0, n)
    return t if size == n else t.constant_pad_nd([0, 0] * (t.dim() - 1 - dim) + [0, n - size])


def _wrapped(t, dim):
    rank = t.dim()
    if -rank <= dim < rank:
        return dim % rank
    if not rank and dim in (0, -1):
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    raise IndexError(
        f"Dimension out of range (expected to be in range of [{-(rank or 1)}, {(rank or 1) - 1}], but got {dim})"
    )


def _scale(norm, n, forward):
    """The factor of a direction; norm names the one that has 1 / n."""
    if norm == "ortho":
        return 1.0 / n**0.5
    if norm not in (None, "forward", "backward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"; it is "forward", "backward" or "ortho"')
    return 1.0 / n if (norm == "forward") is forward else 1.0


def _no_points(n):
    return RuntimeError(f"Invalid number of data points ({n}) specified: at least one is needed")


def _sizes(title, t, s, dim, least=0, last=None):
    """[(dim, points)] of the transforms of a function of several dimensions; last: points of the last one without s."""
    if dim is not None:
        dims = [_wrapped(t, d) for d in ([dim] if isinstance(dim, int) else dim)]
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"FFT dims must be unique, got {list(dim)}")
    if s is not None:
        s = [s] if isinstance(s, int) else list(s)
        if dim is not None and len(dims) != len(s):
            raise RuntimeError(
                f"When given, dim and shape arguments must have the same length: {len(dims)} and {len(s)}"
            )
        if len(s) > t.dim():
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {t.dim()} dimensions.")
        if dim is None:
            dims = list(range(t.dim() - len(s), t.dim()))
    elif dim is None:
        dims = list(range(t.dim()))
    if len(dims) < least:
        raise RuntimeError(f"{title} must transform at least one axis")
    points = [t.shape[d] for d in dims]
    if last is not None and dims:
        points[-1] = last(points[-1])
    if s is not None:
        points = [p if n == -1 else n for n, p in zip(s, points)]
    for n in points:
        if n < 1:
            raise _no_points(n)
    return list(zip(dims, points))


# ---- of one dimension, and of several ------------------------------------------------------------------------------


def _many(t, pairs, forward, scale):
    """The transforms along several dimensions, the last one first, the scale with the last that is done."""
    for d, n in pairs:
        t = _resized(t, d, n)
    for k, (d, _) in enumerate(reversed(pairs)):
        t = fused._fft_pairs(t, d, forward, scale if k == len(pairs) - 1 else 1.0)
    return t


def _at_end(function, t, dim, *args):
    """A kernel of the last dimension, along another one."""
    if dim == t.dim() - 1:
        return function(t, *args)
    return function(t.movedim(dim, -1), *args).movedim(-1, dim)


def _product(pairs):
    n = 1
    for _, points in pairs:
        n = n * points
    return n


def _line(t, n, dim, norm, forward, usual=lambda n: n):
    """Dimension, points and scale of a transform of one dimension; usual: the points of so many numbers without n."""
    d = _wrapped(t, dim)
    n = usual(t.shape[d]) if n is None else n
    if n < 1:
        raise _no_points(n)
    return d, n, 1.0 if norm is None and forward else _scale(norm, n, forward)


def _complex_line(title, t, n, dim, norm, forward):
    d, n, scale = _line(t, n, dim, norm, forward)
    return fused._fft_pairs(_resized(_promoted(title, t), d, n), d, forward, scale)


def _from_reals_line(title, t, n, dim, norm, forward):
    t = _promoted(title, t, real=True)
    d, n, scale = _line(t, n, dim, norm, forward)
    t = _at_end(fused._fft_reals, _resized(t, d, n), d, scale)
    return t if forward else t.conj_physical()


def _to_reals_line(title, t, n, dim, norm, forward):
    d, n, scale = _line(t, n, dim, norm, forward, lambda n: 2 * (n - 1))
    t = _promoted(title, t)
    t = _resized(t.conj_physical() if forward else t, d, n // 2 + 1)
    return _at_end(fused._fft_to_reals, t, d, n, scale)


def _complex(title, t, s, dim, norm, forward):
    pairs = _sizes(title, t, s, dim)
    t = _promoted(title, t)
    return _many(t, pairs, forward, _scale(norm, _product(pairs), forward)) if pairs else t.clone()


def _from_reals(title, t, s, dim, norm, forward):
    """rfftn, or ihfftn: the conjugates, in the other direction."""
    t = _promoted(title, t, real=True)
    pairs = _sizes(title, t, s, dim, least=1)
    *others, (d, n) = pairs
    scale = _scale(norm, _product(pairs), forward)
    t = _at_end(fused._fft_reals, _resized(t, d, n), d, 1.0 if others else scale)
    t = t if forward else t.conj_physical()
    return _many(t, others, forward, scale) if others else t


def _to_reals(title, t, s, dim, norm, forward):
    """irfftn, or hfftn: of the conjugate, in the other direction."""
    t = _promoted(title, t)
    pairs = _sizes(title, t, s, dim, least=1, last=lambda n: 2 * (n - 1))
    *others, (d, n) = pairs
    t = _many(t, others, forward, 1.0) if others else t
    t = _resized(t.conj_physical() if forward else t, d, n // 2 + 1)
    return _at_end(fused._fft_to_reals, t, d, n, _scale(norm, _product(pairs), forward))


# ---- the functions -------------------------------------------------------------------------------------------------

_FORMS = {
    "fft": (_complex, _complex_line),
    "rfft": (_from_reals, _from_reals_line),
    "irfft": (_to_reals, _to_reals_line),
    "hfft": (_to_reals, _to_reals_line),
    "ihfft": (_from_reals, _from_reals_line),
    "ifft": (_complex, _complex_line),
}
_SAYS = {
    "fft": "The transform sum over k of x[k] exp(-2 pi i j k / n)",
    "ifft": "The inverse of fft, with exp(+2 pi i j k / n) and 1 / n",
    "rfft": "The first n / 2 + 1 numbers of the transform of reals, of which the others are conjugates",
    "irfft": "The inverse of rfft, of n reals, by default 2 (m - 1) of m numbers",
    "hfft": "The transform of n numbers of which the second half is left out, being conjugates: it is real",
    "ihfft": "The inverse of hfft",
}


def _numpy(name):
    def reference(x, *args, **kwargs):
        import numpy
        import scipy.fft

        rename = {"dim": "axis" if name in _FORMS else "axes", "n": "n", "s": "s", "norm": "norm"}
        kwargs = {rename[k]: v for k, v in kwargs.items()}
        if name.startswith("r"):
            x = numpy.asarray(x, numpy.float64)
        return getattr(scipy.fft, name)(x, *args, **kwargs)

    return reference


def _lines(least=1):
    def samples(make):
        yield Sample(make(6))
        yield Sample(make(2, 5), 4, -1, "ortho")
        yield Sample(make(3, 4), n=7, dim=0)
        yield Sample(make(2, 4, 3), dim=1, norm="forward")
        yield Sample(make(1 + least), norm="backward")

    return samples


def _planes(make):
    yield Sample(make(3, 4))
    yield Sample(make(2, 3, 5), s=(4, 3))
    yield Sample(make(3, 2, 4), dim=(0, 2), norm="ortho")
    yield Sample(make(3, 4), s=(2, 3), dim=(1, 0), norm="forward")


def _solids(make):
    yield from _planes(make)
    yield Sample(make(2, 2, 3))
    yield Sample(make(5), norm="backward")


def _errors(name, real):
    def call(*args, dtype=tg.float32, shape=(3,), **kwargs):
        return lambda: functions[f"fft.{name}"](zeros(*shape, dtype=dtype), *args, **kwargs)

    yield call(0), RuntimeError, "Invalid number of data points (0) specified"
    yield call(-1), RuntimeError, "Invalid number of data points (-1) specified"
    yield call(dim=1), IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
    yield call(norm="none"), RuntimeError, 'Invalid normalization mode: "none"'
    if real:
        yield call(dtype=tg.complex64), RuntimeError, f"{name} expects a real input tensor, but got ComplexFloat"


def _errors_of_several(name, least):
    def call(*args, shape=(3, 4), **kwargs):
        return lambda: functions[f"fft.{name}"](zeros(*shape), *args, **kwargs)

    yield call(dim=(0, -2)), RuntimeError, "FFT dims must be unique"
    yield call(s=(2, 2), dim=(0,)), RuntimeError, "dim and shape arguments must have the same length"
    if name.endswith("n"):
        yield call(s=(2, 2, 2)), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions"
    if least:
        yield call(dim=()), RuntimeError, f"{name} must transform at least one axis"


for _name, (_make, _short) in _FORMS.items():
    _forward, _real = _name in ("fft", "rfft", "hfft"), _make is _from_reals
    op(
        f"aten::{_name}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
        compose=lambda self, n, dim, norm, make=_short, title=_name, forward=_forward: make(
            title, self, n, dim, norm, forward
        ),
        types=_REALS if _real else _TYPES,
        where="fft",
        variants="function out",
        samples=_lines(0 if _make is _complex else 1),
        reference=_numpy(_name),
        errors=list(_errors(_name, _real)),
        tags="casts",
        doc=f"{_SAYS[_name]}, along dim. n cuts the input or puts zeros behind it; norm names the direction that has "
        "1 / n, or is 'ortho' for 1 / sqrt(n) in both.",
    )
    for _kind in ("2", "n"):
        _default = "int[1]? dim=None" if _kind == "n" else "int[1] dim=[-2, -1]"
        op(
            f"aten::{_name}{_kind}(Tensor self, int[1]? s=None, {_default}, str? norm=None) -> Tensor",
            compose=lambda self, s, dim, norm, make=_make, title=_name + _kind, forward=_forward: make(
                title, self, s, dim, norm, forward
            ),
            types=_REALS if _real else _TYPES,
            where="fft",
            variants="function out",
            samples=_planes if _kind == "2" else _solids,
            reference=_numpy(_name + _kind),
            errors=list(_errors_of_several(_name + _kind, _make is not _complex)),
            tags="casts",
            doc=f"{_name} along {'two dimensions' if _kind == '2' else 'several dimensions, by default all'}: rfft, "
            "irfft, hfft and ihfft along the last of them, fft and ifft along the others. s are their points, of which "
            "-1 leaves one as it is.",
        )
