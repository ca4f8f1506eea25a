"""Files of a profile: a trace for Chrome and Perfetto, stacks for flame graphs, a page."""

import html
import json
import os
import threading
import time
from pathlib import Path

from tinygrad_ext.core.call.boundary import boundary

_COLOURS = {"operation": "#8ab4d8", "range": "#e5c07b", "backward": "#c39bd3"}
_CATEGORIES = {"operation": "cpu_op", "range": "user_annotation", "backward": "cpu_op"}
_STYLE = (
    "body{font:13px sans-serif;margin:1em}#chart{position:relative;overflow:hidden;border:1px solid #ccc}"
    "#chart i{position:absolute;height:17px;overflow:hidden;white-space:nowrap;font-style:normal;font-size:11px}"
)
# zooms to the slice that is clicked, and back to all when the empty chart is
_SCRIPT = """
const chart = document.getElementById("chart"), note = document.getElementById("note");
function draw(from, to) {
  chart.textContent = "";
  const scale = chart.clientWidth / Math.max(to - from, 1);
  let deepest = 0;
  for (const [name, begin, end, depth, colour, more] of slices) {
    deepest = Math.max(deepest, depth);
    if (end < from || begin > to || (end - begin) * scale < 0.3) continue;
    const box = document.createElement("i");
    box.textContent = name;
    box.title = name + ", " + (end - begin) / 1000 + " us" + (more ? "\\n" + more : "");
    box.style.cssText = "background:" + colour + ";top:" + depth * 18 + "px;left:" +
      (Math.max(begin, from) - from) * scale + "px;width:" + (Math.min(end, to) - Math.max(begin, from)) * scale + "px";
    box.onclick = event => { event.stopPropagation(); note.textContent = box.title; draw(begin, end); };
    chart.append(box);
  }
  chart.style.height = (deepest + 1) * 18 + "px";
}
const whole = () => draw(0, slices.reduce((end, s) => Math.max(end, s[2]), 0));
chart.onclick = whole; whole();
"""


def chrome_trace(events, path, memory):
    """The JSON form of trace events: complete slices, arrows from forward to backward, bytes in use as a counter."""
    where = {"pid": os.getpid(), "tid": threading.get_ident()}
    made, rows = {}, []
    for e in events:
        rows.append(_slice(e, where))
        if e.sequence_nr and e.kind == "backward":
            if e.sequence_nr in made:
                rows += _arrow(made[e.sequence_nr], e, where)
        elif e.sequence_nr and (e.sequence_nr not in made or e.end < made[e.sequence_nr].end):
            made[e.sequence_nr] = e  # the first to end made the node; others opened to it, or passed its result on
    if memory:
        used = sorted((t, n) for e in events for t, n in ((e.begin, e.used_before), (e.end, e.used_after)))
        rows += [{"ph": "C", "name": "bytes in use", "ts": t / 1000, "args": {"bytes": n}, **where} for t, n in used]
    document = {"schemaVersion": 1, "displayTimeUnit": "ns", "traceEvents": rows, "droppedSlices": events.dropped}
    Path(path).write_text(json.dumps(document))


def _slice(e, where):
    said = {"Sequence number": e.sequence_nr, "Input Dims": e.input_shapes, "Line": "".join(e.stack), "Owner": e.owner}
    args = {name: value for name, value in said.items() if value}
    span = {"ts": e.begin / 1000, "dur": (e.end - e.begin) / 1000}
    return {"ph": "X", "cat": _CATEGORIES[e.kind], "name": e.name, **span, **where, "args": args}


def _arrow(forward, backward, where):
    common = {"cat": "fwdbwd", "name": "fwdbwd", "id": backward.sequence_nr, **where}
    return [
        {"ph": "s", "ts": forward.begin / 1000, **common},
        {"ph": "f", "bp": "e", "ts": backward.begin / 1000, **common},
    ]


def stacks(events, path, metric):
    """Lines `outer;inner number` with what each stack of slices took itself, in whole microseconds."""
    if metric != "self_cpu_time_total":
        raise ValueError(f"export_stacks: metric is {metric!r}; expected 'self_cpu_time_total'")
    sums = {}
    for e in events:
        names, at = [], e
        while at is not None:
            names.append(at.name.replace(";", ","))
            at = at.cpu_parent
        key = ";".join(reversed(names))
        sums[key] = sums.get(key, 0) + e.self_cpu_time_total
    Path(path).write_text("".join(f"{key} {round(us)}\n" for key, us in sums.items()))


def page(events, path):
    """A page with a flame chart and the table."""
    start = events[0].begin if events else 0
    rows, depth = [], {}
    for e in events:
        depth[e] = depth[e.cpu_parent] + 1 if e.cpu_parent else 0
        more = "\n".join([*e.stack, *filter(None, [e.owner, str(e.input_shapes or "")])])
        rows.append([e.name, e.begin - start, e.end - start, depth[e], _COLOURS[e.kind], more])
    data = json.dumps(rows).replace("<", "\\u003c")  # no name ends the script
    table = html.escape(events.key_averages().table(sort_by="self_cpu_time_total"))
    Path(path).write_text(
        f"<!doctype html><meta charset=utf-8><title>profile</title><style>{_STYLE}</style><div id=chart></div>"
        f"<pre id=note></pre><pre>{table}</pre><script>const slices = {data};{_SCRIPT}</script>\n"
    )


@boundary
def tensorboard_trace_handler(dir_name, worker_name=None):
    """For on_trace_ready: a function that writes each trace into a folder, as `worker.time.pt.trace.json`."""

    def write(prof):
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{os.uname().nodename}_{os.getpid()}"
        prof.export_chrome_trace(folder / f"{worker}.{time.time_ns()}.pt.trace.json")

    return write
