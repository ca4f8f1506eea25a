"""Tensors of other classes in files for any object: named by PyTorch's functions, and read where the class is safe."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import serialization


class Marked(tg.Tensor):
    """A tensor with attributes, which sees what is done with it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Told(tg.Tensor):
    """One that says itself how it is pickled."""

    def __reduce_ex__(self, protocol):
        return Told._again, (self.tolist(),)

    @staticmethod
    def _again(numbers):
        return tg.tensor(numbers).as_subclass(Told)


def _saved(obj):
    file = io.BytesIO()
    tg.save(obj, file, format="object")
    file.seek(0)
    return file


def test_they_come_back_with_memory_and_attributes():
    base = tg.arange(6.0).reshape(2, 3)
    one = base.as_subclass(Marked)
    one.told = {"a": 1}
    view = base[:, 1:].as_subclass(Marked)
    file = _saved([one, view])
    assert b"tinygrad_ext" not in file.getvalue()
    with pytest.raises(RuntimeError, match="Marked"):
        tg.load(file)
    for safe in (True, False):
        file.seek(0)
        with serialization.safe_globals([Marked]):
            first, second = tg.load(file, weights_only=safe)
        assert type(first) is type(second) is Marked and first.told == {"a": 1}
        first[0, 1] = 9
        assert second.tolist() == [[9, 2], [4, 5]] and second.stride() == (3, 1)


def test_how_a_class_says_that_it_is_pickled_counts():
    found = tg.load(_saved(tg.ones(2).as_subclass(Told)), weights_only=False)
    assert type(found) is Told and found.tolist() == [1, 1]


def test_pytorch_reads_the_numbers():
    torch = pytest.importorskip("torch")
    file = _saved(tg.arange(3.0).as_subclass(Marked))
    with torch.serialization.safe_globals([(torch.Tensor, f"{__name__}.Marked")]):
        assert torch.load(file).tolist() == [0, 1, 2]
