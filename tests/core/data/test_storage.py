"""Memory that cannot be had is refused, and the refusal leaves the allocator's books as they were; what is cached."""

import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

import tinygrad_ext as tg


def test_a_refused_allocation_leaves_the_books_right():
    before = tg.memory_stats()
    for _ in range(3):
        with pytest.raises(MemoryError, match="cannot allocate 17592186044416 bytes"):
            tg.empty(1 << 42)
    after = tg.memory_stats()
    del before["cached"], after["cached"]  # given back to the system before the refusal
    assert after == before
    assert tg.ones(4).sum().item() == 4


MIB = 1 << 20


def fill_the_cache():
    """Free blocks of several sizes, together more than the cache keeps."""
    tg.empty_cache()
    tg.reset_peak_memory_stats()
    blocks = [tg.empty(size * MIB, dtype=tg.uint8) for size in (16, 18, 20, 22, 24)]
    del blocks


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer build caches nothing")
def test_the_block_freed_last_is_kept_when_the_cache_is_full():
    fill_the_cache()
    block = tg.empty(8 * MIB, dtype=tg.uint8)
    del block
    cached = tg.memory_stats()["cached"]
    block = tg.empty(8 * MIB, dtype=tg.uint8)
    assert cached - tg.memory_stats()["cached"] == block.nbytes


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no advice for huge pages")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer build takes it from malloc")
def test_large_blocks_begin_where_a_huge_page_may_and_go_back_whole():
    def mapped():
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    tg.empty_cache()
    before = mapped()
    for size in (4 * MIB, 5 * MIB + 1, 70 * MIB):
        block = tg.empty(size, dtype=tg.uint8)
        block[0] = block[-1] = 3
        assert block.data_ptr() % (2 * MIB) == 0 and block[0] == block[-1] == 3
        assert size <= mapped() - before < 1.25 * size + MIB
        del block
        tg.empty_cache()
        assert mapped() - before < MIB


def test_the_cache_is_bounded_by_the_peak_of_what_was_in_use():
    fill_the_cache()
    for size in range(1, 40):
        block = tg.empty(size * MIB, dtype=tg.uint8)
        del block
        stats = tg.memory_stats()
        assert stats["cached"] <= max(64 * MIB, 0.75 * stats["peak"])
        assert stats["cached"] <= max(64 * MIB, 1.25 * stats["peak"] - stats["allocated"])


def test_empty_cache_gives_everything_back():
    fill_the_cache()
    tg.empty_cache()
    assert tg.memory_stats()["cached"] == 0


class Own(tg.Tensor):
    """A subclass, as a user makes one."""


@pytest.mark.parametrize("cls", [tg.Tensor, Own])
def test_a_tensor_of_new_has_no_memory_to_look_at_and_gets_some_when_it_grows(cls):
    t = tg.Tensor.__new__(cls)
    with pytest.raises(RuntimeError, match="out of bounds"):
        t.as_strided((3,), (1,))
    t.resize_(3).fill_(2)
    assert t.tolist() == [2, 2, 2] and t.data_ptr() and (t + 1).sum() == 9


def test_bytes_of_a_storage_are_read_written_and_mapped(tmp_path):
    x = tg.zeros(2)
    memory = x.untyped_storage()
    memory[3] = 64
    assert (
        x.tolist() == [2.0, 0.0] and memory[3] == 64 and memory[2:4].tolist() == [0, 64] and memory.untyped() is memory
    )
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    mapped = tg.UntypedStorage.from_file(str(path), False, 8)
    part = tg.asarray(mapped[4:8], dtype=tg.uint8)
    assert part.tolist() == [4, 5, 6, 7] and part.view(tg.int32).shape == (1,)
    mapped[0] = 9
    assert path.read_bytes()[0] == 0
    tg.UntypedStorage.from_file(str(path), True, 8)[0] = 9
    assert path.read_bytes()[0] == 9 and len(tg.UntypedStorage.from_file(str(path))) == 0


def test_slices_of_storages_leave_no_bytes_out():
    memory = tg.UntypedStorage([1, 2, 3, 4])
    assert memory[1:3:1].tolist() == [2, 3]
    for step in (2, -1):
        with pytest.raises(RuntimeError, match=f"Trying to slice with a step of {step}, but only a step of 1"):
            memory[::step]


def test_bytes_are_filled_with_ints():
    block = tg.zeros(1).untyped_storage()
    assert block.fill_(300).tolist() == [44] * 4 and block.fill_(-1).tolist() == [255] * 4
    for value in (1.7, "a"):
        with pytest.raises(RuntimeError, match="fill_ expects int, but got"):
            block.fill_(value)


def test_storages_are_made_of_nothing_but_sizes_and_numbers():
    assert tg.UntypedStorage([1, 258]).tolist() == [1, 2] and tg.UntypedStorage(3).fill_(7).tolist() == [7] * 3
    assert tg.UntypedStorage().nbytes() == 0 == tg.UntypedStorage([5]).new().nbytes()
    assert tg.UntypedStorage(b"ab").tolist() == [97, 98] and tg.UntypedStorage(range(-1, 1)).tolist() == [255, 0]
    assert tg.UntypedStorage(tg.UntypedStorage([4, 5])).tolist() == [4, 5]
    for size in (np.int64(3), np.uint8(3), tg.tensor(3)):
        assert len(tg.UntypedStorage(size)) == 3
    with pytest.raises(RuntimeError, match="must not be negative, but is -1"):
        tg.UntypedStorage(-1)
    for wrong in (3.0, np.float32(3), True, np.bool_(True), None, tg.ones(2), tg.tensor(3.0), tg.tensor(True), {1, 2}):
        with pytest.raises(RuntimeError, match="Expected a sequence type, but got"):
            tg.UntypedStorage(wrong)
    for wrong, kind in ([1.5], "float"), ("abc", "str"), ([None], "NoneType"), (np.array([1]), "int64"):
        with pytest.raises(RuntimeError, match=f"one of the items was of type (numpy.)?{kind} instead of int"):
            tg.UntypedStorage(wrong)


@pytest.mark.parametrize("kind", [tg.UntypedStorage, tg.TypedStorage])
def test_new_storages_are_on_the_cpu_however_it_is_named(kind):
    for place in (None, "cpu", "cpu:0", tg.device("cpu"), tg.device("cpu", 0)):
        made = kind(3, device=place)
        assert len(made) == 3 and made.device.type == "cpu" and kind([1, 2], device=place).tolist() == [1, 2]
    with pytest.raises(NotImplementedError, match="new memory is made on the cpu, not on meta"):
        kind(2, device="meta")


def test_typed_storages_are_made_filled_copied_and_converted():
    made = tg.TypedStorage([1, 2, 3], dtype=tg.float64)
    assert made.tolist() == [1.0, 2.0, 3.0] and made.dtype == tg.float64
    other = tg.TypedStorage(3, dtype=tg.float64).fill_(4)
    assert other.clone().copy_(made).tolist() == made.tolist() and other.tolist() == [4.0] * 3
    assert made.type(tg.int32).tolist() == [1, 2, 3]
    shown = tg.TypedStorage(wrap_storage=made.untyped(), dtype=tg.float64)
    shown[1] = 9
    assert made.tolist() == [1.0, 9.0, 3.0] and len(tg.TypedStorage()) == 0


def test_typed_storages_are_made_of_nothing_but_sizes_and_numbers():
    assert len(tg.TypedStorage(np.int64(3))) == 3 and len(tg.TypedStorage(True)) == 1
    assert tg.TypedStorage(bytearray(b"ab")).tolist() == [97, 98] and tg.TypedStorage([[1, 2]]).tolist() == [1, 2]
    for wrong in (3.0, None, "abc", b"ab", tg.ones(2), tg.tensor(3), np.array([1, 2]), np.bool_(True), {1, 2}):
        with pytest.raises(TypeError, match="must be a number of elements or a sequence of them"):
            tg.TypedStorage(wrong)


def test_typed_storages_name_the_legacy_class_of_storages_of_their_kind():
    names = {
        tg.float32: "Float",
        tg.bfloat16: "BFloat16",
        tg.bool: "Bool",
        tg.int64: "Long",
        tg.complex64: "ComplexFloat",
    }
    for dtype, name in names.items():
        assert tg.TypedStorage(1, dtype=dtype).type() == f"torch.{name}Storage"
    assert tg.ones(2, device="meta").storage().type() == "torch.storage.TypedStorage"


def test_typed_storages_copy_the_bytes_of_storages_of_as_many():
    made = tg.TypedStorage([1.0, 2.0, 3.0])
    for other in ([9.0], [1.0] * 4):
        with pytest.raises(RuntimeError, match=f"size does not match, self was 12 bytes but src was {4 * len(other)}"):
            made.copy_(tg.TypedStorage(other))
    with pytest.raises(RuntimeError, match="size does not match, self was 12 bytes but src was 24"):
        made.copy_(tg.TypedStorage([1, 2, 3], dtype=tg.float64))
    for wrong in (tg.ones(3), [1, 2, 3], 3):
        for kind in (made, made.untyped()):
            with pytest.raises(TypeError, match="argument 'src' must be a storage"):
                kind.copy_(wrong)
    assert made.tolist() == [1.0, 2.0, 3.0]
    assert made.copy_(tg.tensor([9.0, 8.0, 7.0]).untyped_storage()) is made and made.tolist() == [9.0, 8.0, 7.0]
    ones = tg.ones(3).view(tg.int32)
    assert made.copy_(ones.storage()).tolist() == [1.0] * 3
    assert made.copy_(tg.TypedStorage([5, 6, 7], dtype=tg.int32)).untyped().tolist()[::4] == [5, 6, 7]
