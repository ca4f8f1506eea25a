"""What is checked: an op with the samples of its record, or an op with the arguments somebody gave."""

import functools

from tinygrad_ext import registry
from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.testing import sweep
from tinygrad_ext.testing.battery.case import Case, mapped


class OpSubject:
    """One overload of an op, called with its samples.

    Attributes: op (of the registry), name, kind ("op"), arguments (of its schema), problem (the exception of the
    samples, or of all calls with made up ones, else None).
    """

    kind = "op"

    def __init__(self, op):
        self.op, self.name, self.arguments = op, op.name, op.schema.args
        self.problem = None
        self.made_up = op.record.samples is None and op.record.scalar is None and op.record.owner != BUILTIN

    @functools.cached_property
    def dtypes(self):
        """Names of the dtypes it computes in; float32 when it computes in none, so that the checks say why."""
        return sweep.supported(self.op) or ["float32"]

    def cases(self, check):
        """The cases of a check, smallest first."""
        found = [
            Case(sample, dtype)
            for dtype in self._wanted(check.dtypes)
            for sample in self._samples(dtype, check.requires_grad)
        ]
        return sorted(found, key=lambda c: (c.size, not c.dtype.startswith("float")))

    def _wanted(self, which):
        if which == "every":
            return sweep.ALL_DTYPES
        if which == "supported":
            return self.dtypes
        if which == "double":
            return [d for d in ("float64",) if d in self.dtypes]
        if which == "float":
            return [d for d in ("float64", "float32") if d in self.dtypes]
        return [d for d in ("float32", "int64") if d in self.dtypes] or self.dtypes[:1]

    def _samples(self, dtype, requires_grad):
        try:
            found = sweep.samples(self.op, dtype, requires_grad)
        except (Exception, SystemExit) as error:
            if dtype in self.dtypes:
                self.problem = error
            return []
        return [s for i, s in enumerate(found) if i in self._usable] if self.made_up else found

    @functools.cached_property
    def _usable(self):
        """Which of the made up samples the op takes."""
        usable = set()
        for i, sample in enumerate(sweep.samples(self.op, self.dtypes[0])):
            try:
                sweep.call(self.op, sample.args, sample.kwargs)
                usable.add(i)
            except (Exception, SystemExit) as error:
                self.problem = error
        return usable

    def why_not(self, check):
        """Why a check is not for this op, or None."""
        gaps = self.op.record.gaps or {}
        gap = gaps.get(check.name) or gaps.get(check.gap)
        return f"gap: {gap}" if gap else None

    def text(self, case):
        """A case as a call that can be pasted."""
        return case.text(_spelling(self.op))


class GivenSubject(OpSubject):
    """One overload of an op, called with given arguments, in their own dtype."""

    def __init__(self, op, sample, dtypes):
        super().__init__(op)
        self.sample, self.made_up = sample, False
        self.dtypes = dtypes

    def cases(self, check):
        """The one case; its floating tensors in float64 for the checks that need that, requiring grad as given."""
        sample, dtype = self.sample, self.dtypes[0]
        if check.dtypes == "double":
            sample, dtype = mapped(sample, _doubled), "float64"
        return [Case(sample, dtype)]


def given(op, args, kwargs):
    """The subject for a call op(*args, **kwargs)."""
    sample = Sample(*args, **kwargs)
    dtypes = [t.dtype.name for t in Case(sample, "").tensors]
    floating = [d for d in dtypes if by_name[d].is_floating_point or by_name[d].is_complex]
    return GivenSubject(op, sample, (floating or dtypes or ["float32"])[:1])


def _doubled(t):
    if not t.is_floating_point() or t.dtype.name == "float64":
        return t
    return t.detach().double().requires_grad_(t.requires_grad)


def _spelling(op):
    """tg.ops.vision.nms, tg.add, tg.Tensor.add."""
    record, name = op.record, op.schema.name
    if record.owner != BUILTIN or not registry.variants(record):
        return f"tg.ops.{op.schema.namespace}.{name}"
    if "function" in registry.variants(record):
        return f"tg.{registry.prefixes(record)[0]}{name}"
    return f"tg.Tensor.{name}" + "_" * ("method" not in registry.variants(record))
