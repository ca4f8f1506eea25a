"""Central differences.

Inputs are moved in place, through their memory: the function sees the very tensors it was given, so closures over them
and second derivatives work. Complex numbers are pairs of real ones here: a difference along the real and one along
the imaginary axis.
"""

import time

import numpy as np

from tinygrad_ext.autograd.gradcheck.subject import memory


def difference(subject, cells, where, step):
    """(f(x + step) - f(x - step) of each output, the distance the stored values moved)."""
    saved = np.array(cells[where])
    try:
        cells[where] = saved + step
        top = np.array(cells[where])
        high = subject.values()
        cells[where] = saved - step
        moved = top - np.array(cells[where])
        low = subject.values()
    finally:
        cells[where] = saved
    if [(a.shape, a.dtype) for a in low] != [(b.shape, b.dtype) for b in high]:
        _changed(low, high, where, step)
    return [np.subtract(h, lo, dtype=np.result_type(h, np.float64)).reshape(-1) for h, lo in zip(high, low)], moved


def _changed(low, high, where, step):
    """Say how the outputs of the two calls differ in kind."""
    on = "" if where is Ellipsis else f"on index {tuple(map(int, where))} "
    by = f"when inputs are perturbed {on}by {np.abs(step).max() if np.size(step) else step}, but got"
    if len(low) != len(high):
        raise AssertionError(f"Expected `func` to return the same number of outputs {by} {len(low)} and {len(high)}")
    for a, b in zip(low, high):
        if a.shape != b.shape:
            raise AssertionError(f"Expected `func` to return outputs with the same shape {by}: {a.shape} and {b.shape}")
        if a.dtype != b.dtype:
            raise AssertionError(f"Expected `func` to return outputs with the same dtype {by}: {a.dtype} and {b.dtype}")


def slopes(subject, cells, where, step):
    """Derivative of each output as the one element cells[where] moves along step."""
    rises, moved = difference(subject, cells, where, step)
    width = abs(moved) or 2 * abs(step)  # a step lost in rounding gives zero
    return [rise / width for rise in rises]


class Columns:
    """Derivatives by some elements of one input: `along[o][c]` of output o by element `picked[c]`."""

    def __init__(self, subject, number, picked, eps, deadline=None):
        name, x = subject.inputs[number]
        cells = memory(name, x)
        axes = (eps, 1j * eps) if x.dtype.is_complex else (eps,)
        gathered = [[] for _ in axes]
        done = 0
        for flat in picked:
            where = np.unravel_index(flat, cells.shape)
            for rows, step in zip(gathered, axes):
                rows.append(slopes(subject, cells, where, step))
            done += 1
            if deadline is not None and time.monotonic() > deadline:
                break
        self.picked = np.asarray(picked[:done], dtype=np.int64)
        self.along = [[np.array(c) for c in zip(*rows)] for rows in gathered]

    def part(self, output, part):
        """(columns, output elements): derivatives of the real or imaginary part of an output."""
        if not len(self.picked):
            return None
        take = np.imag if part == "imaginary part" else np.real
        real, *imaginary = (take(a[output]) for a in self.along)
        return real + 1j * imaginary[0] if imaginary else real


def along(subject, number, picked, direction, eps):
    """Slope of each output as the picked elements of an input move along `direction`, and the direction as stored."""
    name, x = subject.inputs[number]
    cells = memory(name, x)
    step = np.zeros(cells.size, cells.dtype)
    step[picked] = eps * direction
    rises, moved = difference(subject, cells, ..., step.reshape(cells.shape))
    return [rise / (2 * eps) for rise in rises], moved.reshape(-1)[picked] / (2 * eps)
