"""saved_tensors_hooks and its relatives: when pack and unpack are called, and what they may do."""

import gc
import threading
import weakref

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.autograd import graph


class Product(tg.autograd.Function):
    """Saves both inputs and the output."""

    @staticmethod
    def forward(ctx, x, y):
        result = x * y
        ctx.save_for_backward(x, y, result, None)
        return result

    @staticmethod
    def backward(ctx, grad):
        x, y, result, nothing = ctx.saved_tensors
        assert nothing is None and result.shape == x.shape
        return grad * y, grad * x


def logging_hooks(seen):
    def pack(t):
        seen.append(("pack", t.tolist(), tg.is_grad_enabled()))
        return t

    def unpack(t):
        seen.append(("unpack", t.tolist(), tg.is_grad_enabled()))
        return t

    return graph.saved_tensors_hooks(pack, unpack)


def leaf(*values):
    return tg.tensor(values, requires_grad=True)


def test_pack_runs_when_saving_and_unpack_at_use_once_for_each_tensor():
    a, b, seen = leaf(2.0), leaf(3.0), []
    with logging_hooks(seen):
        y = a * b
    assert seen == [("pack", [3.0], False), ("pack", [2.0], False)]
    del seen[:]
    y.backward()
    assert seen == [("unpack", [3.0], False), ("unpack", [2.0], False)]
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)


@pytest.mark.parametrize(
    "fn",
    [
        lambda t, a, b: a * b,
        lambda t, a, b: t.atan2(a, b),
        lambda t, a, b: a / b,
        lambda t, a, b: a.exp() + b.sqrt(),
        lambda t, a, b: t.where(a > 2, a, b),
        lambda t, a, b: a * 2 + b,
        lambda t, a, b: (a.view(2, 1) @ b.view(1, 2)).relu(),
        lambda t, a, b: t.addcmul(a, a, b),
    ],
)
def test_calls_are_pytorchs(fn):
    torch = pytest.importorskip("torch")
    told = []
    for t, hooks in ((tg, graph.saved_tensors_hooks), (torch, torch.autograd.graph.saved_tensors_hooks)):
        seen = []
        a, b = (t.tensor([v, v + 1], dtype=t.float64, requires_grad=True) for v in (2.0, 4.0))
        with hooks(
            lambda x, seen=seen: seen.append(("pack", x.tolist(), x.requires_grad)) or x,
            lambda x, seen=seen: seen.append(("unpack", x.tolist())) or x,
        ):
            y = fn(t, a, b)
        y.sum().backward()
        told.append((seen, a.grad.tolist()))
    assert told[0] == told[1]


def test_functions_go_through_the_hooks_too():
    a, b, seen = leaf(2.0), leaf(5.0), []
    with logging_hooks(seen):
        y = Product.apply(a, b)
    assert [(what, values) for what, values, _ in seen] == [("pack", [2.0]), ("pack", [5.0]), ("pack", [10.0])]
    y.backward()
    assert [what for what, *_ in seen[3:]] == ["unpack"] * 3
    assert (a.grad.item(), b.grad.item()) == (5.0, 2.0)


def test_what_unpack_returns_is_what_backward_computes_with():
    a = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t.item(), lambda v: tg.tensor([v + 1])):
        y = a * a
    y.backward()
    assert a.grad.item() == 6.0


@pytest.mark.parametrize("fn", [lambda a, b: a * b, lambda a, b: (a * b).exp(), Product.apply])
def test_second_derivatives_pass_through_packed_tensors(fn):
    def second(hooked):
        a, b = leaf(0.5, 0.25), leaf(1.5, 2.0)
        if hooked:
            with graph.saved_tensors_hooks(lambda t: t.tolist(), tg.tensor):
                y = fn(a, b * b)
        else:
            y = fn(a, b * b)
        (g,) = tg.autograd.grad(y.sum(), b, create_graph=True)
        (g * g).sum().backward()
        return a.grad.tolist(), b.grad.tolist()

    assert second(True) == second(False)


def test_of_nested_pairs_the_innermost_is_used():
    a, outer, inner = leaf(1.0), [], []
    with logging_hooks(outer):
        a.exp()
        with logging_hooks(inner):
            a.exp()
        a.exp()
    a.exp()
    assert (len(outer), len(inner)) == (2, 1)


def test_hooks_belong_to_their_thread():
    a, seen = leaf(1.0), []
    with logging_hooks(seen):
        worker = threading.Thread(target=lambda: a.exp().backward())
        worker.start()
        worker.join()
    assert not seen and a.grad is not None


def test_lists_of_tensors_are_packed_one_by_one():
    a, b, seen = leaf(1.0), leaf(2.0), []
    with logging_hooks(seen):
        y = tg.einsum("i,i->", a, b)
    y.backward()
    assert seen and (a.grad.item(), b.grad.item()) == (2.0, 1.0)


@pytest.mark.parametrize("bad", [3, None, "text", [tg.ones(1)]])
def test_unpack_must_return_a_tensor(bad):
    a = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: bad):
        y = a * a
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type"):
        y.backward()
    (a * a).backward()
    assert a.grad.item() == 4.0


def test_pack_may_not_write_to_its_argument():
    a, b = leaf(2.0), tg.ones(1)
    with (
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
        graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t),
    ):
        a * b
    (a * a).backward()
    assert a.grad.item() == 4.0


@pytest.mark.parametrize("fn", [lambda a: a * a, lambda a: a.exp(), lambda a: Product.apply(a, a), tg.Tensor.exp_])
def test_an_error_in_pack_passes_and_leaves_everything_usable(fn):
    a = leaf(2.0)
    with pytest.raises(ZeroDivisionError), graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        fn(a * 1)
    assert tg.is_grad_enabled()
    (a * a).backward()
    assert a.grad.item() == 4.0


def test_an_error_in_unpack_passes_and_the_pass_can_be_repeated():
    a, fail = leaf(2.0), [True]

    def unpack(t):
        if fail:
            raise KeyError("mine")
        return t

    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = a * a
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    fail.clear()
    y.backward()
    assert a.grad.item() == 4.0


@pytest.mark.parametrize("bad", [3, None, "text"])
def test_hooks_must_be_callable(bad):
    with pytest.raises(TypeError, match="pack_hook"):
        graph.saved_tensors_hooks(bad, lambda t: t)
    with pytest.raises(TypeError, match="unpack_hook"):
        graph.saved_tensors_hooks(lambda t: t, bad)


@pytest.mark.parametrize("fn", [lambda a: a.exp(), lambda a: Product.apply(a, a)])
def test_a_packed_output_closes_no_circle(fn):
    collect()
    gc.disable()
    try:
        with graph.saved_tensors_hooks(lambda t: (t, "kept"), lambda p: p[0]):
            y = fn(leaf(1.0))
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_packed_values_are_freed_after_backward():
    class Box:
        def __init__(self, t):
            self.t = t

    alive, a = weakref.WeakSet(), leaf(2.0)

    def pack(t):
        box = Box(t.detach())
        alive.add(box)
        return box

    with graph.saved_tensors_hooks(pack, lambda box: box.t):
        y = a * a
    assert len(alive) == 2
    y.backward()
    assert not alive


def test_hooks_are_called_again_when_the_graph_is_kept():
    a, seen = leaf(2.0), []
    with logging_hooks(seen):
        y = a.exp()
    y.backward(retain_graph=True)
    y.backward()
    assert [what for what, *_ in seen] == ["pack", "unpack", "unpack"]


# ---- save_on_cpu, disabling ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pin", [False, True])
def test_save_on_cpu_changes_no_gradient(pin):
    a = leaf(2.0)
    with graph.save_on_cpu(pin_memory=pin):
        y = (a * a).exp()
    y.backward()
    assert a.grad.item() == pytest.approx(4 * 2.718281828**4, rel=1e-5)


def test_save_on_cpu_still_notices_a_write():
    # PyTorch computes with the changed values
    a, b = leaf(2.0), tg.ones(1)
    with graph.save_on_cpu():
        y = a * b
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*expected version 0"):
        y.backward()


def test_disabled_hooks_raise_the_message():
    a = leaf(1.0)
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
        a.exp().backward()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        with pytest.raises(RuntimeError, match="too late"), graph.disable_saved_tensors_hooks("too late"):
            pass
        a.exp()
    with pytest.raises(TypeError, match="error_message"), graph.disable_saved_tensors_hooks(3):
        pass


# ---- allow_mutation_on_saved_tensors -------------------------------------------------------------------------------


def test_saved_tensors_are_cloned_when_they_are_written_to():
    with graph.allow_mutation_on_saved_tensors():
        x = leaf(1.0).clone()
        before = x.data_ptr()
        y = x.sin()
        x.cos_()
        assert x.data_ptr() == before
        y.sum().backward()
        w = leaf(2.0)
        s = tg.tensor([3.0])
        z = w * s
        s[0] = 100.0
        z.backward()
        assert w.grad.item() == 3.0


def test_nothing_is_cloned_without_a_write():
    a = tg.ones(1000, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        before = tg.memory_stats()["allocated"]
        y = a * a
        assert tg.memory_stats()["allocated"] - before < 8000
        y.sum().backward()
    assert a.grad.tolist() == [2.0] * 1000


def test_views_and_out_count_as_writes():
    w = leaf(2.0, 2.0)
    with graph.allow_mutation_on_saved_tensors():
        s = tg.tensor([3.0, 4.0])
        y = w * s
        tg.add(tg.ones(2), 1, out=s)
        z = w * s
        s[:1].zero_()
        (y + z).sum().backward()
    assert w.grad.tolist() == [5.0, 6.0]


def test_the_graph_must_run_inside():
    with graph.allow_mutation_on_saved_tensors() as context:
        y = leaf(1.0) * leaf(2.0)
        z = leaf(1.0) * leaf(2.0)
        context.clear()
        with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors'"):
            z.backward()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors'"):
        y.backward()


def test_the_contexts_do_not_nest():
    with (
        graph.allow_mutation_on_saved_tensors(),
        pytest.raises(RuntimeError, match="cannot be nested"),
        graph.allow_mutation_on_saved_tensors(),
    ):
        pass
    with graph.allow_mutation_on_saved_tensors():
        pass


def test_leaves_are_still_protected():
    with graph.allow_mutation_on_saved_tensors(), pytest.raises(RuntimeError, match="a leaf Variable"):
        leaf(1.0).add_(1)


# ---- what a node shows ---------------------------------------------------------------------------------------------
