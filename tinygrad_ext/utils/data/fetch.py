"""Getting what one index or one list of indices stands for; in the calling process or in a worker."""

import warnings

from .sampler import draw_seed

__all__ = ["Rows", "Stream"]


class Rows:
    """Items of a dataset with indices."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.dataset, self.batched, self.collate = dataset, batched, collate
        self.many = getattr(dataset, "__getitems__", None)

    def __call__(self, index):
        if not self.batched:
            return self.collate(self.dataset[index])
        if self.many:
            return self.collate(self.many(index))
        dataset = self.dataset
        return self.collate([dataset[i] for i in index])


class Stream:
    """Items of an iterable dataset, as many as the list of indices is long; StopIteration after the last."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.items, self.batched, self.collate, self.drop_last = iter(dataset), batched, collate, drop_last
        self.ended = False

    def __call__(self, index):
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate(next(self.items))
        batch = []
        for item in self.items:
            batch.append(item)
            if len(batch) == len(index):
                return self.collate(batch)
        self.ended = True
        if not batch or self.drop_last:
            raise StopIteration
        return self.collate(batch)


def warn_of_more(loader, told, number):
    """Say that a stream gives more than its length, once for each batch that is too many, as PyTorch does."""
    more = (
        " For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
        "replica at each worker: see get_worker_info()."
    )
    warnings.warn(
        f"Length of IterableDataset {loader.dataset} was reported to be {told} (when accessing len(dataloader)), but "
        f"{number} samples have been fetched.{more if loader.num_workers else ''}",
        stacklevel=4,
    )


class _BaseDataLoaderIter:
    """An iterator over a DataLoader, by a name that libraries ask for.

    They read and set how many batches it has given, and go on by some indices to take up a pass where it was left.
    """

    def __init__(self, loader):
        self._dataset, self._index_sampler = loader.dataset, loader._index_sampler
        self._sampler_iter, self._num_yielded = iter(self._index_sampler), 0
        # One draw per start of workers; without them nothing needs it, but the shuffles that come after it in a seeded
        # script shall be PyTorch's.
        self._base_seed = draw_seed(loader.generator)

    def __len__(self):
        return len(self._index_sampler)
