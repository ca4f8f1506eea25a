"""What autograd.Function saves: PyTorch does the same in each of these scenarios."""

import warnings

import pytest
from functions import Scenarios, cube, kind_of_error, make, node, point

import tinygrad_ext as tg

SCENARIOS = Scenarios()


@SCENARIOS.add
def saved_none_and_second_call(T):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x, x)
        ctx.save_for_backward(None, x)
        return x * 1

    def backward(ctx, g):
        seen.append([t is None for t in ctx.saved_tensors])
        return g * ctx.saved_tensors[1]

    x = point(T)
    make(T, forward, backward).apply(x).sum().backward()
    return seen, x.grad.tolist()


@SCENARIOS.add
def a_saved_input_is_itself(T):
    x = point(T)
    f = cube(T).apply(x).grad_fn
    return f.saved_tensors[0].data_ptr() == x.data_ptr(), f.saved_tensors[0].requires_grad, node(f.saved_tensors[0])


@SCENARIOS.add
def a_saved_output_has_its_history(T):
    x = point(T)

    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    y = make(T, forward).apply(x)
    (saved,) = y.grad_fn.saved_tensors
    return saved.requires_grad, saved.grad_fn is y.grad_fn, saved.data_ptr() == y.data_ptr()


@SCENARIOS.add
def what_is_saved_for_forward_ends_with_the_call(T):
    seen = []

    def forward(ctx, x):
        y = x * 2
        ctx.save_for_forward(x, y)
        seen.append(len(ctx.saved_for_forward))
        return y

    return make(T, forward).apply(point(T)).grad_fn.saved_for_forward, seen


@SCENARIOS.add
def raw_handles_of_a_freed_graph(T):
    y = cube(T).apply(point(T))
    y.sum().backward()
    return kind_of_error(lambda: y.grad_fn._raw_saved_tensors)


@SCENARIOS.add
def backward_twice_with_retain_graph(T):
    x = point(T)
    y = cube(T).apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad.tolist(), kind_of_error(y.backward)


@SCENARIOS.add
def backward_twice_when_nothing_is_saved(T):
    x = point(T)
    y = make(T).apply(x)
    y.backward(T.ones(2, dtype=T.float64))
    y.backward(T.ones(2, dtype=T.float64))
    return x.grad.tolist()


@SCENARIOS.add
def old_names(T):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def forward(ctx, x):
            ctx.mark_shared_storage()
            ctx.save_for_backward(x)
            return x * 1

        x = point(T)
        make(T, forward, lambda ctx, g: g * ctx.saved_variables[0]).apply(x).sum().backward()
    return sorted(w.category.__name__ for w in caught), x.grad.tolist()


@SCENARIOS.add
def legacy_through_apply(T):
    class Legacy(T.autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x**2

        def backward(self, g):
            return g * 2 * self.saved_tensors[0]

    x = point(T)
    Legacy.apply(x).sum().backward()
    return x.grad.tolist()


@SCENARIOS.add
def attributes_of_ctx(T):
    def forward(ctx, x):
        ctx.number, ctx.text, ctx.kept = 3, "text", x
        return x * 3

    x = point(T)
    f = make(T, forward, lambda ctx, g: g * ctx.number + ctx.kept * 0).apply(x).grad_fn
    f.more = 5
    return f.number, f.text, f.kept is x, f.more, hasattr(f, "absent")


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_as_pytorch(name):
    torch = pytest.importorskip("torch")
    assert SCENARIOS[name](tg) == SCENARIOS[name](torch)
