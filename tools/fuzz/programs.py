"""Random autograd programs: gradients beside finite differences, everything beside PyTorch where that is installed."""

import importlib.util

from tests.helpers import programs, programs_beside_torch

from .case import Case, Fault

BLOCK = 100
HAVE_TORCH = importlib.util.find_spec("torch") is not None


class Programs(Case):
    """Two programs of one seed."""

    def __init__(self, rng):
        self.seed = rng.getrandbits(48)

    def run(self):
        try:
            programs.check(programs.draw(self.seed))
            if HAVE_TORCH:
                programs_beside_torch.check(self.seed)
        except AssertionError as error:
            raise Fault(str(error)) from error
        return 1 + HAVE_TORCH

    def text(self):
        return (
            f"from tests.helpers import programs, programs_beside_torch\n"
            f"programs.check(programs.draw({self.seed}))\nprograms_beside_torch.check({self.seed})\n"
        )


def case(rng):
    """A random pair of programs."""
    return Programs(rng)
