"""Arithmetic of sizes that PyTorch lets be symbols."""

import pytest

import tinygrad_ext as tg


def test_numbers_are_numbers():
    assert tg.sym_max(1, 2.5) == 2.5 and isinstance(tg.sym_min(1, 2.5), float) and tg.sym_max(1, 2) == 2
    assert tg.sym_int(-2.5) == -2 and isinstance(tg.sym_float(2), float) and tg.sym_sqrt(9) == 3
    assert tg.sym_not(False) is True and tg.sym_sum([1, 2, 3]) == 6


@pytest.mark.parametrize("name", ["SymInt", "SymFloat", "SymBool"])
def test_there_are_no_symbols(name):
    kind = getattr(tg, name)
    assert not isinstance(tg.ones(2).shape[0], kind)
    with pytest.raises(NotImplementedError, match=name):
        kind(1)
