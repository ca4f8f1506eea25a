"""Datasets, samplers, DataLoader, collating."""

from collections import namedtuple

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import data


class Stream(data.IterableDataset):
    def __init__(self, size=5):
        self.size = size

    def __iter__(self):
        return iter(range(self.size))


class Numbers(data.Dataset):
    def __getitem__(self, index):
        return index

    def __len__(self):
        return 10


class Many(Numbers):
    def __getitems__(self, indices):
        return [10 * index for index in indices]


class Short(Numbers):
    def __getitems__(self, indices):
        return indices[:-1]


def test_datasets_combine():
    rows = data.TensorDataset(tg.arange(6), tg.arange(6) * 2)
    assert [int(part) for part in rows[2]] == [2, 4] and len(rows) == 6
    both = rows + Numbers()
    assert len(both) == 16 and both[-1] == 9 and both[6] == 0
    part = data.Subset(Numbers(), [3, 1])
    assert list(part[i] for i in range(len(part))) == [3, 1] and part.__getitems__([1, 0]) == [1, 3]
    assert list(Stream(2) + Stream(1)) == [0, 1, 0]
    assert data.StackDataset(Numbers(), Numbers())[4] == (4, 4)
    assert data.StackDataset(a=Numbers())[4] == {"a": 4}
    assert data.StackDataset(Numbers(), Many()).__getitems__([4, 1]) == [(4, 40), (1, 10)]
    assert data.StackDataset(a=Many()).__getitems__([2]) == [{"a": 20}]
    assert data.Dataset[int] is data.Dataset


@pytest.mark.parametrize("lengths", [[6, 4], [0.5, 0.25, 0.25], [0.7, 0.3]])
def test_random_split_equals_pytorchs(lengths):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    ours = data.random_split(Numbers(), lengths, generator=tg.Generator().manual_seed(4))
    theirs = torch.utils.data.random_split(range(10), lengths, generator=torch.Generator().manual_seed(4))
    assert [list(part.indices) for part in ours] == [list(part.indices) for part in theirs]


SAMPLERS = {
    "permutation": lambda m, **g: m.RandomSampler(range(10), **g),
    "several permutations": lambda m, **g: m.RandomSampler(range(10), num_samples=25, **g),
    "with replacement": lambda m, **g: m.RandomSampler(range(10), replacement=True, num_samples=40, **g),
    "subset": lambda m, **g: m.SubsetRandomSampler([5, 3, 8], **g),
    "weighted": lambda m, **g: m.WeightedRandomSampler([1.0, 2.0, 3.0], 20, **g),
    "weighted without replacement": lambda m, **g: m.WeightedRandomSampler([1.0, 2.0, 3.0], 3, False, **g),
}


def seeded(package, draw):
    """Return what ``draw(package)`` gives after a seed, and what the default generator gives next."""
    package.manual_seed(7)
    return draw(package), package.rand(2).tolist()


def equal_to_pytorchs(draw):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    return seeded(tg, draw) == seeded(torch, draw)


@pytest.mark.parametrize("name", SAMPLERS)
def test_random_orders_equal_pytorchs(name):
    make = SAMPLERS[name]
    assert equal_to_pytorchs(lambda package: [list(make(package.utils.data)) for _ in range(2)])

    def passes(package):
        sampler = make(package.utils.data, generator=package.Generator().manual_seed(1))
        return len(sampler), list(sampler), list(sampler)

    assert equal_to_pytorchs(passes)


@pytest.mark.parametrize("own_generator", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_and_draws_equal_pytorchs(shuffle, own_generator):
    def passes(package):
        generator = package.Generator().manual_seed(3) if own_generator else None
        loader = package.utils.data.DataLoader(list(range(10)), 3, shuffle=shuffle, generator=generator)
        return [[batch.tolist() for batch in loader] for _ in range(2)]

    assert equal_to_pytorchs(passes)


def test_batches():
    batches = [batch.tolist() for batch in data.DataLoader(Numbers(), batch_size=4)]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    loader = data.DataLoader(Numbers(), 4, drop_last=True)
    assert len(loader) == 2 == len(list(loader))
    assert list(data.DataLoader(Numbers(), batch_size=None))[:2] == [0, 1]
    loader = data.DataLoader(Numbers(), batch_sampler=[[1, 2], [3]], collate_fn=list)
    assert list(loader) == [[1, 2], [3]] and len(loader) == 2
    assert list(data.DataLoader(Numbers(), 2, sampler=[5, 6, 7], collate_fn=list)) == [[5, 6], [7]]


def test_two_passes_at_once_are_independent():
    loader = data.DataLoader(Numbers(), 5, collate_fn=list)
    assert [(a, b) for a in loader for b in loader][1] == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])


def test_iterable_datasets_are_batched():
    assert [b.tolist() for b in data.DataLoader(Stream(), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in data.DataLoader(Stream(), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(data.DataLoader(Stream(), None)) == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="no len"):
        len(data.DataLoader(Stream()))


def test_a_dataset_may_fetch_a_whole_batch():
    class Rows(Numbers):
        def __getitems__(self, indices):
            return [-i for i in indices]

    assert next(iter(data.DataLoader(Rows(), 3))).tolist() == [0, -1, -2]


Point = namedtuple("Point", "x y")


def test_collate_keeps_the_structure():
    collate = data.default_collate
    words = [np.str_("a"), np.str_("b")]
    assert collate(words) is words
    assert collate([tg.ones(2), tg.zeros(2)]).shape == (2, 2)
    assert collate([1, 2]).dtype == tg.int64 and collate([1.5, 2]).dtype == tg.float64
    assert collate([True, False]).dtype == tg.bool
    assert collate([np.ones(2, "float32")] * 3).shape == (3, 2) and collate([np.float64(1)] * 2).dtype == tg.float64
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([{"a": 1}, {"a": 2}])["a"].tolist() == [1, 2]
    point = collate([Point(1, "a"), Point(2, "b")])
    assert point.x.tolist() == [1, 2] and list(point.y) == ["a", "b"]
    first, (second, third) = collate([(1, [2.0, 3])] * 2)
    assert first.tolist() == [1, 1] and second.tolist() == [2, 2] and third.tolist() == [3, 3]


def test_convert_changes_arrays_only():
    converted = data.default_convert({"a": np.ones(2), "b": "x", "c": Point(np.zeros(1), 3), "d": [np.ones(1)]})
    assert isinstance(converted["a"], tg.Tensor) and converted["b"] == "x"
    assert isinstance(converted["c"].x, tg.Tensor) and converted["c"].y == 3
    assert isinstance(converted["d"][0], tg.Tensor)


ROWS = data.TensorDataset(tg.arange(6))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: data.TensorDataset(tg.ones(2), tg.ones(3)), AssertionError, "Size mismatch"),
        (lambda: data.Dataset()[0], NotImplementedError, "should implement __getitem__"),
        (lambda: data.ConcatDataset([]), AssertionError, "should not be an empty"),
        (lambda: data.ConcatDataset([Stream()]), AssertionError, "does not support IterableDataset"),
        (lambda: data.ConcatDataset([ROWS])[-7], ValueError, "should not exceed dataset length"),
        (lambda: data.StackDataset(), ValueError, "At least one dataset should be passed"),
        (lambda: data.StackDataset(Numbers(), a=Numbers()), ValueError, "but both are given"),
        (lambda: data.StackDataset(Short(), Numbers()).__getitems__([0, 1]), ValueError, "output size mismatch"),
        (lambda: list(data.ChainDataset([Numbers()])), AssertionError, "only supports IterableDataset"),
        (lambda: len(data.ChainDataset([Numbers()])), AssertionError, "only supports IterableDataset"),
        (lambda: data.StackDataset(ROWS, Numbers()), ValueError, "Size mismatch"),
        (lambda: data.random_split(ROWS, [1, 2]), ValueError, "does not equal the length"),
        (lambda: data.random_split(ROWS, [-0.5, 1.5]), ValueError, "not between 0 and 1"),
        (lambda: data.Sampler().__iter__(), NotImplementedError, "does not define __iter__"),
        (lambda: data.RandomSampler(ROWS, replacement=3), TypeError, "should be a boolean"),
        (lambda: data.RandomSampler([]), ValueError, "num_samples=0"),
        (lambda: data.BatchSampler([1], 0, False), ValueError, "batch_size=0"),
        (lambda: data.BatchSampler([1], 1, 3), ValueError, "drop_last should be a boolean"),
        (lambda: data.WeightedRandomSampler([1], 0), ValueError, "num_samples=0"),
        (lambda: data.WeightedRandomSampler(tg.ones(2, 2), 1), ValueError, "1d sequence"),
        (lambda: data.WeightedRandomSampler([1], 1, 2), ValueError, "should be a boolean"),
        (lambda: data.DataLoader(ROWS, num_workers=-1), ValueError, "non-negative"),
        (lambda: data.DataLoader(ROWS, timeout=-1), ValueError, "non-negative"),
        (lambda: data.DataLoader(ROWS, prefetch_factor=2), ValueError, "prefetch_factor"),
        (lambda: data.DataLoader(ROWS, persistent_workers=True), ValueError, "persistent_workers"),
        (lambda: data.DataLoader(ROWS, multiprocessing_context="x"), ValueError, "multi-process"),
        (lambda: data.DataLoader(ROWS, shuffle=True, sampler=[1]), ValueError, "mutually exclusive with shuffle"),
        (lambda: data.DataLoader(ROWS, 3, batch_sampler=[[1]]), ValueError, "mutually exclusive with batch_size"),
        (lambda: data.DataLoader(ROWS, None, drop_last=True), ValueError, "mutually exclusive with drop_last"),
        (lambda: data.DataLoader(Stream(), shuffle=True), ValueError, "unspecified shuffle"),
        (lambda: data.DataLoader(Stream(), sampler=[1]), ValueError, "unspecified sampler"),
        (lambda: setattr(data.DataLoader(ROWS), "batch_size", 3), ValueError, "should not be set after"),
        (lambda: data.default_collate([object()]), TypeError, "batch must contain"),
        (lambda: data.default_collate([np.array("x")]), TypeError, "batch must contain"),
        (lambda: data.default_collate([[1, 2], [3]]), RuntimeError, "should be of equal size"),
    ],
)
def test_wrong_use_raises(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_a_split_that_gets_nothing_warns():
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(3), [0.99, 0.01])


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_distributed_sampler_gives_each_process_its_share(shuffle, drop_last):
    given = {"num_replicas": 3, "shuffle": shuffle, "seed": 4, "drop_last": drop_last}
    found = []
    for rank in range(3):
        sampler = data.DistributedSampler(range(10), rank=rank, **given)
        sampler.set_epoch(2)
        found.append(list(sampler))
        assert len(sampler) == len(found[-1])
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    for rank, ours in enumerate(found):
        theirs = torch.utils.data.DistributedSampler(range(10), rank=rank, **given)
        theirs.set_epoch(2)
        assert ours == list(theirs)


def test_a_distributed_sampler_asks_for_its_place():
    with pytest.raises(RuntimeError, match="num_replicas and rank"):
        data.DistributedSampler(range(4))
    with pytest.raises(ValueError, match="Invalid rank 2"):
        data.DistributedSampler(range(4), num_replicas=2, rank=2)


class _Pair:
    def __init__(self, a):
        self.a = a


def test_types_of_libraries_are_put_together_by_their_functions():
    from tinygrad_ext.utils.data.collate import collate, default_collate_fn_map

    def pairs(batch, *, collate_fn_map):
        return _Pair(collate([p.a for p in batch], collate_fn_map=collate_fn_map))

    table = {**default_collate_fn_map, _Pair: pairs}
    found = collate([{"p": (_Pair(1.0), "a")}, {"p": (_Pair(2.0), "b")}], collate_fn_map=table)["p"]
    assert found[0].a.tolist() == [1.0, 2.0] and found[1] == ("a", "b")
    with pytest.raises(TypeError, match="batch must contain"):
        collate([_Pair(1)], collate_fn_map=default_collate_fn_map)
    default_collate_fn_map[_Pair] = pairs
    try:
        assert data.default_collate([[_Pair(tg.ones(2))], [_Pair(tg.ones(2))]])[0].a.shape == (2, 2)
    finally:
        del default_collate_fn_map[_Pair]


class Longer(data.IterableDataset):
    """Says that it has three items, and gives five."""

    def __iter__(self):
        return iter(range(5))

    def __len__(self):
        return 3


def _of_streams(warned):
    """The texts of warnings about lengths; others may come from what ran before in this process."""
    return [str(w.message) for w in warned if "samples have been fetched" in str(w.message)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_that_gives_more_than_its_length_warns_once_that_was_asked(workers, recwarn):
    loader = data.DataLoader(Longer(), num_workers=workers)
    assert len(list(loader)) == 5 and not _of_streams(recwarn)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match=r"reported to be 3 .*but 4 samples have been fetched") as told:
        assert len(list(loader)) == 5
    assert [text.count("get_worker_info") for text in _of_streams(told)] == [workers] * 2
