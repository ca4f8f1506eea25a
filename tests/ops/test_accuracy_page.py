"""docs/accuracy.md names every special function, and what it promises holds at the points of tests/golden."""

import json
from pathlib import Path

import numpy as np
import pytest

import tinygrad_ext as tg

ROOT = Path(__file__).parents[2]
GOLDEN = {}
for _file in ("special.json", "special_more.json"):
    GOLDEN |= json.loads((ROOT / "tests" / "golden" / _file).read_text())
CALLS = {"polygamma": lambda x: tg.special.polygamma(1, x), "multigammaln": lambda x: tg.special.multigammaln(x, 3)}


def promises():
    """{name: ((ulp, absolute) in float64, the same in float32)}."""
    found = {}
    for line in (ROOT / "docs" / "accuracy.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "function":
            allowed = [tuple(map(float, (*cell.split(", or "), 0)[:2])) for cell in cells[1:]]
            found |= dict.fromkeys(cells[0].split(", "), tuple(allowed))
    return found


PROMISES = promises()


def test_the_page_has_every_function():
    public = {n for n in dir(tg.special) if not n.startswith("_") and callable(getattr(tg.special, n))}
    assert {name for name in public if name not in PROMISES} == set()
    assert PROMISES.keys() <= public
    assert {n for n in PROMISES if n not in GOLDEN} == {"psi", "modified_bessel_i0", "modified_bessel_i1"} | {
        "softmax",
        "log_softmax",
        "logsumexp",
        "round",
    }


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_double_is_as_accurate_as_the_page_says(name):
    rows, (ulp, absolute) = np.array(GOLDEN[name]), PROMISES[name][0]
    got = CALLS.get(name, getattr(tg.special, name))(*map(tg.tensor, rows.T[:-1])).numpy()
    want = rows[:, -1]
    size = np.full(len(want), np.abs(want).max()) if "polynomial" in name else np.abs(want)
    allowed = np.maximum((ulp + 0.5) * np.spacing(size), absolute)  # the table is rounded itself
    at = int(np.argmax(np.abs(got - want) / allowed))
    assert abs(got[at] - want[at]) <= allowed[at], f"{name}{rows[at, :-1]} gives {got[at]!r}, exactly {want[at]!r}"


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_exponentials_are_as_accurate_as_the_page_says(name, dtype):
    x = np.random.default_rng(0).uniform(-10, 10, (50, 100)).astype(dtype)
    total = np.exp(x.astype(np.longdouble)).sum(1, keepdims=True)
    want = {"softmax": np.exp(x.astype(np.longdouble)) / total, "log_softmax": x - np.log(total)}
    want = want.get(name, np.log(total)[:, 0])
    got = getattr(tg.special, name)(tg.tensor(x), 1).numpy()
    ulp = PROMISES[name][dtype is np.float32][0]
    assert (np.abs(got - want) <= (ulp + 0.1) * np.spacing(np.abs(want).astype(dtype))).all()
