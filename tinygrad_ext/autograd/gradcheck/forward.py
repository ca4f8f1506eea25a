"""What forward mode computes, against differences: columns of the Jacobian, or one random sum of them."""

import numpy as np

from tinygrad_ext.autograd.gradcheck.compare import count_wrong
from tinygrad_ext.autograd.gradcheck.error import GradcheckError
from tinygrad_ext.autograd.gradcheck.gradients import random_gradient
from tinygrad_ext.autograd.gradcheck.numerical import Columns, along
from tinygrad_ext.autograd.gradcheck.subject import array
from tinygrad_ext.core.call.construct import from_numpy
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.data.slots import get_slot

_ROWS = 2  # of tangents in a batch


def check_forward(subject, outputs, options, whole, rng):
    """Compare each column, or without `whole` one random sum of them; GradcheckError for a wrong one."""
    chosen = [o for o, (_, t) in enumerate(outputs) if t.requires_grad]
    for k, (_, x) in enumerate(subject.inputs):
        for direction, slopes in (_columns if whole else _sum)(subject, k, x, options, rng):
            pushed = _pushed(subject, x, direction)
            for o in chosen:
                _compare(subject, k, o, outputs[o][0], slopes[o], pushed[o], options, whole)


def _columns(subject, k, x, options, rng):
    """(direction, slopes of the outputs) of each element, along the real and the imaginary axis."""
    found = Columns(subject, k, range(x.numel()), options.eps)
    for axis, unit in zip(found.along, (1, 1j)):
        for c in found.picked:
            direction = np.zeros(x.numel(), array(x).dtype)
            direction[c] = unit
            yield direction, [slopes[c] for slopes in axis]


def _sum(subject, k, x, options, rng):
    picked = np.arange(x.numel())
    direction = rng.uniform(-1, 1, x.numel())
    if x.dtype.is_complex:
        direction = direction + 1j * rng.uniform(-1, 1, x.numel())
    slopes, moved = along(subject, k, picked, direction, options.eps)
    yield moved.astype(array(x).dtype), slopes


def _pushed(subject, x, direction):
    """The tangents of all outputs as one input moves."""
    mode = later("forward mode")
    tangent = from_numpy(direction.reshape(tuple(x.shape))).to(x.dtype)
    with mode.Dual() as level:
        values = [t for _, t in subject.outputs({id(x): level.pair(x, tangent)})]
        found = [(level.primal(t), level.tangent(t)) for t in values]
    return [np.zeros(p.numel()) if t is None else array(t).reshape(-1) for p, t in found]


def _compare(subject, k, o, name, numerical, analytical, options, whole):
    if not count_wrong(numerical, analytical, options.atol, options.rtol):
        return
    worst = int(np.nanargmax(np.abs(numerical - analytical))) if not np.isnan(analytical).any() else 0
    how = "" if whole else " (of a random sum of all directions, in fast mode)"
    raise GradcheckError(
        f"Jacobian computed with forward mode mismatch for output {o} with respect to input {k},\n"
        f"numerical: {numerical[worst]:.6g}, analytical: {analytical[worst]:.6g} at element {worst} of {name}, by "
        f"{subject.inputs[k][0]}{how}. Look at the jvp of what is between them"
    )


def check_batched_forward(subject, options, rng):
    """Rows of tangents in one pass give what they give one by one; GradcheckError otherwise."""
    mode = later("forward mode")
    for name, x in subject.inputs:

        def pushed(tangent, x=x):
            with mode.Dual() as level:
                values = [t for _, t in subject.outputs({id(x): level.pair(x, tangent)})]
                found = [(level.primal(v), level.tangent(v)) for v in values]
            return tuple([p.new_zeros(p.shape) if t is None else t for p, t in found])

        tangents = get_slot("stack_rows")([random_gradient(x, rng, False).detach() for _ in range(_ROWS)])
        rows = [pushed(t) for t in tangents]
        try:
            got = later("vmap").vmap(pushed)(tangents)
        except (RuntimeError, ValueError, TypeError) as error:
            raise GradcheckError(
                f"While computing a batch of tangents by {name}, forward mode raised {type(error).__name__}: {error}. "
                "It ran under vmap: keep to operations on tensors there, or pass check_batched_forward_grad=False."
            ) from error
        for o, found in enumerate(got):
            expected = np.stack([array(row[o]) for row in rows])
            if not np.allclose(array(found), expected, options.rtol, options.atol, equal_nan=True):
                raise GradcheckError(
                    f"A batch of tangents of output {o} by {name} is not that of one after the other: they differ by "
                    f"up to {np.abs(array(found) - expected).max():.3g}. A rule for vmap is wrong, or a jvp keeps a "
                    "state."
                )
