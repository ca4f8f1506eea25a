"""opcheck: PyTorch's name for the checks of one op on given arguments."""

from tinygrad_ext.testing.battery import OP_CHECKS, run_check
from tinygrad_ext.testing.battery.result import FAILED
from tinygrad_ext.testing.battery.run import ops_of
from tinygrad_ext.testing.battery.subject import given
from tinygrad_ext.testing.compare import tolerances

# PyTorch's names, and the checks of the battery that answer the same question
UTILS = {
    "test_schema": ("schema", "mutation", "aliasing"),
    "test_autograd_registration": ("autograd",),
    "test_faketensor": ("shape",),
    "test_aot_dispatch_dynamic": ("repeat", "layouts", "meta_gradients"),
}
DEFAULT = tuple(UTILS)
_NEEDS_SAMPLES = {"samples", "errors", "dtypes", "odd_shapes"}  # not about one call


class OpCheckError(Exception):
    """A check of `opcheck` failed; the message names it, says what is wrong, and gives the smallest failing call."""


def opcheck(op, args, kwargs=None, *, test_utils=DEFAULT, raise_exception=True, atol=None, rtol=None):
    """Check that an op keeps what its schema, its derivative and its shape rule promise, on given arguments.

    The names of PyTorch's tests mean: "test_schema" types of the results, undeclared writes and shared memory;
    "test_autograd_registration" gradients have the right shapes, dtypes and grad mode; "test_faketensor" meta tensors
    give the real shapes. "test_aot_dispatch_dynamic" compiles in PyTorch; there is no such compiler here, and it checks
    what one relies on: a repeated call and another memory layout give the same, and forward and backward run on meta
    tensors with the real shapes. Any check of the battery can be named too: "derivative" and "second_derivative"
    compare with finite differences, which PyTorch's opcheck does not.

    Args:
        op: a callable of `tinygrad_ext.ops`, an overload of one, what `custom_op` returned, or a name "demo::scale".
        args, kwargs: of one call; tensors that require grad are differentiated. They are copied.
        test_utils: one name or several.
        raise_exception: raise the first failure.
        atol, rtol: in place of those for the dtype.

    Returns {name: "SUCCESS" or the exception}. Raises OpCheckError when a check fails and `raise_exception` holds,
    ValueError for an unknown name, TypeError for what is no op.

    >>> import tinygrad_ext as tg
    >>> tg.library.opcheck(tg.exp, (tg.ones(2, requires_grad=True),), test_utils=["test_schema", "derivative"])
    {'test_schema': 'SUCCESS', 'derivative': 'SUCCESS'}
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"opcheck(): argument 'args' must be a tuple of the op's arguments, not {type(args).__name__}")
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    checks = {name: _checks(name) for name in names}
    subject = given(_overload(ops_of(op), args, kwargs or {}), args, kwargs or {})
    found = {}
    with tolerances(rtol, atol):
        for name in names:
            found[name] = _failure(subject, name, checks[name]) or "SUCCESS"
            if raise_exception and found[name] != "SUCCESS":
                raise found[name]
    return found


def _checks(name):
    if name in UTILS:
        return [OP_CHECKS[c] for c in UTILS[name]]
    if name in OP_CHECKS and name not in _NEEDS_SAMPLES:
        return [OP_CHECKS[name]]
    known = ", ".join([*UTILS, *(c for c in OP_CHECKS if c not in _NEEDS_SAMPLES)])
    raise ValueError(f"opcheck(): test_utils names '{name}', which is no check of one call; there are {known}")


def _overload(ops, args, kwargs):
    """The first overload whose arguments these can be, by their number and names."""
    for op in ops:
        places = [a for a in op.schema.args if not a.kwarg_only]
        given = {a.name for a, _ in zip(places, args)} | set(kwargs)
        required = {a.name for a in op.schema.args if not a.has_default}
        if len(args) <= len(places) and required <= given <= {a.name for a in op.schema.args}:
            return op
    return ops[0]


def _failure(subject, name, checks):
    """The OpCheckError of the first failing check, None when all hold or have nothing to say."""
    for check in checks:
        result = run_check(check, subject)
        if result.status == FAILED:
            what = f"{name} ({check.name})" if name in UTILS else name
            error = OpCheckError(
                f"opcheck of {subject.name}: {what} failed: {result.message}\n  smallest case: {result.case}"
            )
            error.__cause__ = result.error
            return error
    return None
