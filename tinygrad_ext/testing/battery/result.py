"""What the battery found: a Result for each check of each subject, and the Report of all of them."""

import json
from dataclasses import asdict, dataclass, field

import tinygrad_ext as tg

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class NotApplicable(Exception):
    """Raised by a check that has nothing to say about a case; the text is the reason."""


@dataclass
class Result:
    """What one check found out about one op, module or plugin.

    Attributes:
        subject: "vision::nms". kind: "op", "module" or "plugin". check: name of the check.
        status: "passed", "failed" or "skipped".
        message: what is wrong, or why the check was skipped; a remark where it passed.
        case: the smallest failing case as the text of a call that can be pasted, "" where there is none.
        dtype: the dtype of that case. cases: how many cases were run. seconds: how long that took.
        follows: the check whose failure is the reason why this one failed; it counts as skipped.
        consequences: names of the checks that this failure made fail.
        error: the exception of a failed check; not part of the JSON.
    """

    subject: str
    kind: str
    check: str
    status: str
    message: str = ""
    case: str = ""
    dtype: str = ""
    cases: int = 0
    seconds: float = 0.0
    follows: str = ""
    consequences: list = field(default_factory=list)
    error: BaseException | None = field(default=None, repr=False, compare=False)

    def to_dict(self):
        """Plain values."""
        found = asdict(self)
        del found["error"]
        return {**found, "seconds": round(self.seconds, 4)}

    def __str__(self):
        lines = [f"{self.subject}  {self.check}: {self.status}"]
        if self.message:
            lines += ["  " + line for line in self.message.strip().splitlines()]
        if self.case:
            lines.append(f"  smallest case: {self.case}")
        if self.consequences:
            lines.append(f"  for this reason alone these fail too: {', '.join(self.consequences)}")
        return "\n".join(lines)


class Report:
    """The results of a run.

    Attributes:
        name: what was checked. owner: distribution and version, or "". results: a list of Result.

    `str()` is a text for people, `to_json()` one for programs.
    """

    def __init__(self, name, owner="", results=()):
        self.name, self.owner, self.results = name, owner, list(results)

    @property
    def ok(self):
        """Whether no check failed, and at least one passed."""
        return not self.of(FAILED) and bool(self.of(PASSED))

    @property
    def exit_status(self):
        """0 when all is well, 1 when a check failed or none could be run."""
        return 0 if self.ok else 1

    @property
    def counts(self):
        """{status: number of results}"""
        return {status: len(self.of(status)) for status in (PASSED, FAILED, SKIPPED)}

    def of(self, status):
        """The results of one status."""
        return [r for r in self.results if r.status == status]

    def to_dict(self):
        """Plain values: name, owner, host, ok, counts and results."""
        return {
            "name": self.name,
            "owner": self.owner,
            "tinygrad_ext": tg.__version__,
            "ok": self.ok,
            "counts": self.counts,
            "results": [r.to_dict() for r in self.results],
        }

    def to_json(self, indent=1):
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def __str__(self):
        title = f"{self.name} of {self.owner}" if self.owner else self.name
        counts = ", ".join(f"{n} {status}" for status, n in self.counts.items() if n) or "nothing to check"
        failures = [str(r) for r in self.of(FAILED)]
        return "\n".join([f"{title}: {counts}", *self._rows(), *(["", "\n\n".join(failures)] if failures else [])])

    def _rows(self):
        """One line for each subject: how many checks passed, and the names of the others."""
        found = {}
        for r in self.results:
            found.setdefault(r.subject, []).append(r)
        width = max(map(len, found), default=0)
        for subject, results in found.items():
            passed = sum(r.status == PASSED for r in results)
            words = [f"{passed:3} passed"]
            if any(r.check == "samples" and r.status == PASSED and r.message for r in results):
                words.append("samples made up")
            following = " ".join(r.check for r in results if r.follows)
            for status in (FAILED, SKIPPED):
                names = " ".join(r.check for r in results if r.status == status and not r.follows)
                words += [f"{status}: {names}"] if names else []
            words += [f"following from that: {following}"] if following else []
            yield f"  {subject:{width}}  {'; '.join(words)}"

    def __repr__(self):
        return f"<report of {self.name}: {self.counts}>"
