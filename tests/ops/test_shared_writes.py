"""What an index writes to is shared by threads in the same bits: sums in the order of the index, later ones win."""

import pytest

import tinygrad_ext as tg


@pytest.fixture
def by_threads():
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


SHAPES = [
    ((300, 500), 0),
    ((300, 500), 1),
    ((7, 90, 111), 1),
    ((40, 33, 70), 0),
    ((50, 20, 130), 2),
    ((200000,), 0),
    ((3, 40000), 1),
]


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.int64], ids=str)
@pytest.mark.parametrize("shape, dim", SHAPES, ids=str)
def test_sums_and_copies_along_a_dimension(by_threads, shape, dim, dtype):
    tg.manual_seed(0)
    many = list(shape)
    many[dim] = 2 * shape[dim] + 1
    index = tg.randint(0, shape[dim], (many[dim],))
    into, values = (tg.randn(s).mul(100).to(dtype) for s in (shape, many))
    got = by_threads(lambda: into.index_add(dim, index, values))
    if dtype == tg.int64:
        counts = tg.nn.functional.one_hot(index, shape[dim]).t() if shape[dim] < 1000 else None
        if counts is not None:
            assert tg.equal(
                got,
                into
                + (counts @ values.movedim(dim, 0).flatten(1))
                .view(shape[dim], *[s for i, s in enumerate(shape) if i != dim])
                .movedim(0, dim),
            )
    by_threads(lambda: into.index_add(dim, index, values, alpha=3))
    copied = by_threads(lambda: into.index_copy(dim, index, values))
    last = {int(k): i for i, k in enumerate(index.tolist())}
    k, i = next(iter(last.items()))
    assert tg.equal(copied.select(dim, k), values.select(dim, i))
    turned = into.transpose(0, -1).contiguous().transpose(0, -1)
    assert tg.equal(by_threads(lambda: turned.clone().index_add_(dim, index, values)), got)


def test_rows_that_are_assigned_and_gradients_of_rows(by_threads):
    tg.manual_seed(0)
    table = tg.randn(400, 300)
    rows, columns = tg.randint(0, 400, (900,)), tg.randint(0, 300, (900,))
    values = tg.randn(900, 300)

    def assigned(accumulate):
        return table.clone().index_put_((rows,), values, accumulate=accumulate)

    by_threads(lambda: assigned(True))
    got = by_threads(lambda: assigned(False))
    assert tg.equal(got[rows[-1]], values[-1])
    by_threads(lambda: table.clone().index_put_((rows, columns), values[:, 0], accumulate=True))
    by_threads(lambda: table.clone().index_fill_(0, rows, 2.0))
    leaf = table.clone().requires_grad_()
    for picked in (
        lambda: leaf[rows],
        lambda: leaf.index_select(0, rows),
        lambda: leaf[:, columns],
        lambda: leaf.take(rows),
    ):
        by_threads(lambda picked=picked: tg.autograd.grad((picked() * 0.1).sin().sum(), leaf)[0])
