"""One fault, one failure: what fails only because the op writes to its arguments is told under `mutation`.

A check that failed is run once more with an op that gets copies of its arguments. When it passes so, it follows.
"""

import contextlib

import tinygrad_ext as tg
from tinygrad_ext.library.state import states
from tinygrad_ext.testing import layouts
from tinygrad_ext.testing.battery.check import run_check
from tinygrad_ext.testing.battery.result import FAILED, PASSED, SKIPPED

CAUSE = "mutation"
# they compare calls of the same arguments; what an op keeps or hands out is another fault, which copies would hide
FOLLOWING = (
    *("shape", "reference", "layouts", "dtypes", "odd_shapes", "inplace", "out", "repeat", "threads"),
    *("autograd", "meta_gradients", "derivative", "second_derivative"),
)


def fold(subject, checks, results):
    """Turn the failures of a subject that follow from the one of `mutation`, if it is among them, into a note there."""
    cause = next((r for r in results if r.check == CAUSE and r.status == FAILED), None)
    if cause is None or subject.kind != "op":
        return
    for check, result in zip(checks, results):
        if result.status == FAILED and follows(subject, check):
            result.status, result.follows, result.error = SKIPPED, CAUSE, None
            result.message = f"follows from '{CAUSE}': with copies of its arguments the op passes"
            cause.consequences.append(result.check)


def follows(subject, check):
    """Whether a check that failed holds for an op that cannot write to the arguments of its caller."""
    if check.name not in FOLLOWING:
        return False
    with _on_copies(subject.op):
        return run_check(check, subject).status == PASSED


@contextlib.contextmanager
def _on_copies(op):
    """The function of a plugin's op gets copies: below what autograd saves, which it would spoil as well."""
    composite = op.kernel_kind == "composite"
    fn = op.record.compose if composite else op.record.kernel
    if not callable(fn):
        yield
        return
    keywords = tuple(a.name for a in op.schema.args if a.kwarg_only) or None
    op.set_python(
        lambda *args, **kwargs: fn(*layouts.map_tensors(args, _copy), **layouts.map_tensors(kwargs, _copy)),
        composite,
        keywords,
    )
    try:
        yield
    finally:
        if op.name in states:  # an op of custom_op or Library chooses among its kernels
            states[op.name].settle()
        else:
            op.set_python(fn, composite, keywords)


def _copy(t):
    """A copy in the same memory layout, through which gradients flow."""
    if t.device.type == "meta" or any(n > 1 and s == 0 for n, s in zip(t.shape, t.stride())):
        return t if t.device.type == "meta" else t.clone()
    return tg.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t)
