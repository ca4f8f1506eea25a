"""Functions behave as in PyTorch: each scenario is run with both libraries, and what it returns must be equal."""

import copy
import pickle
import warnings
from collections import namedtuple

import pytest

import tinygrad_ext as tg

SCENARIOS = {}


def scenario(run):
    """Add a function of the library that returns lists, numbers and strings."""
    SCENARIOS[run.__name__] = run
    return run


def point(T, *values):
    return T.tensor(list(values) or [1.0, 2.0], dtype=T.float64, requires_grad=True)


def make(T, forward=None, backward=None, name="Made", **body):
    """A Function of library T from two bodies."""
    body["forward"] = staticmethod(forward or (lambda ctx, x: x * 3))
    body["backward"] = staticmethod(backward or (lambda ctx, g: g * 3))
    return type(name, (T.autograd.Function,), body)


def cube(T):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    return make(T, forward, lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)


def title(node):
    """Name of a node, without the namespace that PyTorch gives to some."""
    return None if node is None else node.name().split("::")[-1]


def node(t):
    return title(t.grad_fn)


def kind_of_error(run):
    """Name of the exception that something raises."""
    try:
        run()
    except Exception as error:
        return type(error).__name__
    return None


# ---- derivatives of derivatives


@scenario
def derivatives_to_third_order(T):
    x, values = point(T), []
    y = cube(T).apply(x)
    for _ in range(3):
        (y,) = T.autograd.grad(y.sum(), x, create_graph=True)
        values.append(y.tolist())
    return values


@scenario
def saved_output_to_third_order(T):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    made, x, values = make(T, forward, lambda ctx, g: g * ctx.saved_tensors[0]), point(T), []
    y = made.apply(x)
    for _ in range(3):
        (y,) = T.autograd.grad(y.sum(), x, create_graph=True)
        values.append([round(v, 12) for v in y.tolist()])
    return values


@scenario
def without_create_graph_there_is_no_second(T):
    x = point(T)
    (g,) = T.autograd.grad(cube(T).apply(x).sum(), x)
    return g.requires_grad, g.tolist()


@scenario
def grad_mode_in_forward_and_backward(T):
    seen = []
    made = make(
        T,
        lambda ctx, x: seen.append(T.is_grad_enabled()) or x * 1,
        lambda ctx, g: seen.append((T.is_grad_enabled(), g.requires_grad)) or g,
    )
    x = point(T)
    made.apply(x).sum().backward()
    T.autograd.grad((made.apply(x) * x).sum(), x, create_graph=True)
    return seen


@scenario
def a_gradient_penalty(T):
    x, w = point(T), point(T, 0.5, -1.0)
    (g,) = T.autograd.grad(cube(T).apply(x * w).sum(), x, create_graph=True)
    (g * g).sum().backward()
    return x.grad.tolist(), w.grad.tolist()


# ---- Functions within Functions


@scenario
def function_inside_forward(T):
    inner = cube(T)
    made = make(T, lambda ctx, x: inner.apply(x) * 2, lambda ctx, g: g * 7)
    x = point(T)
    y = made.apply(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist(), [title(f) for f, _ in y.grad_fn.next_functions]


@scenario
def function_inside_backward(T):
    inner = cube(T)
    made = make(
        T, lambda ctx, x: ctx.save_for_backward(x) or x**4 / 4, lambda ctx, g: g * inner.apply(ctx.saved_tensors[0])
    )
    x = point(T)
    (g,) = T.autograd.grad(made.apply(x).sum(), x, create_graph=True)
    return g.tolist(), T.autograd.grad(g.sum(), x)[0].tolist()


@scenario
def backward_inside_backward(T):
    """A checkpoint: forward without a graph, which backward builds and runs again."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp() * x

    def backward(ctx, g):
        inner = ctx.saved_tensors[0].detach().requires_grad_()
        with T.enable_grad():
            y = inner.exp() * inner
        y.backward(g)
        return inner.grad

    made, x = make(T, forward, backward), point(T, 0.0, 1.0)
    made.apply(made.apply(x)).sum().backward()
    return [round(v, 6) for v in x.grad.tolist()]


@scenario
def grad_inside_forward(T):
    def forward(ctx, x):
        with T.enable_grad():
            y = x.detach().requires_grad_()
            (g,) = T.autograd.grad((y * y).sum(), y)
        return g

    made, x = make(T, forward, lambda ctx, g: g * 2), point(T)
    y = made.apply(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


@scenario
def chains_share_an_input(T):
    made, x = cube(T), point(T)
    y = made.apply(x)
    (made.apply(y) + y * made.apply(x)).sum().backward()
    return x.grad.tolist()


# ---- modes


@scenario
def under_no_grad(T):
    made, x = cube(T), point(T)
    with T.no_grad():
        y = made.apply(x)
    return node(y), y.requires_grad, y.is_leaf, y.tolist()


@scenario
def needs_input_grad_under_no_grad(T):
    seen = []
    made, x = make(T, lambda ctx, x: seen.append(ctx.needs_input_grad) or x * 1), point(T)
    with T.no_grad():
        made.apply(x)
    made.apply(x)
    made.apply(x.detach())
    return seen


@scenario
def under_inference_mode(T):
    made, x = cube(T), point(T)
    with T.inference_mode():
        y = made.apply(x)
    return node(y), y.requires_grad, y.is_inference()


@scenario
def nothing_requires_grad(T):
    y = cube(T).apply(point(T).detach())
    return node(y), y.requires_grad, y.is_leaf


@scenario
def hooks_of_the_node(T):
    x, seen = point(T), []
    y = make(T, None, lambda ctx, g: seen.append(("backward", g.tolist())) or g * 3).apply(x)
    y.register_hook(lambda g: seen.append(("tensor", g.tolist())))
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", [g.tolist() for g in gs])) or (gs[0] * 2,))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", [g.tolist() for g in gi])) or (gi[0] * 5,))
    y.retain_grad()
    y.sum().backward()
    return seen, x.grad.tolist(), y.grad.tolist()


@scenario
def a_removed_hook_is_gone(T):
    x = point(T)
    y = make(T).apply(x)
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 100,)).remove()
    y.sum().backward()
    return x.grad.tolist()


@scenario
def anomaly_mode(T):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with T.autograd.detect_anomaly():
            x = point(T)
            cube(T).apply(x).sum().backward()
    return x.grad.tolist()


# ---- classes


@scenario
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


@scenario
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


@scenario
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


@scenario
def copies_of_a_class(T):
    made = cube(T)
    module = T.autograd.function
    return copy.deepcopy(made) is made, pickle.loads(pickle.dumps(module.InplaceFunction)) is module.InplaceFunction


@scenario
def copies_of_results(T):
    y = cube(T).apply(point(T))
    return (
        kind_of_error(lambda: copy.deepcopy(y)),
        kind_of_error(lambda: copy.deepcopy(y.grad_fn)),
        kind_of_error(lambda: copy.copy(y.grad_fn)),
        copy.deepcopy(y.detach()).tolist(),
    )


@scenario
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


@scenario
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


@scenario
def raw_saved_tensors(T):
    x = point(T)
    f = cube(T).apply(x).grad_fn
    return len(f._raw_saved_tensors), len(make(T).apply(x).grad_fn._raw_saved_tensors)


@scenario
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


@scenario
def the_same_tensor_twice(T):
    seen = []

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g * 2, g * 5

    x = point(T)
    make(T, lambda ctx, a, b: a * b, backward).apply(x, x).sum().backward()
    return x.grad.tolist(), seen


@scenario
def gradients_that_nobody_needs_are_dropped(T):
    x, w = point(T), point(T).detach()
    make(T, lambda ctx, a, b: a * b, lambda ctx, g: (g * 2, g * 5)).apply(x, w).sum().backward()
    return x.grad.tolist(), w.grad


@scenario
def a_none_gradient_for_a_needed_input(T):
    x, w = point(T), point(T)
    make(T, lambda ctx, a, b: a * b, lambda ctx, g: (g * 2, None)).apply(x, w).sum().backward()
    return x.grad.tolist(), w.grad


@scenario
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


@scenario
def keywords_in_ctx_style(T):
    x, w = point(T), point(T)
    made = make(T, lambda ctx, x, w: x * w, lambda ctx, g: (g * 2, g * 5))
    made.apply(x.detach(), w=w).sum().backward()
    return x.grad, w.grad.tolist()


@scenario
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


@scenario
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


@scenario
def complex_inputs(T):
    x = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128, requires_grad=True)
    made = make(T, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * 2 * ctx.saved_tensors[0].conj())
    y = made.apply(x)
    T.real(y).sum().backward()
    return x.grad.tolist()


@scenario
def a_real_gradient_for_a_complex_input(T):
    x = T.tensor([1 + 2j], dtype=T.complex128, requires_grad=True)
    make(T, lambda ctx, x: T.real(x) * 2, lambda ctx, g: g * 2).apply(x).sum().backward()
    return x.grad.tolist(), x.grad.dtype == T.complex128


@scenario
def empty_and_zero_dimensional_tensors(T):
    made = make(T)
    e, s = T.zeros(0, 3, requires_grad=True), T.tensor(2.0, requires_grad=True)
    made.apply(e).sum().backward()
    made.apply(s).backward()
    return list(e.grad.shape), s.grad.item()


# ---- outputs


@scenario
def an_input_returned(T):
    x = point(T)
    y = make(T, lambda ctx, x: x, lambda ctx, g: g * 7).apply(x)
    plain = x.detach()
    z = make(T, lambda ctx, x: x).apply(plain)
    y.sum().backward()
    return y is x, y.data_ptr() == x.data_ptr(), node(y), x.grad.tolist(), z is plain, z.requires_grad, x.is_leaf


@scenario
def one_of_two_inputs_returned(T):
    x, w = point(T), point(T).detach()
    a, b = make(T, lambda ctx, x, w: (w, x * 2), lambda ctx, g, h: (h * 2 + g, g)).apply(x, w)
    (a + b).sum().backward()
    return a is w, a.requires_grad, w.requires_grad, x.grad.tolist()


@scenario
def a_view_returned(T):
    x = point(T) * 1
    y = make(T, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2) * 7).apply(x)
    return (
        node(y),
        y._is_view(),
        y.tolist(),
        kind_of_error(lambda: y.mul_(2)),
        kind_of_error(lambda: y.detach().mul_(1)),
    )


@scenario
def the_same_output_twice(T):
    x, seen = point(T), []

    def forward(ctx, x):
        y = x * 2
        return y, y

    made = make(T, forward, lambda ctx, g, h: seen.append((g.tolist(), h.tolist())) or (g + h) * 2)
    a, b = made.apply(x)
    (a * 3 + b * 5).sum().backward()
    return a is b, seen, a.output_nr, x.grad.tolist()


@scenario
def integer_outputs(T):
    seen = []

    def forward(ctx, x):
        values, order = x.sort()
        return values, order, (x > 1)

    def backward(ctx, *grads):
        seen.append([str(g.dtype) for g in grads])
        seen.append(grads[1].tolist())
        return grads[0]

    x = point(T, 2.0, 1.0)
    y, order, mask = make(T, forward, backward).apply(x)
    y.sum().backward()
    return order.requires_grad, mask.requires_grad, node(order), seen, x.grad.tolist()


@scenario
def outputs_that_are_no_tensors(T):
    seen = []

    def backward(ctx, *grads):
        seen.append([g is None for g in grads])
        return grads[0]

    x = point(T)
    out = make(T, lambda ctx, x: (x * 1, None, "text", 3), backward).apply(x)
    out[0].sum().backward()
    return out[1:], seen, make(T, lambda ctx, x: None).apply(x), make(T, lambda ctx, x: "text").apply(x)


@scenario
def no_outputs(T):
    return make(T, lambda ctx, x: ()).apply(point(T))


@scenario
def one_output_in_a_tuple(T):
    out = make(T, lambda ctx, x: (x * 3,)).apply(point(T))
    return type(out).__name__, len(out), node(out[0])


@scenario
def non_differentiable_outputs(T):
    seen = []

    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        return a, b

    x = point(T)
    a, b = make(T, forward, lambda ctx, g, h: seen.append(h.tolist()) or g * 2).apply(x)
    (a * b).sum().backward()
    return b.requires_grad, node(b), b.is_leaf, seen, x.grad.tolist()


@scenario
def gradients_are_made_of_zeros_or_not(T):
    found = []
    for materialize in (True, False):

        def forward(ctx, x, materialize=materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        def backward(ctx, g, h):
            found.append((None if g is None else g.tolist(), None if h is None else h.tolist()))
            return g * 2

        make(T, forward, backward).apply(point(T))[0].sum().backward()
    return found


@scenario
def non_contiguous_outputs(T):
    x = T.arange(6.0, dtype=T.float64).view(2, 3).requires_grad_()
    y = make(T, lambda ctx, x: (x * 2).t(), lambda ctx, g: g.t() * 2).apply(x)
    (y * T.arange(6.0, dtype=T.float64).view(3, 2)).sum().backward()
    return y.is_contiguous(), y.stride(), y.tolist(), x.grad.tolist()


@scenario
def a_tensor_of_the_closure_returned(T):
    made = T.ones(2, dtype=T.float64)
    x = point(T)
    y = make(T, lambda ctx, x: made, lambda ctx, g: g * 3).apply(x)
    y.sum().backward()
    return y is made, x.grad.tolist()


@scenario
def outputs_keep_their_grad(T):
    x = point(T)
    y = cube(T).apply(x)
    y.retain_grad()
    (y * 2).sum().backward()
    return y.grad.tolist(), y.is_leaf, y.retains_grad


# ---- views and writes


@scenario
def a_view_whose_base_is_written_to(T):
    errors = []
    for write in (lambda t: t.mul_(2), lambda t: t.detach().mul_(2)):
        x = point(T) * 1
        y = make(T, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(x)
        write(x)
        errors.append((kind_of_error(lambda y=y: y.grad_fn), kind_of_error(lambda y=y: (y * 2).sum().backward())))
    return errors


@scenario
def a_view_of_a_returned_view_is_written_to(T):
    x = point(T) * 1
    y = make(T, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(x)
    return kind_of_error(lambda: y[0].mul_(2)), y[0].tolist(), kind_of_error(lambda: (y[0] * 2).sum().backward())


@scenario
def a_returned_input_is_written_to(T):
    x = point(T)
    h = x * 1
    y = make(T, lambda ctx, x: x, lambda ctx, g: g * 3).apply(h)
    plain = make(T, lambda ctx, x: x).apply(h.detach())
    plain.mul_(5)
    return y._is_view(), kind_of_error(lambda: y.mul_(2)), plain._is_view(), h.tolist()


@scenario
def applied_to_a_view(T):
    x = T.arange(4.0, dtype=T.float64).requires_grad_()
    y = x * 1
    z = cube(T).apply(y[1:3])
    z.sum().backward()
    return x.grad.tolist()


@scenario
def a_saved_view_is_written_through_its_base(T):
    y = point(T) * 1
    z = cube(T).apply(y[:1])
    y.mul_(2)
    return kind_of_error(lambda: z.sum().backward())


@scenario
def dirty_and_non_differentiable(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(3)

    x = point(T)
    y = x * 1
    z = make(T, forward).apply(y)
    return z.requires_grad, z.data_ptr() == y.data_ptr(), y.requires_grad, y._version


@scenario
def named_tuples_of_outputs_and_gradients(T):
    pair = namedtuple("pair", "a b")
    x, w = point(T), point(T)
    made = make(T, lambda ctx, x, w: pair(x * 2, w * 3), lambda ctx, g, h: pair(g * 2, h * 3))
    out = made.apply(x, w)
    (out[0] + out[1]).sum().backward()
    return len(out), x.grad.tolist(), w.grad.tolist()


@scenario
def settable_fields_of_ctx(T):
    def forward(ctx, x):
        ctx.materialize_grads = False
        return x * 2, x * 3

    seen = []
    f = make(T, forward, lambda ctx, g, h: seen.append(h is None) or g * 2).apply(point(T))[0]
    f.sum().backward()
    f.grad_fn.needs_input_grad = (False,)
    return seen, f.grad_fn.needs_input_grad


@scenario
def dirty_view_with_one_output(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    x = T.arange(4.0, dtype=T.float64).requires_grad_()
    y = x * 1
    v = y[1:3]
    out = make(T, forward).apply(v)
    y.sum().backward()
    return out is v, y.tolist(), x.grad.tolist(), node(y)


@scenario
def dirty_input_then_more(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    x = point(T)
    y = x * 1
    z = make(T, forward).apply(y)
    z.mul_(2)
    z.sum().backward()
    return z is y, x.grad.tolist(), y._version


@scenario
def dirty_input_without_grad(T):
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        return x.mul_(w)

    x, w = T.ones(2, dtype=T.float64), point(T)
    y = make(T, forward, lambda ctx, g: (None, g * 4)).apply(x, w)
    y.sum().backward()
    return y is x, x.requires_grad, w.grad.tolist()


@scenario
def dirty_without_any_grad(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    x = T.ones(2)
    y = make(T, forward).apply(x)
    return y is x, y.tolist(), y._version, node(y)


@scenario
def an_output_is_written_to(T):
    x = point(T)
    y = cube(T).apply(x)
    y.mul_(2)
    y.sum().backward()
    return x.grad.tolist(), y._version


# ---- saving


@scenario
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


@scenario
def a_saved_input_is_itself(T):
    x = point(T)
    f = cube(T).apply(x).grad_fn
    return f.saved_tensors[0].data_ptr() == x.data_ptr(), f.saved_tensors[0].requires_grad, node(f.saved_tensors[0])


@scenario
def a_saved_output_has_its_history(T):
    x = point(T)

    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    y = make(T, forward).apply(x)
    (saved,) = y.grad_fn.saved_tensors
    return saved.requires_grad, saved.grad_fn is y.grad_fn, saved.data_ptr() == y.data_ptr()


@scenario
def backward_twice_with_retain_graph(T):
    x = point(T)
    y = cube(T).apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad.tolist(), kind_of_error(y.backward)


@scenario
def backward_twice_when_nothing_is_saved(T):
    x = point(T)
    y = make(T).apply(x)
    y.backward(T.ones(2, dtype=T.float64))
    y.backward(T.ones(2, dtype=T.float64))
    return x.grad.tolist()


@scenario
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


@scenario
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


@scenario
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
