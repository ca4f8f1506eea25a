"""Two Jacobians side by side."""

import numpy as np

from tinygrad_ext.autograd.gradcheck.kinks import explain
from tinygrad_ext.autograd.gradcheck.result import Entry, Pair
from tinygrad_ext.autograd.gradcheck.subject import array


def pair_of(subject, view, number, **fields):
    """A Pair with its names filled in."""
    return Pair(view.number, number, view.name, subject.inputs[number][0], view.part, **fields)


def compare(subject, view, number, numerical, analytical, columns, rows, options):
    """The Pair of two matrices (input elements `columns`, output elements `rows`)."""
    x = subject.inputs[number][1]
    pair = pair_of(
        subject,
        view,
        number,
        ok=True,
        columns=(len(columns), x.numel()),
        rows=(len(rows), view.tensor.numel()),
        numerical=numerical,
        analytical=analytical,
        find_worst=lambda: worst_entry(numerical, analytical, columns, rows, x, view.tensor, options),
    )
    pair.wrong = count_wrong(numerical, analytical, options.atol, options.rtol)
    pair.ok = not pair.wrong
    if not pair.ok:
        pair.kink = explain(subject, view, number, pair.worst, options)
        pair.remark = lost_step(subject, number, pair.worst, options.eps)
    return pair


def count_wrong(numerical, analytical, atol, rtol):
    """How many entries differ by more than atol + rtol * |numerical|; equal infinities do not, NaN always does."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(numerical - analytical)
        allowed = np.abs(numerical)
        allowed *= rtol
        allowed += atol
        if (error <= allowed).all() and error.max(initial=0) < np.inf:
            return 0
        finite = np.isfinite(numerical) & np.isfinite(analytical)
        return int((~((finite & (error <= allowed)) | (numerical == analytical))).sum())


def worst_entry(numerical, analytical, columns, rows, x, output, options):
    """The Entry that is farthest from what is allowed; None when there is none."""
    if not numerical.size:
        return None
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        allowed = options.atol + options.rtol * np.abs(numerical)
        distance = np.abs(numerical - analytical) / allowed
    distance[numerical == analytical] = 0
    distance[np.isnan(distance)] = np.inf
    c, r = np.unravel_index(np.argmax(distance), distance.shape)
    return Entry(
        _index(columns[c], x),
        _index(rows[r], output),
        numerical[c, r].item(),
        analytical[c, r].item(),
        float(allowed[c, r]),
    )


def _index(flat, t):
    return tuple(map(int, np.unravel_index(flat, tuple(t.shape))))


def lost_step(subject, number, entry, eps):
    """A hint when eps is below what the input's dtype can show at an element."""
    name, x = subject.inputs[number]
    value = array(x)[entry.input_index]
    gap = np.spacing(np.abs(value).astype(value.real.dtype))
    if gap < eps / 100:
        return ""
    return (
        f"{name} is {x.dtype}, whose values near {value:.6g} lie {gap:.3g} apart: eps={eps:g} is too small for it. "
        "Pass double precision inputs, or a larger eps."
    )
