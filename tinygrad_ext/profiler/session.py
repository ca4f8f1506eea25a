"""`profile`: recordings that begin and end with the steps of a program."""

import json

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.profiler import files, page
from tinygrad_ext.profiler.recording import Recording
from tinygrad_ext.profiler.schedules import ProfilerAction, ProfilerActivity

_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class _ExperimentalConfig:
    """Settings that PyTorch has for some of its back ends.

    Args:
        profile_all_threads: record the threads that are started while the profile records, each in a ring of its own.
        verbose: accepted; there is nothing that says less.

    Others raise NotImplementedError when they are set.
    """

    def __init__(self, *, profile_all_threads=False, verbose=True, **others):
        for name, value in others.items():
            if value:
                raise NotImplementedError(
                    f"_ExperimentalConfig: {name}={value!r} is for devices and back ends that are not here"
                )
        self.profile_all_threads, self.verbose = bool(profile_all_threads), verbose


def _check_activities(activities):
    for activity in activities or ():
        if activity is not ProfilerActivity.CPU:
            raise RuntimeError(f"profile: activities has {activity}; there is no such device here: leave it out")


@boundary
class profile:
    """Record the operations, ranges, backward nodes and compiled programs of this thread inside a `with`.

    Args:
        activities: ProfilerActivity.CPU is the only one. schedule: step number -> ProfilerAction; without it all is
            recorded. on_trace_ready: called with the profile when a recording is complete.
        record_shapes: note the shapes of tensor arguments. profile_memory: note the bytes that the process has in use
            before and after. with_stack: note the user's lines, and who brought the op. with_flops: count the
            operations of products, convolutions, sums. with_modules: a range for each call of an nn.Module.
        experimental_config: see _ExperimentalConfig. acc_events: keep the events of all recordings of a schedule, not
            of the last alone. custom_trace_id_callback: gives the text that `get_trace_id` returns.
        capacity: slices of a thread that are kept; beyond it the oldest go, which `dropped` counts and the table says.
        execution_trace_observer: raises NotImplementedError. use_cuda: RuntimeError if true. post_processing_timeout_s:
            accepted; nothing is processed afterwards.

    >>> import tinygrad_ext as tg
    >>> with tg.profiler.profile() as p:
    ...     _ = tg.ones(2) + 1
    >>> [e.name for e in p.events()]
    ['aten::ones', 'aten::add']
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        capacity=1 << 18,
    ):
        if execution_trace_observer is not None:
            raise NotImplementedError(
                "profile: execution_trace_observer is not there; export_chrome_trace tells what ran"
            )
        _check_activities(activities)
        if use_cuda:
            raise RuntimeError("profile: use_cuda is True; there is no such device here: leave it out")
        shapes = 2 if with_flops else int(record_shapes)
        self._options = {"lines": with_stack, "shapes": shapes, "memory": profile_memory, "modules": with_modules}
        self._options |= {
            "all_threads": getattr(experimental_config, "profile_all_threads", False),
            "flops": with_flops,
        }
        self._capacity, self._schedule, self.on_trace_ready = capacity, schedule, on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.step_num = with_flops, with_modules, 0
        self.current_action = ProfilerAction.NONE
        self._keeps, self._trace_id, self._metadata = acc_events, custom_trace_id_callback, {}
        self._now, self._found, self._range, self._collects = None, [], None, True

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def start(self):
        """Begin with step `step_num`."""
        self._go_to(self._action())

    def stop(self):
        """End; what is being recorded is complete."""
        self._go_to(ProfilerAction.NONE, last=True)

    def step(self):
        """The program's next step begins."""
        self._end_range()
        self.step_num += 1
        self._go_to(self._action())

    def toggle_collection_dynamic(self, enable, activities=()):
        """Pause recording, or go on with it."""
        _check_activities(activities)
        if self._now is not None and bool(enable) is not self._collects:
            self._collects = bool(enable)
            self._now.main.__enter__() if enable else self._now.main.__exit__(None, None, None)

    def _action(self):
        return self._schedule(self.step_num) if self._schedule else ProfilerAction.RECORD

    def _go_to(self, action, last=False):
        before, self.current_action = self.current_action, action
        if before is ProfilerAction.RECORD_AND_SAVE or (before is ProfilerAction.RECORD and action not in _RECORDS):
            complete = last or before is ProfilerAction.RECORD_AND_SAVE
            self._finish()
            if complete and self.on_trace_ready:
                self.on_trace_ready(self)
        if action in _RECORDS:
            if self._now is None:
                self._now = Recording(self._capacity, **self._options)
                self._now.start()
            if self._schedule:
                self._range = f"ProfilerStep#{self.step_num}"
                self._now.main.begin(self._range)

    def _end_range(self):
        if self._now is not None and self._range:
            self._now.main.end(self._range)
        self._range = None

    def _finish(self):
        self._end_range()
        self.toggle_collection_dynamic(True)
        recording, self._now = self._now, None
        recording.stop()
        self._found = [*self._found, recording] if self._keeps else [recording]

    # ---- what was recorded

    def events(self):
        """Events of the last complete recording, by begin. Raises RuntimeError if there is none."""
        if not self._found:
            raise RuntimeError("profile: nothing is recorded yet; ask after the `with`, or in on_trace_ready")
        parts = [recording.events(self._metadata) for recording in self._found]
        for part in parts[1:]:
            parts[0].extend(part)
            parts[0].dropped += part.dropped
        return parts[0]

    @property
    def dropped(self):
        """Slices that there was no room for."""
        return self.events().dropped if self._found else 0

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Counts and times of the events with one name; and one row for each shape, lines, or overload, if asked."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def add_metadata(self, key, value):
        """A text that stands in the trace file."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key, value):
        """The same for the text of a JSON value. Raises ValueError where it is none."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self):
        """What custom_trace_id_callback gave, or None."""
        return self._trace_id() if self._trace_id else None

    def set_custom_trace_id_callback(self, callback):
        self._trace_id = callback

    # ---- files

    def export_chrome_trace(self, path):
        """Write the JSON file that chrome://tracing and Perfetto read, compressed if the name ends with .gz."""
        self.events().export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write lines `outer;inner microseconds`, which flame graph tools read. metric: self_cpu_time_total."""
        files.stacks(self.events(), path, metric)

    def export_memory_timeline(self, path, device=None):
        """Write the bytes in use over time: a page for .html, else JSON (.gz: compressed). Needs profile_memory."""
        if device not in (None, "cpu"):
            raise RuntimeError(f"export_memory_timeline: device is {device!r}; there is 'cpu' alone")
        files.memory_timeline(self.events(), path)

    def export_html(self, path):
        """Write a page with flame charts, memory over time and a table. It needs no network."""
        page.write(self.events(), path)
