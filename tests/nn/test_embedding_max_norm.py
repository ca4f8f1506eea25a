"""Rows that are shortened in place before they are read: what else is known of the table stays as it is."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.autograd import forward_ad

PLACES = tg.tensor([[0, 1], [2, 2]])
CALLS = {
    "embedding": lambda table: nn.functional.embedding(PLACES, table, max_norm=1.0),
    "embedding_bag": lambda table: nn.functional.embedding_bag(PLACES, table, max_norm=1.0, mode="sum"),
}


def _table():
    tg.manual_seed(0)
    return tg.randn(4, 3) * 5


@pytest.mark.parametrize("call", CALLS)
def test_the_tangent_is_that_of_the_table(call):
    with forward_ad.dual_level():
        table = forward_ad.make_dual(_table(), tg.ones(4, 3))
        primal, tangent = forward_ad.unpack_dual(CALLS[call](table))
        lengths = forward_ad.unpack_dual(table).primal.norm(dim=1).tolist()
    assert set(tangent.flatten().tolist()) == {2.0 if "bag" in call else 1.0}
    assert max(lengths[:3]) < 1.001 < lengths[3]


@pytest.mark.parametrize("call", CALLS)
def test_the_table_is_written_in_graphs_and_under_vmap_too(call):
    first, again = _table(), _table()
    step = tg.jit.trace(CALLS[call], (_table(),))
    assert tg.equal(step(first), CALLS[call](again)) and tg.equal(first, again)
    rows = tg.stack([_table(), _table() * 2])
    wanted = [CALLS[call](table) for table in rows.clone()]
    assert tg.allclose(tg.func.vmap(CALLS[call])(rows), tg.stack(wanted)) and (rows.norm(dim=2)[:, :3] < 1.001).all()


@pytest.mark.parametrize("call", CALLS)
def test_a_parameter_is_shortened_and_gets_its_gradient(call):
    table = nn.Parameter(_table())
    CALLS[call](table).sum().backward()
    assert table.grad[2].tolist() == [2, 2, 2] and (table.detach().norm(dim=1)[:3] < 1.001).all()
