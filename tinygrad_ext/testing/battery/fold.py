"""One fault, one failure: what fails only because the op writes to its arguments is told under `mutation`.

A check that failed is run once more with an op that gets copies of its arguments. When it passes so, it follows.
"""

import contextlib

import tinygrad_ext as tg
from tinygrad_ext.testing import layouts, sweep
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
    with _on_copies():
        return run_check(check, subject).status == PASSED


@contextlib.contextmanager
def _on_copies():
    function = sweep.function

    def copying(op):
        fn = function(op)
        return lambda *args, **kwargs: fn(*layouts.map_tensors(args, _copy), **layouts.map_tensors(kwargs, _copy))

    sweep.function = copying
    try:
        yield
    finally:
        sweep.function = function


def _copy(t):
    """A copy in the same memory layout, through which gradients flow."""
    if t.device.type == "meta" or any(n > 1 and s == 0 for n, s in zip(t.shape, t.stride())):
        return t if t.device.type == "meta" else t.clone()
    return tg.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t)
