"""LBFGS beside PyTorch's: losses, calls of the closure, state."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, optim

torch = pytest.importorskip("torch", reason="compares with PyTorch")


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def quartic(x):
    return ((x - 0.3) ** 4).sum() + (x[0] * x[1]).cos()


def closure(optimizer, x, function):
    def evaluate():
        optimizer.zero_grad()
        loss = function(x)
        loss.backward()
        return loss

    return evaluate


@pytest.mark.parametrize("function", [rosenbrock, quartic])
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("options", [{}, {"history_size": 3, "max_iter": 5}, {"max_eval": 4, "tolerance_change": 1e-3}])
def test_losses_calls_and_state_equal_pytorchs(function, search, options):
    options = {"lr": 1.0 if search else 0.1, "line_search_fn": search, **options}
    start = [-1.2, 1.0]
    x = nn.Parameter(tg.tensor(start, dtype=tg.float64))
    y = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    ours, theirs = optim.LBFGS([x], **options), torch.optim.LBFGS([y], **options)
    for _ in range(4):
        a = ours.step(closure(ours, x, function)).item()
        b = theirs.step(closure(theirs, y, function)).item()
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)
    mine, other = ours.state_dict(), theirs.state_dict()
    assert mine["param_groups"] == other["param_groups"]
    assert set(mine["state"][0]) == set(other["state"][0])
    for name in ("func_evals", "n_iter"):
        assert mine["state"][0][name] == other["state"][0][name]
    assert len(mine["state"][0]["old_dirs"]) == len(other["state"][0]["old_dirs"])


@pytest.mark.parametrize("tolerance", [float("inf"), -float("inf")])
def test_no_gradient_at_all_is_a_step_of_nothing(tolerance):
    x = tg.randn(3, requires_grad=True)
    before = x.tolist()
    optim.LBFGS([x], 0.01, tolerance_grad=tolerance).step(lambda: tg.tensor([10.0]))
    assert x.tolist() == before


def test_a_line_search_has_the_evaluations_that_max_eval_leaves():
    start = np.linspace(-1.0, 1.0, 6)
    x, y = nn.Parameter(tg.from_numpy(start.copy())), torch.nn.Parameter(torch.from_numpy(start.copy()))
    given = {"lr": 1e-4, "line_search_fn": "strong_wolfe", "max_iter": 6}
    ours, theirs = optim.LBFGS([x], **given), torch.optim.LBFGS([y], **given)
    for _ in range(4):
        ours.step(closure(ours, x, lambda x: (x**4 - x**2 + x.roll(1) * x).sum()))
        theirs.step(closure(theirs, y, lambda x: (x**4 - x**2 + x.roll(1) * x).sum()))
        assert ours.state[x]["func_evals"] == theirs.state[y]["func_evals"]
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9)
