"""Tensors over the memory of a file."""

import numpy as np
import pytest

import tinygrad_ext as tg


def test_shared_tensors_write_to_the_file_and_others_keep_their_writes(tmp_path):
    path = tmp_path / "numbers"
    whole = tg.from_file(str(path), shared=True, size=6, dtype=tg.float64)
    assert whole.tolist() == [0.0] * 6 and path.stat().st_size == 48
    whole.copy_(tg.arange(6))
    assert np.fromfile(path).tolist() == [0, 1, 2, 3, 4, 5]
    own = tg.from_file(path, size=3, dtype=tg.float64)
    own[0] = 9
    part = tg.from_file(path, True, 2, dtype=tg.float64)
    part[1] = -1
    assert own.tolist() == [9, 1, 2] and whole.tolist() == [0, -1, 2, 3, 4, 5]
    assert np.fromfile(path).tolist() == [0, -1, 2, 3, 4, 5]


def test_shared_files_become_longer_and_no_elements_are_a_tensor_too(tmp_path):
    path = tmp_path / "numbers"
    np.array([1, 2], "i2").tofile(path)
    assert tg.from_file(path, True, 4, dtype=tg.int16).tolist() == [1, 2, 0, 0] and path.stat().st_size == 8
    assert tg.from_file(path, dtype=tg.int16).shape == (0,)
    assert tg.from_file(path, size=1).dtype is tg.float32


def test_storages_over_shared_files_make_them(tmp_path):
    path = tmp_path / "bytes"
    storage = tg.UntypedStorage.from_file(str(path), shared=True, nbytes=5)
    storage[1] = 7
    assert path.read_bytes() == b"\0\7\0\0\0" and storage.filename == str(path)
    assert tg.UntypedStorage.from_file(str(path), nbytes=2).tolist() == [0, 7]
    assert tg.UntypedStorage.from_file(str(path)).nbytes() == 0


def test_what_shows_a_shared_file_knows_its_name(tmp_path):
    path = str(tmp_path / "numbers")
    whole = tg.from_file(path, shared=True, size=4)
    assert whole.untyped_storage().filename == path == whole[1:].untyped_storage().filename
    assert whole.view(tg.int32).untyped_storage().filename == path
    for other in (tg.from_file(path, size=4), whole.clone(), tg.ones(2), tg.ones(2, device="meta")):
        assert other.untyped_storage().filename is None
    assert tg.from_numpy(np.memmap(path, "f4")).untyped_storage().filename is None


def test_what_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="unable to open .*nothing: there is no such file"):
        tg.from_file(tmp_path / "nothing", size=1)
    with pytest.raises(OSError, match="nothing"):
        tg.from_file(tmp_path / "nothing" / "below", shared=True, size=1)
    (tmp_path / "short").write_bytes(b"1234")
    with pytest.raises(RuntimeError, match="has 4 bytes, and 8 are wanted"):
        tg.from_file(tmp_path / "short", size=2)
    with pytest.raises(RuntimeError, match="size must not be negative, got -1"):
        tg.from_file(tmp_path / "short", size=-1)


def test_results_are_pytorchs(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "numbers"
    theirs = torch.from_file(str(path), shared=True, size=3, dtype=torch.int32)
    theirs[:] = torch.tensor([4, 5, 6])
    assert tg.from_file(path, size=3, dtype=tg.int32).tolist() == theirs.tolist()
