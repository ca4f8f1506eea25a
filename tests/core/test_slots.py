"""Every call of every op passes each slot once: whoever fills a slot sees all, and costs nothing once it is empty."""

import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tinygrad_ext.core.callables import SLOTS, set_handler

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.testing import compare, sweep

ROOT = Path(__file__).parent.parent.parent
OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}


class Client:
    """Fills slots inside a `with` and notes the calls each one sees."""

    def __init__(self, *slots):
        self.slots, self.seen = slots, []

    def __enter__(self):
        self.before = [set_handler(slot, self._handler(slot)) for slot in self.slots]
        return self

    def __exit__(self, *exc):
        for slot, before in zip(self.slots, self.before):
            set_handler(slot, before)

    def _handler(self, slot):
        def handle(func, types, args, kwargs):
            self.seen.append((slot, func))
            return func(*args, **kwargs)

        return handle


def forms(op):
    """(callable, makes fresh arguments) of the function, method, in-place and out= form of an op."""
    kinds, name = registry.variants(op.record), op.schema.name
    function = registry.functions.get(registry.places(op.record)[0] + name)
    if "function" in kinds:
        yield function, lambda s: (s.args, s.kwargs)
    if "method" in kinds:
        yield registry.methods[name], lambda s: (s.args, s.kwargs)
    if "inplace" in kinds:
        inplace = registry.methods.get(name + "_") or next(
            registry.functions[place + name + "_"]
            for place in (*registry.places(op.record), "_fused.")
            if place + name + "_" in registry.functions
        )
        yield inplace, lambda s: ((s.args[0].detach().clone(), *s.args[1:]), s.kwargs)
    if "out" in kinds:

        def with_out(s):
            result = sweep.call(op, s.args, s.kwargs)
            out = tg.empty_like(result) if isinstance(result, tg.Tensor) else tuple(map(tg.empty_like, result))
            return s.args, {**s.kwargs, "out": out}

        yield function, with_out


def sample(op):
    """The first sample that has elements and is accepted by all forms."""
    dtype = next((d for d in ("float32", "int64", "bool", "complex64") if d in sweep.supported(op)), "float32")
    found = sweep.samples(op, dtype)
    if not found:
        pytest.skip("the record has no samples")
    return found[0]


def attempt(fn, args, kwargs):
    """The result, or the refusal, of a call: an in-place form may refuse a sample, and is seen all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn(*args, **kwargs)
        except (RuntimeError, TypeError) as refusal:
            return str(refusal)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_each_slot_sees_a_call_once_in_every_form(op):
    s = sample(op)
    for fn, prepare in forms(op):
        for slot in SLOTS:
            args, kwargs = prepare(s)
            with Client(slot) as client:
                attempt(fn, args, kwargs)
            assert client.seen == [(slot, fn)], f"{op.name}, {fn!r}, slot {slot}: seen {client.seen}"


def test_filled_slots_are_asked_from_the_outermost_in():
    a, b = tg.ones(3), tg.ones(3)
    with Client(*SLOTS) as client:
        result = tg.add(a, b)
    assert client.seen == [(slot, tg.add) for slot in SLOTS]
    assert compare.same_bits(result, tg.full((3,), 2.0))


@pytest.mark.parametrize(
    "call, method",
    [
        (lambda a: a + a, "add"),
        (lambda a: 2 + a, "add"),
        (lambda a: a * 3, "mul"),
        (lambda a: a > 0, "gt"),
    ],
    ids=["a + b", "2 + a", "a * 3", "a > 0"],
)
def test_an_operator_is_seen_as_its_method(call, method):
    a = tg.ones(3)
    with Client("override") as client:
        call(a)
    assert client.seen == [("override", registry.methods[method])]


def test_an_augmented_assignment_is_seen_as_the_inplace_method():
    a = tg.ones(3)
    with Client("tracer") as client:
        a += 1
    assert client.seen == [("tracer", registry.methods["add_"])]


def test_a_handler_may_answer_in_the_ops_place():
    before = set_handler("override", lambda func, types, args, kwargs: "mine")
    try:
        assert tg.zeros(3) == "mine"
    finally:
        set_handler("override", before)


def test_the_slot_is_empty_again_after_a_handler_raised():
    def fail(func, types, args, kwargs):
        raise KeyError("in the handler")

    a = tg.ones(2)
    before = set_handler("profiler", fail)
    try:
        with pytest.raises(KeyError):
            a.exp()
        with pytest.raises(KeyError):  # and is still filled, since nobody emptied it
            a.exp()
    finally:
        set_handler("profiler", before)
    assert a.exp().numel() == 2


def test_another_thread_has_slots_of_its_own():
    import threading

    with Client("override") as client:
        thread = threading.Thread(target=lambda: tg.zeros(2) + 1)
        thread.start()
        thread.join()
    assert client.seen == []


def test_set_handler_returns_what_was_there():
    def handler(func, types, args, kwargs):
        return func(*args, **kwargs)

    assert set_handler("transform", handler) is None
    assert set_handler("transform", None) is handler


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_slots_and_overrides_that_were_used_and_fifty_plugins_cost_a_plain_call_no_instruction():
    done = subprocess.run(
        [sys.executable, "tools/count_instructions.py", "--plain"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for call, counts in zip(("a + b", "add(a, b)"), done.stdout.splitlines(), strict=True):
        never, used = map(float, counts.split())
        assert used <= 1.02 * never, f"{call}: {never} instructions, {used} after slots, overrides and plugins"


def test_putting_back_what_was_in_the_override_slot_after_a_mode_leaves_plain_calls_alone():
    with tg.overrides.BaseTorchFunctionMode():
        pass
    set_handler("override", set_handler("override", lambda func, types, args, kwargs: "seen"))
    assert tg.neg(tg.ones(1)).item() == -1
