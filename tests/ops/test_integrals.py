"""trapezoid and cumulative_trapezoid: what they refuse, and sums over no samples; distances of gradient."""

import pytest

import tinygrad_ext as tg

both = pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])


@both
def test_truth_values_are_refused(name):
    call, flags, numbers = getattr(tg, name), tg.tensor([True, False]), tg.ones(2)
    with pytest.raises(RuntimeError, match=f"^{name}: received a bool input for `y`, but bool is not supported"):
        call(flags)
    for y, x in ((flags, numbers), (numbers, flags)):
        with pytest.raises(RuntimeError, match=f"^{name}: received a bool input for `x` or `y`"):
            call(y, x)


@both
def test_refusals_name_the_function(name):
    with pytest.raises(RuntimeError, match=f"^{name}: There must be one `x` value for each sample point: got 3 places"):
        getattr(tg, name)(tg.ones(2), tg.ones(3))
    with pytest.raises(IndexError, match=f"Dimension specified as -1 but tensor has no dimensions: {name}"):
        getattr(tg, name)(tg.tensor(1.0))


@pytest.mark.parametrize("dtype", [tg.bool, tg.int32, tg.float16])
def test_no_samples_are_zeros_of_their_dtype(dtype):
    for x in ([], [tg.ones(5)]):
        found = tg.trapezoid(tg.ones(2, 0, dtype=dtype), *x)
        assert found.dtype is dtype and found.tolist() == [0, 0]


def test_running_sums_of_no_samples_have_the_dtype_of_areas():
    y = tg.ones(0, 2, dtype=tg.float16)
    assert tg.cumulative_trapezoid(y, tg.ones(0), dim=0).dtype is tg.float32
    assert tg.cumulative_trapezoid(y, dim=0).dtype is tg.float16
    assert tg.cumulative_trapezoid(y, dim=0).shape == (0, 2)


def test_a_distance_may_be_a_tensor_of_no_dimensions():
    x = tg.arange(6.0).reshape(2, 3) ** 2
    for dim in (None, 1, (0, 1)):
        got, want = (tg.gradient(x, spacing=step, dim=dim) for step in (tg.tensor(2.0), 2.0))
        assert [t.tolist() for t in got] == [t.tolist() for t in want]
    with pytest.raises(RuntimeError, match="expected each element of spacing to have one dimension"):
        tg.gradient(x, spacing=(tg.tensor(2.0), tg.tensor(2.0)))
