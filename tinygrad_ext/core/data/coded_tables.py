"""What follows from the numbers that the codes of a plugin's dtype stand for: how to round to them, and their finfo."""

import math
import struct
from itertools import pairwise


def _single(number):
    """The largest float32 that is not above a positive number."""
    try:
        (found,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return struct.unpack("f", b"\xff\xff\x7f\x7f")[0]
    return found if found <= number else _before(found)


def _before(number):
    """The float32 before a positive one."""
    (bits,) = struct.unpack("I", struct.pack("f", number))
    return struct.unpack("f", struct.pack("I", bits - 1))[0]


def side_of(values, side):
    """(steps, codes, code of a NaN) for numbers whose sign bit is `side`: see kernels/coded.h."""
    found, nans = {}, {}
    for code, v in enumerate(values):
        sign = math.copysign(1, v) < 0
        if v != v:
            nans.setdefault(sign, code)
        elif sign == side:
            found.setdefault(abs(v), code)
    sizes = sorted(s for s in found if s < math.inf)
    least = min((abs(v), code) for code, v in enumerate(values) if abs(v) < math.inf)[1]
    nan = nans.get(bool(side), nans.get(not side, least))
    if not sizes:  # no such numbers: the least there is
        return [], [least], nan
    codes = [found[s] for s in sizes]
    middles = [(a + b) / 2 for a, b in pairwise(sizes)]
    over = found.get(math.inf, nan if nans else None)
    if over is not None:  # half a step beyond the last, as if a number came there
        middles.append(sizes[-1] + (sizes[-1] - sizes[-2] if len(sizes) > 1 else sizes[-1]) / 2)
        codes.append(over)
    ups = [lower % 2 == 1 for lower in codes]  # half way goes to the even code
    steps = [_single(m) for m in middles]
    return [_before(s) if up and s == m and s else s for s, m, up in zip(steps, middles, ups)], codes, nan


def facts(values, bits):
    """(bits, eps, max, tiny, resolution, min) of finfo."""
    finite = sorted({v for v in values if abs(v) < math.inf})
    up = [v for v in finite if v > 0] or [1.0]
    above = [v for v in up if v > 1]
    eps = above[0] - 1 if above and 1.0 in up else (up[-1] - up[-2]) / up[-2] if len(up) > 1 else 1.0
    tiny = next((a for a, b in pairwise(up) if b - a <= eps * a), up[0])
    return bits, eps, finite[-1], tiny, 10.0 ** math.ceil(math.log10(eps)), finite[0]
