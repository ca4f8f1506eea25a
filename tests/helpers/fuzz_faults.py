"""A target of the fuzzer whose cases go wrong on purpose, each in its own way."""

import os
import time

from tools.fuzz.case import Case, Fault

BLOCK = 20
WAYS = [*["well"] * 20, "fault", "fault", "fault", "death", "sleep"]


class Wrong(Case):
    """A case that says in advance how it will go."""

    def __init__(self, rng):
        self.way = rng.choice(WAYS)

    def text(self):
        return f"# {self.way}\n"

    def run(self):
        if self.way == "fault":
            raise Fault("this one is wrong")
        if self.way == "death":
            os.abort()
        if self.way == "sleep":
            time.sleep(1000)
        return 3


def case(rng):
    """A case that goes well or not."""
    return Wrong(rng)
