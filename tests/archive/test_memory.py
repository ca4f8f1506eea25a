"""Saving and loading move numbers between the file and the tensors' own memory, and nowhere else."""

import io
import tracemalloc

import pytest

import tinygrad_ext as tg
from tests.helpers import hostile_archives as hostile
from tinygrad_ext.archive import layout
from tinygrad_ext.config import memory_stats, reset_peak_memory_stats

MB = 1 << 20


def _extra(call):
    """(result, bytes of tensors, bytes of Python) that a call needs at its peak."""
    reset_peak_memory_stats()
    before = memory_stats()["allocated"]
    tracemalloc.start()
    try:
        result = call()
        return result, memory_stats()["peak"] - before, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tg.ones(8 * MB // 4),
        lambda: [(base := tg.ones(8 * MB // 4)), base[1:]],
        lambda: tg.ones(MB, dtype=tg.complex64),
        lambda: {str(i): tg.ones(MB // 4) for i in range(8)},
    ],
    ids=["tensor", "views", "complex", "many"],
)
def test_saving_takes_no_memory(make, tmp_path):
    value = make()
    _, tensors, python = _extra(lambda: tg.save(value, tmp_path / "x"))
    assert tensors == 0 and python < MB // 2


def test_saving_what_is_not_row_major_takes_two_pieces_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "PIECE", 1 << 14)
    numbers = tg.arange(1 << 18)
    for t in (numbers.view(-1, 8).t()[:, ::2], numbers.view(2, -1).t(), numbers.view(1, -1)[:, ::2]):
        _, tensors, python = _extra(lambda t=t: tg.save(t, tmp_path / "x"))
        assert tensors <= 2 << 14 and python < MB // 2
        assert tg.load(tmp_path / "x").equal(t)


def test_loading_takes_the_memory_of_the_tensors(tmp_path):
    tg.save({"a": tg.ones(8 * MB // 4), "b": tg.ones(2 * MB)}, tmp_path / "x")
    _, tensors, python = _extra(lambda: tg.load(tmp_path / "x"))
    assert 16 * MB <= tensors < 17 * MB and python < MB // 2
    (tmp_path / "x.pt").write_bytes(hostile.pytorch(hostile.rebuilt((2 * MB,), (1,), 0), bytes(8 * MB)))
    _, tensors, python = _extra(lambda: tg.load(tmp_path / "x.pt"))
    assert 8 * MB <= tensors < 9 * MB and python < MB // 2


def test_a_file_of_a_program_gets_no_view_of_memory_that_may_change():
    class Keeps:
        parts = []

        def write(self, data):
            self.parts.append(data)

    t = tg.ones(3)
    tg.save(t, Keeps())
    t.zero_()
    assert tg.load(io.BytesIO(b"".join(Keeps.parts))).tolist() == [1, 1, 1]


def test_a_raw_file_that_takes_a_few_bytes_at_a_time_gets_all():
    class Slow(io.RawIOBase):
        def __init__(self):
            self.parts = []

        def writable(self):
            return True

        def write(self, data):
            self.parts.append(bytes(data[:7]))
            return len(self.parts[-1])

    file = Slow()
    tg.save(tg.arange(100), file)
    assert tg.load(io.BytesIO(b"".join(file.parts))).tolist() == list(range(100))


def test_a_file_that_cannot_seek_or_read_into_memory_is_read():
    class Stream:
        def __init__(self, data):
            self.read = io.BytesIO(data).read

    class Halves(io.BytesIO):
        def readinto(self, memory):
            return super().readinto(memory[: max(1, len(memory) // 2)])

    file = io.BytesIO()
    tg.save(tg.arange(100), file)
    for again in (Stream(file.getvalue()), Halves(file.getvalue())):
        assert tg.load(again).tolist() == list(range(100))
    with pytest.raises(TypeError, match="'rb'"):
        tg.load(io.StringIO("text"))


def test_a_file_is_read_from_its_present_position():
    for data in (hostile.tensors([["x", "float32", [6], [1], 0, False, False]]), hostile.pytorch(hostile.pickled(0))):
        file = io.BytesIO(b"before" + data)
        file.seek(6)
        tg.load(file)


# ---- mapped


def test_a_mapped_file_is_read_when_it_is_used_and_never_written(tmp_path):
    tg.save({"a": tg.arange(6.0), "b": [tg.ones(3, dtype=tg.bool), tg.ones(2, dtype=tg.complex128)]}, tmp_path / "x")
    (tmp_path / "x.pt").write_bytes(hostile.pytorch(hostile.rebuilt((6,), (1,), 0)))
    before = (tmp_path / "x").read_bytes()
    found, tensors, python = _extra(lambda: tg.load(tmp_path / "x", mmap=True))
    assert tensors == 0
    found["a"].add_(1)
    assert found["a"].tolist() == [1, 2, 3, 4, 5, 6] and found["b"][0].all() and found["b"][1].sum() == 2
    assert (tmp_path / "x").read_bytes() == before
    assert tg.load(tmp_path / "x.pt", mmap=True).tolist() == [0] * 6


def test_only_a_path_is_mapped():
    with pytest.raises(ValueError, match="file path"):
        tg.load(io.BytesIO(b""), mmap=True)


def test_bytes_that_lie_askew_are_copied_and_not_mapped(tmp_path):
    entries = {"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}
    entries["b"] = {"dtype": "F32", "shape": [2], "data_offsets": [3, 11]}
    (tmp_path / "x").write_bytes(hostile.safetensors(entries, bytes(11)))
    assert tg.load(tmp_path / "x", mmap=True)["b"].tolist() == [0, 0]
