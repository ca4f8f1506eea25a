"""autograd.graph: nodes, edges, dicts of inputs, hooks on several gradients, bytes saved for backward."""

import gc
import weakref

import numpy as np
import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.autograd import graph


def leaf(*values):
    return tg.tensor(values, requires_grad=True)


# ---- nodes and edges -----------------------------------------------------------------------------------------------


class Twice(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_every_grad_fn_is_a_node():
    a = leaf(1.0, 2.0)
    b = a * 1
    b[:1].mul_(3)
    for t in (a * 2, Twice.apply(a), b):
        assert isinstance(t.grad_fn, graph.Node) and issubclass(type(t.grad_fn), graph.Node)
    node = (a * 2).grad_fn
    ((accumulate, number), (nothing, _)) = node.next_functions
    assert accumulate.name() == "AccumulateGrad" and accumulate.variable is a and number == 0 and nothing is None
    assert node.name() == "MulBackward0" and node.metadata == {} and node._sequence_nr() > 0
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}


def test_an_edge_stands_for_its_tensor():
    a = leaf(1.0, 2.0)
    b = a * 3
    c = b * b
    edge, leaf_edge = graph.get_gradient_edge(b), graph.get_gradient_edge(a)
    assert isinstance(edge, tuple) and edge.node is b.grad_fn and edge.output_nr == 0
    out = graph.get_gradient_edge(c)
    del b, c
    (g,) = tg.autograd.grad(out, edge, tg.ones(2), retain_graph=True)
    assert g.tolist() == [6.0, 12.0]
    (g,) = tg.autograd.grad(out, leaf_edge, tg.ones(2), retain_graph=True)
    assert g.tolist() == [18.0, 36.0]
    counted = graph.GradientEdge(edge.node, np.int64(0))
    assert tg.autograd.grad(out, [counted], tg.ones(2), retain_graph=True)[0].tolist() == [6.0, 12.0]
    tg.autograd.backward(out, tg.ones(2), retain_graph=True, inputs=leaf_edge)
    assert a.grad.tolist() == [18.0, 36.0]
    tg.autograd.backward(out, tg.ones(2))
    assert a.grad.tolist() == [36.0, 72.0]


def test_edges_are_made_of_tensors_that_need_gradients():
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(tg.ones(1))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        graph.get_gradient_edge(3)
    with pytest.raises(RuntimeError, match="node and the number of one of its outputs"):
        tg.autograd.grad(leaf(1.0).sum(), graph.GradientEdge(leaf(1.0).exp().grad_fn, 5))


def test_inputs_may_be_a_dict():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    loss = (a * b).sum()
    got = tg.autograd.grad(loss, {"a": a, "b": b, "c": c}, allow_unused=True, retain_graph=True)
    assert type(got) is dict and list(got) == ["a", "b", "c"]
    assert (got["a"].item(), got["b"].item(), got["c"]) == (2.0, 1.0, None)
    zeros = tg.autograd.grad(loss, {"c": c}, materialize_grads=True, retain_graph=True)["c"]
    assert zeros.tolist() == [0.0] and not zeros.requires_grad
    loss.backward(inputs={"a": a})
    assert a.grad.item() == 2.0 and b.grad is None


def test_other_mappings_and_empty_ones_are_refused():
    from collections import OrderedDict

    a = leaf(1.0)
    with pytest.raises(TypeError, match="must be a dict, not OrderedDict"):
        tg.autograd.grad(a.sum(), OrderedDict(a=a))
    with pytest.raises(TypeError, match=r"`backward\(\)` must be a dict"):
        a.sum().backward(inputs=OrderedDict(a=a))
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        tg.autograd.grad(a.sum(), {})
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        a.sum().backward(inputs={})


def test_materialized_zeros_need_gradients_when_the_pass_is_recorded():
    a, b = leaf(1.0), leaf(2.0, 3.0)
    _, zeros = tg.autograd.grad((a * a).sum(), (a, b), materialize_grads=True, create_graph=True)
    assert zeros.tolist() == [0.0, 0.0] and zeros.requires_grad
    _, zeros = tg.autograd.grad((a * a).sum(), (a, graph.get_gradient_edge(b)), materialize_grads=True)
    assert zeros.tolist() == [0.0, 0.0] and not zeros.requires_grad
    with pytest.raises(ValueError, match="Expected allow_unused to be True"):
        tg.autograd.grad(a.sum(), (a, b), materialize_grads=True, allow_unused=False)


def test_batched_gradients_are_those_of_a_loop():
    a, b = leaf(1.0, 2.0), leaf(3.0)
    seeds = tg.rand(5, 2, dtype=tg.float64)
    y = (a * a).sin() * b
    rows = tg.autograd.grad(y, (a, b, leaf(1.0)), seeds, retain_graph=True, allow_unused=True, is_grads_batched=True)
    loop = [tg.autograd.grad(y, (a, b), seed, retain_graph=True) for seed in seeds]
    assert tg.equal(rows[0], tg.stack([g for g, _ in loop])) and tg.allclose(rows[1], tg.stack([g for _, g in loop]))
    assert rows[2] is None
    second = tg.autograd.grad(y, a, seeds, create_graph=True, is_grads_batched=True)[0]
    assert second.requires_grad
    tg.autograd.grad(y, a, seeds, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="second time"):
        tg.autograd.grad(y, a, seeds, is_grads_batched=True)


def test_multithreading_is_a_setting_without_effect():
    a = leaf(1.0)
    with tg.autograd.set_multithreading_enabled(False):
        (a * 2).sum().backward()
    assert a.grad.item() == 2.0
    with pytest.raises(TypeError, match="must be bool"):
        tg.autograd.set_multithreading_enabled("no")


# ---- versions ------------------------------------------------------------------------------------------------------


def test_increment_version_counts_as_a_write():
    a, b, c = leaf(1.0), tg.ones(1), tg.ones(1)
    y, z = a * b, a * c
    graph.increment_version(b)
    assert b._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    graph.increment_version([b, c])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    for bad in (3, [b, "text"], None):
        with pytest.raises(RuntimeError, match=r"expect a Iterable\[Tensor\]"):
            graph.increment_version(bad)
    with tg.inference_mode():
        frozen = tg.ones(1)
    graph.increment_version(frozen)  # which has no count


# ---- one hook on several gradients ---------------------------------------------------------------------------------


def test_multi_grad_hook_waits_for_all_gradients_of_a_pass():
    a, b, seen = leaf(1.0), leaf(2.0), []
    handle = graph.register_multi_grad_hook((a, b), lambda grads: seen.append([g and g.item() for g in grads]))
    (a * b).backward()
    (a * 3).backward()
    b.exp()
    (b * 5 + a * 1).backward()
    assert seen == [[2.0, 1.0], [3.0, None], [1.0, 5.0]]
    handle.remove()
    handle.remove()
    (a * b).backward()
    assert len(seen) == 3


def test_multi_grad_hook_sees_inner_tensors_and_inputs():
    a, seen = leaf(2.0), []
    b = a * 3
    c = b * b
    graph.register_multi_grad_hook((b, c), lambda grads: seen.append([g and g.item() for g in grads]))
    c.backward(retain_graph=True)
    tg.autograd.grad(c, a)
    assert seen == [[12.0, 1.0], [12.0, 1.0]]


def test_multi_grad_hook_is_called_though_a_gradient_stays_away():
    class Stops(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    a, b, seen = leaf(1.0), leaf(2.0), []
    graph.register_multi_grad_hook((a, b), seen.append)
    (Stops.apply(a) + b).backward()
    assert len(seen) == 1 and seen[0][0] is None and seen[0][1].item() == 1.0


def test_multi_grad_hook_any_takes_the_first_of_each_pass():
    a, b, seen = leaf(1.0), leaf(2.0), []
    with graph.register_multi_grad_hook([a, b], lambda g: seen.append(g.item()), mode="any"):
        for _ in range(2):
            (a * b).backward()
    (a * b).backward()
    assert len(seen) == 2


def test_multi_grad_hook_that_raises_leaves_the_engine_usable():
    a, b = leaf(1.0), leaf(2.0)
    with graph.register_multi_grad_hook((a, b), lambda grads: 1 / 0), pytest.raises(ZeroDivisionError):
        (a * b).backward()
    a.grad = None
    (a * b).backward()
    assert a.grad.item() == 2.0


def test_multi_grad_hook_refuses_what_it_cannot_serve():
    a = leaf(1.0)
    with pytest.raises(ValueError, match=r"one of \('all', 'any'\) but got some"):
        graph.register_multi_grad_hook((a,), print, mode="some")
    with pytest.raises(AssertionError, match="tensor 1 .* does not require grad"):
        graph.register_multi_grad_hook((a, tg.ones(1)), print)
    with pytest.raises(TypeError, match="callable"):
        graph.register_multi_grad_hook((a,), 3)


# ---- bytes saved for backward --------------------------------------------------------------------------------------


class FusedGate(tg.autograd.Function):
    """sigmoid(x) * tanh(x) that keeps its input alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid() * x.tanh()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s, t = x.sigmoid(), x.tanh()
        return grad * (s * (1 - s) * t + s * (1 - t * t))


def test_a_fused_function_saves_less_than_the_chain():
    x = tg.randn(100, requires_grad=True)
    y = x * 2
    # sigmoid and tanh keep their results, and the product the same two
    assert graph.saved_bytes(y.sigmoid() * y.tanh()) == 800
    assert graph.saved_bytes(FusedGate.apply(y)) == 400


def test_a_storage_counts_once():
    x = tg.randn(100, requires_grad=True)
    y = x.exp()
    assert graph.saved_bytes(y) == 400
    z = y * y.view(10, 10).t().reshape(100)
    assert graph.saved_bytes((z, y)) == graph.saved_bytes(z) == 800
    assert graph.saved_bytes(x) == graph.saved_bytes(tg.ones(3)) == 0


def test_the_report_names_nodes_and_lines():
    x = tg.randn(100, requires_grad=True)
    report = graph.saved_bytes((x.exp() * x).sum(), by_node=True)
    assert [(row.name, row.bytes) for row in report] == [("MulBackward0", 800)]
    assert report.total == 800 and "test_graph.py" in report[0].place and report[0].tensors == ("float32[100]",) * 2
    assert str(report).splitlines()[-1].split() == ["800", "bytes"]


def test_freed_graphs_and_packed_tensors_count_what_is_held():
    x = tg.randn(100, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    assert graph.saved_bytes(y) == 0
    with graph.saved_tensors_hooks(lambda t: ("half", t.half()), lambda p: p[1].float()):
        y = x.exp()
    assert graph.saved_bytes(y) == 200
    with graph.saved_tensors_hooks(lambda t: t.tolist(), tg.tensor):
        y = x.exp()
    assert graph.saved_bytes(y) == 0


def test_tensors_on_ctx_and_behind_slices_count():
    class Hidden(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mine = {"square": [x * x]}
            return x.exp()

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = tg.randn(100, requires_grad=True)
    assert graph.saved_bytes(Hidden.apply(x)) == 400
    y = x * 1
    y[:50].exp_()
    assert graph.saved_bytes(y) >= 200


def test_saved_bytes_wants_a_graph():
    for bad in (3, "text", [tg.ones(1), None]):
        with pytest.raises(TypeError, match="must be Tensor, GradientEdge or Node"):
            graph.saved_bytes(bad)


def test_deep_graphs_are_counted_without_recursion():
    x = tg.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    assert graph.saved_bytes(y.exp()) == 4


def test_looking_at_a_graph_keeps_nothing():
    collect()
    gc.disable()
    try:
        x = leaf(1.0)
        y = x.exp()
        graph.saved_bytes(y, by_node=True)
        graph.get_gradient_edge(y)
        alive = weakref.ref(y.grad_fn)
        del x, y
        assert alive() is None
    finally:
        gc.enable()
