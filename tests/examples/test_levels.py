"""The example levels do what their docstrings say, and nest in any order."""

import doctest
from pathlib import Path

import pytest

import tinygrad_ext as tg

FOLDER = Path(__file__).parents[2] / "examples" / "levels"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.py"))]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_of_an_example_are_true(load, name):
    result = doctest.testmod(load(name))
    assert result.attempted > 0
    assert result.failed == 0


def loss(w, x):
    return ((w * x).sin() * x).sum()


def test_grad_inside_batched_gives_gradients_per_sample_of_an_unbatched_parameter(load):
    batched, grad = load("batching").batched, load("derivative").grad
    w, x = tg.tensor([0.5, -1.0]), tg.tensor([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])
    per_sample = batched(grad(loss), in_dims=(None, 0))(w, x)
    for got, row in zip(per_sample, x):
        leaf = w.clone().requires_grad_()
        loss(leaf, row).backward()
        assert tg.allclose(got, leaf.grad)
    assert per_sample.shape == (3, 2)


def test_batched_inside_grad_gives_the_gradient_of_the_whole(load):
    batched, grad = load("batching").batched, load("derivative").grad
    w, x = tg.tensor([0.5, -1.0]), tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    got = grad(lambda w: batched(loss, in_dims=(None, 0))(w, x).sum())(w)
    leaf = w.clone().requires_grad_()
    sum(loss(leaf, row) for row in x).backward()
    assert tg.allclose(got, leaf.grad)


def test_nested_derivatives_do_not_confuse_their_perturbations(load):
    grad = load("derivative").grad
    # d/dx (x · d/dy (x + y)) = 1; taking the inner x for the inner variable gives 2
    assert grad(lambda x: x * grad(lambda y: x + y)(tg.tensor(1.0)))(tg.tensor(1.0)).item() == 1
    assert grad(lambda x: x * grad(lambda y: x * y)(tg.tensor(1.0)))(tg.tensor(3.0)).item() == 6
    third = grad(grad(grad(lambda x: (x * x * x * x).sum())))
    assert third(tg.tensor(2.0)).item() == 48


def test_a_level_of_ones_own_stands_above_eager_autograd(load):
    batched = load("batching").batched
    w, x = tg.tensor([0.5, -1.0], requires_grad=True), tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    batched(loss, in_dims=(None, 0))(w, x).sum().backward()
    leaf = w.detach().clone().requires_grad_()
    sum(loss(leaf, row) for row in x).backward()
    assert tg.allclose(w.grad, leaf.grad)
