"""A sampler for one of several processes that share a dataset."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .sampler import Sampler

__all__ = ["DistributedSampler"]
place = None  # (number of processes, rank), set by what opens a group of processes


@boundary
class DistributedSampler(Sampler):
    """Indices for the process ``rank`` of ``num_replicas``: every so many-th of them.

    Args:
        dataset: something with a length.
        shuffle: draw an order for each epoch, see `set_epoch`; the same one in all processes.
        drop_last: leave out what cannot be shared evenly, instead of repeating the first ones.

    Raises:
        RuntimeError: ``num_replicas`` or ``rank`` is not given, and there is no group of processes to ask.
        ValueError: there is no such rank.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if place is not None:
            num_replicas, rank = (told if given is None else given for given, told in zip((num_replicas, rank), place))
        if num_replicas is None or rank is None:
            raise RuntimeError(
                "Requires distributed package to be available: pass num_replicas and rank to DistributedSampler"
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.drop_last, self.shuffle, self.seed = 0, drop_last, shuffle, seed
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        if self.shuffle:
            order = tg.randperm(
                len(self.dataset), generator=tg.Generator().manual_seed(self.seed + self.epoch)
            ).tolist()
        else:
            order = list(range(len(self.dataset)))
        missing = self.total_size - len(order)
        if missing > 0:
            order += (order * math.ceil(missing / len(order)))[:missing]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Choose the epoch, and with it the order."""
        self.epoch = epoch
