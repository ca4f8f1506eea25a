"""Products by own loops are shared by threads, of half a million multiplications each, in the same bits."""

import pytest

import tinygrad_ext as tg

SHAPES = [(128, 128, 128), (64, 250, 90), (20, 300, 200), (200, 40, 150), (1000, 24, 64), (97, 101, 113)]


@pytest.fixture
def by_threads():
    """What a call gives by one, two, three and seven threads, which must be equal."""
    before = tg.get_num_threads()

    def run(call):
        found = []
        for n in (1, 2, 3, 7):
            tg.set_num_threads(n)
            found.append(call())
        assert all(tg.equal(f, found[0]) for f in found)
        return found[0]

    yield run
    tg.set_num_threads(before)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_products_have_the_same_bits_with_every_number_of_threads(by_threads, m, n, k, dtype):
    tg.manual_seed(m + n + k)
    a, b, bias = tg.randn(m, k, dtype=dtype), tg.randn(k, n, dtype=dtype), tg.randn(n, dtype=dtype)
    whole = by_threads(lambda: a @ b)
    exact = a.double() @ b.double()
    assert (whole.double() - exact).abs().max() < (1e-3 if dtype == tg.float32 else 1e-10)
    assert tg.equal(by_threads(lambda: a.t().contiguous().t() @ b), whole)
    assert tg.equal(by_threads(lambda: a @ b.t().contiguous().t()), whole)
    by_threads(lambda: tg.nn.functional.linear(a, b.t(), bias))
    by_threads(lambda: tg.addmm(bias, a, b, beta=0.5, alpha=2))
    by_threads(lambda: tg.addmm(whole, a, b))
    by_threads(lambda: tg.mm(a, b, out=tg.empty(n, m, dtype=dtype).t()))
    by_threads(lambda: tg.mm(a, b, out=tg.empty(m, 2 * n, dtype=dtype)[:, ::2]))


def test_batches_of_small_products_are_dealt_out(by_threads):
    tg.manual_seed(0)
    for batch, m, n, k in ((8, 64, 64, 64), (3, 128, 128, 128), (2, 70, 90, 200), (33, 16, 48, 40)):
        a, b = tg.randn(batch, m, k), tg.randn(batch, k, n)
        whole = by_threads(lambda a=a, b=b: a @ b)
        assert tg.equal(whole[1], a[1] @ b[1])
        by_threads(lambda a=a, b=b: tg.baddbmm(tg.ones(batch, m, n), a, b, beta=0.3))
