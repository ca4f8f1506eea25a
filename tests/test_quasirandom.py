"""Sobol's sequence: PyTorch's numbers, bit for bit, drawn at once or in parts."""

import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext.quasirandom import SobolEngine

pytest.importorskip("scipy")


@pytest.mark.parametrize("options", [{}, {"scramble": True, "seed": 5}], ids=["plain", "scrambled"])
@pytest.mark.parametrize("dimension", [1, 3, 300])
def test_points_are_those_of_pytorch(dimension, options):
    torch = pytest.importorskip("torch")
    ours, theirs = SobolEngine(dimension, **options), torch.quasirandom.SobolEngine(dimension, **options)
    for n in (1, 4, 1, 9):
        assert ours.draw(n).tolist() == theirs.draw(n).tolist()
    for engine in (ours, theirs):
        engine.fast_forward(5)
    assert ours.draw(3, dtype=tg.float64).tolist() == theirs.draw(3, dtype=torch.float64).tolist()
    for engine in (ours, theirs):
        engine.reset().fast_forward(4)
    assert ours.draw(3).tolist() == theirs.draw(3).tolist() and repr(ours) == repr(theirs)


def test_parts_are_the_whole():
    whole, parts = (SobolEngine(4, scramble=True, seed=1) for _ in range(2))
    assert whole.draw(8).tolist() == tg.cat([parts.draw_base2(2), parts.draw(4)]).tolist()
    out = tg.empty(0)
    assert whole.draw(2, out=out) is out and out.shape == (2, 4) and whole.num_generated == 10


def test_what_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"\[1, 21201\]: dimension is 0"):
        SobolEngine(0)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(2)
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        SobolEngine(2)
