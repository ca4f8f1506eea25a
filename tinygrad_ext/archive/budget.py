"""What reading a file may cost.

A file of n bytes makes objects of a few dozen times n bytes; what makes more out of less is either charged here (text
copied again and again, keys that take long to compare) or refused elsewhere (entries that overlap or are compressed).
"""

MOST_OBJECTS = 10_000_000
LARGEST_KEY = 1000  # values of a key: Python hashes and compares them all, in C, without a look at Ctrl-C


class Budget:
    """Counts down from the number of objects that a file may hold."""

    __slots__ = ("left", "most")

    def __init__(self, most=MOST_OBJECTS):
        self.most = self.left = most

    def spend(self, n):
        """Charge n objects. RuntimeError when there were too many."""
        self.left -= n
        if self.left < 0:
            raise RuntimeError(
                f"it holds more than {self.most:,} objects, or makes as much of fewer; if you trust it, read it with "
                f"load(..., max_objects={10 * self.most})"
            )

    def spend_key(self, key):
        """Charge for the hash of a key, or a look at arguments. ValueError for what is built of too many values."""
        if type(key) is str:  # nearly all; hashed once
            return self.spend(len(key) // 64)
        count, waiting = 0, [key]
        while waiting:
            value = waiting.pop()
            count += 1
            if isinstance(value, (tuple, frozenset)):
                if count + len(waiting) + len(value) > LARGEST_KEY:
                    raise ValueError(
                        f"a key, an element of a set or what is called with is built of more than {LARGEST_KEY:,} "
                        "values: comparing or showing such can take for ever, so nobody writes them"
                    )
                waiting.extend(value)
            elif isinstance(value, (str, bytes)):
                self.spend(len(value) // 64)
            elif isinstance(value, int):
                self.spend(value.bit_length() // 512)
        self.spend(count)
