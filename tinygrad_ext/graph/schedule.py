"""The order in which steps run, which of them form a group, and which buffers take over the memory of others.

A step over tiles joins the first group of its sizes and layout that stands behind all it reads; so what is computed
between two steps that do not need it does not part them. A value that only its group reads is `local`: it lives in the
scratch and has no memory.

Rejected: fusion as a pass over the graph, which knows no sizes, sees composites from outside, and would need nodes that
no op's record describes.
"""

GROUP = 120  # values that a group may have: below TGX_GROUP_OPERANDS of kernels/plan.h


class Group:
    """Steps over tiles that run together."""

    code = "tile"

    def __init__(self, key):
        self.key, self.steps, self.values = key, [], set()

    def fits(self, step):
        return len(self.values) + len(step.operands) <= GROUP

    def add(self, step):
        self.steps.append(step)
        self.values.update(map(id, step.operands))


def needed(steps, outputs):
    """The steps without those whose results nobody reads. outputs: Buffers."""
    wanted = set(map(id, outputs))
    kept = []
    for step in reversed(steps):
        if step.effect or any(id(b) in wanted for b in step.writes):
            kept.append(step)
            wanted.update(id(b) for b, _ in step.reads)
    return kept[::-1]


def arrange(steps):
    """Items in the order in which they run: Groups, and Steps that stand alone."""
    items, open_groups, written = [], {}, {}
    for step in steps:
        if step.code != "tile":
            items.append(step)
            if step.changes:
                open_groups.clear()
            at = len(items) - 1
        else:
            if not step.work:
                continue
            after = -1
            for buffer, aligned in step.reads:
                after = max(after, written.get(id(buffer), -1) + (not aligned))
            at = _join(step, after, items, open_groups)
        for buffer in step.writes:
            written[id(buffer)] = at
    return items


def _join(step, after, items, open_groups):
    """Put a step into a group at `after` or behind; where that stands among the items."""
    groups = open_groups.setdefault(step.key, [])
    for at in groups:
        if at >= after and items[at].fits(step):
            items[at].add(step)
            return at
    groups.append(len(items))
    items.append(Group(step.key))
    items[-1].add(step)
    return len(items) - 1


def measure(items, outputs):
    """Set the lives of buffers (first and last item), and which are local; returns those that need the arena."""
    found = {}
    kept = set(map(id, outputs))
    for at, item in enumerate(items):
        for step in item.steps if item.code == "tile" and type(item) is Group else (item,):
            for buffer in step.writes:
                _use(buffer, at, found)
            for buffer, _ in step.reads:
                _use(buffer, at, found)
    for buffer in found.values():
        group = items[buffer.first]
        inside = buffer.base < 0 and buffer.constant is None and id(buffer) not in kept
        buffer.local = inside and buffer.first == buffer.last and type(group) is Group
    return [b for b in found.values() if b.base < 0 and b.constant is None and not b.local]


def _use(buffer, at, found):
    if id(buffer) not in found:
        found[id(buffer)] = buffer
        buffer.first = at
    buffer.last = at


def take_over(items, outputs):
    """Let results lie in the memory of operands that are read for the last time, where a step may write over them."""
    kept = set(map(id, outputs))
    for at, item in enumerate(items):
        if type(item) is Group:
            _take_over_in_group(item, at, kept)
        elif item.code == "raw" and item.over is not None:
            _merge(*item.over, at, kept)


def _take_over_in_group(group, at, kept):
    last, elsewhere = {}, set()  # elsewhere: some step reads other elements of it than those that are written
    for number, step in enumerate(group.steps):
        for buffer, aligned in step.reads:
            last[id(buffer)] = number
            if not aligned:
                elsewhere.add(id(buffer))
    for number, step in enumerate(group.steps):
        for buffer, _ in step.reads:
            mine = last[id(buffer)] <= number and id(buffer) not in elsewhere and not step.writes[0].local
            if mine and _merge(buffer, step.writes[0], at, kept):
                break


def _merge(old, new, at, kept):
    """Let `new`, first written at item `at`, lie where `old` lies, if that is read there for the last time; whether."""
    while old.into is not None:
        old = old.into
    if (
        old.base >= 0
        or old.constant is not None
        or old.local
        or new.base >= 0
        or new.local
        or new.into is not None
        or old is new
    ):
        return False
    if old.last != at or new.first != at or old.nbytes != new.nbytes or id(old) in kept or id(new) in kept:
        return False
    new.into, old.last = old, new.last
    return True
