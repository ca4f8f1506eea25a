"""Writes special.json: values of special functions in 30-digit arithmetic, rounded to double. Needs mpmath."""

import json
from pathlib import Path

import mpmath as mp

POINTS = [1e-9, 0.001, 0.01, 0.3, 0.75, 1.0, 1.3, 1.9, 2.0, 2.4, 2.6, 4.9, 5.1, 7.5, 8.0, 9.3, 17.0, 31.0, 80.0]
SMALL = [1e-30, 1e-12, 0.001, 0.02, 0.12, 0.126, 0.3, 0.45, 0.51, 0.7, 0.874, 0.876, 0.97, 0.999]
PAIRS = [[a, f * a] for a in (0.01, 0.4, 1.0, 3.7, 9.0, 55.0, 800.0, 12000.0) for f in (0.7, 0.97, 1.0, 1.1, 1.6)]
ONE = {  # name -> (function, arguments)
    "i0": (lambda x: mp.besseli(0, x), [*POINTS, 705.0]),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-x), POINTS),
    "i1": (lambda x: mp.besseli(1, x), [*POINTS, 705.0]),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-x), POINTS),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), POINTS),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), POINTS),
    "scaled_modified_bessel_k0": (lambda x: mp.besselk(0, x) * mp.exp(x), POINTS),
    "scaled_modified_bessel_k1": (lambda x: mp.besselk(1, x) * mp.exp(x), POINTS),
    "bessel_j0": (lambda x: mp.besselj(0, x), POINTS),
    "bessel_j1": (lambda x: mp.besselj(1, x), POINTS),
    "bessel_y0": (lambda x: mp.bessely(0, x), POINTS),
    "bessel_y1": (lambda x: mp.bessely(1, x), POINTS),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, POINTS),
    "airy_ai": (mp.airyai, POINTS + [-x for x in POINTS]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [x for x in POINTS if x < 30] + [-x for x in POINTS if x < 5]),
    "ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, [x for x in POINTS if x < 9] + [-x for x in POINTS if x < 20]),
    "log_ndtr": (lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), [x for x in POINTS if x < 6] + [-x for x in POINTS]),
    "erfinv": (mp.erfinv, SMALL),
    "ndtri": (lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), SMALL),
    "entr": (lambda x: -x * mp.log(x), SMALL),
}


def upper(a, x):
    return mp.gammainc(a, x, regularized=True)


def table():
    """name -> rows of arguments and a value."""
    mp.mp.dps = 70  # ndtri cancels
    rows = {name: [[x, float(f(mp.mpf(x)))] for x in xs] for name, (f, xs) in ONE.items()}
    rows["gammaincc"] = [[a, x, float(upper(mp.mpf(a), mp.mpf(x)))] for a, x in PAIRS]
    with mp.workdps(340):
        rows["gammainc"] = [[a, x, float(1 - upper(mp.mpf(a), mp.mpf(x)))] for a, x in PAIRS]
    rows["zeta"] = [
        [s, q, float(mp.zeta(mp.mpf(s), mp.mpf(q)))] for s in (1.01, 1.5, 3.0, 12.0) for q in (0.1, 1.0, 9.9)
    ]
    return rows


if __name__ == "__main__":
    (Path(__file__).parent / "special.json").write_text(
        json.dumps(table(), indent=None).replace('], "', '],\n"') + "\n"
    )
