"""Datasets: things with a length and an item per index, or things to iterate over."""

import bisect
import itertools
import math
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


@boundary
class Dataset:
    """Base of datasets with an item per index. A subclass defines ``__getitem__`` and mostly ``__len__``.

    It may define ``__getitems__(indices)``, which a DataLoader then calls once per batch.
    """

    def __class_getitem__(cls, item):
        return cls  # lets `Dataset[int]` stand in annotations and bases

    def __getitem__(self, index):
        raise NotImplementedError(f"Subclasses of Dataset should implement __getitem__; {type(self).__name__} does not")

    def __add__(self, other):
        return ConcatDataset([self, other])


@boundary
class IterableDataset(Dataset):
    """Base of datasets that are only iterated over. A subclass defines ``__iter__``."""

    def __add__(self, other):
        return ChainDataset([self, other])


@boundary
class TensorDataset(Dataset):
    """Rows of several tensors with the same first size; an item is a tuple with one row of each."""

    def __init__(self, *tensors):
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            sizes = [tensor.shape[0] for tensor in tensors]
            raise AssertionError(f"Size mismatch between tensors: their first sizes are {sizes}")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


@boundary
class StackDataset(Dataset):
    """Items of several datasets side by side: a tuple, or a dict if they are given by name."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either datasets by position, for tuples, or by name, for dicts, but both are given to "
                "StackDataset; use one of the two"
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed to StackDataset, by position or by name")
        self.datasets = kwargs or args
        lengths = [len(dataset) for dataset in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}")
        self._length = lengths[0]

    def _parts(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices):
        """The items of several indices; each dataset gives its own at once if it can."""
        rows = [_rows(dataset, indices) for dataset in self._parts()]
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*rows, strict=True)]
        return list(zip(*rows, strict=True))

    def __len__(self):
        return self._length


def _rows(dataset, indices):
    """A dataset's items of several indices."""
    many = getattr(dataset, "__getitems__", None)
    if not callable(many):
        return [dataset[index] for index in indices]
    items = many(indices)
    if len(items) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)} from __getitems__ of "
            f"{type(dataset).__name__}"
        )
    return items


@boundary
class ConcatDataset(Dataset):
    """Several datasets one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence):
        """The sums of the lengths up to each dataset, as a list."""
        return list(itertools.accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self):
        """Deprecated: ``cumulative_sizes``."""
        warnings.warn("cummulative_sizes is deprecated: it is cumulative_sizes", FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        place = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[place - 1] if place else 0
        return self.datasets[place][index - before]


@boundary
class ChainDataset(IterableDataset):
    """Several iterable datasets one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            self._check(dataset)
            yield from dataset

    def __len__(self):
        for dataset in self.datasets:
            self._check(dataset)
        return sum(len(dataset) for dataset in self.datasets)

    @staticmethod
    def _check(dataset):
        if not isinstance(dataset, IterableDataset):
            raise AssertionError(
                f"ChainDataset only supports IterableDataset, got {type(dataset).__name__}; use ConcatDataset"
            )


@boundary
class Subset(Dataset):
    """The items of ``dataset`` at ``indices``."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


@boundary
def random_split(dataset, lengths, generator=None):
    """Split at random into subsets without overlap.

    Args:
        lengths: how many items each gets; or fractions that sum to 1, whose rounding
            remainder goes one by one to the first subsets.
        generator: source of the permutation.

    Raises:
        ValueError: the lengths do not sum to the length of the dataset.
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_fractions(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"They sum to {sum(lengths)}, and it has {len(dataset)} items."
        )
    order = tg.randperm(sum(lengths), generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths)]


def _lengths_of_fractions(size, fractions):
    for place, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {place} is not between 0 and 1: {fraction}")
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for place in range(size - sum(lengths)):
        lengths[place % len(lengths)] += 1
    for place, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {place} is 0. This might result in an empty dataset.", stacklevel=3
            )
    return lengths
