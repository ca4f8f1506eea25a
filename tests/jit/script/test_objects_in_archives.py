"""Objects that a module holds are saved with it, and come back as they were, with and without their classes."""

import enum
import io
import subprocess
import sys
from typing import NamedTuple

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.graph import held
from tinygrad_ext.graph.archive import info


class Speed(enum.Enum):
    SLOW = 1
    FAST = 5


class Limits(NamedTuple):
    low: int
    scale: tg.Tensor


class Words:
    def __init__(self, words: list[str]):
        self.numbers: dict[str, int] = {}
        for word in words:
            self.numbers[word] = len(self.numbers)
        self.asked = 0

    def number(self, word: str) -> int:
        self.asked += 1
        if word in self.numbers:
            return self.numbers[word]
        return len(self.numbers)

    @property
    def size(self) -> int:
        return len(self.numbers)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = Words(["a", "b"])
        self.all = [self.words, Words(["c"])]
        self.speed = Speed.FAST
        self.limits = Limits(-1, tg.tensor([2.0, 3.0], requires_grad=True))
        self._by_speed = {Speed.SLOW: 10, Speed.FAST: 20}

    def forward(self, words: list[str]):
        found = self._by_speed[self.speed] + self.limits.low
        for word in words:
            found += self.words.number(word)
        if self.speed == Speed.FAST and isinstance(self.words, Words):
            found += 100 * self.all[0].asked + 1000 * self.all[1].number("c")
        return found * self.limits.scale, self.words.size


def saved(module):
    file = io.BytesIO()
    jit.save(module, file)
    file.seek(0)
    return file


def test_objects_named_tuples_and_enums_come_back():
    scripted = jit.script(Reader())
    file = saved(scripted)
    loaded = jit.load(file)
    assert info(io.BytesIO(file.getvalue()))["state"]["words"] == "Words"
    for row in (["a", "z"], ["b"]):
        expected, size = scripted(row)
        found, same_size = loaded(row)
        assert found.equal(expected) and size == same_size == 2
    assert loaded.speed is Speed.FAST and loaded.limits.low == -1


def test_what_is_shared_is_shared_afterwards():
    loaded = jit.load(saved(jit.script(Reader())))
    assert loaded.words is loaded.all[0] and loaded.all[1] is not loaded.words
    again = jit.load(saved(loaded))
    again(["a"])
    assert again.all[0].asked == 1 and loaded.words.asked == 0


CODE = """
import io, sys
from tinygrad_ext import jit
loaded = jit.load(sys.argv[1])
found, size = loaded(["a", "z"])
assert found.tolist() == [2 * 221.0, 3 * 221.0] and size == 2 and loaded.words.asked == 2
assert type(loaded.words).__name__ == "Words" and loaded.speed.name == "FAST" and loaded.limits.low == -1
found.sum().backward()
assert loaded.limits.scale.grad.tolist() == [221.0, 221.0]
file = io.BytesIO()
jit.save(loaded, file)
file.seek(0)
again = jit.load(file)
assert again(["b"])[0].tolist() == [2 * 320.0, 3 * 320.0] and again.words is again.all[0]
"""


def test_without_their_classes(tmp_path):
    path = tmp_path / "reader.tgx"
    jit.save(jit.script(Reader()), path)
    done = subprocess.run([sys.executable, "-c", CODE, str(path)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Chain:
    def __init__(self, value: int):
        self.value = value
        self.rest: list[Chain] = []


class Links(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.first = Chain(0)
        last = self.first
        for i in range(count):
            last.rest.append(Chain(i))
            last = last.rest[0]
        last.rest.append(self.first)

    def forward(self) -> int:
        at, total = self.first.rest[0], 0
        while at is not self.first:
            total += at.value
            at = at.rest[0]
        return total


def test_objects_that_lead_back_to_themselves_and_far():
    assert jit.load(saved(jit.script(Links(2000))))() == sum(range(2000))


class Sly:
    dropped = []

    def __init__(self, path: str):
        self.path = path

    def __del__(self):
        self.dropped.append(self.path)

    def __setattr__(self, name, value):
        self.__dict__[name] = value
        self.dropped.append(value)


def test_loading_calls_nothing_of_a_class():
    table = [["object", held.word_of(Sly), [["path", "x"]]]], {"a": (0,)}
    made = held.made({held.NAME: list(table)})
    assert made["a"].path == "x" and Sly.dropped == []
    del made
    assert Sly.dropped == []


@pytest.mark.parametrize(
    "rows, refs",
    [
        ([["object", "Words", [["__class__", 1]]]], {"a": (0,)}),
        ([["object", "Words", [["x", (7,)]]]], {"a": (0,)}),
        ([["tuple", [(0,)]]], {"a": (0,)}),
        ([["dict", [[(0,), 1]]]], {"a": (0,)}),
        ([["set", [1]]], {"a": (0,)}),
        ([["list", [[1]]]], {"a": (0,)}),
        ([["named", "Limits", "low high", [1, 2]]], {"a": (0,)}),
        ([["enum", "Speed", "NONE", 1]], {"a": (0,)}),
        ([[]], {"a": (0,)}),
        ([["list", []]], {"b": (0,)}),
    ],
)
def test_a_table_that_lies_is_refused(rows, refs):
    held.word_of(Limits), held.word_of(Speed)  # known: fields and members are others
    with pytest.raises((ValueError, TypeError, LookupError)):
        held.made({held.NAME: [rows, refs], "b": 1})
