"""`testing.assert_close`: PyTorch's comparison of tensors, numbers, arrays, and sequences and mappings of them.

The pairs of leaves are found first and compared then, so what cannot be compared is told before a difference is.
"""

import cmath
import warnings
from collections import namedtuple
from collections.abc import Mapping, Sequence

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary as _boundary

# (rtol, atol) of a dtype; the larger of each counts for two dtypes, and whatever is not named must be equal
_TOLERANCES = {
    tg.float16: (1e-3, 1e-5),
    tg.bfloat16: (1.6e-2, 1e-5),
    tg.float32: (1.3e-6, 1e-5),
    tg.float64: (1e-7, 1e-7),
    tg.complex64: (1.3e-6, 1e-5),
    tg.complex128: (1e-7, 1e-7),
}
_LOOSE = {tg.float16: (1e-3, 1e-3), tg.float32: (1e-4, 1e-5), tg.float64: (1e-5, 1e-8)}  # of assert_allclose
_DTYPE_OF = {int: tg.int64, float: tg.float64, complex: tg.complex128}

_Rules = namedtuple("_Rules", "subclasses rtol atol equal_nan device dtype layout stride")


@_boundary
def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raise AssertionError unless actual and expected agree: ``|actual - expected| <= atol + rtol * |expected|``.

    Args:
        actual, expected: tensors, NumPy arrays, numbers, bools, None, or sequences and mappings of them, nested.
        allow_subclasses: whether two types agree of which one derives from the other.
        rtol, atol: tolerances, both or none; none gives those of the dtype (float32: 1.3e-6 and 1e-5; 0 for integers).
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: what of tensors must agree besides shape and values.
        msg: the text of the error, or a function from the text that would be used to it.

    Raises:
        AssertionError: they differ; the text says how many elements do, by how much, and where most.
        TypeError: two values of types that cannot be compared. ValueError: one of rtol and atol without the other.

        >>> import tinygrad_ext as tg
        >>> tg.testing.assert_close(tg.ones(2), tg.ones(2) + 1e-7)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    if rtol is not None and (rtol < 0 or atol < 0):
        raise ValueError(f"assert_close(): rtol and atol must not be negative, got rtol={rtol} and atol={atol}")
    rules = _Rules(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    try:
        for path, compare, one, other in list(_leaves(actual, expected, (), rules)):
            _at(path, compare, one, other, rules)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


@_boundary
def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """Deprecated: `assert_close` for values of other kinds and dtypes, which become tensors of actual's first."""
    warnings.warn("testing.assert_allclose() is deprecated: use testing.assert_close().", FutureWarning, stacklevel=2)
    actual = tg.as_tensor(actual)
    expected = tg.as_tensor(expected, dtype=None if isinstance(expected, tg.Tensor) else actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = (max(pair) for pair in zip(*(_LOOSE.get(t.dtype, (0.0, 0.0)) for t in (actual, expected))))
    loose = {"check_dtype": False, "check_layout": False, "msg": msg or None}
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, **loose)


def _at(path, check, *arguments):
    """What check returns; its error names the item of the containers."""
    try:
        return check(*arguments)
    except (AssertionError, TypeError) as error:
        if path:
            where = "".join(f"[{key!r}]" for key in path)
            error.args = (f"{error.args[0]}\n\nThe failure occurred for item {where}",)
        raise


# ---- the pairs -----------------------------------------------------------------------------------------------------


def _leaves(actual, expected, path, rules):
    """(path, comparison, actual, expected) of each pair of leaves."""
    if _both(actual, expected, Sequence) and not _both(actual, expected, str):
        if len(actual) != len(expected):
            _at(path, _fail, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i in range(len(actual)):
            yield from _leaves(actual[i], expected[i], (*path, i), rules)
    elif _both(actual, expected, Mapping):
        _at(path, _same_keys, actual, expected)
        for key in _in_order(actual):
            yield from _leaves(actual[key], expected[key], (*path, key), rules)
    else:
        yield path, _at(path, _comparison, actual, expected, rules), actual, expected


def _both(actual, expected, kind):
    return isinstance(actual, kind) and isinstance(expected, kind)


def _in_order(mapping):
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def _same_keys(actual, expected):
    missing, more = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or more:
        raise AssertionError(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_in_order(missing)}\n"
            f"Additional keys in the actual mapping: {_in_order(more)}"
        )


def _comparison(actual, expected, rules):
    """The function that compares two leaves. TypeError for types that have none in common."""
    import numpy

    if actual is None or expected is None:
        return _none
    if _both(actual, expected, (bool, numpy.bool_)):
        return _bools
    if _both(actual, expected, (int, float, complex, numpy.number)):
        return _numbers
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    tensors = _both(actual, expected, tg.Tensor) or _both(actual, expected, numpy.ndarray)
    if tensors and related and (rules.subclasses or type(actual) is type(expected)):
        return _tensors
    raise TypeError(
        f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}. Convert one of "
        "them, for example with as_tensor()."
    )


# ---- leaves that are no tensors --------------------------------------------------------------------------------------


def _fail(text):
    raise AssertionError(text)


def _none(actual, expected, rules):
    if actual is not expected:
        raise AssertionError(f"None mismatch: {actual} is not {expected}")


def _bools(actual, expected, rules):
    if bool(actual) is not bool(expected):
        raise AssertionError(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")


def _numbers(actual, expected, rules):
    actual, expected = [x if type(x) in _DTYPE_OF or isinstance(x, bool) else x.item() for x in (actual, expected)]
    if rules.dtype and type(actual) is not type(expected):
        raise AssertionError(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = _tolerances(rules, *[_DTYPE_OF.get(type(x), tg.bool) for x in (actual, expected)])
    if actual == expected or (rules.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    relative = difference / abs(expected) if expected else float("inf")
    raise AssertionError(_scalars(actual, expected, difference, relative, rtol, atol))


def _tolerances(rules, *dtypes):
    if rules.rtol is not None:
        return rules.rtol, rules.atol
    return default_tolerances(*dtypes)


def default_tolerances(*inputs, dtype_precisions=None):
    """(rtol, atol) that `assert_close` takes for tensors or dtypes where none are given: the largest among theirs.

    ``dtype_precisions`` maps dtypes to other pairs.
    """
    known = dtype_precisions or _TOLERANCES
    pairs = []
    for x in inputs:
        if not isinstance(x, (tg.Tensor, tg.dtype)):
            raise TypeError(
                f"default_tolerances(): Expected a torch.Tensor or a torch.dtype, but got {type(x)} instead."
            )
        pairs.append(known.get(x.dtype if isinstance(x, tg.Tensor) else x, (0.0, 0.0)))
    if not pairs:
        raise ValueError("default_tolerances(): expected a tensor or a dtype, got none: name one")
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def get_tolerances(*inputs, rtol, atol, id=()):
    """(rtol, atol): those given, or the defaults of tensors or dtypes where both are None."""
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"get_tolerances(): Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    return default_tolerances(*inputs) if rtol is None else (rtol, atol)


# ---- tensors -------------------------------------------------------------------------------------------------------


def _tensors(actual, expected, rules):
    actual, expected = tg.as_tensor(actual).detach(), tg.as_tensor(expected).detach()
    _same_attributes(actual, expected, rules)
    if actual.is_meta or expected.is_meta:
        return  # no values to compare
    if str(actual.layout) != str(expected.layout):
        actual, expected = (t if str(t.layout) == "torch.strided" else t.to_dense() for t in (actual, expected))
    if str(actual.layout) == "torch.strided":
        _values(actual, expected, _tolerances(rules, actual.dtype, expected.dtype), rules.equal_nan)
    else:
        _sparse(actual, expected, rules)


# What the parts of a sparse layout are called in messages, and by which methods they are asked for, the values last.
_PARTS = {
    "torch.sparse_coo": ("COO", ("indices", "values")),
    "torch.sparse_csr": ("CSR", ("crow_indices", "col_indices", "values")),
    "torch.sparse_csc": ("CSC", ("ccol_indices", "row_indices", "values")),
}


def _sparse(actual, expected, rules):
    """Compares the parts of two tensors of one sparse layout: numbers that are not written down agree with no zero."""
    layout, parts = _PARTS[str(actual.layout)]
    if layout == "COO":
        actual, expected = actual.coalesce(), expected.coalesce()
    if actual.values().shape[0] != expected.values().shape[0]:
        raise AssertionError(
            f"The number of specified values in sparse {layout} tensors does not match: "
            f"{actual.values().shape[0]} != {expected.values().shape[0]}"
        )
    for part in parts:
        one, other = getattr(actual, part)(), getattr(expected, part)()
        tolerances = _tolerances(rules, one.dtype, other.dtype) if part == "values" else (0.0, 0.0)
        _values(one, other, tolerances, rules.equal_nan, f"Sparse {layout} {part}")


def _values(actual, expected, tolerances, equal_nan, what="Tensor-likes"):
    rtol, atol = tolerances
    dtype = tg.promote_types(actual.dtype, expected.dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        dtype = tg.int64  # bool and the small integers, whose differences wrap
    actual, expected = actual.to(dtype), expected.to(dtype)
    matches = _matches(actual, expected, rtol, atol, equal_nan)
    if not matches.all():
        raise AssertionError(_difference(actual, expected, matches, rtol, atol, what))


def _same_attributes(actual, expected, rules):
    for name, wanted in (
        ("shape", True),
        ("layout", rules.layout),
        ("device", rules.device),
        ("dtype", rules.dtype),
        ("stride()", rules.stride),
    ):
        if not wanted or (name == "stride()" and "torch.strided" not in (str(actual.layout), str(expected.layout))):
            continue
        one, other = (t.stride() if name == "stride()" else getattr(t, name) for t in (actual, expected))
        if one != other:
            raise AssertionError(f"The values for attribute '{name}' do not match: {one} != {other}.")


def _matches(actual, expected, rtol, atol, equal_nan):
    """Where the two agree, as a tensor of bools."""
    same = actual == expected
    if rtol or atol:
        gap = (actual - expected).abs()
        # as NumPy and PyTorch: infinities agree only with themselves
        same = same | ((gap <= atol + rtol * expected.abs()) & gap.isfinite())
    if equal_nan:
        same = same | ((actual != actual) & (expected != expected))
    return same


def _difference(actual, expected, matches, rtol, atol, what):
    """The text: how many elements differ, and the greatest differences with their places."""
    gap = (actual - expected).abs()
    relative = gap / expected.abs()
    if actual.dim() == 0:
        return _scalars(actual.item(), expected.item(), gap.item(), relative.item(), rtol, atol)
    count, total = matches.numel() - int(matches.sum()), matches.numel()
    lines = [
        f"{what} are not {'close' if rtol or atol else 'equal'}!",
        "",
        f"Mismatched elements: {count} / {total} ({count / total:.1%})",
    ]
    for word, values, allowed in (("absolute", gap, atol), ("relative", relative, rtol)):
        flat = values.masked_fill(matches, 0).flatten()
        place = int(flat.double().argmax())
        lines.append(
            f"Greatest {word} difference: {flat[place].item()} at index {_index(place, matches.shape)}"
            + (f" (up to {allowed} allowed)" if rtol or atol else "")
        )
    return "\n".join(lines)


def _index(place, shape):
    """The place of an element, counted row by row, as a tuple of indices."""
    index = []
    for size in reversed(shape):
        place, at = divmod(place, size)
        index.append(at)
    return tuple(reversed(index))


def _scalars(actual, expected, difference, relative, rtol, atol):
    close = bool(rtol or atol)
    absolute, of_it = [f" (up to {allowed} allowed)" if close else "" for allowed in (atol, rtol)]
    return (
        f"Scalars are not {'close' if close else 'equal'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{absolute}\nRelative difference: {relative}{of_it}"
    )
