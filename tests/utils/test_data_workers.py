"""DataLoader with worker processes: what comes in which order, what is raised, what stays behind."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.utils import data


class Numbers(data.Dataset):
    """Calls ``act(index)`` for each item."""

    def __init__(self, length=11, act=lambda index: index):
        self.length, self.act = length, act

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.act(index)


class Everything(data.Dataset):
    """Importable, for workers that are spawned."""

    def __len__(self):
        return 9

    def __getitem__(self, index):
        info = data.get_worker_info()
        return {
            "tensor": tg.full((400,), index),
            "array": np.full(3, index),
            "drawn": (tg.rand(()), np.random.rand(), random.random()),
            "worker": (info.id, info.num_workers, info.seed, tg.get_num_threads()),
        }


class Shards(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(info.id, 11 - 3 * info.id, info.num_workers))


def loader(act=lambda index: index, length=11, **options):
    return data.DataLoader(Numbers(length, act), num_workers=2, **options)


def lists(batches):
    return [batch.tolist() for batch in batches]


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    files = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    yield
    collect()
    assert not multiprocessing.active_children()
    if files:
        assert not [f for f in set(os.listdir("/dev/shm")) - files if "tinygrad" in f]


# ---- order and contents --------------------------------------------------------------------------------------------


def test_batches_come_in_order_whoever_is_slow():
    slow = lambda index: time.sleep(0.05 * (index < 4)) or index
    batches = loader(slow, batch_size=4)
    assert lists(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert len(batches) == 3
    assert sorted(lists(loader(slow, batch_size=4, in_order=False))) == lists(batches)


@pytest.mark.parametrize("factor", [1, 2, 5, 200])
def test_ahead_is_loaded_as_much_as_asked(factor):
    made = tg.zeros(40).share_memory_()
    items = iter(loader(lambda index: made[index].fill_(1) and index, 40, batch_size=1, prefetch_factor=factor))
    next(items)
    time.sleep(0.2)
    assert 1 <= made.sum() <= 2 * factor + 1
    assert len(list(items)) == 39


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_and_arrays_come_through_memory_with_seeds_of_their_own(method):
    tg.manual_seed(5)
    base = int(tg.empty((), dtype=tg.int64).random_().item())
    tg.manual_seed(5)
    batches = list(data.DataLoader(Everything(), 4, num_workers=2, multiprocessing_context=method))
    assert [b["tensor"].sum().item() for b in batches] == [400 * 6, 400 * 22, 400 * 8]
    assert [b["array"].shape for b in batches] == [(4, 3), (4, 3), (1, 3)]
    for number, b in enumerate(batches):
        worker, workers, seed, threads = (x[0].item() for x in b["worker"])
        assert (worker, workers, seed, threads) == (number % 2, 2, base + number % 2, 1)
    assert batches[0]["drawn"][0][0] == tg.rand((), generator=tg.Generator().manual_seed(base))
    batches[0]["tensor"].add_(1)  # memory of its own
    assert data.get_worker_info() is None


def test_orders_and_draws_are_pytorchs():
    torch = pytest.importorskip("torch")

    def drawn(library):
        class Draws(library.utils.data.Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, index):
                return index, library.rand(()), np.random.rand(), random.random()

        library.manual_seed(11)
        for options in ({}, {"persistent_workers": True}):
            made = library.utils.data.DataLoader(Draws(), batch_size=3, shuffle=True, num_workers=2, **options)
            for _ in range(2):
                yield [[column.tolist() for column in batch] for batch in made]

    assert list(drawn(tg)) == list(drawn(torch))


def test_streams_are_read_by_each_worker():
    assert lists(data.DataLoader(Shards(), 3, num_workers=2)) == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7]]
    assert lists(data.DataLoader(Shards(), 3, num_workers=2, drop_last=True)) == [[0, 2, 4], [1, 3, 5], [6, 8, 10]]
    assert list(data.DataLoader(Shards(), None, num_workers=2)) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
    both = data.ChainDataset([Shards(), Shards()])
    assert sorted(i for batch in lists(data.DataLoader(both, 3, num_workers=2)) for i in batch) == sorted(
        [*range(9), 10] * 2
    )


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": data.SubsetRandomSampler([3, 1, 2])},
        {"sampler": data.WeightedRandomSampler([1.0] * 11, 7)},
        {"sampler": data.RandomSampler(range(11), replacement=True, num_samples=6)},
        {"batch_sampler": data.BatchSampler(data.SequentialSampler(range(11)), 4, True)},
        {"shuffle": True, "batch_size": 2, "drop_last": True},
        {"batch_size": None, "collate_fn": lambda item: tg.tensor(item)},
    ],
)
def test_samplers_give_the_order_of_one_process(options):
    tg.manual_seed(1)
    alone = lists(data.DataLoader(Numbers(), **options))
    tg.manual_seed(1)
    assert lists(loader(**options)) == alone


def test_a_row_of_a_large_table_is_sent_without_the_table():
    table = tg.arange(300_000.0).view(3, -1)
    rows = list(data.DataLoader(table, batch_size=None, num_workers=2, collate_fn=lambda row: row))
    assert [r.untyped_storage().nbytes() for r in rows] == [400_000] * 3
    assert all(tg.equal(row, table[i]) for i, row in enumerate(rows))


def test_large_lists_that_are_no_tensors_come_too():
    strings = list(loader(lambda index: "x" * 300_000, batch_size=2, prefetch_factor=10))
    assert [len(batch) for batch in strings] == [2] * 5 + [1] and len(strings[0][0]) == 300_000
    long_index = data.BatchSampler(data.SequentialSampler(range(400_000)), 100_000, False)
    assert [b.item() for b in loader(batch_sampler=long_index, collate_fn=lambda b: tg.tensor(len(b)))] == [100_000] * 4


def test_many_batches_are_kept_without_open_files():
    kept = list(loader(lambda index: tg.zeros(2000), 300, batch_size=1, prefetch_factor=100))
    assert len(kept) == 300
    if os.path.isdir("/proc/self/fd"):
        assert len(os.listdir("/proc/self/fd")) < 100


def test_a_batch_can_be_sent_on():
    import tinygrad_ext.multiprocessing as mp

    batch = next(iter(loader(lambda index: tg.ones(3000), batch_size=2)))
    here, there = mp.get_context("fork").Pipe()
    here.send(batch)
    back = there.recv()
    back.zero_()
    assert back.untyped_storage() == batch.untyped_storage() and batch.sum() == 0


# ---- workers over several passes -----------------------------------------------------------------------------------


def test_persistent_workers_stay_and_begin_anew():
    kept = loader(lambda index: os.getpid(), batch_size=3, persistent_workers=True)
    first = iter(kept)
    pids = {b[0].item() for b in first}
    assert len(pids) == 2
    again = iter(kept)
    next(again)  # and left: what is under way is not mixed with the next pass
    batches = [b[0].item() for b in kept]
    assert len(batches) == 4 and set(batches) == pids
    others = loader(lambda index: os.getpid(), batch_size=3)
    assert {b[0].item() for b in others}.isdisjoint({b[0].item() for b in others})
    assert lists(data.DataLoader(Shards(), 3, num_workers=2, persistent_workers=True))[3] == [7]


def test_worker_init_fn_runs_after_the_seed():
    seen = []
    made = loader(lambda index: seen[0], batch_size=4, worker_init_fn=lambda number: seen.append(number * 10))
    assert lists(made) == [[0] * 4, [10] * 4, [0] * 3]


def test_a_loader_that_is_left_ends_its_workers():
    items = iter(loader(batch_size=1))
    next(items)
    pids = [child.pid for child in multiprocessing.active_children()]
    assert len(pids) == 2
    del items
    collect()
    assert not multiprocessing.active_children()


def test_a_forked_child_leaves_the_parents_workers_alone():
    items = iter(loader(batch_size=1))
    next(items)
    child = os.fork()
    if child == 0:
        items._stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(items)) == 10


# ---- errors --------------------------------------------------------------------------------------------------------


class Strange(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def raising(error):
    def act(index):
        if index == 5:
            raise error
        return index

    return act


@pytest.mark.parametrize("error", [ValueError("no such row"), KeyError("no such row"), IndexError("no such row")])
def test_what_a_worker_raises_is_raised_with_its_traceback(error):
    with pytest.raises(type(error)) as caught:
        list(loader(raising(error), batch_size=2))
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 0.\nOriginal Traceback (most ")
    assert "in act\n" in text and "no such row" in text


def test_after_an_error_the_next_batches_come():
    items = iter(loader(raising(ValueError("once")), batch_size=2))
    got = [next(items).tolist(), next(items).tolist()]
    with pytest.raises(ValueError, match="once"):
        next(items)
    assert got + lists(items) == [[0, 1], [2, 3], [6, 7], [8, 9], [10]]


def test_exceptions_that_cannot_be_made_or_sent_become_runtime_errors():
    class Local(Exception):
        def __reduce__(self):
            raise AssertionError("cannot be pickled")

    with pytest.raises(RuntimeError, match=r"Caught Strange in DataLoader worker process 0\.\nOriginal Traceback"):
        list(loader(raising(Strange("no", "row")), batch_size=2))
    with pytest.raises(RuntimeError, match=r"Caught Local in DataLoader worker process 0\.\n(.|\n)*cannot go"):
        list(loader(raising(Local("cannot go")), batch_size=2))
    with pytest.raises((AttributeError, RuntimeError), match=r"(?i)in DataLoader worker process 0\.(.|\n)*pickle"):
        list(loader(lambda index: lambda: index, collate_fn=lambda batch: batch))


def test_a_result_with_a_graph_is_refused():
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        list(loader(lambda index: tg.ones(2, requires_grad=True) * 2, collate_fn=lambda batch: batch))


def test_errors_of_the_start_come_with_the_first_batch():
    with pytest.raises(ZeroDivisionError, match="in DataLoader worker process"):
        list(loader(worker_init_fn=lambda number: 1 / 0))

    class Broken(data.IterableDataset):
        def __iter__(self):
            raise LookupError("no stream")

    with pytest.raises(LookupError, match="no stream"):
        list(data.DataLoader(Broken(), num_workers=2))


def test_an_error_of_the_sampler_is_the_callers():
    def sampler():
        yield from range(3)
        raise OSError("no more numbers")

    with pytest.raises(OSError, match="no more numbers"):
        list(loader(sampler=sampler()))


@pytest.mark.parametrize(
    "end, message",
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: SIGKILL, perhaps for want of memory"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "is killed by signal: SIGTERM"),
        (lambda: os._exit(7), "exited unexpectedly with exit code 7"),
        (lambda: sys.exit(0), "exited unexpectedly with exit code 0"),
    ],
)
def test_a_worker_that_ends_is_told(end, message):
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) {message}"):
        list(loader(lambda index: end() if index == 5 else tg.zeros(3000), batch_size=1))
    collect()
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_from_outside_is_told():
    items = iter(loader(lambda index: time.sleep(0.3) or index, batch_size=1))
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="is killed by signal: SIGKILL"):
        list(items)
    assert list(items) == []


def test_a_worker_that_hangs_is_told_after_the_timeout():
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        list(loader(lambda index: time.sleep(3600 * (index == 3)), timeout=0.5, collate_fn=lambda batch: batch))
    collect()
    assert multiprocessing.active_children() == []


def test_workers_end_when_their_parent_is_killed():
    code = """
import os, signal, tinygrad_ext as tg
from tinygrad_ext.utils import data
class Rows(data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index): return tg.zeros(5000)
items = iter(data.DataLoader(Rows(), num_workers=2, multiprocessing_context="fork"))
next(items)
import multiprocessing
print(*[child.pid for child in multiprocessing.active_children()], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    end = time.monotonic() + 8
    for pid in map(int, done.stdout.split()):
        while alive(pid):
            assert time.monotonic() < end, "a worker outlives its parent"
            time.sleep(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    "options, error, message",
    [
        (
            {"multiprocessing_context": "thread"},
            ValueError,
            "valid start method in .*='thread'",
        ),
        ({"multiprocessing_context": 3}, TypeError, "valid context object"),
        ({"prefetch_factor": -1}, ValueError, "prefetch_factor option should be non-negative"),
    ],
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        loader(**options)


def test_more_workers_than_cores_are_warned_of():
    with pytest.warns(UserWarning, match="will create 5000 worker processes"):
        data.DataLoader(Numbers(), num_workers=5000)


def test_iterators_cannot_be_pickled():
    import pickle

    items = iter(loader())
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(items)
