"""What was written down once is written down again: the graphs are those that the rules themselves write."""

import pytest
from tinygrad_ext.graph.repeats import Repeats

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.graph import joint as joints
from tinygrad_ext.nn import functional as F


def chain(x, y):
    for _ in range(3):
        x = tg.exp(x * 0.1) * y + tg.tanh(x) - y * y
    return x


def broadcast(x, y):
    for _ in range(3):
        x = x + y[0] * x.sum(0) / x.shape[0]
    return x.reshape(x.shape[0] * x.shape[1])


def one_twice(x, y):
    return (x * x + x * y + y * y) * (x * x)


def layers(x, y):
    for _ in range(3):
        x = F.layer_norm(F.gelu(x @ y.T @ y), (x.shape[-1],))
    return x


def numbers(x, y):
    for scale in (1, 1.0, 0.0, -0.0, 2):
        x = x * scale + y
    return x


def in_a_branch(x, y):
    if bool(x.sum() > 0):
        x = tg.exp(x) * y + tg.exp(y) * x
    else:
        x = tg.exp(y) * x
    return tg.exp(x) * y


def pieces(x, y):
    a, b = x.split(2)
    c, d = y.chunk(2)
    return tg.cat([a * c, b * d, c * a]).permute(1, 0)


PROGRAMS = [chain, broadcast, one_twice, layers, numbers, pieces]


def gradients(f, x, y):
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    out = f(x, y)
    return [out, *tg.autograd.grad((out * out).sum(), (x, y))]


def same(a, b):
    return all(tg.equal(p, q) for p, q in zip(a, b))


@pytest.fixture
def made(monkeypatch):
    """The joints that are made."""
    found, init = [], joints.Joint.__init__

    def noted(self, *args):
        init(self, *args)
        found.append(self)

    monkeypatch.setattr(joints.Joint, "__init__", noted)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_graphs_are_those_without_pieces(program, made, monkeypatch):
    args = tg.randn(4, 6), tg.randn(4, 6)
    traced = tg.jit.trace(program, args)
    assert same(gradients(traced, *args), gradients(program, *args))
    with monkeypatch.context() as patch:
        patch.setattr(joints, "Repeats", lambda capture: None)
        again = tg.jit.trace(program, args)
        gradients(again, *args)
    first, second = made
    assert str(first.forward) == str(second.forward)
    assert str(first.backward) == str(second.backward)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_they_hold_for_other_sizes(program):
    traced = tg.jit.trace(program, (tg.randn(4, 6), tg.randn(4, 6)))
    for sizes in ((4, 6), (4, 3), (4, 1)):
        args = tg.randn(sizes), tg.randn(sizes)
        assert same(gradients(traced, *args), gradients(program, *args))


def test_branches_of_a_script():
    scripted = tg.jit.script(in_a_branch)
    for sign in (1, -1):
        args = sign * tg.rand(3, 2), tg.randn(3, 2)
        assert same(gradients(scripted, *args), gradients(in_a_branch, *args))


def test_a_piece_does_not_leave_out_a_guard_that_was_there_before(made):
    """The size of x is asked for before its op is called, that of h is not: each graph is good for these sizes only."""

    def program(x, y):
        assert x.shape[0] == 4
        h = x[:3]
        return F.unfold(x.reshape(1, 1, 4, 4), 2).sum() + h.squeeze(0).sum() + (y[:3]).squeeze(0).sum()

    traced = tg.jit.trace(program, (tg.randn(4, 4), tg.randn(4, 4)))
    for sizes in ((4, 4), (1, 4)):
        args = tg.randn(4, 4), tg.randn(sizes)
        assert same(gradients(traced, *args), gradients(program, *args))


def test_most_of_a_model_is_written_down_again(monkeypatch):
    model = nn.Sequential(*[part for _ in range(12) for part in (nn.Linear(4, 4), nn.GELU())])
    traced, found = tg.jit.trace(model, tg.randn(2, 4)), []
    monkeypatch.setattr(joints, "Repeats", lambda capture: found.append(Repeats(capture)) or found[0])
    traced(tg.randn(2, 4)).sum().backward()
    (repeats,) = found
    assert repeats.repeated > 2 * repeats.looked > 0
    assert not traced.graph.derivative.refused
