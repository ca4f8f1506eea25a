"""Jacobians too large for every entry: random sums, samples, and what they say of themselves."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, GradcheckError, gradcheck, gradgradcheck

LARGE = 2000


def leaf(n, dtype="float64"):
    draw = np.random.default_rng(0).standard_normal
    values = draw(n) + 1j * draw(n) if dtype == "complex128" else draw(n)
    return tg.from_numpy(values).requires_grad_()


class OneWrong(Function):
    """x * x whose gradient is right but for one element."""

    where, factor = 1234, 1.5

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        wrong = tg.ones_like(x)
        wrong.view(-1)[OneWrong.where] = OneWrong.factor
        return 2 * g * x.conj() * wrong


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("seed", range(3))
def test_fast_mode_finds_one_wrong_entry_of_a_sparse_jacobian(dtype, seed):
    """PyTorch's fast mode lets it pass: the entry counts for 1 / 2000 there, the tolerance grows with 2000."""
    result = gradcheck(OneWrong.apply, (leaf(LARGE, dtype),), fast_mode=True, seed=seed, return_result=True)
    assert not result
    worst = result.worst.worst
    assert worst.input_index == worst.output_index == (OneWrong.where,)
    assert worst.analytical == pytest.approx(1.5 * worst.numerical, rel=1e-5)


def test_fast_mode_finds_a_wrong_zero_and_a_wrong_sum():
    class Leaks(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            extra = tg.zeros_like(g)
            extra[7] = g[1900]
            return 2 * g + extra

    worst = gradcheck(Leaks.apply, (leaf(LARGE),), fast_mode=True, return_result=True).worst.worst
    assert worst.input_index == (7,) and worst.output_index == (1900,)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda x: (x * x.detach()).sum(), (leaf(LARGE),), fast_mode=True)


def test_fast_mode_takes_few_calls_and_says_what_it_cannot_see():
    calls = []

    def counted(x):
        calls.append(1)
        return x.sin() * x

    result = gradcheck(counted, (leaf(LARGE),), fast_mode=True, return_result=True)
    assert result and len(calls) < 12
    assert not result.complete and 0 < result.pairs[0].blind_below < 0.1
    assert "a single entry wrong by less than" in str(result)
    assert gradgradcheck(counted, (leaf(LARGE),), fast_mode=True)


def test_fast_mode_does_not_blame_small_differences_that_add_up():
    def rounded(x):
        y = x * 3
        y.register_hook(lambda g: g if g is None else g * (1 + 1e-4))
        return y

    x = leaf(LARGE)
    assert gradcheck(rounded, (x,), max_columns=3) and gradcheck(rounded, (x,), fast_mode=True)


def test_fast_mode_recomputes_small_jacobians():
    with pytest.raises(GradcheckError, match=r"(?s)numerical:\n\[\[.*max per-element difference \(slow mode\) is: "):
        gradcheck(lambda x: x * x.detach(), (leaf(5),), fast_mode=True)


def test_max_columns_samples_where_the_jacobian_is_not_zero():
    calls = []

    def counted(x):
        calls.append(1)
        return x.sin()

    result = gradcheck(counted, (leaf(LARGE),), max_columns=10, return_result=True)
    pair = result.pairs[0]
    assert result and pair.columns == (10, LARGE) and pair.rows == (10, LARGE) and len(calls) < 40
    assert (pair.numerical != 0).sum() >= 7, "three quarters of the rows are those that the columns move"
    assert not result.complete and "10 of 2000 columns" in str(result)
    assert gradcheck(counted, (leaf(10),), max_columns=10, return_result=True).complete


def test_a_sample_finds_what_sums_call_small():
    result = gradcheck(OneWrong.apply, (leaf(LARGE),), max_columns=5, return_result=True)
    assert not result and result.worst.worst.input_index == (OneWrong.where,)


def test_a_time_limit_turns_to_samples_and_reports_it():
    fine = gradcheck(lambda x: x.sin(), (leaf(3),), time_limit=60, return_result=True)
    assert fine.complete
    short = gradcheck(lambda x: x.sin(), (leaf(LARGE),), time_limit=1e-3, return_result=True)
    assert short and not short.complete and 1 <= short.pairs[0].columns[0] < LARGE
    assert not gradcheck(OneWrong.apply, (leaf(LARGE),), time_limit=1e-3, raise_exception=False)


def test_the_seed_decides_the_sample():
    def rows(seed):
        result = gradcheck(lambda x: x.sin(), (leaf(LARGE),), max_columns=4, seed=seed, return_result=True)
        return result.pairs[0].numerical.tolist()

    assert rows(1) == rows(1) != rows(2)
