"""Rules of pointwise ops that the sweep over the op table cannot know."""

import math

import numpy as np
import pytest
from tinygrad_ext.core.loops.loop_tables import instruction_set

import tinygrad_ext as tg
from tinygrad_ext.registry import functions

INT_MIN = -(2**63)


def test_dividing_the_smallest_integer_by_minus_one_wraps_instead_of_trapping():
    t = tg.tensor([INT_MIN])
    assert (t // -1).tolist() == [INT_MIN]
    assert (t % -1).tolist() == [0]
    assert t.fmod(-1).tolist() == [0]
    assert t.div(-1, rounding_mode="trunc").tolist() == [INT_MIN]
    assert t.abs().tolist() == [INT_MIN]


def test_quotient_and_remainder_follow_the_divisors_sign():
    for a in (7, -7):
        for b in (2, -2):
            t = tg.tensor([a])
            assert (t // b).tolist() == [a // b]
            assert (t % b).tolist() == [a % b]
            f = tg.tensor([float(a)])
            assert (f // b).tolist() == [a // b]
            assert (f % b).tolist() == [a % b]


def test_unsigned_bytes_wrap():
    t = tg.tensor([200], dtype=tg.uint8)
    assert (t + 100).tolist() == [44]
    assert (-t).tolist() == [56]
    assert (t * 2).dtype is tg.uint8


def test_integer_powers_wrap_and_refuse_negative_exponents_given_as_numbers():
    assert (tg.tensor([3]) ** 4).tolist() == [81]
    assert (tg.tensor([2, 1, -1]) ** tg.tensor([-1, -1, -1])).tolist() == [0, 1, -1]
    with pytest.raises(RuntimeError, match="negative integer powers"):
        tg.tensor([2], dtype=tg.uint8) ** -1


def test_shifts_by_the_width_or_more_leave_the_sign():
    assert (tg.tensor([5, -5]) << 64).tolist() == [0, 0]
    assert (tg.tensor([5, -5]) >> 64).tolist() == [0, -1]
    assert (tg.tensor([5]) << -1).tolist() == [0]


def test_numbers_on_the_left_use_the_reflected_operators():
    t = tg.tensor([1.0, 2.0])
    assert (3 - t).tolist() == [2, 1]
    assert (3 / t).tolist() == [3, 1.5]
    assert (3**t).tolist() == [3, 9]
    assert (3 % t).tolist() == [0, 1]
    assert (3 // t).tolist() == [3, 1]
    i = tg.tensor([1, 2])
    assert (1 << i).tolist() == [2, 4]
    assert (6 & i).tolist() == [0, 2]


def test_a_python_number_does_not_widen_a_tensor_of_its_kind():
    assert (tg.ones(2, dtype=tg.float32) * 2.5).dtype is tg.float32
    assert (tg.ones(2, dtype=tg.int8) * 2).dtype is tg.int8
    assert (tg.ones(2, dtype=tg.int8) * 2.5).dtype is tg.float32
    assert (tg.ones(2, dtype=tg.bool) * 2).dtype is tg.int64


def test_an_element_has_the_same_bits_wherever_it_lies():
    wide = tg.randn(40, 60)
    for name in ("exp", "tanh", "sin", "lgamma", "erf"):
        fn = getattr(tg, name)
        expected = fn(wide.t().contiguous())
        assert tg.equal(fn(wide.t()), expected)
        assert tg.equal(fn(wide[:, ::3]), fn(wide[:, ::3].contiguous()))


def test_equal_operands_of_maximum_share_the_gradient():
    a, b = (tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    tg.maximum(a, b).sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [0.5, 0.5]


def test_clamp_passes_the_gradient_on_its_limits():
    t = tg.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], requires_grad=True)
    t.clamp(-1, 1).sum().backward()
    assert t.grad.tolist() == [0, 1, 1, 1, 0]


def test_one_to_any_power_is_one():
    for dtype in (tg.float64, tg.complex64, tg.complex128):
        x = tg.tensor([0.5, -3.0, float("nan"), float("inf")], dtype=dtype)
        assert (tg.pow(1, x) == 1).all() and (1.0**x == 1).all()


def test_power_has_no_nan_gradient_at_zero():
    base = tg.zeros(2, requires_grad=True)
    exponent = tg.tensor([0.0, 2.0], requires_grad=True)
    (base**exponent).sum().backward()
    assert base.grad.tolist() == [0, 0]
    assert exponent.grad.tolist() == [0, 0]


def test_round_takes_the_even_neighbour():
    assert tg.tensor([0.5, 1.5, 2.5, -0.5]).round().tolist() == [0, 2, 2, 0]


def test_in_place_sigmoid_writes_into_its_operand_and_keeps_the_derivative():
    t = tg.tensor([0.0], requires_grad=True)
    u = t * 1
    assert u.sigmoid_() is u
    u.sum().backward()
    assert t.grad.tolist() == [0.25]


def test_activations_of_nn_functional_take_inplace():
    t = tg.tensor([-1.0, 2.0])
    assert functions["nn.functional.leaky_relu"](t, 0.5, True) is t
    assert t.tolist() == [-0.5, 2]


def test_unknown_words_are_refused_with_the_known_ones():
    with pytest.raises(RuntimeError, match="either none or tanh, got 'fast'"):
        functions["nn.functional.gelu"](tg.ones(1), approximate="fast")


def test_polygamma_left_of_zero_follows_its_reflection():
    x = tg.tensor([-0.5], dtype=tg.float64)
    right = tg.polygamma(1, 1 - x)
    assert math.isclose(
        tg.polygamma(1, x).item(), (math.pi / math.sin(math.pi * -0.5)) ** 2 - right.item(), rel_tol=1e-12
    )


def test_the_instruction_set_is_one_of_the_three():
    assert instruction_set() in ("base", "avx2", "avx512")


def test_a_complex_product_keeps_its_nans():
    got = (tg.tensor(complex(float("nan"), float("inf"))) * 1).item()
    assert got.real != got.real and got.imag != got.imag


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
def test_nextafter_goes_through_every_number_of_a_half_without_leaving_one_out(dtype):
    patterns = tg.arange(-(2**15), 2**15).to(tg.int16).view(dtype)
    up = patterns[patterns.isfinite()].float().unique().to(dtype)
    end = tg.tensor(float("inf"), dtype=dtype)
    assert tg.nextafter(up, end).tolist() == [*up[1:].tolist(), float("inf")]
    assert tg.nextafter(up, -end).tolist() == [float("-inf"), *up[:-1].tolist()]


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float32, tg.float64])
def test_nextafter_keeps_nan_gives_other_where_both_are_equal_and_passes_the_gradient_elsewhere(dtype):
    nan, inf = float("nan"), float("inf")
    x = tg.tensor([1.0, 1.0, nan, 1.0, inf, -inf, 0.0, -0.0], dtype=dtype, requires_grad=True)
    y = tg.tensor([1.0, 2.0, 1.0, nan, inf, 0.0, -0.0, 0.0], dtype=dtype, requires_grad=True)
    z = tg.nextafter(x, y)
    assert z.isnan().tolist() == [False, False, True, True, False, False, False, False]
    assert z[0] == 1 and z[1] == 1 + tg.finfo(dtype).eps and z[4] == inf and z[5] == tg.finfo(dtype).min
    assert [math.copysign(1, v) for v in z[6:].tolist()] == [-1, 1]
    z.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 0, 1, 0, 0] and y.grad.tolist() == [0] * 8


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_logaddexp2_of_equal_numbers_shares_its_slope(dtype):
    x = tg.tensor([1.0, -2.0, 0.5], dtype=dtype, requires_grad=True)
    y = tg.tensor([1.0, -2.0, 0.5], dtype=dtype, requires_grad=True)
    value = tg.logaddexp2(x, y)
    first = tg.autograd.grad(value.sum(), [x, y], create_graph=True)
    assert value.tolist() == [2.0, -1.0, 1.5] and [g.tolist() for g in first] == [[0.5] * 3] * 2
    second = tg.autograd.grad(first[0].sum(), [x, y])
    quarter = np.full(3, np.log(2) / 4)
    np.testing.assert_allclose(second[0].numpy(), quarter, rtol=1e-6)
    np.testing.assert_allclose(second[1].numpy(), -quarter, rtol=1e-6)
    edges = np.array([np.inf, -np.inf, np.nan, 1e30, 0.0])
    a, b = np.meshgrid(edges, edges)
    with np.errstate(invalid="ignore"):
        want = np.logaddexp2(a, b)
    np.testing.assert_array_equal(tg.logaddexp2(tg.tensor(a), tg.tensor(b)).numpy(), want)


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float32, tg.float64])
def test_choices_are_made_one_after_the_other_also_at_the_edges(dtype):
    """For every instruction set, of any length: nan and infinities pass through, zeros have no sign."""
    inf, nan = math.inf, math.nan
    x = tg.tensor([nan, inf, -inf, 0.0, -0.0, 0.5, -0.5, 0.75, -0.75, 3.0, -3.0, 4.0, -4.0] * 7000, dtype=dtype)
    soft = tg.tensor([nan, inf, -inf, 0, 0, 0, 0, 0.25, -0.25, 2.5, -2.5, 3.5, -3.5], dtype=dtype)
    hard = ((x[:13].double() + 3).clamp(0, 6) / 6).to(dtype)
    for some in (x[:13], x):
        y = tg.nn.functional.softshrink(some)
        assert tg.allclose(y, soft.repeat(some.numel() // 13), rtol=0, atol=0, equal_nan=True)
        assert not tg.signbit(y[3:7]).any()
        y = tg.nn.functional.hardsigmoid(some)
        assert tg.allclose(y, hard.repeat(some.numel() // 13), rtol=0, atol=0, equal_nan=True)
    with pytest.raises(RuntimeError, match="softshrink"):
        tg.nn.functional.softshrink(x, nan)


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
def test_signs_of_halves_are_copied_by_their_bits(dtype):
    x = tg.tensor([1.5, -2.0, 0.0, -0.0, math.inf, -math.inf, 6e-8], dtype=dtype)
    for other in (
        tg.tensor([-1.0], dtype=dtype),
        tg.tensor([-0.0], dtype=dtype),
        tg.tensor([-math.inf], dtype=dtype),
        -3,
    ):
        assert tg.signbit(x.copysign(other)).all() and tg.equal(x.copysign(other), -x.abs())
    assert tg.equal(x.abs().copysign(x), x) and x.copysign(tg.tensor(math.nan, dtype=dtype)).equal(x.abs())
