"""A result of a graph requires a gradient where eager mode says so, also where elements decide which way is taken."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor
from tinygrad_ext.graph import joint as joints


def branch(x: Tensor, w: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        y = x * w
    else:
        y = (x * w).detach()
    return y + 1


def constant_or_computed(x: Tensor, w: Tensor) -> Tensor:
    y = tg.zeros_like(x)
    if bool(x.sum() > 0):
        y = tg.exp(w)
    return y * 2


def turns(x: Tensor, w: Tensor) -> Tensor:
    y = tg.zeros_like(x)
    for _ in range(int(x.sum().item())):
        y = y * 0.5 + w
    return y


def while_loop(x: Tensor, w: Tensor) -> Tensor:
    y = x * 1.0
    while bool(y.sum() < 5):
        y = y * w + 1
    return y


def detached_in_the_last_turn(x: Tensor, w: Tensor) -> Tensor:
    y = x * w
    for i in range(int(x.sum().abs().item())):
        if i == 2:
            y = y.detach()
        else:
            y = y * 1.5
    return y


def again_after_it(x: Tensor, w: Tensor) -> Tensor:
    y = x * w
    if bool(x.sum() > 0):
        y = y.detach()
    return y * w


def two_ways_meet(x: Tensor, w: Tensor) -> Tensor:
    a, b = tg.zeros_like(x), tg.zeros_like(x)
    if bool(x[0] > 0):
        a = a + w
    if bool(x[1] > 0):
        b = b - w
    return a * b + 1


def within(x: Tensor, w: Tensor) -> Tensor:
    y = tg.zeros_like(x)
    if bool(x[0] > 0):
        for _ in range(int(x[1].item())):
            if bool(x[1] > 1):
                y = y + w
    return y


def without_gradient(x: Tensor, w: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        with tg.no_grad():
            y = x * w
    else:
        y = x * w
    return y


def two_results(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x * w
    if bool(x.sum() > 0):
        return y.detach(), y + 1
    return y * 2, x * 1


PROGRAMS = [
    branch, constant_or_computed, turns, while_loop, detached_in_the_last_turn, again_after_it, two_ways_meet, within,
    without_gradient, two_results,
]  # fmt: skip
INPUTS = [[1.0, 2.0], [-1.0, -2.0], [3.0, -3.0], [-3.0, 3.0], [4.0, 1.0], [0.0, 0.0], [2.0, 5.0]]


def told(f, values):
    """Results, which of them require a gradient, and the gradients, as lists."""
    x, w = tg.tensor(values), tg.tensor([0.5, 1.25], requires_grad=True)
    made = f(x, w)
    made = made if isinstance(made, tuple) else (made,)
    flags = [y.requires_grad for y in made]
    roots = [(y * y).sum() for y in made if y.requires_grad]
    grads = tg.autograd.grad(roots, [w], allow_unused=True) if roots else (None,)
    leaf = [y.is_leaf for y in made]
    return [y.tolist() for y in made], flags, leaf, [None if g is None else g.tolist() for g in grads]


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
def test_scripts_say_what_eager_mode_says(program, made):
    scripted = tg.jit.script(program)
    for values in INPUTS * 2:
        assert told(scripted, values) == told(program, values), values
    assert made  # else eager mode was compared with itself


def test_from_a_file(tmp_path):
    tg.jit.script(two_ways_meet).save(tmp_path / "ways.tg")
    loaded = tg.jit.load(tmp_path / "ways.tg")
    for values in INPUTS:
        assert told(loaded, values) == told(two_ways_meet, values)


def test_what_is_certain_costs_nothing(made):
    @tg.jit.script
    def program(x: Tensor, w: Tensor) -> Tensor:
        y = w * 1
        if bool(x.sum() > 0):
            y = tg.exp(w)
        for _ in range(int(x[0].abs().item())):
            y = y * w
        return y

    program(tg.ones(2), tg.ones(2, requires_grad=True))
    (joint,) = made
    assert not joint.flags


def test_second_derivatives_behind_a_way():
    scripted = tg.jit.script(constant_or_computed)
    for f in (constant_or_computed, scripted):
        w = tg.tensor([0.5, 1.25], requires_grad=True)
        (g,) = tg.autograd.grad(f(tg.ones(2), w).sum(), w, create_graph=True)
        (again,) = tg.autograd.grad(g.sum(), w)
        assert again.tolist() == (2 * tg.exp(w)).tolist()
