"""Specifiers such as ">=1,<2" against the version of the plugin API."""

import operator
import re

_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_PART = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*")


def allows(specifier, version):
    """Whether a version, a tuple of ints, satisfies all parts. ValueError for what is no specifier.

    >>> from tinygrad_ext.plugins.versions import allows
    >>> allows(">=1,<2", (1, 4)), allows(">=2", (1, 4))
    (True, False)
    """
    if not isinstance(specifier, str) or not specifier.strip():
        raise ValueError(f"requires_api must be text such as '>=1,<2', not {specifier!r}")
    for part in specifier.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(
                f"requires_api = {specifier!r}: {part.strip()!r} is not one of >=1, <2, ==1.0, !=1.1, >0, <=1"
            )
        wanted = tuple(map(int, match[2].split(".")))
        width = max(len(wanted), len(version))
        if not _COMPARE[match[1]](_padded(version, width), _padded(wanted, width)):
            return False
    return True


def _padded(numbers, width):
    return numbers + (0,) * (width - len(numbers))
