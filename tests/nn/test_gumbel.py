"""gumbel_softmax: how often each choice is drawn, its gradient, captures, and wrong calls."""

import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.nn import functional as F


def test_choices_are_drawn_with_their_probabilities():
    tg.manual_seed(3)
    p = tg.tensor([0.1, 0.2, 0.7], dtype=tg.float64)
    n = 20000
    drawn = F.gumbel_softmax(p.log().expand(n, 3), hard=True)
    assert set(drawn.unique().tolist()) <= {0.0, 1.0} and (drawn.sum(1) == 1).all()
    expected = n * p
    chi_squared = ((drawn.sum(0) - expected) ** 2 / expected).sum().item()
    assert chi_squared < 13.8  # of two degrees of freedom, one in a thousand is greater


@pytest.mark.parametrize("tau", [0.25, 1, 4.0])
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_weights_sum_to_one_and_follow_the_noise(tau, dim):
    logits = tg.randn(4, 5, dtype=tg.float64)
    tg.manual_seed(1)
    found = F.gumbel_softmax(logits, tau, dim=dim)
    tg.manual_seed(1)
    noise = -np.log(tg.empty(4, 5, dtype=tg.float64).exponential_().numpy())
    raised = np.exp((logits.numpy() + noise) / tau)
    np.testing.assert_allclose(found.numpy(), raised / raised.sum(dim, keepdims=True), rtol=1e-12)


def test_a_hard_choice_has_the_gradient_of_the_weights():
    logits, weights = tg.randn(6, 4, dtype=tg.float64, requires_grad=True), tg.randn(6, 4, dtype=tg.float64)
    found = []
    for hard in (False, True):
        tg.manual_seed(2)
        chosen = F.gumbel_softmax(logits, 0.7, hard)
        found.append(tg.autograd.grad((chosen * weights).sum(), logits)[0])
    assert found[0].equal(found[1]) and found[0].abs().max() > 0
    assert chosen.argmax(1).equal((chosen > 0.5).long().argmax(1))


def test_a_capture_draws_from_the_same_stream():
    logits = tg.randn(3, 4)
    for hard in (False, True):
        run = lambda t, hard=hard: F.gumbel_softmax(t, 0.5, hard)
        traced = jit.trace(run, (logits,), check_trace=False)
        for seed in range(3):
            tg.manual_seed(seed)
            wanted = run(logits)
            tg.manual_seed(seed)
            assert traced(logits).equal(wanted)


def test_wrong_calls():
    with pytest.raises(IndexError, match="Dimension out of range"):
        F.gumbel_softmax(tg.zeros(2, 3), dim=2)
    with pytest.raises(RuntimeError):
        F.gumbel_softmax(tg.zeros(2, 3).long())
    with pytest.warns(UserWarning, match="no effect"):
        F.gumbel_softmax(tg.zeros(2, 3), eps=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.gumbel_softmax(tg.zeros(0, 3)).shape == (0, 3)


def test_half_precision_and_a_subclass():
    assert F.gumbel_softmax(tg.zeros(2, 3, dtype=tg.bfloat16)).dtype == tg.bfloat16

    class Named(tg.Tensor):
        pass

    assert type(F.gumbel_softmax(tg.zeros(2, 3).as_subclass(Named))) is Named
