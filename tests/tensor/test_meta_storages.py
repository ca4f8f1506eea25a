"""Storages on meta, which have a size and no bytes; and the classes of storages."""

import copy
import io

import pytest

import tinygrad_ext as tg

COPIES = "Cannot copy out of meta tensor; no data"
READS = "Not available for 'meta' device type"


def _both(content):
    return (
        (tg.UntypedStorage(content, device="meta"), tg.UntypedStorage(content)),
        (tg.TypedStorage(content, dtype=tg.int16, device="meta"), tg.TypedStorage(content, dtype=tg.int16)),
    )


@pytest.mark.parametrize("content", [0, 100, [1, 2, 3]])
def test_they_know_how_large_they_would_be(content):
    for meta, plain in _both(content):
        assert (meta.nbytes(), meta.size(), len(meta)) == (plain.nbytes(), plain.size(), len(plain))
        assert meta.device.type == "meta" and meta.data_ptr() == 0 and meta.untyped().device.type == "meta"
        assert not meta.is_shared() and meta.resizable()
    assert meta.dtype is tg.int16


def test_they_are_neither_read_nor_copied_from():
    for meta, plain in _both([1, 2, 3]):
        for read in (lambda m=meta: m[0], meta.tolist, lambda m=meta: list(m)):
            with pytest.raises(NotImplementedError, match=READS):
                read()
        for copying in (meta.cpu, lambda m=meta, p=plain: p.copy_(m)):
            with pytest.raises(NotImplementedError, match=COPIES):
                copying()
        with pytest.raises(NotImplementedError, match=COPIES):
            meta._write_file(io.BytesIO(), False, True, 1)
        for share in (meta.share_memory_, meta._share_fd_cpu_, meta._share_filename_cpu_):
            with pytest.raises(RuntimeError, match="only available on CPU"):
                share()


def test_others_are_written_to_files_and_have_no_handles():
    for _, plain in _both([1, 2, 3]):
        file = io.BytesIO()
        plain._write_file(file, False, True, plain.element_size())
        assert file.getvalue()[:8] == (3).to_bytes(8, "little") and file.getvalue()[8:] == bytes(plain.untyped())
        with pytest.raises(NotImplementedError, match="has no handle"):
            plain._share_fd_cpu_()


def test_what_is_written_to_them_is_forgotten():
    for meta, plain in _both([1, 2, 3]):
        assert meta.copy_(plain) is meta and meta.fill_(3) is meta
        meta[0] = 2
        for same in (meta.clone(), copy.deepcopy(meta)):
            assert same.nbytes() == meta.nbytes() and same.device.type == "meta"
        meta.resize_(10)
        assert len(meta) == 10
    with pytest.raises(RuntimeError, match="must not be negative"):
        tg.UntypedStorage(device="meta").resize_(-1)


def test_those_of_tensors_reach_to_the_last_element():
    x = tg.empty(4, 5, 3, device="meta", dtype=tg.float64)
    assert x.untyped_storage().nbytes() == 480 and x.storage().size() == 60
    assert x[:2].untyped_storage().nbytes() == 240 and x[:0].untyped_storage().nbytes() == 0
    assert tg.empty(0, device="meta").set_(tg.UntypedStorage(16, device="meta")).shape == (4,)
    with pytest.raises(RuntimeError):
        tg.UntypedStorage(device="cuda")


def test_the_class_of_a_storage():
    assert tg.ones(2).storage_type() is tg.FloatStorage and tg.ones(2).byte().storage_type() is tg.ByteStorage
    assert tg.ones(2, dtype=tg.uint16).storage_type() is None and tg.ones(2, device="meta").storage_type() is None


def test_a_tensor_of_another_dtype_than_its_storage_is_refused():
    numbers = tg.tensor([1, 2]).storage()
    assert tg.tensor(numbers).dtype is tg.int64 and tg.tensor(numbers, dtype=tg.int64).tolist() == [1, 2]
    assert tg.tensor(tg.ones(2).untyped_storage()).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Expected a Storage of type Int or an UntypedStorage, but got Long"):
        tg.tensor(numbers, dtype=tg.int32)
