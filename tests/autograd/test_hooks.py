"""Tensor and node hooks: order, replacement, removal, errors."""

import pytest

import tinygrad_ext as tg


def test_order_on_one_path():
    seen = []
    a = tg.ones(2, requires_grad=True)
    b = a * 2
    b.register_hook(lambda g: seen.append("tensor"))
    b.grad_fn.register_prehook(lambda grads: seen.append("node pre"))
    b.grad_fn.register_hook(lambda inputs, outputs: seen.append("node post"))
    a.register_hook(lambda g: seen.append("leaf"))
    a.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    (b * b).sum().backward()
    assert seen == ["tensor", "node pre", "node post", "leaf", "accumulated"]


def test_tensor_hook_replaces_the_gradient():
    a = tg.ones(2, requires_grad=True)
    b = a * 2
    b.register_hook(lambda g: g * 10)
    a.register_hook(lambda g: g + 1)
    b.sum().backward()
    assert a.grad.tolist() == [21.0, 21.0]


def test_hooks_of_one_tensor_run_in_order_of_registration():
    a = tg.ones(1, requires_grad=True)
    a.register_hook(lambda g: g + 1)
    a.register_hook(lambda g: g * 3)
    a.sum().backward()
    assert a.grad.item() == 6.0


def test_retained_gradient_is_what_the_hooks_leave():
    a = tg.ones(1, requires_grad=True)
    b = a * 1
    b.retain_grad()
    b.register_hook(lambda g: g * 5)
    b.sum().backward()
    assert b.grad.item() == 5.0


def test_node_hooks_see_and_replace():
    a = tg.ones(2, requires_grad=True)
    b = a * 3
    seen = []
    b.grad_fn.register_hook(lambda inputs, outputs: seen.append((len(inputs), outputs[0].tolist())))
    b.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    b.sum().backward()
    assert seen == [(2, [2.0, 2.0])]
    assert a.grad.tolist() == [6.0, 6.0]


def test_post_hook_replaces_input_gradients():
    a = tg.ones(2, requires_grad=True)
    b = a * 3
    b.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 0, None))
    b.sum().backward()
    assert a.grad.tolist() == [0.0, 0.0]


def test_handle_removes_and_is_a_context_manager():
    a = tg.ones(1, requires_grad=True)
    handle = a.register_hook(lambda g: g * 100)
    handle.remove()
    handle.remove()
    with a.register_hook(lambda g: g * 7):
        a.sum().backward()
    assert a.grad.item() == 7.0
    a.grad = None
    a.sum().backward()
    assert a.grad.item() == 1.0


def test_leaf_hook_survives_the_end_of_a_graph():
    a = tg.ones(1, requires_grad=True)
    a.register_hook(lambda g: g * 2)
    for _ in range(3):
        a.grad = None
        (a * 1).sum().backward()
        assert a.grad.item() == 2.0


def test_a_hook_that_raises_leaves_the_engine_usable():
    a = tg.ones(1, requires_grad=True)
    b = a * 2

    def fail(g):
        raise KeyError("mine")

    handle = b.register_hook(fail)
    out = b.sum()
    with pytest.raises(KeyError, match="mine"):
        out.backward(retain_graph=True)
    handle.remove()
    out.backward()
    assert a.grad.item() == 2.0


SIZE = (RuntimeError, "has changed the size of value")
DTYPE = (RuntimeError, "has changed the type of value")
NO_TENSOR = (TypeError, "expected Variable, but hook returned 'int'")
NO_TUPLE = (TypeError, "expected tuple, but hook returned 'int'")
COUNT = (RuntimeError, "has returned an incorrect number of values")


@pytest.mark.parametrize(
    "register, bad, expected",
    [
        (lambda y: y.register_hook, lambda g: 3, NO_TENSOR),
        (lambda y: y.register_hook, lambda g: g[:1], SIZE),
        (lambda y: y.register_hook, lambda g: g.expand(3, 2), SIZE),
        (lambda y: y.register_hook, lambda g: g.float(), DTYPE),
        (lambda y: y.grad_fn.register_prehook, lambda gs: 3, NO_TUPLE),
        (lambda y: y.grad_fn.register_prehook, lambda gs: (3,), NO_TENSOR),
        (lambda y: y.grad_fn.register_prehook, lambda gs: (gs[0], gs[0]), COUNT),
        (lambda y: y.grad_fn.register_prehook, lambda gs: (gs[0][:1],), SIZE),
        (lambda y: y.grad_fn.register_hook, lambda inputs, outputs: 3, NO_TUPLE),
        (lambda y: y.grad_fn.register_hook, lambda inputs, outputs: (3, None), NO_TENSOR),
        (lambda y: y.grad_fn.register_hook, lambda inputs, outputs: (inputs[0],), COUNT),
    ],
)
@pytest.mark.parametrize("lib", ["tinygrad_ext", "torch"])
def test_a_hook_may_not_return_garbage(lib, register, bad, expected):
    T = pytest.importorskip(lib)
    a = T.ones(2, dtype=T.float64, requires_grad=True)
    y = a * 2
    handle = register(y)(bad)
    with pytest.raises(expected[0], match=expected[1]):
        y.sum().backward()
    handle.remove()
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]


def test_the_node_of_a_leaf_has_hooks_too():
    a, seen = tg.ones(2, requires_grad=True), []
    leaf = tg.autograd.graph.get_gradient_edge(a).node
    a.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    leaf.register_prehook(lambda grads: seen.append("pre"))
    leaf.register_hook(lambda inputs, outputs: seen.append((inputs, outputs[0].tolist())))
    (a * 3).sum().backward()
    assert seen == ["pre", "accumulated", ((), [3.0, 3.0])]


def test_registration_is_refused_where_it_cannot_work():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        tg.ones(1).register_hook(lambda g: g)
    with pytest.raises(TypeError, match="callable"):
        tg.ones(1, requires_grad=True).register_hook(3)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (tg.ones(1, requires_grad=True) * 1).register_post_accumulate_grad_hook(print)


def undefined(x):
    """x behind a Function whose backward returns None."""

    class Silent(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return None

    return Silent.apply(x)


def test_an_undefined_gradient_reaches_hooks_and_functions_as_none():
    seen = []

    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return g, None

    a = tg.ones(2, requires_grad=True)
    for materialize, expected in ((False, None), (True, [0.0, 0.0])):
        b = Double.apply(a * 3, materialize)
        b.register_hook(seen.append)
        undefined(b.exp()).sum().backward()
        assert seen[0] is None and (seen[1] if expected is None else seen[1].tolist()) == expected
        assert (a.grad if expected is None else a.grad.tolist()) == expected
        seen.clear()
    pieces = (a * 1).split(1)
    pieces[0].register_hook(seen.append)
    pieces[1].sum().backward()
    assert seen == [None] and a.grad.tolist() == [0.0, 1.0]


def test_nodes_behind_an_undefined_gradient_are_passed_over_and_freed():
    a = tg.ones(3, requires_grad=True)
    b = a.exp()
    row, posts = (b * b)[1:], []
    b.grad_fn.register_hook(lambda inputs, outputs: posts.append((inputs, outputs)))
    undefined(row).sum().backward()
    assert a.grad is None and posts == [((None,), (None,))]
    base = a * 1
    base[0].mul_(2)
    undefined(base).sum().backward()
    assert a.grad is None
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        undefined(row).sum().backward()


def test_a_hook_may_not_turn_none_into_a_gradient():
    b = tg.ones(2, requires_grad=True) * 2
    b.register_hook(lambda g: tg.ones(2))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        undefined(b).sum().backward()
