"""Windows of every kind beside PyTorch: sizes, steps, padding and dilation at random, ties and NaN among the values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def _result(library, values, dims, options):
    try:
        found = getattr(library.nn.functional, f"max_pool{dims}d")(library.from_numpy(values.copy()), *options, True)
    except RuntimeError:
        return None
    return [t.numpy() for t in found]


@st.composite
def _cases(draw):
    dims = draw(st.sampled_from((1, 2, 3)))
    sizes = draw(
        st.lists(
            st.sampled_from((1, 2, 3, 5, 8) if dims == 3 else (1, 2, 3, 5, 8, 17, 300)), min_size=dims, max_size=dims
        )
    )
    values = np.random.default_rng(draw(st.integers(0, 9))).integers(-3, 4, (2, *sizes[:-1], sizes[-1])).astype("f4")
    values[values == draw(st.integers(-3, 8))] = draw(st.sampled_from((np.nan, -np.inf, 0.5)))

    def pair(low, high):
        return draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims))

    return values, dims, (pair(1, 5), pair(1, 4), pair(0, 2), pair(1, 3), draw(st.booleans()))


@settings(max_examples=300, deadline=None)
@given(_cases())
def test_the_largest_and_its_place_are_pytorchs(case):
    want, got = _result(torch, *case), _result(tg, *case)
    assert (want is None) == (got is None)
    for w, g in zip(want or (), got or ()):
        np.testing.assert_array_equal(g, w)


@st.composite
def _drawn(draw):
    dims, kernel = draw(st.sampled_from((2, 3))), draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(kernel + 1, 40 if dims == 2 else 9), min_size=dims, max_size=dims))
    out = [draw(st.integers(1, n - kernel + (dims == 2))) for n in sizes]
    random = np.random.default_rng(draw(st.integers(0, 9)))
    values = random.integers(-3, 4, (2, 3, *sizes)).astype("f4")
    values[values == draw(st.integers(-3, 8))] = draw(st.sampled_from((np.nan, -np.inf, 0.5)))
    kind = draw(st.sampled_from(("float64", "float32", "float16", "bfloat16")))
    return dims, kernel, out, values, random.random((2, 3, dims)), kind


def _fractional(library, dims, kernel, out, values, samples, kind):
    dtype = getattr(library, kind)
    x, drawn = (library.from_numpy(a.copy()).to(dtype) for a in (values, samples))
    pool = getattr(library.nn.functional, f"fractional_max_pool{dims}d")
    values, places = pool(x, kernel, out, return_indices=True, _random_samples=drawn)
    return values.double().numpy(), places.numpy()


@settings(max_examples=200, deadline=None)
@given(_drawn())
def test_windows_at_drawn_places_are_pytorchs(case):
    for got, want in zip(_fractional(tg, *case), _fractional(torch, *case)):
        np.testing.assert_array_equal(got, want)


@settings(max_examples=200, deadline=None)
@given(_cases())
def test_the_largest_alone_are_those_with_places(case):
    values, dims, options = case
    name = f"max_pool{dims}d"
    for dtype in ("f4", "f8", "i8", "u1"):
        x = tg.tensor(
            np.nan_to_num(values, posinf=3, neginf=0).clip(0).astype(dtype)
            if dtype[0] in "iu"
            else values.astype(dtype)
        )
        try:
            want = getattr(tg.nn.functional, name)(x, *options, True)[0]
        except RuntimeError:
            continue
        np.testing.assert_array_equal(getattr(tg, name)(x, *options).numpy(), want.numpy())


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"]
)
@pytest.mark.parametrize("options", [(2, 1, 1, 2), (2, 10**9, 1, 10**9, True), (2, 3, 1, 4, True)])
def test_a_window_of_padding_alone_gives_the_least_number(dtype, options):
    x = tg.ones(1, 1, 1, dtype=getattr(tg, dtype))
    got = tg.max_pool1d(x, *options)
    want = tg.nn.functional.max_pool1d_with_indices(x, *options)[0]
    least = -float("inf") if x.is_floating_point() else tg.iinfo(x.dtype).min
    assert got.tolist() == want.tolist() and least in got.flatten().tolist()


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("values", ["numbers", "nan", "least", "zeros"])
@pytest.mark.parametrize(
    "shape, size",
    [
        *[((3, 500), 1), ((2, 300), 7), ((2, 40, 70), 2), ((1, 33, 200), (3, 1))],
        *[((3, 32, 32), 5), ((2, 14, 15), 3), ((2, 20, 256), (1, 15)), ((2, 9, 11, 13), 3), ((2, 5, 1, 12), (2, 1, 2))],
    ],
)
def test_windows_of_many_elements_give_the_first_of_the_largest_and_the_last_nan(shape, size, values, dtype):
    random = np.random.default_rng(0)
    x = random.integers(-5, 5, shape).astype("float64")
    if values == "nan":
        x[random.random(shape) < 0.02] = np.nan
    elif values == "least":
        x[:] = -np.inf
    elif values == "zeros":
        x = np.where(x > 0, 0.0, -0.0)
    pool = getattr(tg.nn.functional, f"adaptive_max_pool{len(shape) - 1}d")
    best, places = pool(tg.tensor(x, dtype=dtype), size, return_indices=True)
    sizes = best.shape[1:]
    for index in np.ndindex(*best.shape):
        lo = [i * n // m for i, n, m in zip(index[1:], shape[1:], sizes)]
        hi = [-(-(i + 1) * n // m) for i, n, m in zip(index[1:], shape[1:], sizes)]
        found = None
        for at in np.ndindex(*[b - a for a, b in zip(lo, hi)]):
            place = tuple(a + k for a, k in zip(lo, at))
            value = x[(index[0], *place)]
            if found is None or value > found[0] or value != value:
                found = value, int(np.ravel_multi_index(place, shape[1:]))
        got = best[index].item()
        assert repr(got) == repr(float(found[0])) and places[index].item() == found[1]


@pytest.mark.parametrize(
    "name", ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "adaptive_max_pool3d"]
)
def test_adaptive_pools_take_no_channels_and_no_images(name):
    places = int(name[-2])
    for shape in ((0,), (0, 2)):
        x = tg.ones(*shape, *[4] * places, requires_grad=True)
        result = getattr(tg.nn.functional, name)(x, 5)
        assert result.shape == (*shape, *[5] * places)
        result.sum().backward()
        assert x.grad.shape == x.shape
    with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
        getattr(tg.nn.functional, name)(tg.ones(2, *[0] * places), 5)


@pytest.mark.parametrize("dims", [0, -1, 4, 2**61])
def test_numbers_of_dimensions_that_no_pool_has_are_refused(dims):
    grad, places = tg.ones(2, 3, requires_grad=True), tg.zeros(2, 3, dtype=tg.int64)
    for call in (
        lambda: grad._adaptive_avg_pool_backward((2, 7), dims),
        lambda: grad._avg_pool_backward((2, 7), (2,), (2,), (0,), False, True, None, dims),
        lambda: grad._max_pool_backward(places, (2, 7), dims),
    ):
        with pytest.raises(RuntimeError, match="dims must be 1, 2 or 3"):
            call()
