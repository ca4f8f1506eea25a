"""Large Jacobians, checked by random sums.

PyTorch's fast mode compares one number, v' J u, for unit vectors u and v with positive entries: an entry of an n by m
Jacobian counts for about 1 / sqrt(n m) of itself, and the tolerance grows with sqrt(n m), so a single wrong entry
vanishes. Here u and v have entries of either sign and of size 0.5 to 1.5, so that a wrong entry counts in full, and
the Jacobian is cut into BLOCKS by BLOCKS sums, each with a tolerance of its own. That one is tight (SHARE of rtol), for
it does not judge: a sum that is off is narrowed down by halves to one entry, which is judged by atol and rtol as any
other. This takes log2(n) more calls of the function and log2(m) more of backward.
"""

import numpy as np

from tinygrad_ext.autograd.gradcheck.analytical import pull_twice, rows
from tinygrad_ext.autograd.gradcheck.compare import compare, pair_of
from tinygrad_ext.autograd.gradcheck.numerical import Columns, along

BLOCKS = 4
SMALL = 256  # input and output elements together: so many are compared one by one when a sum is off
SHARE = 0.01  # of rtol: how closely sums must agree
SMALLEST = 0.25  # the smallest weight an entry gets


def weights(rng, count, is_complex=False):
    """Random numbers of either sign, of size 0.5 to 1.5."""
    drawn = rng.uniform(0.5, 1.5, count) * rng.choice((-1.0, 1.0), count)
    return drawn + 1j * weights(rng, count) if is_complex else drawn


def blocks(rng, count):
    """A random partition of 0 .. count - 1 into at most BLOCKS parts."""
    return [np.sort(part) for part in np.array_split(rng.permutation(count), BLOCKS) if part.size]


class Pushes:
    """Slopes of all outputs along random directions, one for each block of an input's elements."""

    def __init__(self, subject, number, eps, rng):
        x = subject.inputs[number][1]
        self.blocks = blocks(rng, x.numel())
        self.slopes, self.directions = [], []
        for picked in self.blocks:
            slopes, direction = along(subject, number, picked, weights(rng, picked.size, x.dtype.is_complex), eps)
            self.slopes.append(slopes)
            self.directions.append(direction)

    def reached(self, position):
        """Which elements of an output moved."""
        moved = [np.abs(s[position]) > 0 for s in self.slopes]
        return np.logical_or.reduce(moved) if moved else np.zeros(0, bool)


class Pulls:
    """Gradients of random sums of a view's elements, one for each block of them."""

    def __init__(self, view, inputs, options, rng):
        self.blocks = blocks(rng, view.tensor.numel())
        self.weights = [weights(rng, picked.size) for picked in self.blocks]
        self.gradients = []
        for i, (picked, w) in enumerate(zip(self.blocks, self.weights)):
            pull = pull_twice(view, picked, w, inputs, options.nondet_tol if i == 0 else np.inf)
            self.gradients.append(pull)

    def reached(self, number):
        """Which elements of an input got a gradient."""
        moved = [np.abs(g[number]) > 0 for g in self.gradients]
        return np.logical_or.reduce(moved) if moved else np.zeros(0, bool)


def _real(values, part):
    return np.imag(values) if part == "imaginary part" else np.real(values)


def _weighed(slopes, view, chosen, w):
    """The weighted sum of some elements' slopes. (Not by BLAS, whose threads cost more than the sum.)"""
    return (_real(slopes[view.position], view.part)[chosen] * w).sum()


def _dot(gradient, direction):
    """Slope along a direction by a gradient; complex numbers count as pairs of real ones."""
    return float(np.real(np.conj(gradient) * direction).sum())


def compare_sums(subject, view, number, pushes, pulls, options):
    """The Pair of an output and an input by their sums; what is off is narrowed down."""
    x = subject.inputs[number][1]
    numerical = np.zeros((len(pushes.blocks), len(pulls.blocks)))
    analytical = np.zeros_like(numerical)
    for i, (picked, slopes, direction) in enumerate(zip(pushes.blocks, pushes.slopes, pushes.directions)):
        for j, (chosen, w, gradients) in enumerate(zip(pulls.blocks, pulls.weights, pulls.gradients)):
            numerical[i, j] = _weighed(slopes, view, chosen, w)
            analytical[i, j] = _dot(gradients[number][picked], direction)
    allowed = options.atol + SHARE * options.rtol * np.abs(numerical)
    pair = pair_of(
        subject,
        view,
        number,
        ok=True,
        columns=(0, x.numel()),
        rows=(0, view.tensor.numel()),
        blind_below=float(allowed.max(initial=options.atol) / SMALLEST),
    )
    with np.errstate(invalid="ignore"):
        off = np.abs(numerical - analytical)
        off = np.where(np.isfinite(off), off, np.inf)
    if (off <= allowed).all():
        return pair
    if x.numel() + view.tensor.numel() <= SMALL:
        return _entry_by_entry(subject, view, number, options)
    i, j = np.unravel_index(np.argmax(off / allowed), off.shape)
    return _narrowed(subject, view, number, pushes, pulls, (i, j), (numerical, analytical), pair, options)


def _entry_by_entry(subject, view, number, options):
    columns = np.arange(subject.inputs[number][1].numel())
    picked = np.arange(view.tensor.numel())
    numerical = Columns(subject, number, columns, options.eps).part(view.position, view.part)
    kept = [columns if k == number else columns[:0] for k in range(len(subject.inputs))]
    analytical = rows(view, picked, subject.inputs, kept, np.inf)[1][number]
    pair = compare(subject, view, number, numerical, analytical, columns, picked, options)
    most = np.abs(numerical - analytical).max(initial=0.0)
    pair.remark = "\n".join(
        filter(
            None,
            (
                pair.remark,
                "Found in fast mode; the Jacobians above were recomputed entry by entry. The max per-element "
                f"difference (slow mode) is: {most:.6g}.",
            ),
        )
    )
    return pair


def _narrowed(subject, view, number, pushes, pulls, block, sums, pair, options):
    """Judge the pair by the entry that a search by halves leads to."""
    i, j = block
    column = _worst_column(subject, view, number, pushes, pulls, block, sums, options)
    slope = Columns(subject, number, [column], options.eps).part(view.position, view.part)[0]
    row = _worst_row(subject, view, number, column, slope, pulls.blocks[j], pulls.weights[j])
    analytical = view.pull([row], 1, subject.inputs)[number][column]
    found = compare(
        subject, view, number, slope[row].reshape(1, 1), np.array(analytical).reshape(1, 1), [column], [row], options
    )
    found.blind_below = pair.blind_below
    if found.ok:
        # no single entry is to blame: small differences added up, within what as many entries may be off or not
        spread = _spread(sums[0], pushes.blocks[i].size * pulls.blocks[j].size, options)
        found.ok = bool(abs(sums[0][block] - sums[1][block]) <= spread)
        found.blind_below = max(pair.blind_below, spread / SMALLEST)
        found.remark = (
            "Fast gradcheck failed but element-wise differences are small where they were looked for: the sum of "
            f"{pushes.blocks[i].size} by {pulls.blocks[j].size} entries is numerically {sums[0][block]:.6g}, "
            f"analytically {sums[1][block]:.6g}. Check with fast_mode=False."
        )
    return found


def _spread(sums, entries, options):
    """How far a sum may be off when every entry is off by what it may be, with random signs."""
    return 3 * (options.atol * np.sqrt(entries) + options.rtol * np.sqrt(np.mean(sums**2)))


def _worst_column(subject, view, number, pushes, pulls, block, sums, options):
    """The input element that a search by halves ends at: the half whose sum is farther off goes on."""
    i, j = block
    picked, direction = pushes.blocks[i], pushes.directions[i]
    chosen, w, gradient = pulls.blocks[j], pulls.weights[j], pulls.gradients[j][number]
    off = sums[0][block] - sums[1][block]
    while picked.size > 1:
        half = picked.size // 2
        slopes, moved = along(subject, number, picked[:half], direction[:half], options.eps)
        first = _weighed(slopes, view, chosen, w) - _dot(gradient[picked[:half]], moved)
        keep_first = not abs(first) < abs(off - first)
        side = slice(None, half) if keep_first else slice(half, None)
        picked, direction, off = picked[side], direction[side], first if keep_first else off - first
    return picked[0]


def _worst_row(subject, view, number, column, slope, chosen, w):
    """The output element that a search by halves ends at, for one input element."""
    while chosen.size > 1:
        half = chosen.size // 2
        gaps = []
        for side in (slice(None, half), slice(half, None)):
            pulled = view.pull(chosen[side], w[side], subject.inputs)[number][column]
            gaps.append(abs((slope[chosen[side]] * w[side]).sum() - pulled))
        side = slice(None, half) if not gaps[0] < gaps[1] else slice(half, None)
        chosen, w = chosen[side], w[side]
    return chosen[0]
