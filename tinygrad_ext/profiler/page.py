"""A page of its own, without network: a flame chart for each thread, memory over time, a table that sorts."""

import html
import json
from pathlib import Path

from tinygrad_ext.profiler import trace

_COLOURS = {
    "operation": "#8ab4d8",
    "range": "#e5c07b",
    "module": "#d8d0a0",
    "backward": "#c39bd3",
    "graph": "#7fbf9f",
    "plan": "#a3d9b1",
    "node": "#f0a58f",
    "tile": "#f5c6a5",
}
_STYLE = """
body { font: 13px sans-serif; margin: 1em; color: #222 }
h2 { font-size: 14px; margin: 1em 0 .3em }
.chart { position: relative; overflow: hidden; border: 1px solid #ccc }
.chart i { position: absolute; height: 17px; overflow: hidden; white-space: nowrap; font: 11px sans-serif;
  cursor: pointer; box-sizing: border-box; border-right: 1px solid #fff8 }
.chart i.dim { opacity: .25 }
#note { min-height: 5em; background: #f6f6f6; padding: .5em; white-space: pre-wrap }
#memory { width: 100%; height: 90px; border: 1px solid #ccc; display: block }
#memory path { fill: #8ab4d866; stroke: #47789f; vector-effect: non-scaling-stroke }
table { border-collapse: collapse } th { cursor: pointer; background: #eee }
th, td { padding: 2px 8px; text-align: right }
th:first-child, td:first-child { text-align: left } tr:hover td { background: #f3f7fb }
.key span { padding: 1px 6px; margin-right: 4px }
"""
_SCRIPT = """
const names = data.names, threads = data.threads, memory = data.memory, end = data.end;
const note = document.getElementById("note"), charts = document.getElementById("charts");
let from = 0, to = end, wanted = "";
const us = ns => (ns / 1000).toLocaleString("en", {maximumFractionDigits: 3}) + " us";
function drawChart(chart, slices) {
  chart.textContent = "";
  const scale = chart.clientWidth / Math.max(to - from, 1), last = [];
  let deepest = 0;
  for (const [name, begin, duration, depth, colour, more] of slices) {
    const left = Math.max(begin, from), right = Math.min(begin + duration, to);
    deepest = Math.max(deepest, depth);
    if (right < from || left > to) continue;
    const x = (left - from) * scale, width = Math.max((right - left) * scale, .5);
    if (width < 1 && x < (last[depth] ?? -1) + 1) continue;   // nothing to be seen beside the one before
    last[depth] = x;
    const box = document.createElement("i"), text = names[name];
    if (width > 20) box.textContent = text;
    box.title = text + ", " + us(duration) + (more ? "\\n" + names[more] : "");
    if (wanted && !text.includes(wanted)) box.className = "dim";
    box.style.cssText = `background:${data.colours[colour]};top:${depth * 18}px;left:${x}px;width:${width}px`;
    box.onclick = event => { event.stopPropagation(); note.textContent = box.title; show(begin, begin + duration); };
    chart.append(box);
  }
  chart.style.height = (deepest + 1) * 18 + "px";
}
function drawMemory() {
  const svg = document.getElementById("memory");
  if (!svg) return;
  const most = Math.max(...memory.map(m => m[1]), 1), low = Math.min(...memory.map(m => m[1]));
  const y = n => 88 - 84 * (n - low) / Math.max(most - low, 1), x = t => 1000 * (t - from) / Math.max(to - from, 1);
  let path = "", before = memory[0][1];
  for (const [t, n] of memory) {
    path += `${path ? "L" : "M"}${x(t)},${y(before)}L${x(t)},${y(n)}`;
    before = n;
  }
  path += "L" + x(end) + "," + y(before);
  svg.innerHTML = "<path d='" + path + "L" + x(end) + ",90L" + x(memory[0][0]) + ",90Z'/>";
  document.getElementById("most").textContent = `${low.toLocaleString("en")} to ${most.toLocaleString("en")} bytes`;
}
function show(begin, finish) {
  [from, to] = [begin, finish];
  threads.forEach(([, slices], i) => drawChart(document.getElementById("chart" + i), slices));
  drawMemory();
}
threads.forEach(([title], i) => {
  const head = document.createElement("h2"), chart = document.createElement("div");
  head.textContent = title; chart.className = "chart"; chart.id = "chart" + i;
  chart.onclick = () => { note.textContent = ""; show(0, end); };
  charts.append(head, chart);
});
document.getElementById("find").oninput = event => { wanted = event.target.value; show(from, to); };
const rows = document.querySelector("tbody"), heads = [...document.querySelectorAll("th")];
heads.forEach((head, i) => head.onclick = () => {
  const value = row => i ? Number(row.cells[i].dataset.value) : row.cells[0].textContent;
  const sorted = [...rows.rows].sort((a, b) => i ? value(b) - value(a) : value(a).localeCompare(value(b)));
  rows.append(...sorted);
});
window.onresize = () => show(from, to);
show(0, end);
document.body.dataset.drawn = document.querySelectorAll(".chart i").length;
"""


def write(events, path):
    """Write the page of a list of events."""
    start = min((e.begin for e in events), default=0)
    end = max((e.end for e in events), default=0) - start
    names, colours = {"": 0}, list(_COLOURS)
    threads, depth = {}, {}
    for e in events:
        depth[e] = depth[e.cpu_parent] + 1 if e.cpu_parent else 0
        row = threads.setdefault(e.thread, [])
        where = [_number(names, e.name), e.begin - start, e.end - e.begin, depth[e], colours.index(e.kind)]
        row.append([*where, _number(names, "\n".join(_more(e)))])
    memory = [[t - start, n] for t, n in trace.memory(events)]
    shown = [[f"thread {thread}", rows] for thread, rows in threads.items()]
    data = {"names": list(names), "threads": shown, "memory": memory, "end": end, "colours": list(_COLOURS.values())}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # no name ends the script
    key = "".join(f'<span style="background:{colour}">{kind}</span>' for kind, colour in _COLOURS.items())
    chart = "<h2>bytes in use, <span id=most></span></h2>"
    chart += '<svg id=memory viewBox="0 0 1000 90" preserveAspectRatio=none></svg>'
    lost = f"<p>{events.dropped} older slices are missing.</p>" if events.dropped else ""
    Path(path).write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>profile</title><style>{_STYLE}</style><body>"
        f"<p class=key>{key} <input id=find placeholder='find a name'> click a slice to look into it</p>{lost}"
        f"<div id=charts></div>{chart if memory else ''}<h2>slice</h2><div id=note></div><h2>by name</h2>"
        f"{_table(events)}<script>const data = {text};{_SCRIPT}</script>\n"
    )


def _number(names, name):
    return names.setdefault(name, len(names))


def _more(e):
    if e.plan:
        yield from (f"{op} {line}" for op, line, _, _ in e.plan.nodes)
        yield f"{e.plan.nbytes} bytes written"
    else:
        yield from e.stack
    if e.owner:
        yield e.owner
    if any(e.input_shapes):
        yield str(e.input_shapes)


def _table(events):
    heads = ["name", "calls", "self us", "total us", "us a call", "self bytes"]
    rows = []
    for a in sorted(events.key_averages(), key=lambda a: -a.self_cpu_time_total):
        values = [a.count, a.self_cpu_time_total, a.cpu_time_total, a.cpu_time, a.self_cpu_memory_usage]
        cells = "".join(
            f"<td data-value={v}>{v:,.1f}" if i else f"<td data-value={v}>{v}" for i, v in enumerate(values)
        )
        rows.append(f"<tr><td>{html.escape(a.key)}{cells}")
    return f"<table><thead><tr>{''.join(f'<th>{h}' for h in heads)}<tbody>{''.join(rows)}</table>"
