"""Ways to have users' functions, hooks and overrides called that answer what they should not; for callables.py."""

import tinygrad_ext as tg
from tinygrad_ext.func import functional_call, grad, jvp, vmap
from tinygrad_ext.overrides import TorchFunctionMode
from tinygrad_ext.overrides.dispatched import TorchDispatchMode
from tinygrad_ext.utils import _pytree

from .answers import Liar, answer


def leaves(n=3):
    """Tensors with a gradient."""
    return [tg.ones(2).requires_grad_() for _ in range(n)]


# ---- what is done: each takes a generator and returns what must still be readable -----------------------------------


def function(rng):
    """A Function whose methods answer anything."""
    rows = [leaves()]
    once = rng.randrange(7)

    def some(at, honest):
        return answer(rng, honest, rows) if at == once else honest

    class F(tg.autograd.Function):
        generate_vmap_rule = rng.random() < 0.2

        if rng.random() < 0.5:

            @staticmethod
            def forward(ctx, *args):
                ctx.save_for_backward(*((rows[0] and some(5, args)) or ()))
                ctx.mark_dirty(*some(6, ()) or ())
                ctx.mark_non_differentiable(*some(4, ()) or ())
                return some(0, args[0] * 2)

        else:

            @staticmethod
            def forward(*args):
                return some(0, args[0] * 2)

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*some(5, inputs))
                ctx.save_for_forward(*some(6, inputs))

        @staticmethod
        def backward(ctx, *grads):
            return some(1, (*(g if g is None else g * 2 for g in grads), *ctx.saved_tensors))

        @staticmethod
        def jvp(ctx, *tangents):
            return some(2, tangents[0])

        @staticmethod
        def vmap(info, in_dims, *args):
            return some(3, (args[0] * 2, in_dims[0]))

    given = rows[0][:2]
    way = rng.randrange(5)
    if way == 0:
        return vmap(F.apply)(*given)
    if way == 1:
        return jvp(F.apply, tuple(given), tuple(given))
    if way == 2:
        return grad(lambda *a: F.apply(*a).sum())(*given)
    made = F.apply(*given)
    return tg.autograd.grad([made.sum()], given if way == 3 else rows[0], allow_unused=True)


def hooks(rng):
    """Hooks of tensors and nodes that answer anything and change the lists of the pass."""
    inputs = leaves()
    outputs = [(a * a).sum() for a in inputs]
    seeds = [tg.ones(()) for _ in inputs]
    rows = [inputs, outputs, seeds]
    mid = inputs[0] * 3
    outputs.append(mid.sum())
    seeds.append(tg.ones(()))
    hook = lambda *given: answer(rng, given[0], rows)
    node = mid.grad_fn
    rng.choice((
        lambda: mid.register_hook(hook), lambda: inputs[1].register_hook(hook), lambda: node.register_hook(hook),
        lambda: node.register_prehook(hook), lambda: inputs[0].register_post_accumulate_grad_hook(hook),
        lambda: tg.autograd.graph.register_multi_grad_hook(inputs, lambda g: answer(rng, None, rows)),
        lambda: tg.autograd.graph.register_multi_grad_hook(tuple(inputs), hook, mode="any"),
        lambda: setattr(inputs[0], "grad", answer(rng, inputs[0].detach())),
    ))()  # fmt: skip
    if rng.random() < 0.5:
        return tg.autograd.grad(outputs, inputs, seeds, allow_unused=True, create_graph=rng.random() < 0.5)
    tg.autograd.backward(outputs, seeds, inputs=inputs if rng.random() < 0.5 else None)
    return [a.grad for a in inputs]


def batched_seeds(rng):
    """Gradients for many seeds at once."""
    inputs = leaves()
    y = inputs[0] * inputs[1]
    y.register_hook(lambda g: answer(rng, g, [inputs]))
    return tg.autograd.grad([y], inputs, [answer(rng, tg.ones(3, 2))], is_grads_batched=True, allow_unused=True)


def saved(rng):
    """Hooks for what is saved."""
    rows = [leaves()]
    at = rng.randrange(2)
    pack = lambda t: answer(rng, t, rows) if at else t
    with tg.autograd.graph.saved_tensors_hooks(pack, lambda t: t if at else answer(rng, t, rows)):
        a, b = rows[0][:2]
        y = rng.choice(
            (lambda: a * b, lambda: tg.cat(rows[0]).prod(), lambda: tg.stack([a, b]).exp(), lambda: a.exp() @ b)
        )()
        return tg.autograd.grad(y.sum(), a, allow_unused=True)


def modules(rng):
    """Hooks of modules."""
    m = tg.nn.Linear(2, 2)
    rows = [leaves()]
    hook = lambda *given: answer(rng, given[1], rows)
    rng.choice((
        m.register_forward_hook, m.register_forward_pre_hook, m.register_full_backward_hook,
        m.register_full_backward_pre_hook,
        lambda h: m.register_forward_pre_hook(h, with_kwargs=True), m._register_state_dict_hook,
        m._register_load_state_dict_pre_hook, m.register_state_dict_pre_hook, m.register_load_state_dict_post_hook,
    ))(hook)  # fmt: skip
    m.load_state_dict(m.state_dict())
    m(rows[0][0]).sum().backward()
    functional_call(m, {"weight": answer(rng, m.weight)}, (rows[0][1],))
    return [p.grad for p in m.parameters()]


CALLS = (
    lambda a: a + 1, lambda a: a @ a, lambda a: a.shape, lambda a: tg.cat([a, a]), lambda a: a.split(1),
    lambda a: a.max(0),
    lambda a: a[0], lambda a: a.add_(1), lambda a: tg.stack((a, a)), lambda a: tg.svd(a.reshape(1, 2)),
    lambda a: a.grad,
    lambda a: a.tolist(), lambda a: tg.zeros(a), lambda a: repr(a), lambda a: a.item(), lambda a: bool(a),
    lambda a: a.T,
    lambda a: a.__setitem__(0, 1), lambda a: tg.nn.functional.linear(a, a[None]), lambda a: a.backward(),
    lambda a: a.sum(),
    lambda a: tg.where(a > 0, a, a), lambda a: tg._foreach_add([a, a], 1), lambda a: tg.meshgrid(a, a, indexing="ij"),
    lambda a: tg.einsum("i,i", a, a), lambda a: a.numpy(), lambda a: a.size(), lambda a: len(a), lambda a: list(a),
)  # fmt: skip


def overrides(rng):
    """__torch_function__ of classes and modes."""
    x = tg.ones(2)
    told = lambda call: answer(rng, call())
    if rng.random() < 0.5:
        Liar.told = told
        x = x.as_subclass(Liar)
        if rng.random() < 0.3:
            x.requires_grad_()
        try:
            return rng.choice(CALLS)(x)
        finally:
            Liar.told = None

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return told(lambda: func(*args, **(kwargs or {})))

    with Mode():
        return rng.choice(CALLS)(x)


def dispatch(rng):
    """__torch_dispatch__ of classes and modes."""
    x = tg.ones(2).requires_grad_(rng.random() < 0.5)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return answer(rng, func(*args, **(kwargs or {})))

    class Wrapped(tg.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            bare = lambda o: o.inner if isinstance(o, Wrapped) else o
            return answer(rng, func(*_pytree.tree_map(bare, args), **(kwargs or {})))

    if rng.random() < 0.5:
        with Mode():
            return rng.choice(CALLS)(x)
    w = tg.Tensor._make_wrapper_subclass(Wrapped, (2,))
    w.inner = x
    return rng.choice(CALLS)(w)
