"""Complex numbers: special values, branch cuts, gradients of real operands, and the vector loops at any length."""

import itertools
import math
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg

INF, NAN, PI = float("inf"), float("nan"), np.pi

FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "abs": np.abs,
    "angle": np.angle,
}


def same(got, want):
    """Equal within roundings, infinities and signs of zeros included; NaN where NaN is."""
    got, want = np.asarray(got), np.asarray(want)
    for part in (np.real, np.imag):
        g, w = np.atleast_1d(part(got)), np.atleast_1d(part(want))
        np.testing.assert_allclose(g, w, 1e-6 if got.dtype in (np.complex64, np.float32) else 1e-12, 1e-30)
        zero = w == 0
        np.testing.assert_array_equal(np.signbit(g[zero]), np.signbit(w[zero]))


# (function, argument, result): C99, Annex G.6
ANNEX_G = [
    ("exp", complex(0.0, 0.0), complex(1, 0.0)),
    ("exp", complex(-0.0, -0.0), complex(1, -0.0)),
    ("exp", complex(INF, 0.0), complex(INF, 0.0)),
    ("exp", complex(-INF, 2.0), complex(-0.0, 0.0)),
    ("exp", complex(NAN, 0.0), complex(NAN, 0.0)),
    ("exp", complex(1.0, INF), complex(NAN, NAN)),
    ("log", complex(-0.0, 0.0), complex(-INF, PI)),
    ("log", complex(0.0, 0.0), complex(-INF, 0.0)),
    ("log", complex(-1.0, 0.0), complex(0.0, PI)),
    ("log", complex(-1.0, -0.0), complex(0.0, -PI)),
    ("log", complex(1.0, INF), complex(INF, PI / 2)),
    ("log", complex(-INF, INF), complex(INF, 3 * PI / 4)),
    ("log", complex(INF, NAN), complex(INF, NAN)),
    ("sqrt", complex(-0.0, 0.0), complex(0.0, 0.0)),
    ("sqrt", complex(-4.0, 0.0), complex(0.0, 2.0)),
    ("sqrt", complex(-4.0, -0.0), complex(0.0, -2.0)),
    ("sqrt", complex(NAN, INF), complex(INF, INF)),
    ("sqrt", complex(-INF, 1.0), complex(0.0, INF)),
    ("sqrt", complex(INF, -1.0), complex(INF, -0.0)),
    ("acos", complex(2.0, 0.0), complex(0.0, -1.3169578969248166)),
    ("acos", complex(2.0, -0.0), complex(0.0, 1.3169578969248166)),
    ("acos", complex(-INF, INF), complex(3 * PI / 4, -INF)),
    ("acosh", complex(-INF, 1.0), complex(INF, PI)),
    ("acosh", complex(-2.0, 0.0), complex(1.3169578969248166, PI)),
    ("acosh", complex(-2.0, -0.0), complex(1.3169578969248166, -PI)),
    ("asinh", complex(0.0, INF), complex(INF, PI / 2)),
    ("asinh", complex(INF, INF), complex(INF, PI / 4)),
    ("atanh", complex(1.0, 0.0), complex(INF, 0.0)),
    ("atanh", complex(0.0, INF), complex(0.0, PI / 2)),
    ("cosh", complex(0.0, INF), None),  # NaN with a zero of either sign
    ("cosh", complex(INF, 0.0), complex(INF, 0.0)),
    ("sinh", complex(INF, 0.0), complex(INF, 0.0)),
    ("tanh", complex(INF, 1.0), complex(1.0, 0.0)),
    ("tanh", complex(-INF, 1.0), complex(-1.0, 0.0)),
]


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("length", [1, 37])
def test_special_values_are_those_of_annex_g(dtype, length):
    for name, argument, wanted in ANNEX_G:
        got = getattr(tg, name)(tg.full((length,), 0, dtype=dtype) + tg.tensor(argument, dtype=dtype))
        got = getattr(tg, name)(tg.tensor([argument] * length, dtype=dtype)).numpy()
        for value in (got[0], got[-1]):
            if wanted is None:
                assert np.isnan(value.real) and value.imag == 0
            else:
                same(value, np.complex64(wanted) if dtype is tg.complex64 else wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cuts_and_infinities_are_numpys(name):
    """Every pair of these parts, by NumPy in double precision; what C99 leaves open is left open."""
    parts = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 1e-30, 1e30, INF, -INF, NAN]
    z = np.array([complex(a, b) for a, b in itertools.product(parts, parts)])
    z = z[np.isfinite(z) & (abs(z.real) < 10) & (abs(z.imag) < 10) | (name in ("log", "sqrt", "abs", "angle"))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = FUNCTIONS[name](z)
    same(getattr(tg, name)(tg.from_numpy(z)).numpy(), want)


def test_products_and_quotients_are_numpys_at_infinity():
    parts = [0.0, -0.0, 1.0, -2.0, INF, -INF, NAN]
    numbers = np.array([complex(a, b) for a, b in itertools.product(parts, parts)])
    x, y = (m.ravel() for m in np.meshgrid(numbers, numbers))
    for dtype in (np.complex64, np.complex128):
        a, b = x.astype(dtype), y.astype(dtype)
        with np.errstate(all="ignore"):
            product, quotient = a * b, a / b
        np.testing.assert_array_equal((tg.from_numpy(a) * tg.from_numpy(b)).numpy(), product)
        np.testing.assert_allclose((tg.from_numpy(a) / tg.from_numpy(b)).numpy(), quotient, 1e-6)


def test_quotients_do_not_overflow_on_the_way():
    big, small = 1e300 + 1e300j, 1e-300 + 1e-300j
    got = tg.tensor([big, small], dtype=tg.complex128) / tg.tensor([big, small], dtype=tg.complex128)
    np.testing.assert_allclose(got.numpy(), [1, 1], 1e-12, 1e-12)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_loops_give_the_same_bits_at_any_length_and_stride(dtype):
    rng = np.random.default_rng(0)
    x, y = ((rng.standard_normal(600) + 1j * rng.standard_normal(600)).astype(dtype) for _ in "xy")
    calls = {
        "mul": lambda a, b: a * b,
        "conj": lambda a, b: a.conj_physical(),
        "alpha": lambda a, b: tg.add(a, b, alpha=0.3 - 2j),
        "div": lambda a, b: a / b,
        "exp": lambda a, b: a.exp(),
        "abs": lambda a, b: a.abs(),
        "number": lambda a, b: a * (2 - 1j) + (0.5 + 1j),
    }
    for name, call in calls.items():
        whole = call(tg.from_numpy(x), tg.from_numpy(y)).numpy()
        for n in (1, 2, 3, 7, 8, 9, 255, 257):
            np.testing.assert_array_equal(call(tg.from_numpy(x[:n]), tg.from_numpy(y[:n])).numpy(), whole[:n], name)
        apart = call(tg.from_numpy(x)[::3], tg.from_numpy(y)[::3]).numpy()
        np.testing.assert_array_equal(apart, whole[::3], name)


def test_an_element_beyond_the_usual_does_not_change_its_neighbours():
    x = np.linspace(-3, 3, 100) + 1j * np.linspace(5, -5, 100)
    alone = tg.from_numpy(x).exp().numpy()
    for strange in (complex(800, 1), complex(1, 1e30), complex(NAN, 1), complex(-INF, INF)):
        mixed = x.copy()
        mixed[50] = strange
        got = tg.from_numpy(mixed).exp().numpy()
        np.testing.assert_array_equal(np.delete(got, 50), np.delete(alone, 50))


def test_a_real_operand_gets_a_real_gradient():
    z = tg.tensor([1 + 2j, -3j], dtype=tg.complex128, requires_grad=True)
    for call in (
        lambda r: r * z,
        lambda r: r + z,
        lambda r: z / r,
        lambda r: r**z,
        lambda r: z**r,
        lambda r: tg.complex(r, r * 2) * z,
        lambda r: tg.where(tg.tensor([True, False]), r, z),
        lambda r: tg.dot(r.to(tg.complex128), z),
    ):
        r = tg.tensor([1.5, 0.5], dtype=tg.float64, requires_grad=True)
        out = call(r)
        assert out.dtype is tg.complex128
        out.sum().abs().backward()
        assert r.grad.dtype is tg.float64
        assert tg.autograd.gradcheck(call, (r,))


def test_gradients_are_conjugate_wirtinger():
    """For a real loss L of z = x + iy the gradient is dL/dx + i dL/dy."""
    z = tg.tensor([0.5 + 1.5j], dtype=tg.complex128, requires_grad=True)
    (z.exp() * z).abs().sum().backward()
    x, y, h = 0.5, 1.5, 1e-6

    def loss(x, y):
        z = complex(x, y)
        return abs(np.exp(z) * z)

    wanted = (loss(x + h, y) - loss(x - h, y)) / (2 * h) + 1j * (loss(x, y + h) - loss(x, y - h)) / (2 * h)
    np.testing.assert_allclose(z.grad.item(), wanted, 1e-6)


def test_acosh_has_its_derivative_on_both_sides_of_the_imaginary_axis():
    z = tg.tensor([-1.5 + 0.3j, 1.5 - 0.3j, -0.2 - 2j], dtype=tg.complex128, requires_grad=True)
    assert tg.autograd.gradcheck(tg.acosh, (z,))
    assert tg.autograd.gradgradcheck(tg.acosh, (z,))


@pytest.mark.parametrize("call", [tg.exp, tg.sin, lambda z: z**3, lambda z: z / (z + 2), lambda z: z.tanh() * z])
def test_forward_mode_agrees_with_backward_mode(call):
    z = tg.tensor([0.3 + 0.4j, -0.7 + 0.2j], dtype=tg.complex128, requires_grad=True)
    assert tg.autograd.gradcheck(call, (z,), check_forward_ad=True, fast_mode=True)
    assert tg.autograd.gradgradcheck(call, (z,), fast_mode=True)


def test_sums_keep_their_bits_in_every_layout():
    rng = np.random.default_rng(1)
    for dtype in (np.complex64, np.complex128):
        a = (rng.standard_normal((300, 140)) + 1j * rng.standard_normal((300, 140))).astype(dtype)
        along = tg.from_numpy(a).sum(0).numpy()
        across = tg.from_numpy(np.ascontiguousarray(a.T)).sum(1).numpy()
        np.testing.assert_array_equal(along, across)
        np.testing.assert_allclose(along, a.sum(0), 1e-5)
        np.testing.assert_allclose(tg.from_numpy(a).sum().numpy(), a.sum(), 1e-4)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 17, 31, 64, 255, 256, 257, 300, 1024, 1500])
def test_products_of_vectors_keep_their_bits_at_every_step(n, dtype):
    draw = np.random.default_rng(n)
    values = [(draw.standard_normal(n) + 1j * draw.standard_normal(n)).astype(dtype) for _ in range(2)]

    def stepped(x, step):
        room = tg.full((n * step,), 3.0, dtype=getattr(tg, dtype))[::step]
        return room.copy_(tg.tensor(x))

    found = [
        tg.dot(stepped(values[0], i), stepped(values[1], j)).item() for i, j in itertools.product((1, 2, 3), repeat=2)
    ]
    assert len(set(found)) == 1
    size = np.abs(values[0].astype("complex128")) @ np.abs(values[1].astype("complex128"))
    exact = values[0].astype("complex128") @ values[1].astype("complex128")
    assert abs(found[0] - exact) <= 8 * size * np.finfo(dtype).eps


def test_drawn_numbers_have_variance_one_in_both_parts_together():
    tg.manual_seed(0)
    z = tg.randn(20_000, dtype=tg.complex64)
    assert abs(z.real.var().item() - 0.5) < 0.02
    assert abs(z.imag.var().item() - 0.5) < 0.02
    assert abs(tg.std(z).item() - 1) < 0.02


def test_convolution_of_complex_images():
    rng = np.random.default_rng(2)

    def draw(*shape):
        return tg.from_numpy(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).requires_grad_()

    x, w, b = draw(2, 4, 5, 6), draw(6, 2, 3, 2), draw(6)
    got = tg.conv2d(x, w, b, stride=2, padding=1, groups=2)
    parts = [
        [tg.conv2d(p, q, stride=2, padding=1, groups=2) for q in (w.detach().real, w.detach().imag)]
        for p in (x.detach().real, x.detach().imag)
    ]
    want = tg.complex(parts[0][0] - parts[1][1], parts[0][1] + parts[1][0]) + b.detach().reshape(-1, 1, 1)
    np.testing.assert_allclose(got.detach().numpy(), want.numpy(), 1e-10)
    assert tg.autograd.gradcheck(lambda *a: tg.conv2d(*a, stride=2, padding=1, groups=2), (x, w, b), fast_mode=True)
    assert tg.autograd.gradgradcheck(lambda *a: tg.conv2d(*a, stride=2, padding=1, groups=2), (x, w, b), fast_mode=True)


def test_powers_of_zero_and_whole_powers():
    z = tg.tensor([0, 0, 0, 2 + 1j], dtype=tg.complex128)
    got = (z ** tg.tensor([0, 2, 1 + 1j, -3], dtype=tg.complex128)).numpy()
    np.testing.assert_allclose(got, [1, 0, 0, 1 / (2 + 1j) ** 3], 1e-13)
    np.testing.assert_allclose((z[3:] ** 5).numpy(), [(2 + 1j) ** 5], 1e-14)


def test_linspace_between_complex_bounds():
    got = tg.linspace(1 + 1j, 3 - 1j, 5)
    assert got.dtype is tg.complex64
    np.testing.assert_allclose(got.numpy(), np.linspace(1 + 1j, 3 - 1j, 5), 1e-6)
    with pytest.raises(RuntimeError, match="safely cast to passed dtype Float"):
        tg.linspace(1j, 2, 3, dtype=tg.float32)


def test_a_running_log_of_sums_turns_no_further_than_its_terms():
    rng = np.random.default_rng(0)
    x = rng.uniform(-9, 9, (40, 3)) + 1j * rng.uniform(-9, 9, (40, 3))
    got = tg.from_numpy(x).logcumsumexp(0).numpy()
    np.testing.assert_allclose(np.exp(got), np.exp(x).cumsum(0), rtol=1e-9)
    np.testing.assert_array_equal(got[0], x[0])  # the imaginary part of a first term stays beyond half a turn
    wide = x[:5].copy()
    wide.real += 800
    np.testing.assert_allclose(tg.from_numpy(wide).logcumsumexp(0).numpy(), got[:5] + 800, rtol=1e-9)
    nothing = tg.full((2,), complex("-inf"), dtype=tg.complex128)
    assert nothing.logcumsumexp(0).real.tolist() == [-np.inf, -np.inf]


def test_conj_physical_of_real_numbers_is_the_tensor_itself():
    x = tg.ones(3)
    assert x.conj_physical() is x and tg.conj_physical(x) is x
    out = tg.empty(3)
    assert tg.conj_physical(x, out=out) is out and out.equal(x)
    assert x.conj_physical_() is x


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [0, 1, 7, 255, 1000])
def test_vdot_is_the_dot_product_with_the_conjugate(n, dtype):
    random = np.random.default_rng(0)
    a, b = ((random.normal(size=2 * n) + 1j * random.normal(size=2 * n)).astype(dtype) for _ in range(2))
    x, y = tg.tensor(a), tg.tensor(b)
    whole = tg.vdot(x[:n], y[:n])
    assert whole.dtype == x.dtype
    np.testing.assert_allclose(whole.numpy(), np.vdot(a[:n], b[:n]), rtol=1e-4, atol=1e-4)
    assert whole.equal(x[:n].conj_physical().dot(y[:n]))
    assert tg.vdot(x[::2], y[1::2]).equal(tg.vdot(x[::2].contiguous(), y[1::2].contiguous()))
    assert tg.vdot(x[:n].conj(), y[:n]).equal(tg.dot(x[:n], y[:n]))


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("infinite", [complex(math.inf, 1), complex(1, -math.inf), complex(math.inf, math.inf)])
def test_infinite_parts_of_sums_stay_apart(infinite, dtype):
    x = tg.tensor([infinite, 2 + 3j, 1j], dtype=dtype)
    parts = tg.view_as_real(x)
    for ours, expected in ((x.sum(), parts.sum(0)), (x.mean(), parts.mean(0)), (x[None].sum(0)[0], parts[0])):
        np.testing.assert_array_equal(tg.view_as_real(ours).numpy(), expected.numpy())
    assert str(x.cumsum(0)[-1].item()) == str(x.sum().item())


def test_slopes_over_complex_distances():
    x = tg.arange(16.0).reshape(4, 4)
    across, along = tg.gradient(x, spacing=[1 + 1j, 2 - 1j], dim=(0, 1))
    assert across.dtype is tg.complex64 and tg.allclose(across, tg.full((4, 4), 4 / (1 + 1j)))
    assert tg.allclose(along, tg.full((4, 4), 1 / (2 - 1j)))
    (all_alike,) = tg.gradient(x[0].double(), spacing=2j, edge_order=2)
    assert all_alike.dtype is tg.complex128 and tg.allclose(all_alike, tg.full((4,), -0.5j, dtype=tg.complex128))


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float32, tg.int8])
def test_float_power_takes_complex_numbers_beside_any_dtype(dtype):
    x = tg.tensor([2, 3], dtype=dtype)
    for found in (tg.float_power(x, 1j), x.float_power(1j)):
        assert found.dtype is tg.complex128
        np.testing.assert_allclose(found.numpy(), np.float_power([2, 3], 1j))
    np.testing.assert_allclose(tg.float_power(1j, x).numpy(), np.float_power(1j, [2, 3]), atol=1e-15)
    with pytest.raises(RuntimeError, match="requires dtype ComplexDouble"):
        x.float_power_(1j)
