"""A recording: a recorder for the thread that begins it, and for those that are started while it runs, if asked."""

import itertools
import sys
import threading

from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.levels import mark_range
from tinygrad_ext.core.grad.events import Recorder
from tinygrad_ext.profiler.events import EventList, linked


class Recording:
    """Recorders from `start` to `stop`; `events()` afterwards."""

    def __init__(self, capacity, all_threads=False, modules=False, flops=False, **options):
        self._capacity, self._options, self._flops = capacity, options, flops
        self._recorders, self._lock = [], threading.Lock()  # (number of the thread, the thread, recorder)
        self._all_threads, self._modules = all_threads, modules
        self._before = self._handles = None

    def start(self):
        self.main = self._enter()
        if self._all_threads:
            self._before = threading.getprofile()
            threading.setprofile(self._first_call)
        if self._modules:
            self._handles = _watch_modules()

    def _enter(self):
        recorder = Recorder(self._capacity, **self._options)
        recorder.__enter__()
        with self._lock:
            self._recorders.append((threading.get_native_id(), threading.current_thread(), recorder))
        return recorder

    def _first_call(self, frame, event, argument):
        """Python's hook for the first call in a new thread."""
        sys.setprofile(self._before)
        if self._all_threads:
            self._enter()

    def stop(self):
        if self._all_threads:
            self._all_threads = False  # for threads that are about to begin
            threading.setprofile(self._before)
        for handle in self._handles or ():
            handle.remove()
        self.main.__exit__(None, None, None)
        with self._lock:
            recorders = list(self._recorders)
        for _, thread, recorder in recorders[1:]:
            recorder.off(not thread.is_alive())

    def events(self, metadata):
        """All events, those of each thread by begin, and how many there was no room for."""
        found, dropped = [], 0
        memory = bool(self._options.get("memory"))
        for thread, _, recorder in self._recorders:
            dropped += recorder.dropped
            found += linked(recorder.slices(), thread, len(found), flops=self._flops)
        return EventList(found, dropped, {"profile_memory": int(memory), **metadata})


def _watch_modules():
    """Let calls of modules be ranges; handles that end it."""
    hooks, numbers, counts = later("module hooks"), {}, {}

    def name(module):
        if id(module) not in numbers:
            count = counts.setdefault(type(module).__name__, itertools.count())
            numbers[id(module)] = module, f"nn.Module: {type(module).__name__}_{next(count)}"
        return numbers[id(module)][1]

    return (
        hooks.register_module_forward_pre_hook(lambda module, args: mark_range(name(module), True)),
        hooks.register_module_forward_hook(lambda module, args, out: mark_range(name(module), False), always_call=True),
    )
