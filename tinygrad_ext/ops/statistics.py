"""Statistics and integrals of samples: covariance, quantiles, trapezoids."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.levels import levels_on
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped


def _numpy(name, *args, **options):
    import numpy

    return getattr(numpy, name)(*args, **options)


# ---- means and covariance ------------------------------------------------------------------------------------------


def _nanmean(self, dim, keepdim, dtype):
    if not self.dtype.is_floating_point and not self.dtype.is_complex:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype}: convert it "
            "first, for example with .float()"
        )
    count = self.isnan().logical_not()
    count = count.sum() if dim is None else count.sum(dim, keepdim)
    if dim is None and keepdim:
        count = count.reshape((1,) * self.dim())
    return self.nansum(dim, keepdim, dtype=dtype) / count


op(
    "aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    compose=_nanmean,
    variants="function method out",
    types="float",
    samples=lambda make: [
        Sample(make(3, 4)),
        Sample(make(3, 4), 1),
        Sample(make(2, 3, 4), (0, -1), True),
        Sample(make(()), None),
    ],
    reference=lambda x, dim=None, keepdim=False: _numpy(
        "nanmean", x, tuple(dim) if isinstance(dim, (tuple, list)) else dim, keepdims=keepdim
    ),
    tags="casts",
    doc="Mean of the elements that are not NaN; NaN where there are none.",
)


def _cov(self, correction, fweights, aweights):
    if self.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    if self.dtype == tg.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input: convert it first, for example with .float()")
    x = self if self.dim() == 2 else self.reshape(1, -1)
    n = x.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, n, integers=True)
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, n, integers=False)
        weights = aweights if weights is None else weights * aweights
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        x = x.to(tg.get_default_dtype())
    total = n if weights is None else weights.sum()
    mean = x.sum(1) / total if weights is None else (x * weights).sum(1) / total
    centred = x - mean.unsqueeze(1)
    if weights is None or aweights is None or correction == 0:
        divisor = total - correction
    else:
        share = aweights if fweights is None else fweights * aweights
        divisor = total - correction * (share * aweights).sum() / total
    if isinstance(divisor, tg.Tensor):
        divisor = divisor.clamp(min=0)
    else:
        if divisor <= 0:
            _warn(
                "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."
            )
        divisor = max(divisor, 0)
    left = centred if weights is None else centred * weights
    product = left @ centred.t().conj() / divisor
    return product.reshape(()) if x.shape[0] == 1 else product


def _check_weights(name, weights, n, integers):
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} dimensions"
        )
    if integers and weights.dtype.is_floating_point:
        raise RuntimeError(f"cov(): expected {name} to have integral dtype but got {name} with {weights.dtype} dtype")
    if not integers and not weights.dtype.is_floating_point:
        raise RuntimeError(
            f"cov(): expected {name} to have floating point dtype but got {name} with {weights.dtype} dtype"
        )
    if weights.numel() != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {n}"
        )
    if weights.device.type != "meta" and not hasattr(weights, "level") and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative; each is the weight of an observation")


def _warn(text):
    import warnings

    warnings.warn(text, UserWarning, stacklevel=4)


op(
    "aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    compose=_cov,
    variants="function method",
    types="float",
    samples=lambda make: [
        Sample(make(3, 5)),
        Sample(make(5)),
        Sample(make(2, 6), correction=0),
        Sample(make(2, 4), fweights=make.ints(1, 4, (4,))),
    ],
    reference=lambda x, correction=1, fweights=None: _numpy("cov", x, ddof=correction, fweights=fweights),
    errors=[
        (lambda: zeros(1, 1, 1).cov(), RuntimeError, "expected input to have two or fewer dimensions"),
        (lambda: zeros(2).cov(aweights=zeros(2) - 1), RuntimeError, "aweights cannot be negative"),
    ],
    doc="Covariance matrix of variables, the rows, over observations, the columns; of a vector its variance. "
    "fweights count observations, aweights say how much each is worth; correction is taken off their number.",
)


def _corrcoef(self):
    if self.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    c = self.cov()
    if c.dim() == 0:
        return c / c
    deviations = c.diagonal().sqrt()
    c = c / deviations.unsqueeze(1) / deviations
    return tg.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1)) if c.is_complex() else c.clamp(-1, 1)


op(
    "aten::corrcoef(Tensor self) -> Tensor",
    compose=_corrcoef,
    variants="function method",
    types="float",
    samples=lambda make: [Sample(make(3, 5)), Sample(make(5))],
    reference="numpy.corrcoef",
    doc="Pearson's correlation of variables, the rows, over observations, the columns; limited to [-1, 1].",
)

# ---- quantiles -----------------------------------------------------------------------------------------------------

_WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(self, q, dim, keepdim, interpolation, name="quantile", skip=False):
    if self.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if self.dtype not in (tg.float32, tg.float64):
        raise RuntimeError(
            f"{name}() input tensor must be either float or double dtype: convert it, for example with .float()"
        )
    if interpolation not in _WAYS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if isinstance(q, tg.Tensor):
        if q.dim() > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype != self.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor: {q.dtype} and {self.dtype}")
        if not (levels_on() or q.is_meta) and not bool((q >= 0).logical_and(q <= 1).all()):
            raise RuntimeError(f"{name}() q values must be in the range [0, 1], got {q.tolist()}")
    else:
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        q = tg.tensor(q, dtype=self.dtype, device=self.device)
    rank = self.dim()
    x = self.reshape(-1) if dim is None else self
    dim = 0 if dim is None else wrapped(dim, max(rank, 1))
    x = x.reshape(1) if x.dim() == 0 else x
    ordered = x.movedim(dim, -1).sort(-1)[0]
    size = ordered.shape[-1]
    flat = q.reshape(-1)
    if skip:
        there = ordered.isnan().logical_not().sum(-1, True)
        places = flat * (there - 1).clamp(min=0)
    else:
        places = (flat * (size - 1)).expand((*ordered.shape[:-1], flat.shape[0]))
        places = fused.where(ordered[..., -1:].isnan(), size - 1, places)
    if interpolation in ("lower", "higher", "nearest"):
        places = {"lower": places.floor, "higher": places.ceil, "nearest": places.round}[interpolation]()
    below = places.floor().long()
    low = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        share = (places - below) if interpolation == "linear" else 0.5
        high = ordered.gather(-1, places.ceil().long())
        low = tg.lerp(low, high, share)
    found = low.movedim(-1, 0)
    if keepdim:
        found = (
            found.reshape((found.shape[0], *(1,) * rank)) if x.dim() != rank or rank == 0 else found.unsqueeze(dim + 1)
        )
    return found if q.dim() else found.squeeze(0)


def _quantile_samples(make):
    yield Sample(make(4, 5), 0.3)
    yield Sample(make(4, 5), 0.75, 1)
    yield Sample(make(4, 5), 0.5, 0, True)
    for way in _WAYS[1:]:
        yield Sample(make(6), 0.35, interpolation=way)


def _quantiles_samples(make):
    for dim, keepdim in ((None, False), (1, False), (0, True)):
        yield Sample(make(4, 5), _at(make, 0.1, 0.5, 0.9), dim, keepdim)


def _at(make, *values):
    return tg.tensor(values, dtype=make.dtype)


def _quantile_reference(name):
    def reference(x, q, dim=None, keepdim=False, interpolation="linear"):
        import numpy

        plain = numpy.asarray(x).view(numpy.ndarray)
        shares = numpy.asarray(q).view(numpy.ndarray)
        return _numpy(name, plain, shares, axis=dim, keepdims=keepdim, method=interpolation).astype(x.dtype)

    return reference


for _name in ("quantile", "nanquantile"):
    for _suffix, _q, _samples in ((".scalar", "float", _quantile_samples), ("", "Tensor", _quantiles_samples)):
        op(
            f"aten::{_name}{_suffix}(Tensor self, {_q} q, int? dim=None, bool keepdim=False, *, "
            "str interpolation='linear') -> Tensor",
            compose=lambda self, q, dim, keepdim, interpolation, name=_name: _quantile(
                self, q, dim, keepdim, interpolation, name, name == "nanquantile"
            ),
            variants="function method out",
            types="float",
            samples=_samples,
            reference=_quantile_reference(_name),
            refuses={"out": f"{_name}() out tensor must be same dtype as the input tensor: {{wanted}}, got {{got}}"},
            errors=[
                (
                    lambda name=_name: getattr(zeros(2, 3), name)(0.5, 7),
                    IndexError,
                    "Dimension out of range",
                ),
                (lambda name=_name: getattr(zeros(2), name)(1.5), RuntimeError, "q must be in the range [0, 1]"),
            ],
            doc="The element below which a share q of the others lies, along a dimension or of all, "
            + ("NaN passed over." if _name == "nanquantile" else "NaN where there is one.")
            + " Between two elements `interpolation` says what: linear, lower, higher, midpoint or nearest. A vector "
            "of shares gives a new first dimension.",
        )

# ---- integrals -----------------------------------------------------------------------------------------------------


def _steps(name, y, x, dim):
    """Widths between the places of samples, to be multiplied with what lies along dim."""
    if x.dim() == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point: got "
                f"{x.shape[0]} places for {y.shape[dim]} samples along dimension {dim}"
            )
        widths = x.diff()
        return widths.reshape([-1 if d == dim else 1 for d in range(y.dim())])
    widths = x.diff(dim=dim - y.dim())
    return widths


def _areas(y, width, dim):
    n = y.shape[dim]
    last = max(n - 1, 0)
    return (y.narrow(dim, 0, last) + y.narrow(dim, n - last, last)) * width / 2


def _wrapped(name, y, dim):
    if y.dim() == 0:
        raise IndexError(f"Dimension specified as -1 but tensor has no dimensions: {name}() takes samples along one")
    return wrapped(dim, y.dim())


def _refuse_bool(name, y, x=None):
    if tg.bool in (y.dtype, y.dtype if x is None else x.dtype):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported; make numbers of it")


def _trapezoid_x(y, x, dim):
    dim = _wrapped("trapezoid", y, dim)
    if not y.shape[dim]:
        return y.sum(dim, dtype=y.dtype)
    _refuse_bool("trapezoid", y, x)
    return _areas(y, _steps("trapezoid", y, x, dim), dim).sum(dim)


def _trapezoid_dx(y, dx, dim):
    dim = _wrapped("trapezoid", y, dim)
    n = y.shape[dim]
    if not n:
        return y.sum(dim, dtype=y.dtype)
    _refuse_bool("trapezoid", y)
    if n < 2 or not (y.dtype.is_floating_point or y.dtype.is_complex):
        return _areas(y, dx, dim).sum(dim)
    ends = (y.select(dim, 0) + y.select(dim, -1)) / 2
    return (y.narrow(dim, 1, n - 2).sum(dim) + ends) * dx  # one pass, where the areas take four


def _cumulative_x(y, x, dim):
    dim = _wrapped("cumulative_trapezoid", y, dim)
    _refuse_bool("cumulative_trapezoid", y, x)
    return _areas(y, _steps("cumulative_trapezoid", y, x, dim), dim).cumsum(dim)


def _cumulative_dx(y, dx, dim):
    dim = _wrapped("cumulative_trapezoid", y, dim)
    _refuse_bool("cumulative_trapezoid", y)
    return _areas(y, dx, dim).cumsum(dim)


def _scipy_cumulative(y, x=None, *, dx=1, dim=-1):
    import scipy.integrate

    return scipy.integrate.cumulative_trapezoid(y, x, dx, dim)


def _scipy_trapezoid(y, x=None, *, dx=1, dim=-1):
    import scipy.integrate

    return scipy.integrate.trapezoid(y, x, dx, dim)


for _name, _x, _dx, _reference, _aliases in (
    ("trapezoid", _trapezoid_x, _trapezoid_dx, _scipy_trapezoid, "trapz"),
    ("cumulative_trapezoid", _cumulative_x, _cumulative_dx, _scipy_cumulative, None),
):
    op(
        f"aten::{_name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        compose=_x,
        variants="function",
        types="float",
        aliases=_aliases,
        samples=lambda make: [
            Sample(make(3, 4), make(4)),
            Sample(make(3, 4), make(3, 4)),
            Sample(make(3, 4), make(3), dim=0),
        ],
        reference=_reference,
        doc="Integral of samples y at places x along a dimension by the trapezoidal rule"
        + (", up to each place but the first." if _name.startswith("c") else "."),
    )
    op(
        f"aten::{_name}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        compose=_dx,
        variants="function",
        types="float",
        aliases=_aliases,
        samples=lambda make: [Sample(make(3, 4)), Sample(make(3, 4), dx=0.5, dim=0), Sample(make(5), dx=2.0)],
        reference=_reference,
        doc="The same for places that are dx apart.",
    )
