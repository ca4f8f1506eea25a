"""Which input and output elements to compare when there is no time for all.

Sums over the whole Jacobian come first (`projection`); they also tell where it is not zero. Three quarters of the
sample are taken there, the rest anywhere: a wrong zero is as wrong as a wrong number.
"""

import time

import numpy as np

LARGEST = 1 << 24  # numbers of a Jacobian that are kept when it is sampled


class Budget:
    """How much of the Jacobians may be computed: elements of each tensor, and seconds."""

    def __init__(self, options):
        self.started = time.monotonic()
        self.seconds, self.most = options.time_limit, options.max_columns
        if options.fast_mode and self.seconds is None and self.most is None:
            self.most = 0

    def allows_all(self, subject, views, call_seconds):
        """Whether every entry can be compared; `call_seconds` is what one call of the function took."""
        columns = [x.numel() * (2 if x.dtype.is_complex else 1) for _, x in subject.inputs]
        rows = [v.tensor.numel() for v in views]
        if self.most is not None and max([*columns, *rows], default=0) > self.most:
            return False
        # a backward takes about as long as the call, and is done twice
        return self.seconds is None or 2 * call_seconds * (sum(columns) + sum(rows)) <= self.seconds

    def count(self, total, length=1):
        """How many of so many elements may be taken, when each gives a vector of `length`."""
        fits = max(1, LARGEST // max(length, 1))
        return min(total, fits if self.most is None else min(self.most, fits))

    def deadline(self, share):
        """When a share of the time is used up; None without a limit."""
        return None if self.seconds is None else self.started + share * self.seconds


def sample(rng, likely, count):
    """`count` different positions, most of them where `likely` is true, in random order."""
    inside, outside = rng.permutation(np.flatnonzero(likely)), rng.permutation(np.flatnonzero(~likely))
    first = inside[: max(count - count // 4, count - outside.size)]
    picked = np.concatenate([first, outside[: count - first.size]])
    return rng.permutation(picked)
