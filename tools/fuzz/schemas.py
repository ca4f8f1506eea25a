"""Schema lines: those of the table with pieces exchanged, and lines made of the grammar's tokens in any order."""

import time

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.ops.schema import Schema
from tinygrad_ext.testing.isolation import temporary

from . import arguments
from .case import Case, Fault, refused
from .operands import touch

BLOCK = 500
LINES = sorted(str(op.schema) for op in registry.ops.values())
TOKENS = ("aten::", "fuzz::", "f", ".", "Tensor", "int", "float", "bool", "str", "Scalar", "Dict(str, Tensor)", "(",
          ")", "[", "]", "[2]", "?", "(a!)", "(a)", "(a -> *)", "(a|b!)", "*", ",", ", ", " ", "->", " -> ", "=", "=1",
          "=-1", "=None", "=[1, 2]", "=1e400", "='x'", '="\\"', "...", "self", "x", "\n", "\0", "é", "²", "__class__",
          "import", "9" * 5000, "(" * 300, "[" * 300, "-" * 50)  # fmt: skip
SLOW = 10.0  # seconds of processor for one line


class Line(Case):
    """One line: parse, write, parse again; now and then register it and call what came of it."""

    def __init__(self, rng):
        if rng.random() < 0.3:
            self.line = "".join(rng.choices(TOKENS, k=rng.randint(1, 25)))
        else:
            self.line = _changed(rng, rng.choice(LINES))
        self.repeat = rng.choice((1, 1, 1, 1, 1, 200))
        if self.repeat > 1:
            at = rng.randrange(len(self.line) + 1)
            end = min(len(self.line), at + rng.randint(1, 12))
            self.line = self.line[:at] + self.line[at:end] * self.repeat + self.line[end:]
        self.draw = rng if rng.random() < 0.15 else None

    def text(self):
        return f"from tinygrad_ext.ops.schema import Schema\n\nprint(Schema.parse({self.line!r}))\n"

    def run(self):
        began = time.process_time()
        try:
            schema = Schema.parse(self.line)
        except Exception as error:
            schema = None
            refused(error)
        if time.process_time() - began > SLOW:
            raise Fault(f"{len(self.line)} characters took {time.process_time() - began:.1f} s")
        if schema is None:
            return 1
        if Schema.parse(str(schema)) != schema:
            raise Fault(f"reads otherwise when written: {schema}")
        return 1 + (self._called(schema) if self.draw else 0)

    def _called(self, schema):
        """Register an op of that schema which returns its first argument, and call it."""
        name = f"fuzz_{schema.name}"
        line = "fuzz::" + str(Schema("", name, "", schema.args, schema.returns, schema.varargs))
        with temporary() as register:
            try:
                op = register.op(line, compose=lambda *args, **kwargs: args[0] if args else None)
            except Exception as error:
                refused(error)
                return 0
            given = {a.name: arguments.value(self.draw, a) for a in schema.args}
            try:
                touch(op(**given))
            except Exception as error:
                refused(error)
        return 1


def _changed(rng, line):
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        at = rng.randrange(len(line) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            line = line[:at] + rng.choice(TOKENS) + line[at:]
        elif kind == 1:
            line = line[:at] + line[at + rng.randint(1, 6) :]
        elif kind == 2:
            other = rng.choice(LINES)
            start = rng.randrange(len(other))
            line = line[:at] + other[start : start + rng.randint(1, 30)] + line[at:]
        else:
            line = line[:at] + chr(rng.choice((0, 10, 34, 40, 44, 63, 92, 127, 233, 0x2028, 0x1F600))) + line[at + 1 :]
    return line


def reset():
    """Leaves the default dtype and the like as they were."""
    tg.set_default_dtype(tg.float32)


def case(rng):
    """A random line."""
    return Line(rng)
