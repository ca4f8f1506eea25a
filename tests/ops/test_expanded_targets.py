"""Writes to expanded tensors: deprecated in PyTorch, and done. Each element that is named writes to what it shares."""

import numpy as np
import pytest

import tinygrad_ext as tg


def expanded(rows=3, columns=4):
    return tg.zeros(rows, 1).expand(rows, columns)


AT = tg.tensor([0, 2])
MASK = tg.tensor([[True, False, True, False], [False] * 4, [False, False, False, True]])
CALLS = {
    "index_fill_ along": (lambda t: t.index_fill_(0, AT, 5.0), [5, 0, 5]),
    "index_fill_ across": (lambda t: t.index_fill_(1, AT, tg.tensor(5.0)), [5, 5, 5]),
    "masked_fill_": (lambda t: t.masked_fill_(MASK, 5.0), [5, 0, 5]),
    "masked_fill_ of rows": (lambda t: t.masked_fill_(MASK[:, :1], tg.tensor(5.0)), [5, 0, 0]),
    "index_put_": (lambda t: t.index_put_((AT, AT), tg.tensor([3.0, 4.0])), [3, 0, 4]),
    "index_put_ added": (lambda t: t.index_put_((AT,), tg.tensor(3.0), accumulate=True), [12, 0, 12]),
    "index_put_ by index": (lambda t: t.__setitem__((AT,), 1.0), [1, 0, 1]),
    "masked_fill_ by index": (lambda t: t.__setitem__(MASK, 2.0), [2, 0, 2]),
}


@pytest.mark.parametrize("name", CALLS)
def test_expanded_tensors_are_written_to_with_a_warning(name):
    call, rows = CALLS[name]
    title = name.split()[0]
    for t in (expanded(), expanded().t().t(), tg.zeros(3, 4)[:, :1].expand(3, 4)):
        with pytest.warns(UserWarning, match=f"Use of {title} on expanded tensors is deprecated. Please clone"):
            call(t)
        assert t.tolist() == [[row] * 4 for row in rows]
    with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
        call(expanded())


@pytest.mark.parametrize("threads", [1, 2])
def test_large_ones_lose_no_write(threads):
    before = tg.get_num_threads()
    tg.set_num_threads(threads)
    try:
        at = tg.from_numpy(np.random.default_rng(0).permutation(400)[:200])
        named = tg.zeros(400).index_fill(0, at, 1)
        with pytest.warns(UserWarning, match="deprecated"):
            added = expanded(400, 500).index_put_((at,), tg.tensor(1.0), accumulate=True)
        assert added.equal(named.unsqueeze(1).expand(400, 500) * 500)
        mask = tg.zeros(400, 500, dtype=tg.bool)
        mask[at, at] = True
        with pytest.warns(UserWarning, match="deprecated"):
            filled = expanded(400, 500).masked_fill_(mask, 2.0)
        assert filled.equal(named.unsqueeze(1).expand(400, 500) * 2)
    finally:
        tg.set_num_threads(before)


def test_results_of_their_own_are_as_before_and_others_refuse():
    assert expanded().masked_fill(MASK, 5.0).tolist() == (MASK * 5.0).tolist()
    assert expanded().index_fill(1, AT, 5.0)[0].tolist() == [5, 0, 5, 0]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        expanded().index_copy_(0, AT, tg.ones(2, 4))
