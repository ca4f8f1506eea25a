"""What belongs to a value that is written over: retained gradients, hooks, the leaf's .grad. The same in PyTorch."""

import importlib

import pytest


def leaf(T, *values):
    return T.tensor(list(values) or [1.0, 2.0], dtype=T.float64, requires_grad=True)


def grads(*tensors):
    return [None if t.grad is None else t.grad.tolist() for t in tensors]


class Cases(dict):
    def add(self, run):
        self[run.__name__] = run
        return run


RETAINED, HOOKED, FROZEN = Cases(), Cases(), Cases()


def retained(write):
    """Gradients of x and y = x * 1, which retains its gradient and is then written to by write(T, y, w)."""

    def run(T):
        x, w = leaf(T), leaf(T, 3.0, 4.0)
        y = x * 1
        y.retain_grad()
        write(T, y, w)
        (y * y).sum().backward()
        return grads(x, y, w)

    RETAINED[write.__name__] = run


@retained
def number(T, y, w):
    y.mul_(3)


@retained
def tensor(T, y, w):
    y.mul_(w)


@retained
def three_times(T, y, w):
    y.mul_(w).add_(1).sin_()


@retained
def element(T, y, w):
    y[0] = w[1]


@retained
def view(T, y, w):
    y[:1].mul_(w[0])


@retained
def zero(T, y, w):
    y.zero_()


@retained
def copy(T, y, w):
    y.copy_(w)


@retained
def function(T, y, w):
    class Double(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    Double.apply(y)


@retained
def without_recording(T, y, w):
    with T.no_grad():
        y.mul_(3)


@retained
def asked_again(T, y, w):
    y.mul_(3)
    y.retain_grad()


@RETAINED.add
def view_of_a_written_base(T):
    x = leaf(T)
    y = x * 1
    v = y[:1]
    v.retain_grad()
    y.mul_(3)
    (v * 5).sum().backward()
    return grads(x, v)


@RETAINED.add
def written_view(T):
    x = leaf(T)
    y = x * 1
    v = y[:1]
    v.retain_grad()
    v.mul_(3)
    (v * 5 + y).sum().backward()
    return grads(x, v)


@RETAINED.add
def view_and_base(T):
    x = leaf(T)
    y = x * 1
    v = y[:1]
    v.retain_grad()
    y.retain_grad()
    v.mul_(3)
    y.mul_(2)
    (y * 5 + v).sum().backward()
    return grads(x, v, y)


@RETAINED.add
def old_value_in_use(T):
    x = leaf(T)
    y = x * 1
    z = y * 7
    y.retain_grad()
    y.mul_(2)
    (y * 5 + z).sum().backward()
    return grads(x, y)


@RETAINED.add
def with_hooks_before_and_after(T):
    x = leaf(T)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.mul_(2)
    y.register_hook(lambda g: g * 100)
    (y * 5).sum().backward()
    return grads(x, y)


@RETAINED.add
def cut_off(T):
    x = leaf(T)
    y = x * 1
    y.retain_grad()
    y.detach_()
    y.requires_grad_()
    (y * 5).sum().backward()
    return grads(x, y), y.retains_grad


def hooked(run):
    """What a hook saw, and the gradient of the leaf: run(T, x, y, hook) registers it and returns the loss."""

    def case(T):
        seen, x = [], leaf(T)
        run(T, x, x * 1, lambda g: seen.append(g.tolist())).backward()
        return seen, grads(x)

    HOOKED[run.__name__] = case


@hooked
def stays_with_the_old_value(T, x, y, hook):
    y.register_hook(hook)
    y.mul_(3)
    return (y * 5).sum()


@hooked
def of_the_new_value(T, x, y, hook):
    y.mul_(3)
    y.register_hook(hook)
    return (y * 5).sum()


@hooked
def before_a_write_through_a_view(T, x, y, hook):
    y.register_hook(hook)
    y[0].mul_(3)
    return (y * 5).sum()


@hooked
def of_a_view_that_is_written_to(T, x, y, hook):
    v = y[:1]
    v.register_hook(hook)
    v.mul_(3)
    return (y * 5).sum() + v.sum()


@hooked
def of_a_view_whose_base_is_written_to(T, x, y, hook):
    v = y[:1]
    v.register_hook(hook)
    y.mul_(3)
    return (v * 5).sum()


@hooked
def of_the_old_node(T, x, y, hook):
    y.grad_fn.register_prehook(lambda row: hook(row[0]))
    y.mul_(3)
    return (y * 5).sum()


@FROZEN.add
def after_the_forward(T):
    x, w = leaf(T), leaf(T, 3.0, 4.0)
    y = x * w
    x.requires_grad_(False)
    y.sum().backward()
    return grads(x, w)


@FROZEN.add
def by_assignment(T):
    x = leaf(T)
    y = x * 2
    x.requires_grad = False
    y.sum().backward()
    return grads(x)


@FROZEN.add
def keeps_what_was_there(T):
    x = leaf(T)
    x.grad = T.ones(2, dtype=T.float64)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    return grads(x)


@FROZEN.add
def thawed(T):
    x = leaf(T)
    y = x * 2
    x.requires_grad_(False).requires_grad_()
    y.sum().backward()
    return grads(x)


@FROZEN.add
def by_a_hook(T):
    x = leaf(T)
    y = x * 2

    def freeze(grad):
        x.requires_grad_(False)

    y.register_hook(freeze)
    y.sum().backward()
    return grads(x)


@FROZEN.add
def hooks_are_called(T):
    seen, x = [], leaf(T)
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(grads(t)))
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda row: seen.append(len(row)))
    node.register_hook(lambda row, out: seen.append((len(row), len(out))))
    x.requires_grad_(False)
    y.sum().backward()
    return grads(x), seen


@FROZEN.add
def asked_for(T):
    x = leaf(T)
    y = x * 2
    x.requires_grad_(False)
    with pytest.raises(RuntimeError, match="does not require grad"):
        T.autograd.grad(y.sum(), x)


@FROZEN.add
def as_an_edge(T):
    x = leaf(T)
    y = x * 2
    edge = T.autograd.graph.get_gradient_edge(x)
    x.requires_grad_(False)
    return [g.tolist() for g in T.autograd.grad(y.sum(), edge)], grads(x)


@FROZEN.add
def others_asked_for(T):
    x, w = leaf(T), leaf(T)
    y = x * w
    x.requires_grad_(False)
    y.sum().backward(inputs=[w])
    return grads(x, w)


@FROZEN.add
def with_create_graph(T):
    x = leaf(T)
    y = (x * x * x).sum()
    x.requires_grad_(False)
    y.backward(create_graph=True)
    return grads(x)


@FROZEN.add
def written_to_since(T):
    x, w = leaf(T), leaf(T, 3.0, 4.0)
    y = (x * 2).sum()
    x.requires_grad_(False)
    x.mul_(w)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.backward()
    return grads(x, w)


WANTED = {
    **{name: run for name, run in RETAINED.items()},
    **{f"hook_{name}": run for name, run in HOOKED.items()},
    **{f"frozen_{name}": run for name, run in FROZEN.items()},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WANTED)
def test_the_same_as_in_torch(name):
    torch = pytest.importorskip("torch")
    assert WANTED[name](importlib.import_module("tinygrad_ext")) == WANTED[name](torch)


def test_a_retained_gradient_is_that_of_the_new_value():
    tg = importlib.import_module("tinygrad_ext")
    assert RETAINED["number"](tg) == [[18.0, 36.0], [6.0, 12.0], None]


def test_hooks_stay_with_the_value_they_were_registered_for():
    tg = importlib.import_module("tinygrad_ext")
    assert HOOKED["stays_with_the_old_value"](tg) == ([[15.0, 15.0]], [[15.0, 15.0]])
    assert HOOKED["of_the_new_value"](tg) == ([[5.0, 5.0]], [[15.0, 15.0]])


def test_a_leaf_frozen_after_the_forward_gets_no_grad():
    tg = importlib.import_module("tinygrad_ext")
    assert FROZEN["after_the_forward"](tg) == [None, [1.0, 2.0]]
