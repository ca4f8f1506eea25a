"""No file makes load crash, hang, take memory beyond its own size, or give a tensor that reaches beyond its memory."""

import io
import pickle
import random
import tracemalloc

import pytest

import tinygrad_ext as tg
import tinygrad_ext.sparse  # its code counts as memory where it is loaded first
from tests.helpers import hostile_archives as hostile
from tests.helpers import pickles
from tinygrad_ext.archive import object_tree, pytorch
from tinygrad_ext.config import memory_stats, reset_peak_memory_stats

ARCHIVES = dict(hostile.archives())


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_lies_is_refused(name):
    with pytest.raises(RuntimeError, match="load: "):
        tg.load(io.BytesIO(ARCHIVES[name]))


@pytest.mark.parametrize("name", ARCHIVES)
def test_refusing_takes_little_memory(name):
    data = ARCHIVES[name]
    reset_peak_memory_stats()
    before = memory_stats()["allocated"]
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError):
            tg.load(io.BytesIO(data), map_location="meta")
        python = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert memory_stats()["peak"] - before <= len(data) + 1024
    assert python < 200 * len(data) + 1_000_000 or ("text turned" in name and python < 300_000_000)


def _good():
    file = io.BytesIO()
    state = {"a": tg.arange(6.0).reshape(2, 3).t(), "b": [1, tg.ones(2, dtype=tg.complex64)], ("c", 1): (2, {3: None})}
    state["whole"], state["row"] = (base := tg.zeros(4, 4)), base[1]
    tg.save(state, file)
    yield file.getvalue()
    yield hostile.pytorch(hostile.rebuilt((2, 3), (3, 1), 0))
    yield hostile.pytorch(hostile.pickled({"a": [pickles.FLOATS, (1, "x")], 2: {"b": None}}))


def _touched(value, seen):
    """Read every element that the value holds, as long as there are few."""
    if isinstance(value, tg.Tensor):
        if max(value.shape, default=0) < 1000 and value.numel() < 10_000 and not value.is_meta:
            value.tolist()
    elif isinstance(value, (dict, list, tuple)) and id(value) not in seen:
        seen.add(id(value))
        for part in value.values() if isinstance(value, dict) else value:
            _touched(part, seen)


def test_what_is_read_of_a_changed_archive_lies_inside_its_memory():
    rng, read = random.Random(0), 0
    for data in _good():
        _touched(tg.load(io.BytesIO(data)), set())
        for changed in hostile.mutations(data, rng, 400):
            try:
                found = tg.load(io.BytesIO(changed))
            except RuntimeError:
                continue
            read += 1
            _touched(found, set())
    assert read > 50


# ---- budgets


def test_more_objects_than_allowed_are_refused_and_can_be_allowed():
    file = io.BytesIO()
    tg.save(list(range(1000)), file)
    for data in (file.getvalue(), hostile.pytorch(hostile.pickled(list(range(1000))))):
        with pytest.raises(RuntimeError, match=r"more than 500 objects.*load\(\.\.\., max_objects=5000\)"):
            tg.load(io.BytesIO(data), max_objects=500)
        assert len(tg.load(io.BytesIO(data), max_objects=5000)) == 1000


def test_a_key_of_shared_tuples_is_refused_before_it_is_hashed():
    for archive in ("a key of 2**40 tuples", "a key nested 100,000 deep", "an element of 2**40 tuples"):
        with pytest.raises(
            RuntimeError, match="a key, an element of a set or what is called with is built of more than 1,000 values"
        ):
            tg.load(io.BytesIO(ARCHIVES[archive]))
    deep = pickle.dumps({((1, 2), ("a", (3,))): 1}, 2)
    assert tg.load(io.BytesIO(hostile.pytorch(deep))) == {((1, 2), ("a", (3,))): 1}


def test_keys_that_take_long_to_hash_are_charged_each_time():
    big = 1 << 800_000
    keys = b"(" + pickle.dumps(big, 2)[2:-1] + b"q\x00K\x01" + b"h\x00K\x01" * 20_000 + b"u."
    with pytest.raises(RuntimeError, match="more than 100,000 objects"):
        tg.load(io.BytesIO(hostile.pytorch(b"\x80\x02}" + keys)), max_objects=100_000)


@pytest.mark.parametrize("on", [None, "cpu", "meta"])
def test_a_value_of_shared_tuples_is_walked_once(on):
    tensor = hostile.rebuilt((6,), (1,), 0)[2:-1]
    value = b"\x80\x02" + pickles.nest(60, b"(" + tensor + b"t") + b"."
    found = tg.load(io.BytesIO(hostile.pytorch(value)), map_location=on)
    for _ in range(60):
        assert found[0] is found[1]
        found = found[0]
    assert found[0].device.type == (on or "cpu")


def test_an_object_that_contains_itself_or_has_no_bottom_is_refused():
    for name, words in (("a list that holds itself", "contains itself"), ("a list nested 10,000 deep", "levels deep")):
        with pytest.raises(RuntimeError, match=words):
            tg.load(io.BytesIO(ARCHIVES[name]), map_location="cpu")


def test_what_would_be_saved_for_ever_is_refused(monkeypatch):
    monkeypatch.setattr(object_tree, "MOST_OBJECTS", 10_000)
    shared = []
    for _ in range(60):
        shared = [shared, shared]
    with pytest.raises(ValueError, match="more than 10,000 values, counting what is shared each time"):
        tg.save(shared, io.BytesIO())


class _Interrupted(io.BytesIO):
    """A file in whose n-th read the user presses Ctrl-C."""

    def __init__(self, data, n):
        super().__init__(data)
        self.left = n

    def _press(self):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def read(self, *args):
        self._press()
        return super().read(*args)

    def readinto(self, memory):
        self._press()
        return super().readinto(memory)


def test_reading_can_be_interrupted_at_every_point():
    for data in _good():
        n = 0
        while True:
            try:
                tg.load(_Interrupted(data, n))
                break
            except KeyboardInterrupt:
                n += 1
        assert n >= 3


def test_a_pickle_can_be_interrupted_between_any_two_opcodes(monkeypatch):
    spend, calls = pytorch._Charged.__getitem__, []

    def pressed(self, code):
        calls.append(code)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return spend(self, code)

    monkeypatch.setattr(pytorch._Charged, "__getitem__", pressed)
    with pytest.raises(KeyboardInterrupt):
        tg.load(io.BytesIO(hostile.pytorch(hostile.rebuilt((6,), (1,), 0))))


def test_what_the_package_safetensors_refuses_is_refused():
    import safetensors

    refused = 0
    for changed in hostile.mutations(next(_good()), random.Random(1), 500):
        try:
            safetensors.deserialize(changed)
        except safetensors.SafetensorError:
            refused += 1
            with pytest.raises(RuntimeError):
                tg.load(io.BytesIO(changed))
    assert refused > 50
