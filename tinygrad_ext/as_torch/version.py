"""A version that compares by its numbers, as scripts expect of `torch.__version__`."""

import operator
import re


def _by_numbers(compare):
    def method(self, other):
        numbers = _numbers(other)
        return NotImplemented if numbers is None else compare(_numbers(self), numbers)

    return method


class Version(str):
    """A string that is ordered as a version beside strings and tuples: 2.13 comes after 2.2."""

    __slots__ = ()
    __lt__ = _by_numbers(operator.lt)
    __le__ = _by_numbers(operator.le)
    __gt__ = _by_numbers(operator.gt)
    __ge__ = _by_numbers(operator.ge)


def _numbers(version):
    """(2, 13) for '2.13.0+cpu' and for (2, 13, 0); None for what is no version."""
    if isinstance(version, str):
        found = re.match(r"\d+(?:\.\d+)*", version)
        version = [int(n) for n in found[0].split(".")] if found else None
    if not isinstance(version, (list, tuple)) or not all(isinstance(n, int) for n in version):
        return None
    kept = list(version)
    while kept and kept[-1] == 0:
        kept.pop()
    return tuple(kept)
