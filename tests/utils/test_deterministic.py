"""Elements that are not set hold something telling while algorithms are to be deterministic."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import deterministic


@pytest.fixture(autouse=True)
def switched_back():
    yield
    tg.use_deterministic_algorithms(False)
    deterministic.fill_uninitialized_memory = True


TOLD = {
    **dict.fromkeys((tg.float16, tg.bfloat16, tg.float32, tg.float64, tg.complex64, tg.complex128), None),
    tg.bool: True,
    tg.uint8: 255,
    tg.int8: 127,
    tg.int16: 2**15 - 1,
    tg.int32: 2**31 - 1,
    tg.int64: 2**63 - 1,
    tg.uint16: 2**16 - 1,
    tg.uint32: 2**32 - 1,
    tg.uint64: 2**64 - 1,
}
MAKERS = {
    "empty": lambda d: tg.empty(3, 300, dtype=d),
    "empty of channels_last": lambda d: tg.empty(1, 2, 3, 4, dtype=d, memory_format=tg.channels_last),
    "empty_like": lambda d: tg.empty_like(tg.ones(2, 3, dtype=d).t()),
    "empty_strided": lambda d: tg.empty_strided((2, 3), (1, 2), dtype=d),
    "empty_permuted": lambda d: tg.empty_permuted((2, 3), (1, 0), dtype=d),
    "new_empty": lambda d: tg.ones(1, dtype=d).new_empty(4),
    "new_empty_strided": lambda d: tg.ones(1, dtype=d).new_empty_strided((2, 2), (1, 2)),
}


def _told(t, dtype):
    return t.isnan().all() if TOLD[dtype] is None else all(n == TOLD[dtype] for n in t.reshape(-1).tolist())


@pytest.mark.parametrize("dtype", TOLD, ids=str)
@pytest.mark.parametrize("maker", MAKERS)
def test_makers_fill(maker, dtype):
    tg.use_deterministic_algorithms(True)
    made = MAKERS[maker](dtype)
    assert made.dtype == dtype and _told(made, dtype)


@pytest.mark.parametrize("dtype", TOLD, ids=str)
def test_resize_fills_what_comes_to_the_memory(dtype):
    tg.use_deterministic_algorithms(True)
    grown = tg.ones(2, 2, dtype=dtype).resize_(3, 4)
    numbers = grown.reshape(-1)
    assert (numbers[:4] == tg.ones(4, dtype=dtype)).all() and _told(numbers[4:], dtype)
    shrunk = tg.ones(4, dtype=dtype).resize_(2)
    assert (shrunk == tg.ones(2, dtype=dtype)).all() and (shrunk.resize_(4) == tg.ones(4, dtype=dtype)).all()


def test_both_switches_are_asked():
    for deterministically, fill in ((False, True), (True, False), (False, False)):
        tg.use_deterministic_algorithms(deterministically)
        deterministic.fill_uninitialized_memory = fill
        assert tg.utils.deterministic.fill_uninitialized_memory is fill
        # of a size that nothing else has: what was zero before is zero again
        kept = tg.zeros(977)
        address = kept.data_ptr()
        del kept
        again = tg.empty(977)
        assert again.data_ptr() != address or not again.isnan().any()
        assert not tg.ones(2).resize_(1).isnan().any()


def test_meta_tensors_and_memory_alone():
    tg.use_deterministic_algorithms(True)
    assert tg.empty(2, 3, device="meta").shape == (2, 3) and tg.empty(0).tolist() == []
    assert tg.UntypedStorage(2).fill_(1).resize_(4).tolist() == [1, 1, 255, 255]


def test_the_switch_is_a_bool():
    with pytest.raises(TypeError, match="expected a bool, but got int"):
        deterministic.fill_uninitialized_memory = 1
    assert deterministic.fill_uninitialized_memory is True
