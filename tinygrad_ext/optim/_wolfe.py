"""The line search of `LBFGS`: a step whose loss and slope satisfy the strong Wolfe conditions.

First the step grows until an interval surely holds such a step; then the interval is narrowed by cubics through its
ends (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6). Points are `_Point`s, so that what belongs to
one length of the step stays together.
"""

import math
from typing import Any, NamedTuple

DECREASE, CURVATURE = 1e-4, 0.9
TRIES = 25
LEAST_CHANGE = 1e-9  # of a parameter: an interval of the step in which none changes by more is not narrowed


class _Point(NamedTuple):
    """One length of the step, with the loss, the gradient and the slope along the direction there."""

    t: float
    loss: float
    grad: Any
    slope: float


def cubic_minimum(a, b, bounds=None):
    """Where the cubic with the losses and slopes of two points is least, within bounds (None: those of the points)."""
    low, high = bounds or sorted((a.t, b.t))
    if a.t == b.t:
        return (low + high) / 2
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = bend * bend - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    a, b = sorted((a, b), key=lambda point: point.t)
    below = b.slope - a.slope + 2 * root
    if below == 0:
        return (low + high) / 2
    found = b.t - (b.t - a.t) * ((b.slope + root - bend) / below)
    return min(max(found, low), high)


def strong_wolfe(
    evaluate, t, loss, grad, slope, direction, least_change=LEAST_CHANGE, *,
    decrease=DECREASE, curvature=CURVATURE, tries=TRIES,
):  # fmt: skip
    """Return (loss, gradient, length, calls) of a step along `direction`; ``evaluate(t)`` gives loss and gradient.

    After ``tries`` evaluations the better end of the interval is taken, whether it meets the conditions or not.
    """
    start = _Point(0, loss, grad.clone(), slope)
    search = _Search(evaluate, direction, start, least_change, decrease, curvature, tries)
    ends = search.bracket(t)
    best = search.narrow(*ends) if len(ends) == 2 else ends[0]
    return best.loss, best.grad, best.t, search.calls


class _Search:
    def __init__(self, evaluate, direction, start, least_change, decrease, curvature, tries):
        self.evaluate = evaluate
        self.direction = direction
        self.largest = float(direction.abs().max())
        self.start = start
        self.least_change = least_change
        self.decrease, self.curvature, self.tries = decrease, curvature, tries
        self.calls = 0
        self.rounds = 0

    def at(self, t):
        """Evaluate one length of the step."""
        loss, grad = self.evaluate(t)
        self.calls += 1
        return _Point(t, loss, grad.clone(), float(grad.dot(self.direction)))

    def too_high(self, point):
        """Whether the loss fell less than a share of what the first slope promised."""
        return point.loss > self.start.loss + self.decrease * point.t * self.start.slope

    def flat(self, point):
        """Whether the slope is a share of the first one at most."""
        return abs(point.slope) <= -self.curvature * self.start.slope

    def bracket(self, t):
        """Grow the step: return the one point that is good, or the two ends of an interval that holds one."""
        before, here = self.start, self.at(t)
        while self.rounds < self.tries:
            if self.too_high(here) or (self.rounds > 1 and here.loss >= before.loss):
                return before, here
            if self.flat(here):
                return (here,)
            if here.slope >= 0:
                return before, here
            bounds = here.t + 0.01 * (here.t - before.t), here.t * 10
            before, here = here, self.at(cubic_minimum(before, here, bounds))
            self.rounds += 1
        return self.start, here

    def narrow(self, low, high):
        """Narrow the interval until a point is good, too little changes, or the tries are used up."""
        stuck = False
        if high.loss < low.loss:
            low, high = high, low
        while self.rounds < self.tries and abs(high.t - low.t) * self.largest >= self.least_change:
            t, stuck = _away_from_ends(cubic_minimum(low, high), *sorted((low.t, high.t)), stuck)
            point = self.at(t)
            self.rounds += 1
            if self.too_high(point) or point.loss >= low.loss:
                low, high = (point, low) if point.loss < low.loss else (low, point)
            elif self.flat(point):
                return point
            else:
                low, high = point, low if point.slope * (high.t - low.t) >= 0 else high
        return low


def _away_from_ends(t, left, right, stuck):
    """Move a length that hardly differs from an end inward, the second time in a row or if it is the end itself."""
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not stuck and left < t < right:
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
