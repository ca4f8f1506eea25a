"""`out=` that is an input, or shares memory with one, and warnings whose handlers change the tensors of a call.

The result is that of the call without out=, or a refusal, and that only where PyTorch refuses too or computes nonsense.
"""

import importlib.util
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import beside_torch, compare, layouts, sweep

HAVE_TORCH = importlib.util.find_spec("torch") is not None
REFUSALS = (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError)


def takes_out(op):
    """Whether one tensor can be given as out=, and what comes out is no matter of chance."""
    chance = sweep.is_random(op) or op.record.determined
    one = len(op.schema.returns) == 1 and not op.schema.returns[0].is_list
    return "out" in tg.registry.variants(op.record) and one and not chance


def dtype_of(op):
    supported = sweep.supported(op)
    return "float32" if "float32" in supported else supported[0]


OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops() if takes_out(op)}
every_op = pytest.mark.parametrize("op", OPS.values(), ids=OPS)


def tensors(values):
    """The tensors among arguments, in lists too."""
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from tensors(v)
        elif type(v).__name__ == "Tensor":
            yield v


def shifted(t):
    """A tensor like t, and one of the same shape whose memory begins one element further."""
    memory = t.new_zeros(t.numel() + 1)
    first, second = memory[:-1].view(t.shape), memory[1:].view(t.shape)
    first.copy_(t)
    return first, second


FORMS = {
    "the input": lambda t: (t, t),
    "its transpose": lambda t: (t, t.transpose(0, -1)),
    "a view one element further": shifted,
    "a part": lambda t: (t, t[:1]),
}


def outcomes(call, args, kwargs):
    """What each form of each input as out= leads to: (form, number of the input) -> result or error."""
    found = {}
    for k in range(len(list(tensors((*args, *kwargs.values()))))):
        for form, make in FORMS.items():
            given = copied(args)
            named = dict(zip(kwargs, copied(kwargs.values())))
            chosen = list(tensors((*given, *named.values())))[k]
            if chosen.ndim == 0 and form != "the input":
                continue
            changed, out = make(chosen)
            given, named = swapped(given, chosen, changed), dict(zip(named, swapped(named.values(), chosen, changed)))
            try:
                found[form, k] = call(*given, **named, out=out)
            except REFUSALS as error:
                found[form, k] = error
    return found


def copied(values):
    """Arguments with clones of their tensors, of either library."""
    return [
        copied(v) if isinstance(v, (list, tuple)) else v.clone() if type(v).__name__ == "Tensor" else v for v in values
    ]


def swapped(values, old, new):
    return [swapped(v, old, new) if isinstance(v, list) else new if v is old else v for v in values]


@every_op
def test_an_input_as_out_gives_the_result_or_is_refused(op):
    torch = pytest.importorskip("torch", reason="compares with PyTorch") if HAVE_TORCH else None
    with warnings.catch_warnings(), tg.no_grad():
        warnings.simplefilter("ignore")
        for sample in sweep.samples(op, dtype_of(op))[:3]:
            expected = sweep.call(op, sample.args, sample.kwargs)
            for key, got in outcomes(sweep.function(op), sample.args, sample.kwargs).items():
                if not isinstance(got, Exception):
                    assert compare.same_bits([got], [expected.to(got.dtype)]), (key, sample)
                elif torch is not None:
                    check_refusal(op, sample, key, got, expected, torch)


def check_refusal(op, sample, key, error, expected, torch):
    """PyTorch refuses this as well, or gives something else than without out=."""
    function = beside_torch.torch_function(op, torch)
    if function is None or op.name == "aten::pow.Scalar":  # the base 1 reads no input there
        return
    args = [beside_torch.to_torch(a, torch) for a in sample.args]
    kwargs = {k: beside_torch.to_torch(v, torch) for k, v in sample.kwargs.items()}
    theirs = outcomes(function, args, kwargs)[key]
    if isinstance(theirs, Exception):
        return
    right = beside_torch.to_torch(expected, torch).to(theirs.dtype)
    if theirs.shape == right.shape and torch.equal(torch.nan_to_num(theirs), torch.nan_to_num(right)):
        raise AssertionError(f"refused what PyTorch computes: {op.name}(out={key}) {sample}") from error


@every_op
def test_a_warning_that_changes_the_tensors_changes_no_result(op):
    with tg.no_grad():
        for sample in sweep.samples(op, dtype_of(op))[:2]:
            expected = sweep.call(op, sample.args, sample.kwargs)
            args = layouts.map_tensors(sample.args, tg.clone)
            kwargs = layouts.map_tensors(sample.kwargs, tg.clone)
            out = tg.zeros(2, 1, 3, 1, 5, dtype=expected.dtype)
            inputs, shown = list(tensors((*args, *kwargs.values()))), []

            def show(*_, inputs=inputs, out=out, shown=shown, **__):
                shown.append(1)
                for t in (*inputs, out):
                    t.data = tg.zeros(1, dtype=t.dtype)
                tg.full((4096,), 7.0)  # takes the memory that was let go

            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = show
                got = sweep.function(op)(*args, **kwargs, out=out)
            assert shown
            assert got is out
            assert compare.same_bits([got], [expected]), sample


def test_dot_of_a_vector_into_itself():
    a = tg.tensor([2.0, 3.0])
    with pytest.warns(UserWarning, match="was resized"):
        assert tg.dot(a, a, out=a) is a
    assert a.item() == 13.0


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_product_into_an_operand_of_another_shape(at):
    operands = [tg.arange(8.0).reshape(2, 4), tg.arange(6.0).reshape(2, 3), tg.arange(12.0).reshape(3, 4)]
    expected = tg.addmm(*operands)
    if at == 0:
        operands[0] = operands[0][0].clone()
        expected = tg.addmm(*operands)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tg.addmm(*operands, out=operands[at]) is operands[at]
    assert tg.equal(operands[at], expected)


def test_an_out_tensor_of_the_right_shape_keeps_its_memory():
    out = tg.zeros(2, 2)
    before = out.data_ptr()
    tg.mm(tg.ones(2, 2), tg.ones(2, 2), out=out)
    assert out.data_ptr() == before
    assert out.sum() == 8


def test_a_cat_that_resizes_out_can_read_what_out_was():
    a = tg.arange(3.0)
    view = a[:2]
    out = tg.zeros(1)
    with pytest.warns(UserWarning, match="was resized"):
        tg.cat([view, a], out=out)
    assert out.tolist() == [0.0, 1.0, 0.0, 1.0, 2.0]
