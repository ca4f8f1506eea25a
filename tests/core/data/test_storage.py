"""Memory that cannot be had is refused, and the refusal leaves the allocator's books as they were; what is cached."""

import copy
import os
import pickle
import resource
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.tensor.legacy_storage import LegacyStorage


def test_a_refused_allocation_leaves_the_books_right():
    before = tg.memory_stats()
    for _ in range(3):
        with pytest.raises(MemoryError, match="can't allocate memory, 17592186044416 bytes") as caught:
            tg.empty(1 << 42)
        assert isinstance(caught.value, RuntimeError)  # which code written for PyTorch waits for
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
    assert kind(2, device="meta").device.type == "meta"


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


def test_storages_change_their_size_where_their_memory_is():
    t = tg.tensor([1, 2, 3], dtype=tg.uint8)
    memory = t.untyped_storage()
    assert memory.resizable() and memory.resize_(0) is memory and len(memory) == 0 == t.untyped_storage().nbytes()
    assert memory.resize_(2).tolist() == [1, 2] and t.shape == (3,) and t.tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="must not be negative, but is -1"):
        memory.resize_(-1)
    with pytest.raises(NotImplementedError, match="there are 2 bytes, and 4096 are wanted: a tensor over them"):
        memory.resize_(4096)
    alone = tg.UntypedStorage([5, 6])
    assert len(alone.resize_(4096)) == 4096 and alone[:2].tolist() == [5, 6]
    shown = tg.TypedStorage([5, 6], dtype=tg.int64)
    assert len(shown.resize_(1000)) == 1000 and shown[:2] == [5, 6] and shown.resizable()
    lent = tg.from_numpy(np.ones(2)).untyped_storage()
    assert not lent.resizable() and lent.resize_(16) is lent
    with pytest.raises(RuntimeError, match="not resizable"):
        lent.resize_(8)
    assert tg.ones(2, device="meta").untyped_storage().resize_(5).nbytes() == 5


def test_storages_tell_what_memory_they_have_in_common():
    t = tg.ones(2)
    memory = t.untyped_storage()
    memory.note = "mine"
    assert weakref.ref(memory)() is memory and memory.note == "mine"
    assert t[1:].untyped_storage() == memory and memory._cdata == t.storage()._cdata == t[1:].untyped_storage()._cdata
    assert tg.ones(2).untyped_storage()._cdata != memory._cdata
    assert tg.ones(2, device="meta").untyped_storage()._cdata == 0
    again = pickle.loads(pickle.dumps(tg.UntypedStorage([1, 2])))
    assert again.tolist() == [1, 2] and copy.deepcopy(memory) != memory


ORDERED = {
    tg.int16: ([1, 256], [256, 1]),
    tg.int32: ([1, 2], [1 << 24, 2 << 24]),
    tg.uint8: ([1, 2], [1, 2]),
    tg.complex64: ([complex(1, 2)], None),
}


@pytest.mark.parametrize("dtype", ORDERED, ids=str)
def test_bytes_of_numbers_are_turned(dtype):
    numbers, turned = ORDERED[dtype]
    t = tg.tensor(numbers, dtype=dtype)
    t.untyped_storage().byteswap(dtype)
    assert t.tolist() == (turned or t.numpy().tolist()) and (turned or t.tolist() != numbers)
    t.untyped_storage().byteswap(dtype)
    assert t.tolist() == numbers


LEGACY = {
    "BFloat16Storage": tg.bfloat16,
    "BoolStorage": tg.bool,
    "ByteStorage": tg.uint8,
    "CharStorage": tg.int8,
    "ComplexDoubleStorage": tg.complex128,
    "ComplexFloatStorage": tg.complex64,
    "DoubleStorage": tg.float64,
    "FloatStorage": tg.float32,
    "HalfStorage": tg.float16,
    "IntStorage": tg.int32,
    "LongStorage": tg.int64,
    "ShortStorage": tg.int16,
}


@pytest.mark.parametrize("name", LEGACY)
def test_storages_by_dtype(name, tmp_path):
    kind, dtype = getattr(tg, name), LEGACY[name]
    made = kind([1, 0, 1])
    assert type(made) is tg.TypedStorage and made.dtype == dtype and made.tolist() == [1, 0, 1] and len(kind(4)) == 4
    assert isinstance(made, kind) and made.type() == f"torch.{name}"
    assert [other for other in LEGACY if isinstance(made, getattr(tg, other))] == [name]
    assert not isinstance(tg.ones(2, device="meta", dtype=dtype).storage(), kind)
    assert kind(wrap_storage=made.untyped()).tolist() == [1, 0, 1]
    data = tg.tensor([1, 0, 1, 1], dtype=dtype)
    raw = bytes(data.untyped_storage().tolist())
    size = data.element_size()
    assert kind.from_buffer(raw, count=2, offset=size, byte_order="native").tolist() == data[1:3].tolist()
    data.untyped_storage().byteswap(dtype)
    turned = bytes(data.untyped_storage().tolist())
    other = "big" if sys.byteorder == "little" else "little"
    assert kind.from_buffer(turned, byte_order=other).tolist() == [1, 0, 1, 1]
    path = tmp_path / "numbers"
    path.write_bytes(raw)
    mapped = kind.from_file(str(path), True, 4)
    assert mapped.tolist() == [1, 0, 1, 1] and mapped.filename == str(path) and made.filename is None
    mapped[1] = 1
    assert path.read_bytes()[size : 2 * size] == raw[:size]


CONVERTED = {
    "bfloat16": tg.bfloat16,
    "bool": tg.bool,
    "byte": tg.uint8,
    "char": tg.int8,
    "complex_double": tg.complex128,
    "complex_float": tg.complex64,
    "double": tg.float64,
    "float": tg.float32,
    "half": tg.float16,
    "int": tg.int32,
    "long": tg.int64,
    "short": tg.int16,
}


@pytest.mark.parametrize("name", CONVERTED)
def test_typed_storages_are_converted(name):
    made = tg.TypedStorage([1.0, 0.0])
    found = getattr(made, name)()
    assert found.dtype == CONVERTED[name] and found.tolist() == [1, 0] and made.cpu() is made and list(found) == [1, 0]
    assert copy.copy(found) != found and copy.deepcopy(found).tolist() == [1, 0]
    assert hash(found) == hash(found.untyped())
    assert found == tg.TypedStorage(wrap_storage=found.untyped(), dtype=found.dtype) and found != found.untyped()


REFUSED = {
    "abstract": (lambda: LegacyStorage(3), RuntimeError, "Only child classes of _LegacyStorage can be instantiated"),
    "keyword": (lambda: tg.IntStorage(3, dtype=tg.int64), RuntimeError, "Keyword argument 'dtype' cannot be specified"),
    "arguments": (lambda: tg.IntStorage(3, 4), RuntimeError, "Too many positional arguments"),
    "order": (lambda: tg.IntStorage.from_buffer(b"abcd", "odd"), ValueError, "invalid byte_order 'odd'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_of_storages_by_dtype(case):
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call()


STORED = {
    "bytes as floats": (lambda: tg.tensor(tg.ones(2).untyped_storage()), tg.float32, [1, 1]),
    "bytes as ints": (lambda: tg.tensor(tg.ones(1).untyped_storage(), dtype=tg.int32), tg.int32, [0x3F800000]),
    "bytes as bytes": (lambda: tg.tensor(tg.UntypedStorage([1, 2]), dtype=tg.uint8), tg.uint8, [1, 2]),
    "bytes beyond": (lambda: tg.tensor(tg.UntypedStorage([1, 0, 9]), dtype=tg.int16), tg.int16, [1]),
    "typed": (lambda: tg.tensor(tg.TypedStorage([1, 2], dtype=tg.int64)), tg.int64, [1, 2]),
    "none": (lambda: tg.tensor(tg.UntypedStorage()), tg.float32, []),
}


@pytest.mark.parametrize("case", STORED)
def test_a_tensor_of_a_storage_has_its_numbers(case):
    make, dtype, numbers = STORED[case]
    found = make()
    assert found.dtype == dtype and found.tolist() == numbers


def test_a_tensor_of_a_storage_is_a_copy():
    memory = tg.zeros(2).untyped_storage()
    copied = tg.tensor(memory)
    memory.fill_(255)
    assert copied.tolist() == [0, 0]


@pytest.mark.parametrize(
    "shown", [np.asarray, lambda s: s[2:6], lambda s: tg.tensor([]).set_(s)], ids=["array", "slice", "tensor"]
)
def test_memory_that_something_shows_is_not_replaced(shown):
    storage = tg.arange(8, dtype=tg.uint8).untyped_storage()
    held = shown(storage)
    with pytest.raises(NotImplementedError, match="resize_"):
        storage.resize_(1 << 20)
    assert storage.tolist() == [*range(8)]
    del held
    assert len(storage.resize_(1 << 20)) == 1 << 20 and storage[:8].tolist() == [*range(8)]


@pytest.mark.parametrize("size", [10**6, -1])
def test_a_typed_storage_that_cannot_be_resized_stays_as_it_is(size):
    storage = tg.FloatStorage([1, 2, 3])
    held = tg.tensor([]).set_(storage)
    with pytest.raises((NotImplementedError, RuntimeError)):
        storage.resize_(size)
    assert storage.tolist() == held.tolist() == [1, 2, 3]


def test_sizes_and_parts_of_numbers_are_told():
    with pytest.raises(TypeError, match="expects an int"):
        tg.UntypedStorage(4).resize_(2.5)
    with pytest.raises(RuntimeError, match="not a multiple of 4"):
        tg.UntypedStorage(6).byteswap(tg.int32)
