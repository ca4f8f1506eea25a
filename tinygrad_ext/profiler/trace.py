"""The trace file: complete slices, arrows from forward to backward, bytes in use as a counter, as JSON.

Readers cut times to whole nanoseconds, each in its own way, and drop slices that overlap afterwards. So each time
stands half a nanosecond behind its own: it is cut to what it was.
"""

import gzip
import json
import os
from pathlib import Path

_CATEGORIES = {
    "operation": "cpu_op",
    "backward": "cpu_op",
    "range": "user_annotation",
    "module": "python_function",
    "graph": "graph",
    "plan": "graph",
    "node": "graph_node",
    "tile": "graph_node",
}


def write(events, path):
    """Write a list of events; its metadata stands beside them."""
    pid = os.getpid()
    rows = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "tinygrad_ext"}}]
    for thread in dict.fromkeys(e.thread for e in events):
        name = f"thread {thread}"
        rows.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "ts": 0, "args": {"name": name}})
    rows += [_slice(e, pid) for e in events]
    for number, (forward, backward) in enumerate(arrows(events), 1):
        rows += _arrow(number, forward, backward, pid)
    used = memory(events)
    rows += [
        {"ph": "C", "name": "bytes in use", "pid": pid, "tid": 0, "ts": _us(t), "args": {"bytes": n}} for t, n in used
    ]
    document = {"schemaVersion": 1, "displayTimeUnit": "ns", **events.metadata, "droppedSlices": events.dropped}
    data = json.dumps({**document, "traceEvents": rows}).encode()
    Path(path).write_bytes(gzip.compress(data) if str(path).endswith(".gz") else data)


def memory(events):
    """(time in ns, bytes in use by the process), by time; nothing where it was not asked for."""
    if not any(e.used_before or e.used_after for e in events):
        return []
    points = sorted((t, n) for e in events for t, n in ((e.begin, e.used_before), (e.end, e.used_after)))
    return [point for i, point in enumerate(points) if not i or point[1] != points[i - 1][1]]


def arrows(events):
    """Pairs (event, backward event that follows from it), of operations and of instructions of compiled programs."""
    made, nodes, found = {}, {}, []
    for e in sorted(events, key=lambda e: (e.end, e.begin)):
        if e.sequence_nr > 0 and e.kind != "backward":
            made.setdefault(e.sequence_nr, e)  # the first to end made the node; others opened to it, or passed it on
    for e in events:
        if e.kind == "backward" and e.sequence_nr in made:
            found.append((made[e.sequence_nr], e))
        for number in e.plan.derives if e.plan else ():
            if number in nodes and nodes[number] is not e:
                found.append((nodes[number], e))
        for number in e.plan.made if e.plan else ():
            nodes[number] = e
    return found


def _us(ns):
    return round((ns + 0.5) / 1000, 4)


def _slice(e, pid):
    said = {
        "Sequence number": max(e.sequence_nr, 0),
        "Input Dims": e.input_shapes,
        "Line": e.stack[0] if e.stack else "",
    }
    said |= {"Stack": e.stack[1:], "Owner": e.owner, "Overload": e.overload_name, "Flops": e.flops}
    if e.plan:
        said |= {"Ops": e.plan.ops, "Bytes": e.plan.nbytes}
        if e.stack or len(e.plan.nodes) > 1:
            said["Nodes"] = [{"op": op, "line": line, "owner": owner} for op, line, owner, _ in e.plan.nodes]
    elif e.used_before or e.used_after:
        said["Bytes"] = e.cpu_memory_usage
    where = {"pid": pid, "tid": e.thread, "ts": _us(e.begin), "dur": _us(e.end - e.begin)}
    args = {name: value for name, value in said.items() if value or (value == 0 and name == "Bytes")}
    return {"ph": "X", "cat": _CATEGORIES[e.kind], "name": e.name, **where, "args": args}


def _arrow(number, forward, backward, pid):
    common = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": pid}
    return [
        {"ph": "s", "tid": forward.thread, "ts": _us(forward.begin), **common},
        {"ph": "f", "bp": "e", "tid": backward.thread, "ts": _us(backward.begin), **common},
    ]
