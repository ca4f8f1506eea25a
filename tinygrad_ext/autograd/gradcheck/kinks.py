"""Is a mismatch a wrong derivative, or is there none to compare with?

At a smooth point the slopes to both sides differ by eps times the curvature, by half of it when eps is halved, and the
central slopes of both steps agree. Elsewhere there is a kink if the slopes farther out differ, else a jump.
"""

import numpy as np

from tinygrad_ext.autograd.gradcheck.subject import array, memory


def explain(subject, view, number, entry, options):
    """A sentence when the function has a kink or a jump at the entry's place, or is random; else None."""
    x = subject.inputs[number][1]
    for step in (options.eps, 1j * options.eps) if x.dtype.is_complex else (options.eps,):
        values = _values_around(subject, view, number, entry, step)
        if values is None:
            return (
                f"{view.name} differs between two calls with the same inputs: differences say nothing. Make func "
                "deterministic, for example by seeding it at each call."
            )
        kind = _kind(values, options)
        if kind:
            return _sentence(subject, view, number, entry, kind, values, options.eps)
    return None


def _values_around(subject, view, number, entry, step):
    """{multiple of the step: the entry's output there}; None when it is random."""
    cells = memory(*subject.inputs[number])
    take = np.imag if view.part == "imaginary part" else np.real
    saved, found = cells[entry.input_index], {}

    def value():
        return float(take(subject.values()[view.position][entry.output_index]))

    before = value()
    try:
        for times in (-2, -1, -0.5, 0, 0.5, 1, 2):
            cells[entry.input_index] = saved + times * step
            found[times] = value()
    finally:
        cells[entry.input_index] = saved
    return None if abs(found[0] - before) > 0 else found


def _kind(at, options):
    """'kink', 'jump' or None."""
    if not np.isfinite(list(at.values())).all():
        return None
    left, right = (at[0] - at[-1]) / options.eps, (at[1] - at[0]) / options.eps
    if abs(right - left) <= 4 * (options.atol + options.rtol * max(abs(left), abs(right))):
        return None
    gap, half_gap = abs(at[1] - 2 * at[0] + at[-1]), 2 * abs(at[0.5] - 2 * at[0] + at[-0.5])
    unsteady = abs((at[1] - at[-1]) / 2 - (at[0.5] - at[-0.5]))  # central slopes of the two steps, by eps
    if 0.25 * gap <= half_gap <= 0.75 * gap and unsteady <= 0.1 * gap:
        return None
    outside = abs((at[2] - at[1]) - (at[-1] - at[-2]))
    return "kink" if outside > 0.1 * gap else "jump"


def _sentence(subject, view, number, entry, kind, at, eps):
    name, x = subject.inputs[number]
    place = f"{name}[{', '.join(map(str, entry.input_index))}]" if entry.input_index else name
    value = array(x)[entry.input_index]
    left, right = (at[-1] - at[-2]) / eps, (at[2] - at[1]) / eps
    return (
        f"{kind} near {place} = {value:.6g}: there {view.name} has slope {left:.6g} to the left and {right:.6g} to the "
        f"right, and backward gave {entry.analytical:.6g}. The derivative may be right: move this element of {name} "
        f"away from the {kind} by more than eps={eps:g} and check again."
    )
