"""Writes special.json and special_more.json: values of special functions in 70 digits, rounded. Needs mpmath."""

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
MIXED = [*POINTS, *(-x for x in POINTS)]
MORE = {
    "erf": (mp.erf, MIXED),
    "erfc": (mp.erfc, [x for x in MIXED if x < 26]),
    "gammaln": (mp.loggamma, [*POINTS, 0.999, 1.0 + 1e-12, 1.46, 2.0 - 1e-9, 2.0 + 1e-9, 2.99, 3.0, 3.7, 6.2, 7.999]),
    "digamma": (mp.digamma, POINTS),
    "polygamma": (lambda x: mp.psi(1, x), POINTS),
    "multigammaln": (lambda x: sum(mp.loggamma(x - mp.mpf(j) / 2) for j in range(3)) + 1.5 * mp.log(mp.pi), POINTS[6:]),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), MIXED),
    "logit": (lambda p: mp.log(p / (1 - p)), SMALL),
    "sinc": (lambda x: mp.sin(mp.pi * x) / (mp.pi * x), [x for x in MIXED if x % 1]),
    "exp2": (lambda x: mp.mpf(2) ** x, MIXED),
    "expm1": (mp.expm1, MIXED),
    "log1p": (lambda x: mp.log(1 + x), [*SMALL, *(-x for x in SMALL), *POINTS]),
}
PAIRED = {
    "xlogy": (lambda a, x: a * mp.log(x), [[a, x] for a in (-3.0, 0.1, 7.0) for x in POINTS]),
    "xlog1py": (lambda a, x: a * mp.log(1 + x), [[a, x] for a in (-3.0, 0.1, 7.0) for x in POINTS]),
}
DEGREE = 7
UNIT = [-0.99, -0.7, -0.31, 0.02, 0.25, 0.5, 0.83, 0.999]


def angle(first, half):
    """Chebyshev's polynomials of the third and fourth kind by cosines and sines."""
    return lambda x: first((DEGREE + mp.mpf(1) / 2) * mp.acos(x)) / half(mp.acos(x) / 2)


POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda x: mp.chebyt(DEGREE, x),
    "chebyshev_polynomial_u": lambda x: mp.chebyu(DEGREE, x),
    "chebyshev_polynomial_v": angle(mp.cos, mp.cos),
    "chebyshev_polynomial_w": angle(mp.sin, mp.sin),
    "hermite_polynomial_h": lambda x: mp.hermite(DEGREE, x),
    "hermite_polynomial_he": lambda x: mp.mpf(2) ** (-mp.mpf(DEGREE) / 2) * mp.hermite(DEGREE, x / mp.sqrt(2)),
    "laguerre_polynomial_l": lambda x: mp.laguerre(DEGREE, 0, x),
    "legendre_polynomial_p": lambda x: mp.legendre(DEGREE, x),
}


def more():
    """The functions that are more accurate or more common, and polynomials of one degree."""
    mp.mp.dps = 70
    rows = {name: [[x, float(f(mp.mpf(x)))] for x in xs] for name, (f, xs) in MORE.items()}
    rows |= {name: [[*p, float(f(*map(mp.mpf, p)))] for p in ps] for name, (f, ps) in PAIRED.items()}
    for name, f in POLYNOMIALS.items():
        rows[name] = [[x, DEGREE, float(mp.re(f(mp.mpf(x))))] for x in UNIT]
        if name.startswith("chebyshev"):
            moved = [(x + 1) / 2 for x in UNIT]
            rows["shifted_" + name] = [[x, DEGREE, float(mp.re(f(2 * mp.mpf(x) - 1)))] for x in moved]
    return rows


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
    for file, rows in (("special.json", table()), ("special_more.json", more())):
        (Path(__file__).parent / file).write_text(json.dumps(rows, indent=None).replace('], "', '],\n"') + "\n")
