"""DataLoader: batches of a dataset, loaded in the calling process or by workers."""

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any

from tinygrad_ext.core.call.boundary import Steps, boundary

from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetch import Rows, Stream, _BaseDataLoaderIter, warn_of_more
from .sampler import BatchSampler, RandomSampler, SequentialSampler

_collate_fn_t = Callable[[list], Any]  # a type that libraries name
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset")


class _Endless:
    """Stands as the sampler of an iterable dataset, which has no indices."""

    def __iter__(self):
        while True:
            yield None


class _SingleProcessDataLoaderIter(Steps, _BaseDataLoaderIter):
    """One that loads in this process."""

    def __init__(self, loader, fetch):
        self._count = [0]  # apart, so that the generator and its iterator are no circle
        _BaseDataLoaderIter.__init__(self, loader)
        Steps.__init__(
            self, _batches(loader, fetch, loader._IterableDataset_len_called, self._sampler_iter, self._count)
        )

    @property
    def _num_yielded(self):
        return self._count[0]

    @_num_yielded.setter
    def _num_yielded(self, number):
        self._count[0] = number


def _batches(loader, fetch, told, indices, count):
    for index in indices:
        number = count[0] + 1
        try:
            batch = fetch(index)
        except StopIteration:
            return
        if told is not None and number > told:
            warn_of_more(loader, told, number)
        count[0] = number
        yield batch


def __getattr__(name):
    if name != "_MultiProcessingDataLoaderIter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .workers import WorkerIterator  # lazy: it needs multiprocessing

    return WorkerIterator


@boundary
class DataLoader:
    """Iterate over a dataset in batches.

    Args:
        dataset: with indices, or an `IterableDataset`.
        batch_size: items per batch; None gives single items.
        shuffle: visit in a new random order each time.
        sampler: gives the indices instead.
        batch_sampler: gives lists of indices instead.
        num_workers: so many processes load; 0 loads in the calling process.
        collate_fn: puts a list of items together; `default_collate`.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch of the workers; 0 for ever.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: "fork", "spawn", or a context of multiprocessing.
        generator: source of the random order and of the workers' seeds.
        prefetch_factor: how many batches each worker loads ahead; 2, and 64 at most.
        persistent_workers: keep the workers from one pass to the next.
        in_order: give batches in the order of the sampler; else as they come.
        pin_memory, pin_memory_device: accepted; memory of the cpu is used as it is.

    Raises:
        ValueError: arguments that exclude each other.

    While iterating over it, what a worker raises is raised here, of the same type, with its traceback in the message;
    RuntimeError when a worker ends or ``timeout`` is over.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.data import DataLoader, TensorDataset
        >>> loader = DataLoader(TensorDataset(tg.arange(5)), batch_size=2)
        >>> [batch.tolist() for batch, in loader]
        [[0, 1], [2, 3], [4]]
    """

    _fixed = False
    _IterableDataset_len_called = None  # what len() said of an IterableDataset, which may give more

    def __class_getitem__(cls, item):
        return cls  # lets `DataLoader[int]` stand in annotations

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
        collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
        multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
        pin_memory_device="", in_order=True,
    ):  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.pin_memory_device = pin_memory_device
        self._iterator = None
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

    @property
    def _auto_collation(self):
        return not self._single

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

    @property
    def _index_sampler(self):
        return self.sampler if self._single else self.batch_sampler

    @property
    def multiprocessing_context(self):
        """The context of the standard library by which workers are started; None for its default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        self._context = _checked_context(context, self.num_workers)

    def __iter__(self):
        if self.persistent_workers and self._iterator is not None and self._iterator._stop.alive:
            self._iterator.restart()
            return self._iterator
        kind = Stream if isinstance(self.dataset, IterableDataset) else Rows
        make_fetch = functools.partial(
            kind, batched=not self._single, collate=self.collate_fn, drop_last=self.drop_last
        )
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self, make_fetch(self.dataset))
        from .workers import WorkerIterator  # lazy: it needs multiprocessing

        made = WorkerIterator(self, make_fetch)
        if self.persistent_workers:
            self._iterator = made
        return made

    def __len__(self):
        if not isinstance(self.dataset, IterableDataset):
            return len(self.sampler if self._single else self.batch_sampler)
        self._IterableDataset_len_called = len(self.dataset)
        whole, rest = divmod(self._IterableDataset_len_called, self.batch_size or 1)
        return whole + (rest > 0 and not self.drop_last)


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing; leave it out")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if num_workers == 0 and persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0; leave it out")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or num_workers
    if num_workers > cores:
        warnings.warn(
            f"This DataLoader will create {num_workers} worker processes, and this process may use {cores} cores. "
            "Be aware that excessive worker creation might get DataLoader running slow or even freeze; lower "
            "num_workers.",
            stacklevel=3,
        )


def _checked_context(context, num_workers):
    if context is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}; leave it out"
        )
    import multiprocessing  # lazy: loading without workers does without it

    if isinstance(context, str):
        known = multiprocessing.get_all_start_methods()
        if context not in known:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {known!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context


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
