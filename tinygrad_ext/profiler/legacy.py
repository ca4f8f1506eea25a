"""The older face of the profiler, `autograd.profiler`, and what PyTorch has for tools that are not here."""

import bisect

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.profiler.events import EventList, FunctionEvent
from tinygrad_ext.profiler.session import profile as _Session

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
]


@boundary
class profile:
    """Record inside a `with` if `enabled`; `function_events` afterwards, and what a list of events can do.

    The arguments are those of `tinygrad_ext.profiler.profile`; use_kineto and use_cpu are accepted. Raises RuntimeError
    for a device, and when it is entered twice.

    >>> import tinygrad_ext as tg
    >>> with tg.autograd.profiler.profile() as p:
    ...     _ = tg.ones(2) + 1
    >>> [row.key for row in p.key_averages()]
    ['aten::ones', 'aten::add']
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
    ):
        if use_device not in (None, "cpu"):
            raise RuntimeError(f"profile: use_device is {use_device!r}; there is no such device here: leave it out")
        self.enabled, self._entered = enabled, False
        self._session = _Session(
            use_cuda=use_cuda,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
        )
        self._events = None

    def __enter__(self):
        if not self.enabled:
            return None
        if self._entered:
            raise RuntimeError("profile: it was entered before; make another one for each `with`")
        self._entered = True
        self._session.start()
        return self

    def __exit__(self, *exc):
        if self.enabled:
            self._session.stop()
            self._events = self._session.events()
        return False

    @property
    def function_events(self):
        """The events, an EventList. Raises RuntimeError before the end."""
        if self._events is None:
            raise RuntimeError("profile: it has not finished; ask after the `with`")
        return self._events

    def table(self, *args, **kwargs):
        return self.function_events.table(*args, **kwargs)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        return self.function_events.total_average()

    def export_chrome_trace(self, path):
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self.function_events.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self):
        return self.function_events.self_cpu_time_total

    def __str__(self):
        return "<unfinished profile>" if self._events is None else str(self._events)

    __repr__ = __str__


class _Emits:
    """Would hand ranges to a tool of a device's vendor: entering it raises RuntimeError."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        if self.enabled:
            raise RuntimeError(
                f"{type(self).__name__}: there is no {self.tool} here that could take the ranges. Use profiler.profile "
                "and export_chrome_trace"
            )

    def __exit__(self, *exc):
        return False


class emit_nvtx(_Emits):
    __doc__, tool = _Emits.__doc__, "NVTX"


class emit_itt(_Emits):
    __doc__, tool = _Emits.__doc__, "ITT"


@boundary
def load_nvprof(path):
    """Raises RuntimeError: nvprof records CUDA devices."""
    raise RuntimeError(f"load_nvprof({str(path)!r}): files of nvprof tell of CUDA devices, and there are none here")


@boundary
def parse_nvprof_trace(path):
    """Raises RuntimeError, as load_nvprof."""
    return load_nvprof(path)


class EnforceUnique:
    """Refuses a key that it has seen."""

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Raises RuntimeError when it is called with the same arguments again."""
        if key in self.seen:
            raise RuntimeError(f"see: the key {key} was seen before; each may come once")
        self.seen.add(key)


class KinetoStepTracker:
    """Counts the steps of several parties; the step of the process is the highest of them."""

    _steps: dict = {}
    _now = 0

    @classmethod
    def init_step_count(cls, requester):
        cls._steps[requester] = cls._now

    @classmethod
    def erase_step_count(cls, requester):
        """Whether there was one."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        """The step of the process after one more of `requester`."""
        cls._steps[requester] = cls._steps.get(requester, cls._now) + 1
        cls._now = max(cls._steps.values())
        return cls._now

    @classmethod
    def current_step(cls):
        return cls._now


class MemRecordsAcc:
    """Records (with start_ns(), in a tuple) by the time of their beginning."""

    def __init__(self, mem_records):
        self._rows = sorted(mem_records, key=lambda row: row[0].start_ns())
        self._begins = [row[0].start_ns() for row in self._rows]

    def in_interval(self, start_ns, end_ns):
        """Those that begin from `start_ns` to `end_ns`."""
        first, last = bisect.bisect_left(self._begins, start_ns), bisect.bisect_right(self._begins, end_ns)
        yield from self._rows[first:last]
