"""Sobol's sequence: points that fill the unit cube more evenly than random ones.

The direction numbers are Joe and Kuo's, which come with SciPy: a table of 21,201 rows that few programs want. Points
are drawn in Gray code's order, so that each differs from the one before it by one direction number (Bratley and Fox,
1988), and scrambled by a random lower triangular matrix of bits and a shift (Matousek, 1998).
"""

import numpy as np

from tinygrad_ext import Generator, cat, from_numpy, get_default_dtype, int64, randint, zeros
from tinygrad_ext.core.call.boundary import boundary as _boundary

__all__ = ["SobolEngine"]


def _directions(dimension, bits):
    try:
        from scipy.stats import qmc
    except ImportError as error:
        raise ImportError(
            "quasirandom.SobolEngine takes its direction numbers from SciPy, which is not installed: pip install scipy"
        ) from error
    return qmc.Sobol(dimension, scramble=False, bits=bits)._sv.astype(np.int64)


class SobolEngine:
    """Draws points of Sobol's sequence in a cube of up to 21,201 dimensions.

    Args:
        dimension: numbers in a point.
        scramble: whether the sequence is scrambled; points then are uniform, and still as even.
        seed: of the scrambling; None draws another each time.

    Raises:
        ValueError: for a dimension beyond that range.

        >>> from tinygrad_ext.quasirandom import SobolEngine
        >>> SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    @_boundary
    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]: dimension is {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = from_numpy(_directions(dimension, self.MAXBIT))
        self.shift = self._scrambled() if scramble else zeros(dimension, dtype=int64)
        self.quasi = self.shift.clone()
        self.num_generated = 0

    @_boundary
    def draw(self, n=1, out=None, dtype=None):
        """The next n points, as a tensor (n, dimension) of `dtype`, the default one where none is given."""
        began = self.num_generated == 0
        found = self._advance(n - began)
        points = self.shift.reshape(1, -1)
        points = cat([points, found]) if began else found
        points = points.to(dtype or get_default_dtype()) * 2.0**-self.MAXBIT
        self.num_generated += n
        return points if out is None else out.resize_(points.shape).copy_(points)

    @_boundary
    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; ValueError where all that were drawn would be no power of two, so not balanced."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}="
                f"{total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    @_boundary
    def reset(self):
        """Begin again with the first point; returns the engine."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    @_boundary
    def fast_forward(self, n):
        """Leave n points out; returns the engine."""
        self._advance(n - (self.num_generated == 0))
        self.num_generated += n
        return self

    def _advance(self, n):
        """The n whole numbers that follow, of each dimension."""
        counts = np.arange(n, dtype=np.int64) + max(self.num_generated - 1, 0)
        changed = ~counts & (counts + 1)  # the lowest bit that is zero
        columns = np.log2(changed).astype(np.int64) if n else counts
        steps = np.concatenate([self.quasi.numpy()[None], self.sobolstate.numpy().T[columns]])
        found = from_numpy(np.bitwise_xor.accumulate(steps)[1:])
        if n:
            self.quasi.copy_(found[-1])
        return found

    def _scrambled(self):
        """Scramble the direction numbers; returns the shift."""
        bits, draw = self.MAXBIT, Generator()
        if self.seed is None:
            draw.seed()
        else:
            draw.manual_seed(self.seed)
        shift = randint(2, (self.dimension, bits), generator=draw).numpy() @ (1 << np.arange(bits))
        lower = np.tril(randint(2, (self.dimension, bits, bits), generator=draw).numpy())
        lower[:, range(bits), range(bits)] = 1
        places = np.arange(bits)[::-1]
        digits = self.sobolstate.numpy()[..., None] >> places & 1
        mixed = (digits @ lower.transpose(0, 2, 1) & 1) << places
        self.sobolstate = from_numpy(mixed.sum(-1))
        return from_numpy(shift)

    def __repr__(self):
        said = [f"dimension={self.dimension}"]
        if self.scramble:
            said.append("scramble=True")
        if self.seed is not None:
            said.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(said)})"
