# cython: language_level=3
"""The order in which steps run, which of them form a group, and which buffers take over the memory of others.

A step over tiles joins the first group of its sizes and layout that stands behind all it reads; so what is computed
between two steps that do not need it does not part them. A value that only its group reads is `local`: it lives in the
scratch and has no memory.

Rejected: fusion as a pass over the graph, which knows no sizes, sees composites from outside, and would need nodes that
no op's record describes. Compiled because a plan is made for each new size: as Python it took half of the time.
"""
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport ITEMSIZE, is_inexact
from tinygrad_ext.graph.lowering cimport Buffer, Step, buffer_of

from bisect import bisect_left

cdef enum:
    GROUP = 120             # values that a group may have: below TGX_GROUP_OPERANDS of kernels/plan.h


cdef class Group:
    """Steps over tiles that run together, or steps with numbers. Attributes: key (sizes and strides; None: numbers), steps,
    values (their ids), runs (of steps that become machine code: begin and end)."""

    def __init__(self, key):
        self.key, self.steps, self.values, self.runs = key, [], set(), []

    cdef bint fits(self, Step step):
        return self.key is None or len(self.values) + len(step.operands) <= GROUP

    cdef int add(self, Step step) except -1:
        self.steps.append(step)
        for o in step.operands or ():
            self.values.add(id(o))
        return 0


def needed(list steps, outputs):
    """The steps without those whose results nobody reads. outputs: Buffers."""
    cdef list kept = []
    cdef Step step
    cdef Buffer b
    cdef bint wanted
    cdef Py_ssize_t i
    for b in outputs:
        b.wanted, b.kept = True, not b.mark
    for i in range(len(steps) - 1, -1, -1):
        step = <Step>steps[i]
        wanted = step.effect
        for o in step.writes:
            wanted |= (<Buffer>o).wanted
        if wanted:
            kept.append(step)
            for read in step.reads:
                (<Buffer>(<tuple>read)[0]).wanted = True
    kept.reverse()
    return kept


def arrange(list steps):
    """Items in the order in which they run: Groups, and Steps that stand alone."""
    cdef list items = []
    cdef dict open_groups = {}
    cdef Step step
    cdef int at, after
    _begin_numbers(items, open_groups)
    for step in steps:
        if step.code != "tile" and step.code != "number":
            items.append(step)
            at = <int>len(items) - 1
            if step.changes:
                open_groups.clear()
                _begin_numbers(items, open_groups)
        elif not step.work and step.code == "tile":
            continue
        else:
            after = -1
            for buffer, aligned in step.reads:
                at = (<Buffer>buffer).written - 1       # counted from one; none for what is passed in
                after = max(after, at if aligned else at + 1)
            at = _join(step, after, items, open_groups)
        for buffer in step.writes:
            (<Buffer>buffer).written = at + 1
    return items


cdef int _begin_numbers(list items, dict open_groups) except -1:
    """Steps with numbers run as early as they can, so that they do not part the groups that wait for them."""
    open_groups[None] = [len(items)]
    items.append(Group(None))
    return 0


cdef int _join(Step step, int after, list items, dict open_groups) except -1:
    """Put a step into a group at `after` or behind; where that stands among the items."""
    cdef list groups = <list>open_groups.setdefault(step.key, [])
    for at in groups[bisect_left(groups, after):]:
        if (<Group>items[at]).fits(step):
            (<Group>items[at]).add(step)
            return at
    groups.append(len(items))
    items.append(Group(step.key))
    (<Group>items[len(items) - 1]).add(step)
    return <int>len(items) - 1


# ---- slots ---------------------------------------------------------------------------------------------------------


cdef class Uses:
    """Which items write and read each buffer, and where the way parts or joins."""

    cdef dict writes, reads         # Buffer -> items, in order
    cdef list ways                  # items

    def __init__(self, list items):
        cdef set targets = set()
        cdef int at
        cdef Step step
        self.writes, self.reads, self.ways = {}, {}, []
        for at in range(len(items)):
            for s in (<Group>items[at]).steps if type(items[at]) is Group else (items[at],):
                step = <Step>s
                for buffer in step.writes:
                    (<list>self.writes.setdefault(buffer, [])).append(at)
                for buffer, _ in step.reads:
                    (<list>self.reads.setdefault(buffer, [])).append(at)
                if step.code == "control" and step.opcode:
                    targets.add(step.b)
        for at in range(len(items)):
            if type(items[at]) is Step and (<Step>items[at]).code == "control":
                step = <Step>items[at]
                if step.opcode or step.which or step.b in targets:
                    self.ways.append(at)

    cdef bint none_between(self, list found, int begin, int end):
        """Whether none of the items stands in begin .. end, both included."""
        cdef Py_ssize_t i = bisect_left(found, begin)
        return i == len(found) or <int>found[i] > end


cdef int _fill_at_once(list items) except -1:
    """Let what goes into a slot, as loops carry it from trip to trip, be written there when it is computed, and not be copied
    there later, where nothing in between reads what the slot holds or takes another way. The groups' `runs` are known."""
    cdef Uses uses = None
    cdef Group group
    cdef list left
    cdef int at
    for at in range(len(items)):
        if type(items[at]) is not Group or (<Group>items[at]).key is None:
            continue
        group = <Group>items[at]
        if not any([(<Step>s).over is not None for s in group.steps]):
            continue
        if uses is None:
            uses = Uses(items)
        left = [(<Step>s).over is None or not _fills(uses, items, at, <Step>s) for s in group.steps]
        if not all(left):
            group.runs = [(sum(left[:begin]), sum(left[:end])) for begin, end in group.runs if any(left[begin:end])]
            group.steps = [s for s, stays in zip(group.steps, left) if stays]
            if not group.steps:
                items[at] = Group(None)         # nothing, so that the others keep their numbers
    return 0


cdef bint _fills(Uses uses, list items, int at, Step fill) except -1:
    """Let the source of one copy at an item lie in the slot, if it may; whether."""
    cdef Buffer slot, new
    cdef list written
    cdef int first
    slot, new = fill.over
    if new.base >= 0 or new.constant is not None or new.into is not None or new.kept or new.row or new.nbytes != slot.nbytes:
        return False
    if slot.into is not None:
        return False
    written = uses.writes.get(new, [])
    if len(written) != 1:
        return False
    first = written[0]
    if first >= at or type(items[first]) is not Group or (<Group>items[first]).key is None:
        return False
    if not uses.none_between(uses.ways, first, at) or not uses.none_between(uses.reads.get(slot, []), first + 1, at):
        return False
    if not uses.none_between(uses.writes[slot], first, at - 1) or <int>max(uses.reads[new]) > at:
        return False
    if not _is_free(<Group>items[first], slot, new):
        return False
    new.into = slot
    (<list>uses.writes[slot]).append(first)
    (<list>uses.writes[slot]).sort()
    return True


# ---- memory --------------------------------------------------------------------------------------------------------


def measure(list items):
    """Set the lives of buffers (first and last item), and which are local; returns those that need the arena."""
    cdef list found = []
    cdef Buffer b
    cdef int at
    _fill_at_once(items)
    for at in range(len(items)):
        for s in (<Group>items[at]).steps if type(items[at]) is Group else (items[at],):
            for buffer in (<Step>s).writes:
                _use(<Buffer>buffer, at, found)
            for buffer, _ in (<Step>s).reads:
                _use(<Buffer>buffer, at, found)
    _extend(items, found)
    for b in found:
        b.local = (b.base < 0 and b.constant is None and not b.kept and b.into is None and b.first == b.last
                   and type(items[b.first]) is Group)
    for b in found:
        if b.into is not None:
            b.into.local = False        # though nobody reads it: what lies there needs the memory
    return [b for b in found if b.base < 0 and b.constant is None and not b.local and not b.mark]


cdef int _extend(list items, list found) except -1:
    """What stood before a loop and is read in it lives until the loop ends."""
    cdef Buffer b
    cdef int at, begin
    cdef dict begins = {}
    for at in range(len(items)):
        if type(items[at]) is Group or (<Step>items[at]).code != "control" or not (<Step>items[at]).which:
            continue
        if (<Step>items[at]).which > 0:
            begins[(<Step>items[at]).which] = at
            continue
        begin = begins[-(<Step>items[at]).which]        # inner loops end before outer ones
        for b in found:
            if b.first < begin and begin <= b.last < at:
                b.last = at
    return 0


cdef int _use(Buffer b, int at, list found) except -1:
    if b.first < 0:
        found.append(b)
        b.first = at
    b.last = at
    return 0 if b.into is None else _use(b.into, at, found)


def take_over(list items):
    """Let results lie in the memory of operands that are read for the last time, where a step may write over them."""
    cdef int at
    for at in range(len(items)):
        item = items[at]
        if type(item) is Group and (<Group>item).key is not None:
            _take_over_in_group(<Group>item, at)


cdef int _take_over_in_group(Group group, int at) except -1:
    """An operand that lies in memory is free for a result of its size from the step on that reads it last."""
    cdef dict last = {}
    cdef dict widths = {}           # Buffer -> bytes of the elements that are read of it
    cdef set elsewhere = set()      # some step reads other elements of it than those that are written
    cdef Step step
    cdef Py_ssize_t number
    cdef int width
    for number in range(len(group.steps)):
        step = <Step>group.steps[number]
        for buffer, aligned in step.reads:
            last[buffer], width = number, _width(step, <Buffer>buffer)
            if not aligned or widths.setdefault(buffer, width) != width:
                elsewhere.add(buffer)
    for number in range(len(group.steps)):
        step = <Step>group.steps[number]
        if (<Buffer>step.writes[0]).local:
            continue
        for buffer, _ in step.reads:
            if (last[buffer] <= number and buffer not in elsewhere
                    and widths[buffer] == ITEMSIZE[(<Tensor>step.operands[0]).tid]
                    and _merge(<Buffer>buffer, <Buffer>step.writes[0], at)):
                break
    return 0


cdef int _width(Step step, Buffer buffer) except? -1:
    """Bytes of the elements that a step over tiles reads of a buffer; 0 where there are several. Elements of two widths at the same
    places are not in the same memory: a part of a buffer may be read that is as long as the wider results."""
    cdef int found = -1
    for o in step.operands[1:]:
        if type(o) is Tensor and buffer_of(<Tensor>o) is buffer:
            found = ITEMSIZE[(<Tensor>o).tid] if found in (-1, ITEMSIZE[(<Tensor>o).tid]) else 0
    return found


cdef bint _merge(Buffer old, Buffer new, int at):
    """Let `new`, first written at item `at`, lie where `old` lies, if that is read there for the last time; whether."""
    while old.into is not None:
        old = old.into
    if old is new or old.base >= 0 or old.constant is not None or old.local or old.kept or old.last != at:
        return False
    if new.base >= 0 or new.local or new.into is not None or new.kept or new.first != at or old.nbytes != new.nbytes:
        return False
    new.into, old.last = old, new.last
    return True


def write_at_once(list items):
    """Let new values of what is passed in be written there when they are computed, and not be copied there at the end, where
    nothing that follows may fail or reads the old ones; returns the items without those copies."""
    cdef int begin = _first_of_end(items), at
    cdef dict last = _last_reads(items, begin)
    cdef list kept = []
    cdef Buffer old, new
    for item in items:
        if _copies_back(item):
            old, new = (<Step>item).over
            at = new.first
            if (begin <= at and new.base < 0 and new.constant is None and new.into is None and not new.kept and not new.mark
                    and type(items[at]) is Group and <int>last.get(old, -1) <= at and _is_free(<Group>items[at], old, new)):
                new.into = old
                continue
        kept.append(item)
    return kept


cdef bint _copies_back(object item):
    return type(item) is Step and (<Step>item).code == "copy" and (<Step>item).over is not None


cdef dict _last_reads(list items, int begin):
    """{what is read from item `begin` on: the last item that does}; what is only copied back is not read."""
    cdef dict last = {}
    cdef int at
    for at in range(begin, <int>len(items)):
        for s in (<Group>items[at]).steps if type(items[at]) is Group else (items[at],):
            for buffer, _ in () if _copies_back(s) else (<Step>s).reads:
                last[buffer] = at
    return last


cdef int _first_of_end(list items) except -1:
    """The first of the last items that cannot fail: what was written before a failure would be written twice."""
    cdef int at = <int>len(items)
    while at > 0:
        item = items[at - 1]
        if type(item) is Step:
            if (<Step>item).code not in ("copy", "zero", "move"):
                break
        elif (<Group>item).key is None:
            if (<Group>item).steps:
                break
        elif not all([is_inexact((<Tensor>(<Step>s).operands[0]).tid) for s in (<Group>item).steps]):
            break                       # loops over whole numbers may divide by zero
        at -= 1
    return at


cdef bint _is_free(Group group, Buffer old, Buffer new) except -1:
    """Whether a group that writes `new` reads `old` only at the same elements, and before."""
    cdef bint written = False
    cdef int width = -1             # bytes of the elements that are read
    cdef Step step
    for s in group.steps:
        step = <Step>s
        for buffer, aligned in step.reads:
            if buffer is old:
                if written or not aligned or width not in (-1, _width(step, old)):
                    return False
                width = _width(step, old)
        for buffer in step.writes:
            if buffer is new and width not in (-1, ITEMSIZE[(<Tensor>step.operands[0]).tid]):
                return False
            if buffer is new and (written or step.apart):
                return False
            written |= buffer is new
    return True
