"""What a call leaves behind: settings of the host, and tensors that are kept alive."""

import contextlib
import gc
import weakref

import tinygrad_ext as tg
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.overrides.modes import _get_current_function_mode_stack
from tinygrad_ext.testing import compare, sweep
from tinygrad_ext.testing.battery.case import Case, mapped
from tinygrad_ext.testing.battery.check import OP_CHECKS, check


@check(OP_CHECKS, "settings", any_values=True)
def settings(subject, sample, dtype):
    """A call changes no setting of the host, and the random state only when the op is random."""
    tg.manual_seed(0)
    tg.rand(1)  # an op that seeds has perhaps been called already
    before = _settings(subject.op)
    plain = mapped(sample, lambda t: t.detach())  # it may write to tensors that require gradients
    sweep.function(subject.op)(*plain.args, **plain.kwargs)
    after = _settings(subject.op)
    changed = [what for what in before if before[what] != after[what]]
    if changed:
        raise AssertionError(
            f"a call changes the {', the '.join(changed)}"
            + ("; say tags='random'" if changed == ["random state"] else "")
        )


def _settings(op):
    found = {
        "default dtype": tg.get_default_dtype(),
        "number of threads": tg.get_num_threads(),
        "stack of modes": [id(mode) for mode in _get_current_function_mode_stack()],
    }
    if not sweep.is_random(op):
        found["random state"] = default_generator.get_state().numpy().tobytes()
    return found


@check(OP_CHECKS, "release", any_values=True, requires_grad=True)
def release(subject, sample, dtype):
    """Arguments and results are freed after the call and its backward: no cache, buffer or global keeps them."""
    references = _used(subject, Case(sample, dtype))
    if all(r() is None for _, r in references):
        return
    gc.collect()  # circles may be left to Python
    kept = sorted({name for name, r in references if r() is not None})
    if kept:
        raise AssertionError(f"{' and '.join(kept)} of a call cannot be freed after it: something keeps a reference")


def _used(subject, case):
    """(name, weak reference) of the tensors of one call; nothing here refers to them when this returns."""
    sample = case.fresh()
    result = [r for r in compare.flatten(_call(subject, sample)) if isinstance(r, tg.Tensor)]
    return [
        *(("an argument", weakref.ref(t)) for t in Case(sample, "").tensors),
        *(("a result", weakref.ref(t)) for t in result),
    ]


def _call(subject, sample):
    result = sweep.call(subject.op, sample.args, sample.kwargs)
    outs = [r for r in compare.flatten(result) if isinstance(r, tg.Tensor) and r.requires_grad and not r.is_leaf]
    if outs:
        with contextlib.suppress(Exception):  # whether there is a derivative is for other checks to say
            tg.autograd.backward(outs, [tg.ones_like(r) for r in outs])
    return result
