"""Walks over parameters: who has walks of their own is asked, and what is no name costs none."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn.registry import settled


def test_parameters_are_those_of_an_overridden_walk():
    class Few(nn.Linear):
        def named_parameters(self, *args, **kwargs):
            yield "weight", self.weight

    class Renamed(nn.Linear):
        def _named_members(self, *args, **kwargs):
            yield "only", self.bias

    assert [p.shape for p in Few(2, 3).parameters()] == [(3, 2)]
    assert [p.shape for p in Renamed(2, 3).parameters()] == [(3,)]
    one = nn.Linear(2, 3)
    one.named_parameters = lambda recurse=True: iter([("bias", one.bias)])
    assert [p.shape for p in one.parameters()] == [(3,)]


def test_parameters_come_once_and_in_the_order_of_their_names():
    inner = nn.Linear(2, 2)
    model = nn.Sequential(inner, nn.Sequential(inner, nn.Linear(2, 1)))
    model.own = nn.Parameter(tg.zeros(1))
    assert [id(p) for p in model.parameters()] == [id(p) for _, p in model.named_parameters()]
    assert [id(p) for p in model.parameters(recurse=False)] == [id(model.own)]


def test_an_error_in_a_settled_property_is_the_programs():
    class Layer(nn.Module):
        @settled
        def broken(self):
            return self.missing

    with pytest.raises(AttributeError, match="missing"):
        _ = Layer().broken
    lstm = nn.LSTM(2, 2)
    assert [w is v for w, v in zip(lstm._flat_weights, lstm.parameters(), strict=True)] == [True] * 4
    lstm._flat_weights = [nn.Parameter(w + 1) for w in lstm._flat_weights]
    assert lstm.weight_ih_l0 is lstm._flat_weights[0]


@pytest.mark.parametrize("way", [{}, {"proj_size": 2}, {"num_layers": 2, "bidirectional": True}], ids=str)
def test_states_that_are_not_given_are_zeros(way):
    tg.manual_seed(0)
    lstm = nn.LSTM(3, 4, **way)
    x, rows = tg.randn(5, 2, 3), way.get("num_layers", 1) * (1 + way.get("bidirectional", False))
    state = tg.zeros(rows, 2, way.get("proj_size", 4)), tg.zeros(rows, 2, 4)
    (a, (h, c)), (b, (k, d)) = lstm(x), lstm(x, state)
    assert tg.equal(a, b)
    assert tg.equal(h, k)
    assert tg.equal(c, d)
    with pytest.raises(RuntimeError, match=r"input.size\(-1\) must be equal"):
        lstm(tg.randn(5, 2, 4))


def test_two_leaves_that_get_one_gradient_share_no_memory():
    a, b, c = (tg.zeros(3, requires_grad=True) for _ in range(3))
    turned = tg.zeros(2, 3).t().requires_grad_()
    (a + b + c).backward(tg.ones(3))
    a.grad += 1
    assert b.grad.tolist() == c.grad.tolist() == [1, 1, 1]
    (turned + turned * 1).backward(tg.ones(3, 2))
    assert turned.grad.stride() == turned.stride()


def test_modules_come_as_often_as_they_are_reached_if_asked():
    inner = nn.Linear(2, 2)
    model = nn.Sequential(inner, inner)
    assert len(list(model.modules())) == 2 and len(list(model.modules(remove_duplicate=False))) == 3
