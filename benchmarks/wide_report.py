"""What is said of a wide run, and the comparison of two JSON files of any kind of run."""

import json
import math
from collections import defaultdict

from benchmarks.report import head, quantity
from benchmarks.wide_run import BELIEVED, OURS, THEIRS

MOST = 200  # rows of the table that are printed; the JSON file has all


def mean(ratios):
    """Geometric mean."""
    return math.exp(sum(math.log(max(r, 1e-9)) for r in ratios) / len(ratios))


def summary(rows, info):
    """Lines: means by family, rows above what is allowed, and what has no ratio."""
    compared = [r for r in rows if r["ratio"] is not None]
    above = sorted((r for r in compared if r["ratio"] > BELIEVED), key=lambda r: -r["ratio"])
    lines = [*head(info), ""]
    if compared:
        lines += [f"{'family':<24} {'rows':>6} {'mean':>6} {'above':>6} {'worst':>7}"]
        families = defaultdict(list)
        for r in compared:
            families[r["group"]].append(r["ratio"])
        for family, found in sorted(families.items(), key=lambda item: -mean(item[1])):
            count = sum(r > BELIEVED for r in found)
            lines.append(f"{family:<24} {len(found):>6} {mean(found):>6.2f} {count:>6} {max(found):>7.2f}")
    if above:
        lines += ["", f"{'ratio':>6} {'ours':>9} {'PyTorch':>9}  row (timed again with more rounds)"]
        for r in above[:MOST]:
            ours, theirs = (quantity(r["values"][name]) for name in (OURS, THEIRS))
            lines.append(f"{r['ratio']:>6.2f} {ours:>9} {theirs:>9}  {r['group']}: {r['name']}")
        if len(above) > MOST:
            lines.append(f"... and {len(above) - MOST} more")
    for title, key in (("PyTorch runs them, ours does not", "missing"), ("were stopped", "stopped")):
        found = [f"{r['name']}: {r[key]}" for r in rows if r.get(key)]
        if found:
            lines += ["", f"{title}: {len(found)}", *(f"  {line}" for line in found[:MOST])]
    total = f", geometric mean {mean([r['ratio'] for r in compared]):.3f}" if compared else ""
    left = sum("left out" in r for r in rows)
    lines += ["", f"{len(above)} of {len(compared)} rows above {BELIEVED}{total}; {left} left out"]
    return lines


def write_json(path, rows, info, whole):
    """All figures; `whole` says whether the run came to its end."""
    with open(path, "w") as f:
        json.dump({"info": info, "whole": whole, "rows": rows}, f, indent=0)


# ---- two runs -------------------------------------------------------------------------------------------------------


def compared(before, after, threshold):
    """Lines of the rows whose ratio to PyTorch, or time where there is none, changed by more than `threshold`."""
    one, two = ({f"{r['group']}: {r['name']}": r for r in data["rows"]} for data in (before, after))
    changed, same = [], 0
    for name in (n for n in one if n in two):
        old, new, what = _figures(one[name], two[name])
        if old is None:
            continue
        change = new / old - 1
        # as many times more as fewer
        if max(new / old, old / new) > 1 + threshold:
            changed.append((change, name, old, new, what))
        else:
            same += 1
    lines = []
    for key in ("cpu", "loops", "threads", "python", "versions"):
        if before["info"].get(key) != after["info"].get(key):
            lines.append(f"{key}: {before['info'].get(key)} before, {after['info'].get(key)} after")
    if changed:
        lines.append(f"{'before':>9} {'after':>9} {'change':>8}")
    for change, name, old, new, what in sorted(changed, reverse=True):
        old, new = (f"{v:.3f}" if what == "ratio" else quantity(v, what) for v in (old, new))
        lines.append(f"{old:>9} {new:>9} {change:>+8.0%}  {name}")
    lines.append(f"{len(changed)} rows changed by more than {threshold:.0%}, {same} did not")
    for title, here, there in (("only before", one, two), ("only after", two, one)):
        found = [n for n in here if n not in there]
        if found:
            lines.append(f"{title}: {len(found)}, such as {'; '.join(found[:3])}")
    return lines


def _figures(old, new):
    if old["ratio"] and new["ratio"]:
        return old["ratio"], new["ratio"], "ratio"
    a, b = (r["values"].get(OURS) for r in (old, new))
    return (a, b, old.get("unit", "s")) if a and b else (None, None, "")
