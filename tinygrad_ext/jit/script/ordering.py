"""Lists of objects in order: by the `__lt__` of their class, compiled, so that a file has it without the class.

A comparison is a call in the graph, of some microseconds, where one of Python's takes a tenth of that.
Lists of anything else are sorted by a primitive.
"""

from tinygrad_ext.graph.primitives.objects import class_of

from .compiler import hook
from .values import type_of


@hook
def in_order(c, value, reverse, what):
    """The sorted list, of objects; None where a primitive does it."""
    inner = type_of(value).args[0]
    c.check_ordered(inner, what)
    return None if class_of(inner.word) is None else c.inline(merged, [value, reverse], {})


def merged(items, reverse: bool):
    """A sorted copy, equal items in the order that they had: neighbours are merged, ever longer runs of them."""
    done = items.copy()
    count, width = len(done), 1
    while width < count:
        made, start = done.copy(), 0
        while start < count:
            middle, end = min(start + width, count), min(start + 2 * width, count)
            i, j = start, middle
            for place in range(start, end):
                second = i == middle
                if i < middle and j < end:
                    second = done[i] < done[j] if reverse else done[j] < done[i]
                if second:
                    made[place] = done[j]
                    j += 1
                else:
                    made[place] = done[i]
                    i += 1
            start = end
        done = made
        width *= 2
    return done
