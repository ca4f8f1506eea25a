"""What a check found: a GradcheckResult of one Pair for each input and output."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tinygrad_ext.autograd.gradcheck.error import GradcheckError


@dataclass(frozen=True)
class Entry:
    """One element of a Jacobian: the derivative of output[output_index] by input[input_index]."""

    input_index: tuple
    output_index: tuple
    numerical: complex
    analytical: complex
    allowed: float

    @property
    def abs_error(self):
        """|numerical - analytical|."""
        return abs(self.numerical - self.analytical)

    @property
    def rel_error(self):
        """The absolute error over |numerical|."""
        return self.abs_error / abs(self.numerical) if self.numerical else float("inf") if self.abs_error else 0.0


@dataclass
class Pair:
    """One output against one input.

    part: 'real part' or 'imaginary part' of a complex output, else None.
    columns, rows: (checked, all) input and output elements; (0, n) in fast mode.
    blind_below: a single wrong entry with a smaller error than this may have gone unseen (None: none can).
    kink: why differences say nothing at the worst entry, as text, or None.
    numerical, analytical: the compared parts of the Jacobians, as arrays (input elements, output elements).
    find_worst: finds `worst`, when it is asked for.
    """

    output: int
    input: int
    output_name: str
    input_name: str
    part: str | None
    ok: bool
    wrong: int = 0
    columns: tuple = (0, 0)
    rows: tuple = (0, 0)
    blind_below: float | None = None
    kink: str | None = None
    remark: str = ""
    numerical: object = field(default=None, repr=False)
    analytical: object = field(default=None, repr=False)
    find_worst: Callable | None = field(default=None, repr=False)

    @cached_property
    def worst(self):
        """The Entry that is farthest from what is allowed; None when no entries were compared."""
        return self.find_worst() if self.find_worst is not None else None

    @property
    def place(self):
        """The worst entry in words: 'd output[0] / d x[1, 2]'."""
        return f"d {_at(self.output_name, self.worst.output_index)} / d {_at(self.input_name, self.worst.input_index)}"

    def message(self):
        """The mismatch in words."""
        part = f"While considering the {self.part} of complex outputs only, " if self.part else ""
        lines = [
            f"{part}Jacobian mismatch for output {self.output} with respect to input {self.input} "
            f"({self.output_name} by {self.input_name}),",
        ]
        if self.worst is not None:
            w = self.worst
            lines.append(
                f"worst entry {self.place}: numerical {w.numerical:.6g}, analytical {w.analytical:.6g}, "
                f"absolute error {w.abs_error:.3g}, relative {w.rel_error:.3g}, allowed {w.allowed:.3g}"
            )
        if self.kink:
            lines.append(self.kink)
        if self.wrong > 1:
            lines.append(f"{self.wrong} of {self.numerical.size} compared entries differ")
        lines.append(f"numerical:{_shown(self.numerical)}\nanalytical:{_shown(self.analytical)}")
        if self.remark:
            lines.append(self.remark)
        return "\n".join(lines)

    def line(self):
        """One line of a report."""
        part = f" ({self.part})" if self.part else ""
        state = "ok" if self.ok else "kink" if self.kink else "WRONG"
        text = f"{state:5} {self.output_name}{part} by {self.input_name}"
        if self.worst is not None:
            text += (
                f": worst {self.place}, numerical {self.worst.numerical:.6g}, analytical {self.worst.analytical:.6g}, "
                f"error {self.worst.abs_error:.2g} of {self.worst.allowed:.2g} allowed"
            )
        if self.blind_below is not None:
            text += (
                f" [{self.columns[0]} of {self.columns[1]} columns and {self.rows[0]} of {self.rows[1]} rows, the rest "
                f"in random sums: a single entry wrong by less than {self.blind_below:.2g} may be unseen]"
            )
        return text


def _at(name, index):
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _shown(matrix):
    if matrix is None:
        return " not computed"
    import numpy as np

    return "\n" + np.array2string(matrix, threshold=256, max_line_width=100)


@dataclass
class GradcheckResult:
    """The outcome of gradcheck or gradgradcheck: true when all is right.

    pairs: a Pair for each input and output (and each part of a complex output).
    problems: what is wrong besides the Jacobians, as text. notes: what was left unchecked or is worth knowing.
    """

    eps: float
    atol: float
    rtol: float
    seed: int
    pairs: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @property
    def ok(self):
        """Whether nothing is wrong."""
        return not self.problems and all(p.ok for p in self.pairs)

    def __bool__(self):
        return self.ok

    @property
    def complete(self):
        """Whether every entry of every Jacobian was compared."""
        return all(p.blind_below is None for p in self.pairs)

    @property
    def worst(self):
        """The Pair whose worst entry is farthest from what is allowed, or None."""
        rated = [p for p in self.pairs if p.worst is not None]
        return max(rated, key=lambda p: (not p.ok, p.worst.abs_error / p.worst.allowed), default=None)

    def __str__(self):
        head = f"gradcheck: {'ok' if self.ok else 'FAILED'} (eps={self.eps:g}, atol={self.atol:g}, rtol={self.rtol:g})"
        lines = [head, *("  " + p.line() for p in self.pairs), *("  " + text for text in self.problems)]
        return "\n".join(lines + ["  note: " + text for text in self.notes])

    def error(self):
        """The GradcheckError of the first thing that is wrong, with a list of the rest."""
        wrong = [p for p in self.pairs if not p.ok]
        texts = [p.message() for p in wrong[:1]] + self.problems[: 0 if wrong else 1]
        if len(wrong) > 1:
            texts.append("Also wrong:\n" + "\n".join("  " + p.line() for p in wrong[1:]))
        if self.notes:
            texts.append("\n".join("note: " + text for text in self.notes))
        error = GradcheckError("\n".join(texts))
        error.result = self
        return error
