"""Several processes that run one function, and what became of them."""

import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
import traceback
import warnings

from tinygrad_ext.core.call.boundary import boundary

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

_LONGEST_TEXT = 50_000  # of a traceback: a process must not wait until somebody reads it
_PATIENCE = 30  # seconds between SIGTERM and SIGKILL


class ProcessException(Exception):
    """A process failed: which (`error_index`, `error_pid`) and why (`msg`)."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code other than 0, or was ended by a signal."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def end_with_parent(number):
    """Ask the system to send this process a signal when its parent ends, where the system can."""
    if sys.platform == "linux":
        import ctypes  # lazy: in the child only

        ctypes.CDLL(None).prctl(1, int(number))  # PR_SET_PDEATHSIG


def _run(function, index, args, told):
    end_with_parent(signal.SIGINT)
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass  # the parent is gone, or stops all
    except Exception:
        told.send(traceback.format_exc()[-_LONGEST_TEXT:])
        sys.exit(1)


@boundary
class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, texts):
        self.processes = processes
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}
        self._texts = texts

    def pids(self):
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait until the next process ends; True when all have ended well.

        Args:
            timeout: give up waiting after so many seconds.
            grace_period: seconds that the others get to end by themselves when one failed, then again before SIGKILL.

        Raises:
            ProcessRaisedException: the function raised in one process. The others are ended.
            ProcessExitedException: a process ended in another way.
        """
        if not self.sentinels:
            return True
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                self._end_others(grace_period)
                raise self._failure(index)
        return not self.sentinels

    def _end_others(self, grace_period):
        if grace_period is not None:
            self._wait_for_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait_for_all(_PATIENCE if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _wait_for_all(self, seconds):
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def _failure(self, index):
        process = self.processes[index]
        try:
            text = self._texts[index].recv() if self._texts[index].poll() else None
        except EOFError:
            text = None
        if text is not None:
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, index, process.pid)
        code, name = process.exitcode, None
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
        how = f"exit code {code}" if name is None else f"signal {name}"
        return ProcessExitedException(f"process {index} terminated with {how}", index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """The former name of `ProcessContext`."""

    def __init__(self, processes, texts):
        warnings.warn("SpawnContext is called ProcessContext now", stacklevel=2)
        super().__init__(processes, texts)


@boundary
def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run ``fn(i, *args)`` in ``nprocs`` processes, of any start method; see `spawn`."""
    context = multiprocessing.get_context(start_method)
    processes, texts = [], []
    for index in range(nprocs):
        text, told = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, told), daemon=daemon)
        process.start()
        told.close()
        processes.append(process)
        texts.append(text)
    started = ProcessContext(processes, texts)
    if not join:
        return started
    while not started.join():
        pass
    return None


@boundary
def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run ``fn(i, *args)`` in ``nprocs`` new processes, ``i`` from 0 on.

    Args:
        fn: a function at the top of a module, since the processes import it.
        args: more arguments; tensors among them are shared.
        join: wait for all; else return a `ProcessContext`.
        daemon: end the processes with this one.

    Raises:
        ProcessRaisedException: ``fn`` raised in a process; the message has the traceback there.
        ProcessExitedException: a process ended in another way.
    """
    if start_method != "spawn":
        warnings.warn(
            f"spawn() starts its processes by spawn, not {start_method}; start_processes() takes other start methods",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
