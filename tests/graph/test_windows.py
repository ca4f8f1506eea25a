"""Which of the tensors that a program uses lie in one memory."""

from hypothesis import given
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext.graph.windows import _overlapping

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), st.integers(1, 3)), max_size=8)


@given(SPANS)
def test_overlaps_are_those_of_all_pairs(spans):
    memory = tg.zeros(64)
    tensors = [memory[begin : begin + count * step : step] for begin, count, step in spans]
    reach = [(begin, begin + (count - 1) * step + 1) if count else None for begin, count, step in spans]
    expected = {
        i
        for i, a in enumerate(reach)
        for k, b in enumerate(reach)
        if i != k and a and b and a[0] < b[1] and b[0] < a[1]
    }
    assert _overlapping(tensors) == expected


def test_what_lies_nowhere_overlaps_nothing():
    assert _overlapping([tg.empty(3, device="meta"), tg.empty(3, device="meta"), tg.zeros(0), tg.zeros(2)]) == set()
