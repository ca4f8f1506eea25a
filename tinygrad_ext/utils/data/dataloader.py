"""DataLoader: batches of a dataset, loaded in the calling process."""

from tinygrad_ext.core.call.boundary import Steps, boundary

from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler, draw_seed

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset")


class _Endless:
    """Stands as the sampler of an iterable dataset, which has no indices."""

    def __iter__(self):
        while True:
            yield None


@boundary
class DataLoader:
    """Iterate over a dataset in batches.

    Args:
        dataset: with indices, or an `IterableDataset`.
        batch_size: items per batch; None gives single items.
        shuffle: visit in a new random order each time.
        sampler: gives the indices instead.
        batch_sampler: gives lists of indices instead.
        num_workers: 0; there are no worker processes.
        collate_fn: puts a list of items together; `default_collate`.
        drop_last: leave out a last batch that is not full.
        generator: source of the random order.

    Raises:
        ValueError: arguments that exclude each other.
        NotImplementedError: ``num_workers`` above 0.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.data import DataLoader, TensorDataset
        >>> loader = DataLoader(TensorDataset(tg.arange(5)), batch_size=2)
        >>> [batch.tolist() for batch, in loader]
        [[0, 1], [2, 3], [4]]
    """

    _fixed = False

    def __class_getitem__(cls, item):
        return cls  # lets `DataLoader[int]` stand in annotations

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
        collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
        multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
        pin_memory_device="", in_order=True,
    ):  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        _check_exclusive(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = self._default_sampler(shuffle) if sampler is None else sampler
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_convert if self._single else default_collate)
        self._fixed = True

    @property
    def _single(self):
        return self.batch_sampler is None

    def _default_sampler(self, shuffle):
        if isinstance(self.dataset, IterableDataset):
            return _Endless()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def __setattr__(self, name, value):
        if self._fixed and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self):
        # One draw per pass that nothing here needs: PyTorch seeds its workers with it, and the
        # shuffles that come after it in a seeded script shall be the same.
        draw_seed(self.generator)
        if isinstance(self.dataset, IterableDataset):
            return Steps(self._iterate_over_stream())
        return Steps(self._iterate_over_indices())

    def _iterate_over_indices(self):
        dataset, collate = self.dataset, self.collate_fn
        if self._single:
            for index in self.sampler:
                yield collate(dataset[index])
            return
        fetch = getattr(dataset, "__getitems__", None) or (lambda indices: [dataset[i] for i in indices])
        for indices in self.batch_sampler:
            yield collate(fetch(indices))

    def _iterate_over_stream(self):
        items = iter(self.dataset)
        if self._single:
            yield from map(self.collate_fn, items)
            return
        batch = []
        for item in items:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __len__(self):
        if not isinstance(self.dataset, IterableDataset):
            return len(self.sampler if self._single else self.batch_sampler)
        whole, rest = divmod(len(self.dataset), self.batch_size or 1)
        return whole + (rest > 0 and not self.drop_last)


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers > 0:
        raise NotImplementedError(
            f"DataLoader: num_workers={num_workers} is not supported, as there are no worker processes; "
            "use num_workers=0, which loads in the calling process"
        )
    if prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing; leave it out")
    if persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0; leave it out")
    if multiprocessing_context is not None:
        raise ValueError("multiprocessing_context can only be used with multi-process loading; leave it out")


def _check_exclusive(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last):
    if isinstance(dataset, IterableDataset):
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}; "
                    "the dataset itself decides the order"
                )
    if shuffle and sampler is not None:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
