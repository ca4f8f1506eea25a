"""Every in-place form of an op that has a derivative has the same derivative: the whole op table."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.registry import variants
from tinygrad_ext.testing import compare, sweep
from tinygrad_ext.testing.battery.case import Case

OPS = {
    op.name.removeprefix("aten::"): op
    for op in sweep.ops()
    if "inplace" in variants(op.record) and "float64" in sweep.supported(op)
}


def leaves(case):
    sample = case.fresh()
    return sample, [t for t in Case(sample, "").tensors if t.requires_grad]


def weighted(result):
    return (result * tg.linspace(0.5, 2, result.numel(), dtype=result.dtype).reshape(result.shape)).sum()


def fits(result, target):
    return isinstance(result, tg.Tensor) and result.dtype == target.dtype and result.requires_grad


def filled(grads, like):
    return [tg.zeros_like(t) if g is None else g for g, t in zip(grads, like)]


def pairs(op):
    """(gradients of the plain form, gradients of the in-place form) for each sample that has a derivative."""
    method = sweep.inplace_form(op)
    for sample in sweep.samples(op, "float64", True):
        case = Case(sample, "float64")
        plain, inputs = leaves(case)
        if not plain.args or not isinstance(plain.args[0], tg.Tensor) or not inputs:
            continue
        tg.manual_seed(0)
        result = sweep.call(op, plain.args, plain.kwargs)
        if not fits(result, plain.args[0]) or (result.shape != plain.args[0].shape and not op.is_view_op):
            continue
        fresh, own = leaves(case)
        target = fresh.args[0] * 1
        tg.manual_seed(0)
        got = method(target, *fresh.args[1:], **fresh.kwargs)
        assert got is target and got.requires_grad, f"{op.name}_ has no derivative where {op.name} has one"
        yield (
            filled(tg.autograd.grad(weighted(result), inputs, allow_unused=True), inputs),
            filled(tg.autograd.grad(weighted(got), own, allow_unused=True), own),
        )


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_an_inplace_form_is_differentiated_as_the_plain_one(op):
    for wanted, got in pairs(op):
        compare.assert_close(got, wanted, "float64", op.name)


def test_most_of_the_table_is_compared():
    assert sum(bool(list(pairs(op))) for op in OPS.values()) > 100
