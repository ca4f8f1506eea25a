"""How the op is called and found: overrides see it once, pickle finds it by its name."""

import copy
import pickle

import tinygrad_ext as tg
from tinygrad_ext import overrides, registry
from tinygrad_ext.core.call.callables import OpFunction
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.testing import sweep
from tinygrad_ext.testing.battery.case import Case, mapped
from tinygrad_ext.testing.battery.check import OP_CHECKS, check
from tinygrad_ext.testing.battery.result import NotApplicable


def _duck(seen, answer):
    """A type that stands for a tensor and is none."""

    class Duck:
        @staticmethod
        def __torch_function__(func, types, args=(), kwargs=None):
            seen.append(func)
            return answer

    return Duck


class Mode(overrides.TorchFunctionMode):
    """Notes the calls of a thread and lets them through."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def _spy(seen):
    class Spy(tg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Spy


@check(OP_CHECKS, "override", any_values=True)
def override(subject, sample, dtype):
    """__torch_function__ of duck types, subclasses and modes sees the call once, and its answer is the result."""
    if not Case(sample, dtype).tensors:
        raise NotApplicable("it takes no tensor")
    fn, seen, answer = _function(subject.op), [], object()
    duck = _duck(seen, answer)
    got = _called(fn, mapped(sample, lambda t: duck()))
    _once(subject, fn, seen, "of a duck type")
    if got is not answer:
        raise AssertionError(f"the answer of __torch_function__ is lost: got {got!r}")
    seen.clear()
    spy = _spy(seen)
    _called(fn, mapped(sample, lambda t: t.detach().as_subclass(spy)))
    _once(subject, fn, seen, "of a Tensor subclass")
    seen.clear()
    with Mode(seen):
        _called(fn, sample)
    _once(subject, fn, seen, "of a mode")


def _function(op):
    """The public function, else the method, else the in-place method: no wrapper."""
    fn = sweep.function(op)
    return fn if isinstance(fn, OpFunction) else registry.methods[op.schema.name + "_"]


def _called(fn, sample):
    with tg.no_grad():  # it may write to tensors that require gradients
        return fn(*sample.args, **sample.kwargs)


def _once(subject, fn, seen, whose):
    name = getattr(fn, "__name__", subject.op.schema.name)
    others = sorted({getattr(f, "__name__", repr(f)) for f in seen if f is not fn} - {name})
    if others:
        raise AssertionError(f"__torch_function__ {whose} also sees {', '.join(others)}, which the op calls inside")
    if len(seen) != 1:
        raise AssertionError(f"__torch_function__ {whose} sees the call {len(seen)} times, expected once")


@check(OP_CHECKS, "pickle", each="subject")
def pickling(subject):
    """The op and its overload are found by name: pickle and deepcopy give the very same function."""
    kinds, record = registry.variants(subject.op.record), subject.op.record
    if "function" not in kinds:
        raise NotApplicable("it is no function")
    fn = sweep.function(subject.op)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(fn, protocol))
        if found is not fn:
            raise AssertionError(f"pickle (protocol {protocol}) gives {found!r} for {fn!r}")
    if copy.deepcopy(fn) is not fn:
        raise AssertionError("deepcopy makes another function")
    if record.owner == BUILTIN:
        return
    overload = subject.op.schema.overload or "default"
    single = getattr(fn, overload)
    if getattr(single, "candidates", None) != (subject.op,):
        raise AssertionError(f"{fn!r}.{overload} is {single!r}, not the overload: something else was put in its place")
    if pickle.loads(pickle.dumps(single)) is not single:
        raise AssertionError(f"pickle gives another function for {single!r}")
