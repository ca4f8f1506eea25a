"""Events with their parents, and averages over those of one name."""

import enum
from typing import NamedTuple

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.profiler import table as tables
from tinygrad_ext.profiler.flops import flops_of


class DeviceType(enum.Enum):
    """Where the time of an event was spent."""

    CPU = 0
    CUDA = 1


class Interval(NamedTuple):
    """From `start` to `end`, in us."""

    start: float
    end: float

    def elapsed_us(self):
        return self.end - self.start


class Plan(NamedTuple):
    """What an instruction of a compiled program stands for.

    Attributes:
        ops: names, in the order in which they run. nodes: (op, line, owner, shapes of the arguments) of the nodes of
            the graph that they come from. nbytes: that are written. made, derives: numbers of the nodes whose
            derivative is elsewhere, and of those whose derivative this is.
    """

    ops: tuple
    nodes: tuple
    nbytes: int
    made: tuple
    derives: tuple


class _Times:
    """What there is of an event of the CPU and of an average; of devices nothing."""

    device_time = device_time_total = self_device_time_total = 0
    device_memory_usage = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = False
    node_id, use_device, device_type = -1, None, DeviceType.CPU

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: tables.duration(self.cpu_time))
    cpu_time_total_str = property(lambda self: tables.duration(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: tables.duration(self.self_cpu_time_total))


class FunctionEvent(_Times):
    """A slice, with those it lies in and those inside.

    Attributes:
        name, overload_name: "aten::add", "Tensor"; of others than ops the name alone.
        kind: "operation", "range", "module", "backward"; of compiled programs "graph" (a call that a gradient is asked
            of), "plan" (a run), "node" and "tile" (what one node says, or a group of pointwise ones: `plan` tells).
        begin, end: ns; time_range: us. thread: its number in the system. id: place in the list.
        input_shapes, concrete_inputs: of the arguments, () and None for what is another thing.
        owner: who brought the op.
        stack: the user's lines, the innermost first.
        sequence_nr: of the history node that it made or, in a backward pass, that it is; -1: none.
        cpu_parent, cpu_children: events.
        cpu_time_total, self_cpu_time_total: us. cpu_memory_usage, self_cpu_memory_usage: bytes. flops: or None.
    """

    count = 1

    def __init__(self, found, parent, thread, number=0, memory=0, flops=False):
        self.id, self.thread, self.kind = number, thread, found["kind"]
        if self.kind == "range" and found["name"].startswith("nn.Module: "):
            self.kind = "module"
        named = self.kind in ("operation", "node") and "::" in found["name"]
        self.name, _, self.overload_name = found["name"].partition(".") if named else (found["name"], "", "")
        self.begin, self.end = found["begin"], found["end"]
        self.input_shapes, self.concrete_inputs = found["shapes"] or ((), ())
        self.stack, self.owner = list(found["line"]), found["owner"]
        self.sequence_nr = found["seq"] or -1
        self.plan = Plan(*found["plan"]) if found["plan"] else None
        self.used_before, self.used_after = found["used_before"], found["used_after"]
        self.cpu_parent, self.cpu_children = parent, []
        self.cpu_time_total = self.self_cpu_time_total = (self.end - self.begin) / 1000
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.used_after - self.used_before
        counted = flops and not (parent is not None and parent.flops)  # what a counted op does inside is its own
        self.flops = flops_of(self.name, self.input_shapes, self.concrete_inputs) if counted else None
        if parent is not None:
            parent.cpu_children.append(self)
            parent.self_cpu_time_total -= self.cpu_time_total
            parent.self_cpu_memory_usage -= self.cpu_memory_usage

    @property
    def key(self):
        return self.name

    @property
    def time_range(self):
        return Interval(self.begin / 1000, self.end / 1000)

    @property
    def is_user_annotation(self):
        return self.kind == "range"

    def __repr__(self):
        return f"<event {self.name}, {self.cpu_time_total:.3f} us>"


_SUMS = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage")


class FunctionEventAvg(_Times):
    """What the events of one key sum up to."""

    def __init__(self, first=None):
        self.key, self.overload_name = (first.key, first.overload_name) if first else (None, "")
        self.input_shapes, self.stack, self.owner = (
            (first.input_shapes, first.stack, first.owner) if first else ((), [], "")
        )
        self.count = self.cpu_time_total = self.self_cpu_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0

    def add(self, event):
        """Take another event, or average, into the sum."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(event, name))
        self.flops += event.flops or 0
        return self

    def __repr__(self):
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.3f} us>"


def linked(slices, thread, first=0, **options):
    """Events of slices sorted by begin. A slice ends after those inside: a full ring keeps it if it keeps them."""
    found, above = [], []
    for number, one in enumerate(slices, first):
        while above and above[-1][0] >= one["depth"]:
            above.pop()
        above.append((one["depth"], FunctionEvent(one, above[-1][1] if above else None, thread, number, **options)))
        found.append(above[-1][1])
    return found


@boundary
class EventList(list):
    """Events, or averages."""

    def __init__(self, events=(), dropped=0, metadata=None):
        super().__init__(events)
        self.dropped, self.metadata = dropped, metadata or {}

    @property
    def self_cpu_time_total(self):
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """One row for each name, and for each shape, innermost lines of the program, and overload if asked."""
        rows = {}
        for e in self:
            shapes = e.input_shapes if group_by_input_shapes else ()
            overload = e.overload_name if group_by_overload_name else ""
            key = (e.key, overload, shapes, tuple(e.stack[:group_by_stack_n]))
            if key not in rows:
                made = rows[key] = FunctionEventAvg(e)
                made.overload_name, made.input_shapes = overload, shapes
                made.stack = e.stack[: max(group_by_stack_n, 1)]
            rows[key].add(e)
        return EventList(rows.values(), self.dropped, self.metadata)

    def total_average(self):
        """One row for all."""
        total = FunctionEventAvg()
        for e in self:
            total.add(e)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """Text with a row for each event or average.

        sort_by: "count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
        "self_cpu_memory_usage", "flops", the largest first; None: as they come. row_limit: -1 for all. Widths: of the
        columns, longer texts are cut. top_level_events_only: leave out what lies inside others. time_unit: "s", "ms",
        "us"; None: what fits each. Raises AttributeError for another sort_by.
        """
        rows = [e for e in self if not top_level_events_only or getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            if sort_by not in _SORTS:
                raise AttributeError(f"table: sort_by is {sort_by!r}; expected one of {', '.join(_SORTS)}")
            rows.sort(key=lambda e: getattr(e, sort_by) or 0, reverse=True)
        widths = max_name_column_width, max_shapes_column_width, max_src_column_width
        return tables.text(rows[: row_limit if row_limit >= 0 else None], self, widths, header, time_unit)

    def export_chrome_trace(self, path):
        """Write the JSON file that chrome://tracing and Perfetto read, compressed if the name ends with .gz."""
        from tinygrad_ext.profiler import trace  # lazy: tables need no files

        trace.write(self, path)

    def supported_export_stacks_metrics(self):
        return ["self_cpu_time_total"]

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write lines `outer;inner microseconds`, which flame graph tools read. metric: self_cpu_time_total."""
        from tinygrad_ext.profiler import files  # lazy: tables need no files

        files.stacks(self, path, metric)

    def __str__(self):
        return self.table()


_SORTS = (
    "count",
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "flops",
)
