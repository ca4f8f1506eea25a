"""Checkpoints that keep the results of some ops: what runs again, what is handed out, refusals."""

import functools

import pytest

import tinygrad_ext as tg
from tinygrad_ext.overrides.dispatched import TorchDispatchMode
from tinygrad_ext.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

MM = tg.ops.aten.mm.default


class Counted(TorchDispatchMode):
    """Counts the products that are computed."""

    def __init__(self):
        super().__init__()
        self.products = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.products += func is MM
        return func(*args, **(kwargs or {}))


def _pair():
    tg.manual_seed(0)
    return [tg.randn(4, 4, requires_grad=True) for _ in range(2)]


def program(x, y):
    return tg.sigmoid(tg.matmul(tg.matmul(x.sin(), y), y)) * y


def _checkpointed(function, *args, by, **kwargs):
    contexts = functools.partial(create_selective_checkpoint_contexts, by, **kwargs)
    return checkpoint(function, *args, use_reentrant=False, context_fn=contexts)


def _policy(context, op, *args, **kwargs):
    assert not context.is_recompute and isinstance(context.op_output, tg.Tensor)
    return CheckpointPolicy.MUST_SAVE if op is MM else CheckpointPolicy.PREFER_RECOMPUTE


@pytest.mark.parametrize(
    "by, again",
    [([MM], 0), (_policy, 0), (lambda context, op, *args, **kwargs: op is MM, 0), ([], 2)],
    ids=["list", "policy", "bool", "nothing"],
)
def test_products_that_are_kept_are_not_computed_again(by, again):
    x, y = _pair()
    want = tg.autograd.grad(program(x, y).sum(), (x, y))
    with Counted() as alone:
        tg.autograd.grad(program(x, y).sum(), (x, y))
    result = _checkpointed(program, x, y, by=by)
    with Counted() as counted:
        got = tg.autograd.grad(result.sum(), (x, y))
    assert all(map(tg.equal, got, want))
    assert counted.products == alone.products - 2 + again


def test_a_region_goes_backward_once():
    x, y = _pair()
    result = _checkpointed(program, x, y, by=[MM]).sum()
    tg.autograd.grad(result, x, retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        tg.autograd.grad(result, x)


def test_what_was_kept_may_be_written_to_only_where_that_is_allowed():
    def writing(x, y):
        z = x @ y
        w = z.sin()
        z.data.mul_(1)
        with tg.no_grad():
            z.add_(1)
        return w.exp()

    x, y = _pair()
    with pytest.raises(RuntimeError, match="has been mutated"):
        _checkpointed(writing, x, y, by=[MM]).sum().backward()
    _checkpointed(lambda x, y: (x @ y).exp(), x, y, by=[MM], allow_cache_entry_mutation=True).sum().backward()


def test_an_op_that_ran_only_the_second_time_is_refused():
    runs = []

    def other(x):
        runs.append(1)
        return (x.sin() if len(runs) == 1 else x.cos()).exp()

    with pytest.raises(RuntimeError, match="aten.cos.default encountered during backward but not found"):
        _checkpointed(other, _pair()[0], by=[MM]).sum().backward()


def test_what_names_no_ops_is_refused():
    with pytest.raises(ValueError, match="to be an OpOverload but got: .* Name one of its overloads"):
        create_selective_checkpoint_contexts([tg.ops.aten.mm])
    with pytest.raises(ValueError, match="to be an OpOverload but got: mm of type str"):
        create_selective_checkpoint_contexts(["mm"])
    with pytest.raises(TypeError, match="either a function or a list of ops, not int"):
        create_selective_checkpoint_contexts(3)


def test_modes_see_an_op_whose_pack_hook_calls_ops():
    x, _ = _pair()
    seen = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t), Seeing():
        result = x.sin().exp()
    assert [name for name in seen if "sin" in name or "exp" in name] == ["aten.sin.default", "aten.exp.default"]
    result.sum().backward()
    assert tg.equal(x.grad, x.detach().sin().exp() * x.detach().cos())
