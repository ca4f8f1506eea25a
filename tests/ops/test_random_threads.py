"""Threads share a long fill: the numbers, and the stream behind them, are those of one thread."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused

SIZES = [
    (40_000,),
    (1 << 17,),
    (65_536 + 5,),
    (300, 401),
]  # some leave a rest of the 16 that normal numbers are made of


def _turned(x):
    return x.reshape(-1)[: x.numel() // 2 * 2].reshape(-1, 2).t()


FLOATS = {
    "uniform": lambda x: x.uniform_(-1, 3),
    "normal": lambda x: x.normal_(1, 2),
    "normal one by one": lambda x: _turned(x).normal_(),
    "exponential": lambda x: x.exponential_(2),
    "cauchy": lambda x: x.cauchy_(),
    "log_normal": lambda x: x.log_normal_(),
    "geometric": lambda x: x.geometric_(0.3),
    "bernoulli": lambda x: x.bernoulli_(0.3),
    "random": lambda x: x.random_(),
}
DRAWS = [
    *((dtype, name, draw) for dtype in (tg.float32, tg.float64, tg.bfloat16) for name, draw in FLOATS.items()),
    *((tg.complex64, name, FLOATS[name]) for name in ("uniform", "normal")),
    (tg.int64, "random", lambda x: x.random_()),
    (tg.int64, "wide", lambda x: x.random_(0, 1 << 40)),
    (tg.int32, "range", lambda x: x.random_(3, 100)),
    (tg.uint8, "bernoulli", lambda x: x.bernoulli_(0.6)),
    (tg.float32, "bernoulli of each", lambda x: tg.bernoulli(x.uniform_())),
    (tg.bfloat16, "bernoulli by doubles", lambda x: x.bernoulli_(tg.rand(x.shape, dtype=tg.float64))),
    (tg.float32, "kept scores", lambda x: fused._attention_kept(tg.ones(x.numel() // 99, 3), tg.ones(99, 3), 0.3)),
    (tg.float32, "dropout", lambda x: tg.nn.functional.dropout(x.fill_(1), 0.3)),
]


@pytest.mark.parametrize(("dtype", "name", "draw"), [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in DRAWS])
def test_any_number_of_threads_draws_the_same(dtype, name, draw):
    def drawn(threads, size):
        tg.set_num_threads(threads)
        tg.manual_seed(7)
        tg.rand(5)
        return draw(tg.empty(size, dtype=dtype)), tg.rand(3), tg.get_rng_state()

    before = tg.get_num_threads()
    try:
        for size in SIZES:
            wanted = drawn(1, size)
            for threads in (2, 3, 5):
                assert all(got.equal(want) for got, want in zip(drawn(threads, size), wanted)), (size, threads)
    finally:
        tg.set_num_threads(before)
