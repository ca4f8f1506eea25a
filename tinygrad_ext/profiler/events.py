"""Events with their parents, averages over those of one name, and the table."""

from tinygrad_ext.core.call.boundary import boundary


class FunctionEvent:
    """A slice: name, kind ("operation", "range", "backward"), time_range in us, cpu_parent, cpu_children and more.

    Attributes:
        begin, end: ns. input_shapes: of the arguments, () for what is no tensor. stack: the user's line, in a list.
        owner: who brought the op. sequence_nr: of the history node that it made or, in a backward pass, that it is.
        cpu_time_total, self_cpu_time_total: us. cpu_memory_usage, self_cpu_memory_usage: bytes.
    """

    def __init__(self, found, parent):
        self.name = self.key = found["name"]
        self.kind, self.begin, self.end = found["kind"], found["begin"], found["end"]
        self.input_shapes, self.stack = found["shapes"], [found["line"]] if found["line"] else []
        self.owner, self.sequence_nr, self.count = found["owner"], found["seq"], 1
        self.used_before, self.used_after = found["used_before"], found["used_after"]
        self.cpu_parent, self.cpu_children = parent, []
        self.cpu_time_total = self.self_cpu_time_total = (self.end - self.begin) / 1000
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.used_after - self.used_before
        if parent is not None:
            parent.cpu_children.append(self)
            parent.self_cpu_time_total -= self.cpu_time_total
            parent.self_cpu_memory_usage -= self.cpu_memory_usage

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count

    def __repr__(self):
        return f"<event {self.name}, {self.cpu_time_total:.3f} us>"


class FunctionEventAvg:
    """What the events of one key sum up to."""

    def __init__(self, first):
        self.key, self.input_shapes, self.stack, self.owner = first.key, first.input_shapes, first.stack, first.owner
        self.count = self.cpu_time_total = self.self_cpu_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def add(self, event):
        for name in ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage"):
            setattr(self, name, getattr(self, name) + getattr(event, name))

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count

    def __repr__(self):
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.3f} us>"


def linked(slices):
    """Events of slices sorted by begin. A slice ends after those inside: a full ring keeps it if it keeps them."""
    found, above = [], []
    for one in slices:
        while above and above[-1][0] >= one["depth"]:
            above.pop()
        above.append((one["depth"], FunctionEvent(one, above[-1][1] if above else None)))
        found.append(above[-1][1])
    return found


@boundary
class EventList(list):
    """Events, or averages."""

    def __init__(self, events, dropped=0):
        super().__init__(events)
        self.dropped = dropped

    @property
    def self_cpu_time_total(self):
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """One row for each name, and for each shape and line if asked."""
        rows = {}
        for e in self:
            key = (e.name, e.input_shapes if group_by_input_shape else (), tuple(e.stack[:group_by_stack_n]))
            if key not in rows:
                rows[key] = FunctionEventAvg(e)
            rows[key].add(e)
        return EventList(rows.values(), self.dropped)

    def total_average(self):
        """One row for all."""
        total = FunctionEventAvg(self[0])
        total.key = "Total"
        for e in self:
            total.add(e)
        return total

    def table(self, sort_by=None, row_limit=100, max_name_column_width=55, header=None):
        """Text with a row for each event or average.

        sort_by: "count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
        "self_cpu_memory_usage", the largest first; None: as they come. row_limit: -1 for all.
        """
        rows = list(self)
        if sort_by is not None:
            if sort_by not in _SORTS:
                raise AttributeError(f"table: sort_by is {sort_by!r}; expected one of {', '.join(_SORTS)}")
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        return _text(rows[: row_limit if row_limit >= 0 else None], self, max_name_column_width, header)

    def __str__(self):
        return self.table()


_SORTS = ("count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage")


def _text(rows, whole, width, header):
    total = whole.self_cpu_time_total or 1
    memory = any(e.cpu_memory_usage or e.self_cpu_memory_usage for e in whole)
    shapes, lines = any(e.input_shapes for e in whole), any(e.stack for e in whole)
    heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    heads += ["CPU Mem", "Self CPU Mem"] * memory + ["# of Calls"] + ["Input Shapes"] * shapes
    heads += ["Source Location"] * lines
    cells = [heads]
    for e in rows:
        name = e.key if len(e.key) <= width else e.key[: width - 3] + "..."
        row = [name, f"{e.self_cpu_time_total / total:.2%}", duration(e.self_cpu_time_total)]
        row += [f"{e.cpu_time_total / total:.2%}", duration(e.cpu_time_total), duration(e.cpu_time)]
        row += [size(e.cpu_memory_usage), size(e.self_cpu_memory_usage)] * memory + [str(e.count)]
        row += [str(e.input_shapes)] * shapes + ["".join(e.stack)] * lines
        cells.append(row)
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    rule = "  ".join("-" * w for w in widths)
    text = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in cells]
    text = [*([header] if header else []), rule, text[0], rule, *text[1:], rule]
    text.append(f"Self CPU time total: {duration(whole.self_cpu_time_total)}")
    if whole.dropped:
        text.append(
            f"{whole.dropped} older slices are missing: profile(capacity=...) keeps more, a schedule records less"
        )
    return "\n".join(text) + "\n"


def duration(us):
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if us >= scale:
            return f"{us / scale:.3f}{unit}"
    return f"{us:.3f}us"


def size(count):
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(count) >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{count} B"
