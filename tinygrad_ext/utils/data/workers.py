"""Loading by worker processes: who gets which batch, in which order they come back, what happens when one is gone."""

import itertools
import multiprocessing.connection
import os
import signal
import time
import weakref

from tinygrad_ext.core.call.boundary import boundary

from .fetch import _BaseDataLoaderIter, warn_of_more
from .transfer import Channel
from .worker import End, Failure, run

_PATIENCE = 5  # seconds that workers get to end by themselves
_MOST_AHEAD = 64  # batches under way to one worker, so that a message finds room in the socket


class _Worker:
    def __init__(self, process, channel):
        self.process, self.channel = process, channel
        self.active = True  # has items left in this pass
        self.load = 0  # batches asked for


@boundary
class WorkerIterator(_BaseDataLoaderIter):
    """Iterates over the batches that worker processes load, in the order of the sampler.

    Worker k gets the batches k, k + n, ...; each works ``prefetch_factor`` batches ahead.
    """

    def __init__(self, loader, make_fetch):
        self._loader, self._workers, self._turn = loader, [], 0
        super().__init__(loader)
        self._patience = [_PATIENCE]
        self._stop = weakref.finalize(self, _stop, self._workers, self._patience, os.getpid())
        context = loader.multiprocessing_context or multiprocessing
        forks = multiprocessing.get_start_method() if context is multiprocessing else context.get_start_method()
        for number in range(loader.num_workers):
            ours, theirs = context.Pipe()
            # a forked child has the parent's ends too, and must not keep them open
            inherited = [ours, *(w.channel.connection for w in self._workers)] if forks == "fork" else []
            told = (loader.dataset, self._base_seed, loader.worker_init_fn, number, loader.num_workers)
            process = context.Process(target=run, args=(theirs, inherited, make_fetch, *told), daemon=True)
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, Channel(ours)))
        self._begin()

    def __iter__(self):
        return self

    def _shutdown_workers(self):
        """End the workers: PyTorch's name for it, which libraries call."""
        self._stop()

    def restart(self):
        """Begin another pass with the same workers."""
        self._turn += 1
        self._sampler_iter, self._num_yielded = iter(self._index_sampler), 0
        for worker in self._workers:
            worker.active, worker.load = True, 0
            self._tell(worker, None, None)
        self._begin()

    def _begin(self):
        self._order = itertools.cycle(self._workers)
        self._asked = self._given = 0  # numbers of batches
        self._told = self._loader._IterableDataset_len_called
        self._at = {}  # number of a batch asked for -> its worker
        self._here = {}  # number -> a batch that came before its turn
        for _ in range(min(self._loader.prefetch_factor, _MOST_AHEAD) * len(self._workers)):
            self._ask()

    def _ask(self):
        """Ask the next worker in turn for the next batch, if there are both."""
        if not any(worker.active for worker in self._workers):
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        worker = self._free_worker()
        self._tell(worker, self._asked, index)
        self._at[self._asked] = worker
        worker.load += 1
        self._asked += 1

    def _free_worker(self):
        active = [worker for worker in self._workers if worker.active]
        if not self._loader.in_order:
            least = min(worker.load for worker in active)
            active = [worker for worker in active if worker.load == least]
        return next(worker for worker in self._order if worker in active)

    def _tell(self, worker, number, index):
        try:
            worker.channel.send((self._turn, number, index))
        except ConnectionError:
            raise self._gone(worker) from None

    def __next__(self):
        if not self._stop.alive:
            raise StopIteration
        while True:
            number = self._next_number()
            if number is None:
                if not self._loader.persistent_workers:
                    self._stop()
                raise StopIteration
            if number in self._here:
                return self._give(number, self._here.pop(number))
            number, result = self._receive()
            if isinstance(result, End):
                worker = self._at.pop(number, None)
                if worker is not None:  # else its worker told so before, and the number was passed over
                    worker.active = False
                    worker.load -= 1
                    self._ask()
            elif number == self._given or not self._loader.in_order:
                return self._give(number, result)
            else:
                self._here[number] = result

    def _next_number(self):
        """Number of the batch whose turn it is; None after the last."""
        while self._given < self._asked:
            worker = self._at.get(self._given)
            if worker is not None and (worker.active or self._given in self._here):
                return self._given
            self._at.pop(self._given, None)  # its worker has nothing left, or it was given already
            self._given += 1
        return None

    def _give(self, number, result):
        worker = self._at.pop(number)
        worker.load -= 1
        if number == self._given:
            self._given += 1
        self._ask()
        if isinstance(result, Failure):
            raise result.exception()
        self._num_yielded += 1
        if self._told is not None and self._num_yielded > self._told:
            warn_of_more(self._loader, self._told, self._num_yielded)
        return result

    def _receive(self):
        """The next batch that comes from any worker."""
        end = time.monotonic() + self._loader.timeout if self._loader.timeout else None
        while True:
            waited = {w.channel.connection: w for w in self._workers}
            ends = {w.process.sentinel: w for w in self._workers if w.active}
            left = None if end is None else max(0, end - time.monotonic())
            ready = multiprocessing.connection.wait([*waited, *ends], left)
            if not ready:
                self._patience[0] = 0.1  # who hangs will not end by itself
                raise RuntimeError(
                    f"DataLoader timed out after {self._loader.timeout} seconds: no worker had a batch ready. Give a "
                    "larger timeout, or look with num_workers=0 for what takes so long"
                )
            came = [waited[r] for r in ready if r in waited]
            if not came:
                raise self._gone(ends[ready[0]])
            try:
                turn, number, result = came[0].channel.receive()
            except (EOFError, ConnectionError):
                raise self._gone(came[0]) from None
            if turn == self._turn:
                return number, result

    def _gone(self, worker):
        worker.process.join(1)
        code = worker.process.exitcode
        self._patience[0] = 0.1
        self._stop()
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = str(-code)
            how = f"is killed by signal: {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
        else:
            how = f"exited unexpectedly with exit code {code}"
        return RuntimeError(
            f"DataLoader worker (pid(s) {worker.process.pid}) {how}. With num_workers=0 the dataset runs in the "
            "calling process, which may show why"
        )

    def __reduce__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled: iterate over the DataLoader again instead")


def _stop(workers, patience, owner):
    """End the workers: by themselves, else by force."""
    if os.getpid() != owner:
        return  # a forked child, whose copy of the iterator went
    for worker in workers:
        worker.channel.close()
    for end, force in ((patience[0], "terminate"), (1, "kill"), (1, None)):
        end += time.monotonic()
        for worker in workers:
            worker.process.join(max(0, end - time.monotonic()))
        for worker in workers:
            if force and worker.process.is_alive():
                getattr(worker.process, force)()
