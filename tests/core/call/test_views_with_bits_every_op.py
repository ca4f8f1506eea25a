"""Every op computes with conjugate and negative views what it computes with tensors that hold the same numbers."""

import pytest
from tinygrad_ext.core.call.interop import storage_of

import tinygrad_ext as tg
from tinygrad_ext.registry import variants
from tinygrad_ext.testing import compare, layouts, sweep

KINDS = {"complex64": lambda t: t.conj_physical()._conj(), "float32": lambda t: (-t)._neg_view()}
OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops() if not sweep.tagged(op, "unset")}
# what shows memory, and so refuses a view whose memory holds other numbers than it shows
SHOWING = {"view_as_real", "view_as_real_copy", "view.dtype", "view_copy.dtype"}
CASES = [
    (dtype, name)
    for dtype in KINDS
    for name, op in sorted(OPS.items())
    if name not in SHOWING and dtype in sweep.supported(op)
]


def flipped(value, dtype):
    """The value with its tensors of a dtype as views with a bit that show the same numbers."""

    def turn(t):
        made = KINDS[dtype](t.detach()) if t.dtype is getattr(tg, dtype) else t.detach().clone()
        return made.requires_grad_(t.requires_grad)

    return turn(value) if isinstance(value, tg.Tensor) else layouts.map_tensors(value, turn)


def resolved(value):
    """The same numbers in memory as they are, laid out as those of the views."""

    def plain(t):
        return t.detach().clone().requires_grad_(t.requires_grad)

    return layouts.map_tensors(value, plain)


def run(op, args, kwargs):
    """The result, and the tensors that the op wrote to."""
    tg.manual_seed(0)
    result = sweep.function(op)(*args, **kwargs)
    if op.record.determined:
        result = op.record.determined(result)
    return result, sweep.written(op, args, kwargs) if any(a.is_write for a in op.schema.args) else []


def has_bit(value):
    return isinstance(value, tg.Tensor) and (value.is_conj() or value.is_neg())


def tensors(value):
    return [t for t in compare.flatten(value) if isinstance(t, tg.Tensor)]


def cases(op, dtype, requires_grad=False):
    """For each sample the call with views, and that with the numbers."""
    for sample in sweep.samples(op, dtype, requires_grad):
        views = flipped(sample.args, dtype), flipped(sample.kwargs, dtype)
        yield sample, views, tuple(map(resolved, views))


def refused(op, call):
    """The error of a call, or None."""
    try:
        call()
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return error
    return None


@pytest.mark.parametrize(("dtype", "name"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_gives_the_bits_of_the_resolved_arguments(dtype, name):
    op = OPS[name]
    for sample, views, plain in cases(op, dtype):
        want = run(op, *plain)
        got = run(op, *views)
        assert compare.same_bits(got, want), sample
        memory = {storage_of(t) for t in sweep.leaves(*views, tg.Tensor)}
        assert not any(has_bit(t) for t in tensors(got[0]) if storage_of(t) not in memory), sample


@pytest.mark.parametrize(("dtype", "name"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_writes_the_numbers_through_the_bit(dtype, name):
    op = OPS[name]
    method = sweep.inplace_form(op)
    for sample, (args, kwargs), (plain, options) in cases(op, dtype):
        if method is None or not args or not has_bit(args[0]):
            continue
        tg.manual_seed(0)
        want = refused(op, lambda: method(*plain, **options))
        tg.manual_seed(0)
        got = refused(op, lambda: method(*args, **kwargs))
        assert type(got) is type(want), sample
        assert compare.same_bits(args[0], plain[0]), sample


@pytest.mark.parametrize(("dtype", "name"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_fills_a_target_that_has_a_bit(dtype, name):
    op = OPS[name]
    for sample, (args, kwargs), (plain, options) in cases(op, dtype):
        tg.manual_seed(0)
        if "out" not in variants(op.record) or not isinstance(want := sweep.function(op)(*plain, **options), tg.Tensor):
            continue
        target = flipped(tg.zeros_like(want), dtype)
        tg.manual_seed(0)
        sweep.function(op)(*args, **kwargs, out=target)
        assert compare.same_bits(target, want), sample
        assert has_bit(target) == (want.dtype is getattr(tg, dtype)), sample


@pytest.mark.parametrize(("dtype", "name"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_gradients_are_those_of_the_resolved_arguments(dtype, name):
    op = OPS[name]
    if not op.record.grad or sweep.tagged(op, "data_dependent"):
        return
    for sample, views, plain in cases(op, dtype, requires_grad=True):
        assert compare.same_bits(gradients(op, views), gradients(op, plain)), sample


def gradients(op, call):
    leaves = [t for t in tensors([*call[0], *call[1].values()]) if t.requires_grad]
    outs = [t for t in tensors(run(op, *call)[0]) if t.requires_grad]
    if not leaves or not outs:
        return []
    found = tg.autograd.grad(outs, leaves, [tg.ones_like(t) for t in outs], allow_unused=True)
    return [g for g in found if g is not None]


def test_what_shows_memory_refuses_other_numbers_than_it_holds():
    x, real = tg.tensor([1 + 2j, 3j]).conj(), tg.ones(2)._neg_view()
    for call in (lambda: tg.view_as_real(x), lambda: x.view(tg.float32), lambda: tg.view_as_real_copy(x)):
        with pytest.raises(RuntimeError, match=r"has the conjugate bit.*resolve_conj\(\)"):
            call()
    with pytest.raises(RuntimeError, match=r"has the negative bit.*resolve_neg\(\)"):
        real.view(tg.int32)
    assert tg.view_as_complex(real).is_neg() and tg.view_as_real(x._conj()._neg_view()).is_neg()
