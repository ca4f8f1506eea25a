"""Classes, arguments and saved tensors of Functions: equal to what PyTorch returns."""

import copy
import pickle

import pytest
from functions import Scenarios, cube, kind_of_error, make, node, point, title

import tinygrad_ext as tg

SCENARIOS = Scenarios()


# ---- classes


@SCENARIOS.add
def a_subclass_of_a_subclass(T):
    class Root(T.autograd.Function):
        scale = 2

        @classmethod
        def factor(cls):
            return cls.scale

        @staticmethod
        def forward(ctx, x):
            return x * ctx._forward_cls.factor()

        @staticmethod
        def backward(ctx, g):
            return g * ctx._forward_cls.factor()

    class Child(Root):
        scale = 5

    class Grandchild(Child):
        @staticmethod
        def backward(ctx, g):
            return Child.backward(ctx, g) * 10

    x, found = point(T), []
    for cls in (Root, Child, Grandchild):
        y = cls.apply(x)
        found.append((node(y), y.tolist(), T.autograd.grad(y.sum(), x)[0].tolist()))
    return found


@SCENARIOS.add
def apply_can_be_wrapped(T):
    class Wrapped(cube(T)):
        @classmethod
        def apply(cls, x, times):
            for _ in range(times):
                x = super().apply(x)
            return x

    x = point(T)
    Wrapped.apply(x, 2).sum().backward()
    return x.grad.tolist()


@SCENARIOS.add
def forward_as_a_class_method(T):
    class ByClass(T.autograd.Function):
        @classmethod
        def forward(cls, ctx, x):
            return x * 2

        @classmethod
        def backward(cls, ctx, g):
            return g * 2

    x = point(T)
    ByClass.apply(x).sum().backward()
    ByClass.apply(x).sum().backward()
    return x.grad.tolist()


@SCENARIOS.add
def copies_of_a_class(T):
    made = cube(T)
    module = T.autograd.function
    return copy.deepcopy(made) is made, pickle.loads(pickle.dumps(module.InplaceFunction)) is module.InplaceFunction


@SCENARIOS.add
def copies_of_results(T):
    y = cube(T).apply(point(T))
    again = pickle.loads(pickle.dumps(y))
    return (
        (again.tolist(), again.is_leaf, again.requires_grad, again.grad_fn),
        kind_of_error(lambda: copy.deepcopy(y)),
        kind_of_error(lambda: copy.deepcopy(y.grad_fn)),
        kind_of_error(lambda: copy.copy(y.grad_fn)),
        copy.deepcopy(y.detach()).tolist(),
    )


@SCENARIOS.add
def the_names_of_the_module(T):
    module = T.autograd.function
    names = ["FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction"]
    names += ["NestedIOFunction"]
    return (
        [hasattr(module, n) for n in [*names, "_ContextMethodMixin"]],
        sorted(set(names) - set(module.__all__)),
        module._ContextMethodMixin is module.FunctionCtx,
        issubclass(cube(T)._backward_cls, module.BackwardCFunction),
        issubclass(cube(T)._backward_cls, module.FunctionCtx),
        isinstance(cube(T), module.FunctionMeta),
    )


@SCENARIOS.add
def the_node(T):
    x = point(T)
    w = x * 1
    y = make(T, lambda ctx, x, n, v, w: x * w, lambda ctx, g: (g, None, None, g)).apply(x, 3, x.detach(), w)
    f = y.grad_fn
    f.metadata["note"] = 3
    shapes = [tuple(m.shape) for m in f._input_metadata], [m.dtype == T.float64 for m in f._input_metadata]
    later = make(T).apply(x).grad_fn
    return (
        f.name(),
        [(title(n), nr) for n, nr in f.next_functions],
        f.metadata,
        f is y.grad_fn,
        shapes,
        later._sequence_nr() > f._sequence_nr(),
        isinstance(f, T.autograd.function.BackwardCFunction),
    )


@SCENARIOS.add
def raw_saved_tensors(T):
    x = point(T)
    f = cube(T).apply(x).grad_fn
    return len(f._raw_saved_tensors), len(make(T).apply(x).grad_fn._raw_saved_tensors)


@SCENARIOS.add
def marks_without_meaning_for_us_are_stored(T):
    class Stored(cube(T)):
        generate_vmap_rule = True

        @staticmethod
        def jvp(ctx, t):
            return t

        @staticmethod
        def vmap(info, in_dims, x):
            return x, in_dims

    return Stored.generate_vmap_rule, Stored.jvp(None, 3), Stored.vmap(None, 0, 4), Stored.apply(point(T)).tolist()


# ---- arguments


@SCENARIOS.add
def the_same_tensor_twice(T):
    seen = []

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g * 2, g * 5

    x = point(T)
    make(T, lambda ctx, a, b: a * b, backward).apply(x, x).sum().backward()
    return x.grad.tolist(), seen


@SCENARIOS.add
def gradients_that_nobody_needs_are_dropped(T):
    x, w = point(T), point(T).detach()
    make(T, lambda ctx, a, b: a * b, lambda ctx, g: (g * 2, g * 5)).apply(x, w).sum().backward()
    return x.grad.tolist(), w.grad


@SCENARIOS.add
def a_none_gradient_for_a_needed_input(T):
    x, w = point(T), point(T)
    make(T, lambda ctx, a, b: a * b, lambda ctx, g: (g * 2, None)).apply(x, w).sum().backward()
    return x.grad.tolist(), w.grad


@SCENARIOS.add
def arguments_of_every_type(T):
    seen = []

    def forward(ctx, x, *rest):
        seen.append([type(r).__name__ for r in rest])
        seen.append(ctx.needs_input_grad)
        return x * 2

    x = point(T)
    made = make(T, forward, lambda ctx, g: (g * 2,) + (None,) * 6)
    made.apply(x, 3, "text", None, [1, 2], {"k": 1}, T.ones(2)).sum().backward()
    return seen, x.grad.tolist()


@SCENARIOS.add
def keywords_in_ctx_style(T):
    x, w = point(T), point(T)
    made = make(T, lambda ctx, x, w: x * w, lambda ctx, g: (g * 2, g * 5))
    made.apply(x.detach(), w=w).sum().backward()
    return x.grad, w.grad.tolist()


@SCENARIOS.add
def defaults_beside_setup_context(T):
    seen = []

    def setup_context(ctx, inputs, output):
        seen.append((len(inputs), inputs[1:], type(output).__name__))
        ctx.scale = inputs[1]

    made = make(
        T,
        lambda x, scale=2.0, other=None: x * scale,
        lambda ctx, g: (g * ctx.scale, None, None),
        setup_context=staticmethod(setup_context),
    )
    x = point(T)
    made.apply(x).sum().backward()
    made.apply(x, 5.0).sum().backward()
    made.apply(x, other=3, scale=7.0).sum().backward()
    return seen, x.grad.tolist()


@SCENARIOS.add
def marks_in_setup_context(T):
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    made = make(
        T,
        lambda x: (x.mul_(2), x * 3),
        lambda ctx, g, h: g * 2 if h is None else g * 100,
        setup_context=staticmethod(setup_context),
    )
    x = point(T)
    y = x * 1
    z, plain = made.apply(y)
    z.sum().backward()
    return z is y, plain.requires_grad, x.grad.tolist()


@SCENARIOS.add
def complex_inputs(T):
    x = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128, requires_grad=True)
    made = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * 2 * ctx.saved_tensors[0].conj())
    y = made.apply(x)
    T.real(y).sum().backward()
    return x.grad.tolist()


@SCENARIOS.add
def a_real_gradient_for_a_complex_input(T):
    x = T.tensor([1 + 2j], dtype=T.complex128, requires_grad=True)
    make(T, lambda ctx, x: T.real(x) * 2, lambda ctx, g: g * 2).apply(x).sum().backward()
    return x.grad.tolist(), x.grad.dtype == T.complex128


@SCENARIOS.add
def empty_and_zero_dimensional_tensors(T):
    made = make(T)
    e, s = T.zeros(0, 3, requires_grad=True), T.tensor(2.0, requires_grad=True)
    made.apply(e).sum().backward()
    made.apply(s).backward()
    return list(e.grad.shape), s.grad.item()


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_as_pytorch(name):
    torch = pytest.importorskip("torch")
    assert SCENARIOS[name](tg) == SCENARIOS[name](torch)
