"""Keyword names that PyTorch's Python gives arguments, beside those of schemas."""

import tinygrad_ext as tg


def test_self_is_input_wherever_it_stands():
    c, x, y = tg.tensor([True, False]), tg.ones(2), tg.zeros(2)
    assert tg.where(condition=c, input=x, other=y).tolist() == [1.0, 0.0]
    assert tg.where(c, input=x, other=y).tolist() == tg.where(c, self=x, other=y).tolist()
