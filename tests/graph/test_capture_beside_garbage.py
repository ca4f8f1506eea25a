"""What finalizers compute while a program is written down is not written down."""

import gc

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext import graph, jit


class Junk:
    """Garbage in a cycle, which computes when it goes."""

    def __init__(self):
        self.itself, self.left, self.right = self, tg.ones(3), tg.ones(3)

    def __del__(self):
        (self.left + self.right).sum()


@pytest.fixture(autouse=True)
def lazy_collector():
    """Garbage stays until the program lets the collector look."""
    before = gc.get_threshold()
    collect()
    gc.set_threshold(1_000_000)
    yield
    gc.set_threshold(*before)


def program(x):
    gc.set_threshold(1, 1, 1)
    rows = [[k] for k in range(50)]  # objects that the collector counts
    gc.set_threshold(1_000_000)
    return x * len(rows) + 1


def test_a_graph_holds_the_program_alone():
    Junk()
    found = graph.capture(program)(tg.ones(2))
    assert not found.state and "sum" not in str(found)
    Junk()
    assert jit.trace(program, (tg.ones(2),))(tg.ones(2)).tolist() == [51.0, 51.0]


def test_the_collector_is_on_again_after_a_capture_and_after_an_error():
    assert gc.isenabled()
    graph.capture(program)(tg.ones(2))
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        graph.capture(lambda x: x / (1 // 0))(tg.ones(2))
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        graph.capture(program)(tg.ones(2))
        assert not gc.isenabled()
    finally:
        gc.enable()
