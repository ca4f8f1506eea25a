"""What Perfetto's trace processor asks of a JSON trace: what breaks a rule there is dropped, and counted as an error.

Times are cut to whole nanoseconds, by older versions from a double and by newer ones from the digits.
"""

import json
from decimal import Decimal


class Slice:
    def __init__(self, row, begin, end, parent):
        self.row, self.begin, self.end, self.parent, self.name = row, begin, end, parent, row["name"]


def imported(path):
    """(slices, arrows as pairs of slices, counters {name: [(ns, value)]}); AssertionError where a rule is broken."""
    text = path.read_text()
    document = json.loads(text)
    exact = json.loads(text, parse_float=Decimal)
    assert isinstance(document["traceEvents"], list)
    found = [_slices(rows["traceEvents"], cut) for rows, cut in ((document, _of_double), (exact, _of_digits))]
    assert [(s.begin, s.end) for s in found[0]] == [(s.begin, s.end) for s in found[1]]
    slices, rows = found[0], document["traceEvents"]
    return slices, _arrows(rows, slices), _counters(rows)


def _of_double(us):
    return int(float(us) * 1000.0)


def _of_digits(us):
    whole, _, part = format(Decimal(us), "f").partition(".")
    return int(whole) * 1000 + int(float("0." + (part or "0")) * 1000)


def _check(row):
    assert row["ph"] in "XsfCM" and isinstance(row["name"], str) and row["name"]
    assert isinstance(row["pid"], int) and 0 <= row["pid"] < 2**32
    assert isinstance(row["tid"], int) and 0 <= row["tid"] < 2**32
    assert row["ts"] >= 0


def _slices(rows, cut):
    """Complete slices by begin (then the file's order), each inside another of its thread or beside it."""
    found, open_ones = [], {}
    for row in rows:
        _check(row)
    complete = [(cut(row["ts"]), row) for row in rows if row["ph"] == "X"]
    for begin, row in sorted(complete, key=lambda pair: pair[0]):
        end = begin + cut(row["dur"])
        above = open_ones.setdefault((row["pid"], row["tid"]), [])
        assert row["dur"] >= 0
        while above and above[-1].end <= begin:
            above.pop()
        assert not above or end <= above[-1].end, f"{row['name']} overlaps {above[-1].name}"
        made = Slice(row, begin, end, above[-1] if above else None)
        above.append(made)
        found.append(made)
    return found


def _enclosing(slices, row):
    at = _of_double(row["ts"])
    inside = [s for s in slices if s.row["tid"] == row["tid"] and s.begin <= at < max(s.end, s.begin + 1)]
    assert inside, f"the arrow {row['id']} begins or ends in no slice"
    return max(inside, key=lambda s: (s.begin, -s.end))


def _arrows(rows, slices):
    starts, pairs = {}, []
    for row in sorted((r for r in rows if r["ph"] in "sf"), key=lambda r: r["ts"]):
        if row["ph"] == "s":
            assert row["id"] not in starts
            starts[row["id"]] = _enclosing(slices, row)
        else:
            assert row["bp"] == "e"
            pairs.append((starts.pop(row["id"]), _enclosing(slices, row)))
    assert not starts
    return pairs


def _counters(rows):
    found = {}
    for row in rows:
        if row["ph"] == "C":
            (value,) = row["args"].values()
            assert isinstance(value, int)
            found.setdefault(row["name"], []).append((_of_double(row["ts"]), value))
    assert all(points == sorted(points, key=lambda p: p[0]) for points in found.values())
    return found
