"""`profile`: recorders that start and end with the steps of a program."""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.grad.events import Recorder
from tinygrad_ext.profiler import files
from tinygrad_ext.profiler.events import EventList, linked
from tinygrad_ext.profiler.schedules import ProfilerAction, ProfilerActivity

_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


@boundary
class profile:
    """Record the operations, ranges and backward nodes of this thread inside a `with`.

    Args:
        activities: ProfilerActivity.CPU is the only one. schedule: step number -> ProfilerAction; without it all is
            recorded. on_trace_ready: called with the profile when a recording is complete.
        record_shapes: note the shapes of tensor arguments. profile_memory: note the bytes that the process has in use
            before and after. with_stack: note the user's line, and who brought the op.
        capacity: slices that are kept; beyond it the oldest go, which `dropped` counts and the table says.

    with_flops and with_modules raise NotImplementedError.

    >>> import tinygrad_ext as tg
    >>> with tg.profiler.profile() as p:
    ...     _ = tg.ones(2) + 1
    >>> [e.name for e in p.events()]
    ['aten::ones', 'aten::add.Tensor']
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
        capacity=1 << 18,
    ):
        for name, asked in (("with_flops", with_flops), ("with_modules", with_modules)):
            if asked:
                raise NotImplementedError(
                    f"profile: {name}=True is not there; leave it out, or name parts by record_function"
                )
        for activity in activities or ():
            if activity is not ProfilerActivity.CPU:
                raise RuntimeError(f"profile: activities has {activity}; there is no such device here: leave it out")
        self._options = {"lines": with_stack, "shapes": record_shapes, "memory": profile_memory}
        self._capacity, self._schedule, self.on_trace_ready = capacity, schedule, on_trace_ready
        self.profile_memory, self.step_num = profile_memory, 0
        self.current_action = ProfilerAction.NONE
        self._recorder, self._found, self.dropped, self._range = None, None, 0, None

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
            if self._recorder is None:
                self._recorder = Recorder(self._capacity, **self._options)
                self._recorder.__enter__()
            if self._schedule:
                self._range = f"ProfilerStep#{self.step_num}"
                self._recorder.begin(self._range)

    def _end_range(self):
        if self._recorder is not None and self._range:
            self._recorder.end(self._range)
        self._range = None

    def _finish(self):
        self._end_range()
        recorder, self._recorder = self._recorder, None
        recorder.__exit__(None, None, None)
        self._found, self.dropped = recorder.slices(), recorder.dropped

    def events(self):
        """Events of the last complete recording, by begin. Raises RuntimeError if there is none."""
        if self._found is None:
            raise RuntimeError("profile: nothing is recorded yet; ask after the `with`, or in on_trace_ready")
        return EventList(linked(self._found), dropped=self.dropped)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """Counts and times of the events with one name; and one row for each shape, or user's line, if asked."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path):
        """Write the JSON file that chrome://tracing and Perfetto read."""
        files.chrome_trace(self.events(), path, self.profile_memory)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write lines `outer;inner microseconds`, which flame graph tools read. metric: self_cpu_time_total."""
        files.stacks(self.events(), path, metric)

    def export_html(self, path):
        """Write a page that shows the flame chart and the table, and needs no network."""
        files.page(self.events(), path)
