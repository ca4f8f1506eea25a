"""What runs in a worker process of a DataLoader."""

import dataclasses
import os
import random
import traceback

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .fetch import Stream

__all__ = ["WorkerInfo", "get_worker_info"]

_LOOK = 5  # seconds between two looks whether the parent is there
_LONGEST_TEXT = 50_000  # of a traceback

_info = None


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: its ``id``, ``num_workers``, its ``seed``, and the ``dataset`` that it has."""

    id: int
    num_workers: int
    seed: int
    dataset: object


@boundary
def get_worker_info():
    """The `WorkerInfo` of the worker process that asks; None in any other process."""
    return _info


class Failure:
    """An exception on its way to the parent, as text and type."""

    def __init__(self, worker, error):
        self.worker, self.kind, self.name = worker, type(error), type(error).__name__
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-_LONGEST_TEXT:]

    def exception(self):
        """What the parent raises: of the same type, with the traceback in its message."""
        text = f"Caught {self.name} in DataLoader worker process {self.worker}.\nOriginal {self.text}"
        if self.kind is not None and issubclass(self.kind, KeyError):
            return self.kind(_Plain(text))
        try:
            return RuntimeError(text) if self.kind is None else self.kind(text)
        except Exception:
            return RuntimeError(text)  # it takes other arguments


class _Plain(str):
    """Text that a KeyError shows as it is."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class End:
    """Stands for a batch that an exhausted stream does not have."""


def seed_everything(base_seed, worker):
    """Seed the random numbers of Python, tensors and NumPy as PyTorch does; the seed."""
    seed = base_seed + worker
    random.seed(seed)
    tg.manual_seed(seed)
    np.random.seed(numpys_seed(base_seed, worker))
    return seed


def numpys_seed(base_seed, worker):
    """The four words that NumPy is seeded with in a worker."""
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


def run(connection, parents_ends, make_fetch, dataset, base_seed, init, worker, num_workers):
    """Answer requests until the parent closes its end, or is gone."""
    global _info
    from .transfer import Channel  # lazy: a forked child has it, and only workers and their parents need it

    for other in parents_ends:
        other.close()
    parent = os.getppid()
    channel = Channel(connection)
    try:
        tg.set_num_threads(1)
        _info = WorkerInfo(worker, num_workers, seed_everything(base_seed, worker), dataset)
        failure = None
        try:
            if init is not None:
                init(worker)
            fetch = make_fetch(dataset)
        except Exception as error:
            fetch, failure = None, Failure(worker, error)
        while True:
            while not connection.poll(_LOOK):
                if os.getppid() != parent:
                    return
            turn, number, index = channel.receive()
            if number is None:  # another pass
                fetch, failure = _again(make_fetch, dataset, worker)
                continue
            result = failure or _result(fetch, index, worker)
            _answer(channel, turn, number, result, worker)
            del result, index
    except (KeyboardInterrupt, EOFError, ConnectionError):
        pass  # the parent stops, or is gone


def _again(make_fetch, dataset, worker):
    try:
        return make_fetch(dataset), None
    except Exception as error:
        return None, Failure(worker, error)


def _result(fetch, index, worker):
    try:
        return fetch(index)
    except StopIteration as error:
        return End() if isinstance(fetch, Stream) else Failure(worker, error)
    except Exception as error:
        return Failure(worker, error)


def _answer(channel, turn, number, result, worker):
    try:
        channel.send((turn, number, result))
        return
    except ConnectionError:
        raise
    except Exception as error:
        # what was fetched cannot be sent; of an exception its type cannot
        failure = result if isinstance(result, Failure) else Failure(worker, error)
    try:
        channel.send((turn, number, failure))
    except ConnectionError:
        raise
    except Exception:
        failure.kind = None
        channel.send((turn, number, failure))
