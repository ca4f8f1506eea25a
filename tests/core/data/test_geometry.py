"""Whatever turns numbers from outside into a tensor lets none reach beyond its memory, and none wraps around."""

import pickle
import random

import pytest

import tinygrad_ext as tg
from tests.helpers import hostile_geometry as hostile
from tinygrad_ext.core.call import interop

REFUSALS = (RuntimeError, TypeError, ValueError, BufferError, OverflowError)


def _pickled(sizes, strides, offset):
    rebuild, (cls, marked, window, state) = tg.zeros(6).__reduce_ex__(2)
    window = (window[0], window[1], sizes, strides, offset, False)
    return pickle.loads(pickle.dumps(rebuild(cls, marked, window, state)))


def _wrapped(sizes, strides, offset):
    """The wrapper has no memory: what 63 bits can count is allowed."""
    return tg.Tensor._make_wrapper_subclass(tg.Tensor, sizes, strides, dtype=tg.float32)


BOUNDED = {
    "as_strided": lambda sizes, strides, offset: tg.zeros(6).as_strided(sizes, strides, offset),
    "as_strided of a view": lambda sizes, strides, offset: tg.zeros(2, 3).t()[1:].as_strided(sizes, strides, offset),
    "pickle": _pickled,
    "window": lambda sizes, strides, offset: interop.window(
        interop.storage_of(tg.zeros(6)), tg.float32, sizes, strides, offset
    ),
}
BOUNDLESS = {
    "from_dlpack": lambda sizes, strides: tg.from_dlpack(hostile.dlpack(sizes, strides)),
    "an array interface": lambda sizes, strides: tg.tensor(hostile.ArrayInterface(sizes, strides)),
    "from_numpy": lambda sizes, strides: tg.from_numpy(_lying_array(sizes, strides)),
    "empty_strided": lambda sizes, strides: tg.empty_strided(sizes, strides),
    "a wrapper": lambda sizes, strides: _wrapped(sizes, strides, 0),
}


def _lying_array(sizes, strides):
    import numpy

    return numpy.asarray(hostile.ArrayInterface(sizes, strides))


@pytest.mark.parametrize("way", BOUNDED)
@pytest.mark.parametrize("window", hostile.WINDOWS)
def test_no_window_leaves_its_memory(way, window):
    with pytest.raises(REFUSALS):
        BOUNDED[way](*hostile.WINDOWS[window])


ENDLESS = {name: window for name, *window in hostile.boundless()}


@pytest.mark.parametrize("way", BOUNDLESS)
@pytest.mark.parametrize("window", ENDLESS)
def test_what_no_memory_holds_is_refused_where_none_is_named(way, window):
    if way == "a wrapper" and hostile.fits(*ENDLESS[window], 0, 4, 2**63 - 1):
        assert _wrapped(*ENDLESS[window], 0).stride() == ENDLESS[window][1]
        return
    with pytest.raises((*REFUSALS, MemoryError)):
        BOUNDLESS[way](*ENDLESS[window])


def test_exactly_the_windows_inside_their_memory_are_accepted():
    storage = interop.storage_of(tg.zeros(6))
    accepted = 0
    for sizes, strides, offset in hostile.random_windows(random.Random(0), 20_000):
        try:
            t = interop.window(storage, tg.float32, sizes, strides, offset)
        except RuntimeError:
            assert not hostile.fits(sizes, strides, offset, 4, 24), (sizes, strides, offset)
        else:
            assert hostile.fits(sizes, strides, offset, 4, 24), (sizes, strides, offset)
            accepted += 1
            if max(sizes, default=0) < 100:
                assert t.tolist() is not None
    assert accepted > 500


@pytest.mark.parametrize(
    "sizes", [(2**62,), (2**32, 2**32), (0, 2**62, 8), (-1,), (2**63,), (1,) * 65, ("2",)], ids=str
)
def test_a_tensor_is_not_resized_to_what_no_memory_holds(sizes):
    for make in (lambda: tg.zeros(6).resize_(sizes), lambda: tg.empty(6, device="meta").resize_(sizes)):
        with pytest.raises((*REFUSALS, MemoryError)):
            make()


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64", "complex128"])
def test_no_shape_is_made_whose_bytes_wrap_around(dtype):
    dtype = getattr(tg, dtype)
    for bits in range(26, 64):
        for shape in ((2**bits, 2 ** (64 - bits)), (2**30, 2**bits, 2**2), (2, 2 ** min(bits, 62), 2**33)):
            for make in (
                lambda s=shape: tg.empty(s, dtype=dtype),
                lambda s=shape: tg.zeros(1, dtype=dtype).new_empty(s),
            ):
                with pytest.raises((*REFUSALS, MemoryError)):
                    make()


def test_a_view_beside_its_memory_is_resized_into_memory_of_its_own():
    beside = tg.zeros(1).as_strided((1,), (5,))[1:]
    assert beside.storage_offset() == 5
    beside.resize_(3).fill_(1)
    assert beside.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "capsule",
    [
        {"sizes": (2**62, 8)},
        {"sizes": (0, 2**62, 8)},
        {"sizes": (2,), "ndim": 65},
        {"sizes": (2,), "ndim": -1},
        {"sizes": (1,), "byte_offset": 2**64 - 4},
        {"sizes": (1,), "byte_offset": 2**63},
        {"sizes": (1,), "byte_offset": 2},
        {"sizes": (2,), "memory": False},
        {"sizes": (1,), "lanes": 4},
        {"sizes": (1,), "bits": 31},
        {"sizes": (1,), "code": 77},
        {"sizes": (1,), "device": 2},
    ],
    ids=str,
)
def test_a_dlpack_capsule_that_lies_is_refused(capsule):
    with pytest.raises(REFUSALS):
        tg.from_dlpack(hostile.dlpack(**capsule))


def test_steps_over_one_element_may_be_anything():
    assert tg.from_dlpack(hostile.dlpack((1, 6), (-7, 1))).shape == (1, 6)
    assert tg.from_dlpack(hostile.dlpack((6,))).tolist() == [0] * 6
    assert tg.zeros(6).as_strided((1, 0), (2**40, 5), 100).numel() == 0


def test_a_view_counts_no_more_elements_than_63_bits():
    wide = tg.zeros(1, dtype=tg.complex64).expand(2**62)
    for make in (lambda: tg.view_as_real(wide), lambda: wide.unfold(0, 4, 1), lambda: wide.expand(4, 2**62)):
        with pytest.raises(RuntimeError, match="overflowed"):
            make()


def test_a_buffer_is_not_read_beyond_what_it_lends():
    for count, offset in ((2**62, 0), (2**70, 0), (3, 8), (1, 2**63), (1, -1), (5, 0)):
        with pytest.raises(ValueError):
            tg.frombuffer(bytearray(16), dtype=tg.float32, count=count, offset=offset)


def test_a_storage_is_not_taken_beyond_its_end():
    with pytest.raises(RuntimeError, match="overflowed"):
        tg.zeros(1).set_(tg.zeros(9).untyped_storage(), 2**62, (2,), (2**62,))
