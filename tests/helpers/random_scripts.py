"""Random programs of ints and tensors with if, for, while, break, continue and early return, as Python source.

Every name is set before it is read and keeps its type, so that a program runs and types whatever way it takes.
"""

import random

NUMBERS = ("a", "b", "c")
TENSORS = ("x", "y")


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.left, self.loops, self.counters = [], 25, 0, 0

    def source(self):
        self.write(1, "c, y = 1, x * 0.5")
        self.block(1, 3 + self.random.randrange(4))
        self.write(1, f"return {self.number()}, {self.tensor()}, c, y, log")
        head = ["def f(x, a: int, b: int):", "    log = [0]"]
        return "\n".join([*head, *self.lines]) + "\n"

    def write(self, depth, text):
        self.lines.append("    " * depth + text)

    def pick(self, *options):
        return self.random.choice(options)

    # ---- expressions ----------------------------------------------------------------------------------------------

    def number(self, depth=0):
        if depth > 2 or self.random.random() < 0.4:
            return self.pick(*NUMBERS, str(self.random.randrange(-3, 6)), "len(log)", "log[-1]")
        one, other = self.number(depth + 1), self.number(depth + 1)
        return self.pick(
            f"({one} + {other})",
            f"({one} - {other})",
            f"({one} * {other}) % 17",
            f"{one} // {self.random.randrange(1, 4)}",
            f"-{one}",
            f"({one} if {self.condition(depth + 1)} else {other})",
            f"min({one}, {other})",
        )

    def condition(self, depth=0):
        if depth > 2 or self.random.random() < 0.4:
            return f"{self.number(3)} {self.pick('<', '<=', '==', '!=', '>')} {self.number(3)}"
        one, other = self.condition(depth + 1), self.condition(depth + 1)
        return self.pick(f"({one} and {other})", f"({one} or {other})", f"not ({one})", "bool(x.sum() > 0)", one)

    def tensor(self, depth=0):
        if depth > 2 or self.random.random() < 0.4:
            return self.pick(*TENSORS)
        one, other = self.tensor(depth + 1), self.tensor(depth + 1)
        return self.pick(
            f"({one} + {other})",
            f"({one} * {self.pick('0.5', '2', 'a % 3')})",
            f"{one}.sin()",
            f"({one} - {other} * 0.25)",
            f"torch.relu({one})",
            f"({one} if {self.condition(depth + 1)} else {other})",
        )

    # ---- statements -----------------------------------------------------------------------------------------------

    def block(self, depth, count):
        for _ in range(count):
            self.left -= 1
            if self.statement(depth):
                return

    def statement(self, depth):
        """Write one; whether it leaves the block for sure."""
        if self.left <= 0 or depth > 5:
            self.assignment(depth)
            return False
        kinds = [self.assignment] * 4 + [self.branch] * 3 + [self.loop, self.while_loop]
        kinds += [self.leave] if depth > 1 else []
        return bool(self.random.choice(kinds)(depth))

    def assignment(self, depth):
        name = self.pick(*NUMBERS)
        self.write(
            depth,
            self.pick(
                f"{name} = {self.number()}",
                f"{name} += {self.number(1)}",
                f"{self.pick(*TENSORS)} = {self.tensor()}",
                f"log.append({self.number(1)})",
                f"a, b = {self.number(1)}, {self.number(1)}",
                f"y = y.clone(); y += {self.tensor(1)}; y[0] = {self.pick('1.5', 'x[0]')}",
            ),
        )

    def branch(self, depth):
        self.write(depth, f"if {self.condition()}:")
        self.block(depth + 1, 1 + self.random.randrange(3))
        if self.random.random() < 0.3:
            self.write(depth, f"elif {self.condition()}:")
            self.block(depth + 1, 1 + self.random.randrange(2))
        if self.random.random() < 0.5:
            self.write(depth, "else:")
            self.block(depth + 1, 1 + self.random.randrange(3))

    def loop(self, depth):
        self.counters += 1
        over = self.pick(f"range({self.pick('a % 5', '3', '4')})", "enumerate(log[:3])", "(1, c, b)", "range(6, 0, -2)")
        target = f"i{self.counters}"
        self.write(depth, f"for {target if 'enum' not in over else f'{target}, v{self.counters}'} in {over}:")
        self.body(depth, f"c = (c + {target}) % 23")

    def while_loop(self, depth):
        self.counters += 1
        counter = f"w{self.counters}"
        self.write(depth, f"{counter} = 0")
        self.write(depth, self.pick(f"while {counter} < 4:", f"while {counter} < 5 and {self.condition()}:"))
        self.body(depth, f"{counter} += 1")

    def body(self, depth, first):
        self.loops += 1
        self.write(depth + 1, first)
        self.block(depth + 1, 1 + self.random.randrange(3))
        self.loops -= 1

    def leave(self, depth):
        if self.loops and self.random.random() < 0.7:
            self.write(depth, self.pick("break", "continue"))
        else:
            self.write(depth, f"return {self.number(1)}, {self.tensor(1)}, a, y, log")
        return True
