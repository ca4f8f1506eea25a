"""NumPy's functions take tensors: the values are those of the array, and the gradient is kept where it can be."""

import numpy as np
import pytest

import tinygrad_ext as tg

VALUES = np.array([[1.5, 2, -3], [4, 0.5, 6]], dtype=np.float32)
OPTIONS = [{}, {"axis": 0}, {"axis": -1}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}, {"keepdims": True}]
NAMES = ["max", "min", "amax", "amin", "sum", "prod", "mean", "std", "var", "any", "all"]


def same(got, want):
    assert isinstance(got, tg.Tensor)
    assert got.numpy().dtype == np.asarray(want).dtype and tuple(got.shape) == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_reduction_is_that_of_the_array(name, options):
    for values in (VALUES, VALUES.astype(np.float64), VALUES.astype(np.int64), VALUES > 1):
        if values.dtype == bool and name in ("std", "var"):
            continue
        same(getattr(np, name)(tg.tensor(values), **options), getattr(np, name)(values, **options))


@pytest.mark.parametrize("name", ["std", "var"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_ddof_counts(name, ddof):
    for axis in (None, 0):
        same(
            getattr(np, name)(tg.tensor(VALUES), axis=axis, ddof=ddof), getattr(np, name)(VALUES, axis=axis, ddof=ddof)
        )


def test_dtype_and_initial_are_numpys():
    same(np.sum(tg.tensor(VALUES), axis=0, dtype=np.float64), np.sum(VALUES, axis=0, dtype=np.float64))
    same(np.max(tg.tensor(VALUES), axis=0, initial=3), np.max(VALUES, axis=0, initial=3))


def test_the_result_goes_to_out():
    for out in (np.zeros(3, np.float32), tg.zeros(3)):
        for name in ("max", "min", "sum", "prod", "std", "var", "mean"):
            assert getattr(np, name)(tg.tensor(VALUES), axis=0, out=out) is out
            np.testing.assert_allclose(np.asarray(out), getattr(np, name)(VALUES, axis=0), rtol=1e-6)


def test_the_gradient_is_kept():
    t = tg.tensor(VALUES, requires_grad=True)
    for name in ("max", "sum", "prod", "std", "var", "mean"):
        assert getattr(np, name)(t, axis=0).requires_grad
    with pytest.raises(RuntimeError, match="detach"):
        np.max(t, axis=0, initial=3)


def test_methods_without_out_are_pytorchs_own():
    assert tg.tensor(VALUES).max(0).indices.tolist() == [1, 0, 1]
    with pytest.raises(TypeError):
        tg.ones(2).add(1, out=tg.ones(2))


class Table:
    """A table as pandas has it: a sequence of its columns' names over an array."""

    ndim = 2

    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name):
        return self.columns[name]

    def __iter__(self):
        return iter(self.columns)

    def __array__(self, dtype=None, copy=None):
        return np.column_stack(list(self.columns.values()))


def test_a_table_becomes_the_tensor_of_its_values():
    table = Table({"a": np.array([1.0, 2, 3]), "b": np.array([4.0, 5, 6])})
    for make in (tg.tensor, tg.as_tensor, tg.asarray):
        made = make(table)
        assert made.dtype == tg.float64 and made.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert tg.tensor(table, dtype=tg.int32).dtype == tg.int32
    with pytest.raises(TypeError, match="array of type 'O'"):
        tg.tensor(Table({"a": np.array(["x", 1], dtype=object)}))


def test_a_data_frame_becomes_a_tensor():
    pandas = pytest.importorskip("pandas", reason="reads a table of pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert tg.tensor(frame).tolist() == [[1, 3], [2, 4]] and tg.tensor(frame["a"]).dtype == tg.int64


@pytest.mark.parametrize("wrong", (3.0, True, [3]), ids=str)
def test_ints_are_no_arrays_of_other_numbers(wrong):
    wrong, x = np.array(wrong), tg.ones(4)
    for call in (
        lambda: tg.ones(wrong),
        lambda: tg.ones((wrong, 1)),
        lambda: x.sum(wrong),
        lambda: x.sum((wrong,)),
        lambda: x.roll(wrong),
        lambda: x.narrow(0, wrong, 1),
        lambda: x.view((wrong, 1)),
        lambda: x.permute(wrong),
    ):
        with pytest.raises(TypeError, match="ndarray"):
            call()
    right = np.array(3)
    assert tg.ones(right).shape == tg.ones((np.int64(3),)).shape == (3,)
    assert x.narrow(0, right, 1).shape == x.narrow(0, np.uint8(3), 1).shape == (1,)
