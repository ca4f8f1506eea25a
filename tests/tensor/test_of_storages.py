"""The old constructors show a storage; they copy none."""

import pytest

import tinygrad_ext as tg


@pytest.mark.parametrize(
    "show",
    [tg.FloatTensor, tg.Tensor, tg.zeros(2).new],
    ids=["FloatTensor", "Tensor", "new"],
)
def test_a_storage_is_shown_in_its_memory(show):
    storage = tg.FloatStorage([1, 2, 3])
    x = show(storage)
    assert x.tolist() == [1, 2, 3] and x.data_ptr() == storage.data_ptr()
    x[0] = 5
    assert storage[0] == 5
    assert show(tg.arange(4.0)[1:].untyped_storage()).tolist() == [0, 1, 2, 3]


def test_bytes_are_read_as_the_dtype_of_the_constructor():
    four = tg.FloatStorage([1, 2, 3, 4]).untyped()
    assert tg.DoubleTensor(four).shape == (2,) and tg.ByteTensor(four).shape == (16,)


def test_a_storage_of_another_dtype_is_refused():
    for show in (tg.FloatTensor, tg.Tensor, tg.zeros(2).new):
        with pytest.raises(RuntimeError, match="Expected a Storage of type Float .* but got type Double"):
            show(tg.DoubleStorage([1, 2]))
