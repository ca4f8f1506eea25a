"""PyTorch's floats of eight bits, each a dtype that is brought when it is first asked for under the alias."""

import math

from tinygrad_ext.library import register_dtype

# name: bits of mantissa, bias of the exponent, whether the largest exponent holds infinities, codes of nan
_FORMS = {
    "float8_e4m3fn": (3, 7, False, (0x7F, 0xFF)),
    "float8_e4m3fnuz": (3, 8, False, (0x80,)),
    "float8_e5m2": (2, 15, True, ()),
    "float8_e5m2fnuz": (2, 16, False, (0x80,)),
}


def _number(code, mantissa, bias, infinite, nans):
    exponent, rest = (code & 127) >> mantissa, code & ((1 << mantissa) - 1)
    sign = -1.0 if code & 128 else 1.0
    if code in nans:
        return math.nan
    if infinite and exponent == 127 >> mantissa:
        return math.nan if rest else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(rest, 1 - bias - mantissa)
    return sign * math.ldexp((1 << mantissa) + rest, exponent - bias - mantissa)


def bring(name):
    """The dtype of a name; None for what is no such float."""
    if name not in _FORMS:
        return None
    return register_dtype(name, values=[_number(code, *_FORMS[name]) for code in range(256)])
