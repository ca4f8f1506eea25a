"""Random programs in every way that they can run: eager, scripted, traced, from files; drawn in tests/helpers."""

from tests.helpers import random_programs

from .case import Case, Fault

BLOCK = 20


class GraphProgram(Case):
    """The program of a seed."""

    def __init__(self, rng):
        self.seed = rng.getrandbits(48)

    def run(self):
        try:
            return random_programs.check(self.seed)
        except AssertionError as error:
            raise Fault(str(error)) from error

    def text(self):
        return (
            f"from tests.helpers import random_programs\n\nprint(random_programs.Program({self.seed}).text)\n"
            f"random_programs.check({self.seed})\n"
        )


def case(rng):
    """A random program."""
    return GraphProgram(rng)
