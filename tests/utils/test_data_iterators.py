"""Iterators over a DataLoader, as libraries ask them."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import data
from tinygrad_ext.utils.data import dataloader


class Numbers(data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return index


@pytest.mark.parametrize("workers", [0, 1])
def test_they_say_how_many_batches_were_given(workers):
    loader = data.DataLoader(Numbers(), batch_size=3, num_workers=workers)
    batches = iter(loader)
    kind = dataloader._MultiProcessingDataLoaderIter if workers else dataloader._SingleProcessDataLoaderIter
    assert type(batches) is kind and isinstance(batches, dataloader._BaseDataLoaderIter)
    assert len(batches) == 4 and batches._num_yielded == 0 and batches._dataset is loader.dataset
    next(batches)
    assert batches._num_yielded == 1 and next(batches).tolist() == [3, 4, 5] and batches._num_yielded == 2
    list(batches)
    assert batches._num_yielded == 4


@pytest.mark.parametrize("workers", [0, 1])
def test_a_pass_is_taken_up_where_it_was_left(workers, monkeypatch):
    former = dataloader._BaseDataLoaderIter.__init__

    def start(self, loader):
        former(self, loader)
        for _ in range(2):
            next(self._sampler_iter)
        self._num_yielded = 2

    monkeypatch.setattr(dataloader._BaseDataLoaderIter, "__init__", start)
    batches = iter(data.DataLoader(Numbers(), batch_size=3, num_workers=workers))
    assert next(batches).tolist() == [6, 7, 8] and batches._num_yielded == 3 and next(batches).tolist() == [9]


def test_a_sampler_that_draws_does_so_before_the_seed_of_workers():
    class Drawn(data.Sampler):
        def __init__(self):
            pass

        def __iter__(self):
            return iter(tg.randperm(10).tolist())

        def __len__(self):
            return 10

    tg.manual_seed(3)
    expected = tg.randperm(10).tolist()
    tg.manual_seed(3)
    assert list(data.DataLoader(Numbers(), sampler=Drawn(), batch_size=None)) == expected
