"""Makes a failing case smaller for as long as it goes on failing in the same way."""

import re
import time

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.testing.battery.case import Case, mapped
from tinygrad_ext.testing.battery.result import NotApplicable

STEPS, SECONDS = 200, 3.0  # of trying; each step is one run of the check


def smallest(case, error, fails, arguments, any_values):
    """(case, error) of the smallest case found.

    Args:
        case, error: the failing Case, and the exception of the check.
        fails: fails(case) gives the exception of the check, None when it passes.
        arguments: the op's declared arguments; what equals a default is left out. () when there are none.
        any_values: the check states a law that holds for all values, so that they may be made simpler.
    """
    steps, end, kind = 0, time.monotonic() + SECONDS, _kind(error)
    moved = True
    while moved:
        moved = False
        for sample in _simpler(case.sample, arguments, any_values):
            candidate = Case(sample, case.dtype)
            steps += 1
            if steps > STEPS or time.monotonic() > end:
                return case, error
            got = fails(candidate)
            if got is not None and _kind(got) == kind:
                case, error, moved = candidate, got, True
                break
    return case, error


def _kind(error):
    """Two failures are of one kind when one check states them, or when the same thing was raised."""
    if isinstance(error, (AssertionError, NotApplicable)):
        return type(error).__name__
    return type(error).__name__, re.sub(r"[-+.\d]+", "#", str(error))


def _simpler(sample, arguments, any_values):
    """Samples that are smaller by one step each."""
    yield from _fewer_arguments(sample, arguments)
    yield from _shorter_lists(sample)
    sizes = set()
    mapped(sample, lambda t: sizes.update(t.shape))
    for size in sorted((s for s in sizes if s > 1), reverse=True):
        for less in dict.fromkeys((1, size // 2, size - 1)):
            yield mapped(sample, lambda t, size=size, less=less: _cut(t, size, less))
    yield from _one_dimension_less(sample)
    yield from _single_tensors(sample)
    yield from _plain_values(sample, any_values)


def _fewer_arguments(sample, arguments):
    optional = {a.name for a in arguments if a.has_default}
    for name in sample.kwargs:
        if name in optional:
            yield Sample(*sample.args, **{k: v for k, v in sample.kwargs.items() if k != name})
    places = [a for a in arguments if not a.kwarg_only]
    if 0 < len(sample.args) <= len(places) and places[len(sample.args) - 1].has_default:
        yield Sample(*sample.args[:-1], **sample.kwargs)


def _shorter_lists(sample):
    for i, v in enumerate(sample.args):
        if isinstance(v, (list, tuple)) and len(v) > 1 and not hasattr(v, "numel"):
            yield Sample(*sample.args[:i], type(v)(list(v)[:-1]), *sample.args[i + 1 :], **sample.kwargs)


def _cut(t, size, less):
    for d, s in enumerate(t.shape):
        if s == size:
            t = _own(t.narrow(d, 0, less), t)
    return t


def _own(part, t):
    """A part of t as a tensor that stands for itself."""
    part = part.detach().clone()
    return part.requires_grad_() if t.requires_grad else part


def _one_dimension_less(sample):
    ranks = []
    mapped(sample, lambda t: ranks.append(t.dim()))
    rank = max(ranks, default=0)
    if rank:
        less = lambda t: _own(t.select(0, 0), t) if t.dim() == rank and t.shape[0] else t
        yield mapped(sample, less)


def _single_tensors(sample):
    """One tensor at a time, cut to one element in one dimension."""
    count = []
    mapped(sample, lambda t: count.append(t.dim()))
    for number, rank in enumerate(count):
        for d in range(rank):
            seen = iter(range(len(count)))
            cut = lambda t, d=d: _own(t.narrow(d, 0, 1), t) if t.shape[d] > 1 else t
            changed = mapped(sample, lambda t, seen=seen, n=number, cut=cut: cut(t) if next(seen) == n else t)
            if Case(changed, "").size < Case(sample, "").size:
                yield changed


def _plain_values(sample, any_values):
    """Floating tensors of short numbers; where any will do, of ones or whole numbers."""
    ways = [lambda t: t.double().mul(100).round().div(100).to(t.dtype)]  # half numbers cannot be rounded
    if any_values:
        ways[:0] = [tg.ones_like, lambda t: t.double().round().to(t.dtype)]
    for plain in ways:
        changed = []

        def simple(t, plain=plain, changed=changed):
            if not t.is_floating_point() or not t.numel():
                return t
            new = plain(t.detach())
            changed.append(t.tolist() != new.tolist())
            return new.requires_grad_(t.requires_grad)

        candidate = mapped(sample, simple)
        if any(changed):
            yield candidate
