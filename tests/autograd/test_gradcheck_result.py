"""What gradcheck tells: names, the worst entry, kinks, everything that is wrong at once."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, GradcheckError, gradcheck


def leaf(*values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


class Affine(Function):
    """x @ w + b with a wrong gradient of one weight."""

    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        weight = x.T @ g
        wrong = tg.zeros_like(weight)
        wrong[1, 0] = 0.5
        return g @ w.T, weight + wrong * g[0, 1], g.sum(0)


def operands():
    return leaf([1.0, 2.0], [3.0, 4.0]), leaf([1.0, -1.0], [0.5, 2.0]), leaf(0.0, 1.0)


def test_the_worst_entry_of_a_pair_is_named():
    result = gradcheck(Affine.apply, operands(), return_result=True)
    assert not result and [p.ok for p in result.pairs] == [True, False, True]
    pair = result.worst
    assert (pair.output, pair.input, pair.input_name, pair.output_name) == (0, 1, "w", "output")
    entry = pair.worst
    assert entry.input_index == (1, 0) and entry.output_index == (0, 1) and pair.wrong == 1
    assert entry.numerical == pytest.approx(0, abs=1e-8) and entry.analytical == pytest.approx(0.5)
    assert entry.abs_error == pytest.approx(0.5) and entry.rel_error > 1
    assert pair.numerical.shape == (4, 4)
    for text in ("d output[0, 1] / d w[1, 0]", "analytical 0.5", "WRONG output by w", "ok    output by x"):
        assert text in str(result)


def test_the_error_carries_the_result():
    with pytest.raises(GradcheckError, match=r"with respect to input 1 \(output by w\)") as caught:
        gradcheck(Affine.apply, operands())
    assert [p.ok for p in caught.value.result.pairs] == [True, False, True]
    for text in ("worst entry d output[0, 1] / d w[1, 0]:", "numerical:\n[[", "analytical:\n[["):
        assert text in str(caught.value)


def test_all_that_is_wrong_is_listed():
    with pytest.raises(
        GradcheckError, match=r"(?s)respect to input 0.*Also wrong:\n  WRONG output by y: worst"
    ) as caught:
        gradcheck(lambda x, y: x.detach() * y.detach() + 0 * (x + y), (leaf(2.0), leaf(3.0)))
    assert len([p for p in caught.value.result.pairs if not p.ok]) == 2


def test_a_passing_result_is_true_and_complete():
    result = gradcheck(lambda x: x.sin(), (leaf(0.3, 0.4),), return_result=True)
    assert result and result.ok and result.complete
    assert result.pairs[0].columns == (2, 2) and result.pairs[0].blind_below is None
    assert result.worst.worst.abs_error < 1e-8 and "gradcheck: ok" in str(result)


def test_names_come_from_the_signature_or_the_caller():
    def names(fn, inputs, **options):
        return [p.input_name for p in gradcheck(fn, inputs, return_result=True, **options).pairs]

    class Doubled(Function):
        def forward(self, value):
            return value * 2

        def backward(self, g):
            return g * 2

    class Model(tg.nn.Module):
        def forward(self, features):
            return features.exp()

    x = leaf(1.0, 2.0)
    assert names(lambda a, *more: a + more[0], (x, x)) == ["a", "more[0]"]
    assert names(Affine.apply, operands()) == ["x", "w", "b"]
    assert names(Doubled(), (x,)) == ["value"]
    assert names(Model(), (x,)) == ["features"]
    assert names(max, (x[:1].detach().requires_grad_(), leaf(0.0))) == ["inputs[0]", "inputs[1]"]
    assert names(lambda a: a * 2, (x,), names=["left"]) == ["left"]
    with pytest.raises(ValueError, match="names has 2 entries for 1 inputs"):
        names(lambda a: a, (x,), names=["left", "right"])


# ---- kinks ---------------------------------------------------------------------------------------------------------


def kink(fn, *values, **options):
    result = gradcheck(fn, (leaf(*values),), return_result=True, **options)
    return result, result.pairs[0].kink


@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
def test_a_kink_is_told_from_a_wrong_derivative(fast_mode):
    result, text = kink(lambda x: x.relu(), 1.0, 0.0, -1.0, fast_mode=fast_mode)
    assert not result and result.worst.worst.input_index == (1,)
    assert text.startswith("kink near x[1] = 0: there output has slope 0 to the left and 1 to the right")
    assert "kink  output by x" in str(result) and text in str(result.error())
    assert "Jacobian mismatch for output 0 with respect to input 0" in str(result.error())


def test_a_kink_within_a_step_is_seen():
    for distance in (3e-7, -4e-7, 8e-7):
        _, text = kink(lambda x: x.abs(), distance, 1.0)
        assert text.startswith("kink near x[0]") and "slope -1 to the left and 1 to the right" in text


def test_a_jump_is_seen():
    for distance in (0.0, 2e-7, 8e-7, -6e-7):
        _, text = kink(lambda x: x.floor() + x, 2.0 + distance, 0.5)
        assert text.startswith("jump near x[0] = 2")


def test_a_wrong_derivative_is_no_kink():
    for fn in (lambda x: x * x.detach(), lambda x: 1e6 * (x - 0.3) ** 2 + x * x.detach()):
        result, text = kink(fn, 0.3, 1.0)
        assert not result and text is None and "WRONG" in str(result)


def test_a_random_function_is_told_from_a_wrong_one():
    tg.manual_seed(0)
    _, text = kink(lambda x: x * tg.rand(2, dtype=tg.float64), 1.0, 2.0)
    assert text.startswith("output differs between two calls with the same inputs")


def test_a_kink_of_a_complex_input_is_seen():
    z = tg.tensor([1 + 0j], dtype=tg.complex128, requires_grad=True)
    result = gradcheck(lambda z: z.imag.relu(), (z,), return_result=True)
    assert "kink near z[0] = 1+0j" in result.pairs[0].kink


def test_numbers_of_any_size_are_compared_as_floats():
    big = tg.tensor([1e12], dtype=tg.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match=r"values near 1e\+12 lie 0.000122 apart: eps=1e-06 is too small"):
        gradcheck(lambda x: x * 2, (big,))
    assert gradcheck(lambda x: x * 2, (big,), eps=np.float64(1e3))
