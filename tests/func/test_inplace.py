"""Writing to memory inside transforms: what one op at a time says, transforms say too."""

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext.func import grad, hessian, jacfwd, jacrev, jvp, vmap

F64 = tg.float64

VIEWS = {
    "all": lambda y: y[:],
    "ellipsis": lambda y: y[...],
    "none": lambda y: y[None],
    "slices": lambda y: y[1:, ::2],
    "row": lambda y: y[1],
    "element": lambda y: y[0, 1],
    "narrow": lambda y: y.narrow(1, 1, 2),
    "diagonal": lambda y: y.diagonal(),
    "transposed": lambda y: y.T,
    "flattened": lambda y: y.flatten(),
    "ravelled": lambda y: y.ravel(),
    "reshaped": lambda y: y.reshape(-1),
    "contiguous": lambda y: y.contiguous(),
    "to": lambda y: y.to(F64),
    "type_as": lambda y: y.type_as(y),
    "positive": lambda y: y.positive(),
    "real": lambda y: y.real,
    "moved": lambda y: y.movedim(0, 1),
    "unflattened": lambda y: y.unflatten(1, (2, 2)),
    "chunk": lambda y: y.chunk(2)[1],
    "split": lambda y: y.split(1)[0],
    "unbound": lambda y: y.unbind(1)[2],
    "iterated": lambda y: list(y)[2],
    "broadcast": lambda y: tg.broadcast_tensors(y, tg.zeros(1, 4, dtype=F64))[0],
    "strided": lambda y: y.as_strided((2, 2), (1, 4)),
    "windows": lambda y: y.unfold(1, 2, 2),
    "chain": lambda y: y[1:].T[:2].reshape(2, 2).flatten()[1:3],
}
WRITES = {
    "copy_": lambda v, x: v.copy_(x),
    "add_": lambda v, x: v.add_(x),
    "mul_": lambda v, x: v.mul_(x),
    "fill_": lambda v, x: v.fill_(x.sum()),
    "set": lambda v, x: v.__setitem__(..., x),
    "lerp_": lambda v, x: v.lerp_(x, 0.3),
    "exp_": lambda v, x: v.add_(x).exp_(),
    "masked_fill_": lambda v, x: v.masked_fill_(v < 100, x.sum()),
    "out": lambda v, x: v.copy_(x).zero_().add_(x * x),
    "zero_": lambda v, x: v.zero_(),
}
MEMORY = {
    "made inside": lambda x: tg.zeros(3, 4, dtype=F64),
    "computed": lambda x: x * 1.5,
    "like": lambda x: x.new_ones(3, 4),
}


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("view", VIEWS)
def test_what_is_written_through_a_view_has_its_tangent(view, memory):
    x, v = tg.rand(3, 4, dtype=F64) + 0.2, tg.rand(3, 4, dtype=F64)
    for name, write in WRITES.items():

        def f(x, write=write):
            y = MEMORY[memory](x)
            shown = VIEWS[view](y)
            write(shown, x.flatten()[: shown.numel()].reshape(shown.shape) ** 2)
            return y

        expected = jacrev(f)(x).reshape(12, 12) @ v.flatten()
        assert tg.allclose(jvp(f, (x,), (v,))[1].flatten(), expected), name


def _on(make, *steps):
    """A program: make(x), steps on it, and the sum of squares."""

    def run(x):
        y = make(x)
        for step in steps:
            step(y, x)
        return (y**2).sum()

    return run


PROGRAMS = {
    "op after op": _on(lambda x: x.sin(), lambda y, x: y.exp_()),
    "result kept": _on(lambda x: x.clone(), lambda y, x: y.sigmoid_()),
    "rows by rows": _on(lambda x: x * 2, lambda y, x: [y[i].add_(y[i - 1]) for i in range(1, 4)]),
    "part": _on(lambda x: x * 2, lambda y, x: y[:2].exp_()),
    "views of views": _on(
        lambda x: x.reshape(2, 2) * 2, lambda y, x: y.view(-1)[1:3].mul_(2), lambda y, x: y.t().tanh_()
    ),
    "several": _on(lambda x: x.clone(), lambda y, x: y.add_(x), lambda y, x: y.mul_(x), lambda y, x: y.div_(x + 1)),
    "item": _on(lambda x: x.clone(), lambda y, x: y.__setitem__(0, x[1] * x[2])),
    "slice": _on(tg.zeros_like, lambda y, x: y.__setitem__(slice(1, 3), x[:2] ** 2)),
    "copied": _on(tg.empty_like, lambda y, x: y.copy_(x), lambda y, x: y.exp_()),
    "clamped": _on(lambda x: x * 1.0, lambda y, x: y.clamp_(0.2, 0.8), lambda y, x: y.sqrt_()),
    "masked": _on(lambda x: x * 1.0, lambda y, x: y.masked_fill_(y > 0.5, 0.0)),
    "activation": _on(lambda x: tg.nn.functional.relu(x * 1.0 - 0.5, inplace=True)),
    "index_put_": _on(lambda x: x * 1.0, lambda y, x: y.index_put_((tg.tensor([0, 2]),), x[:2] ** 2)),
    "shape": _on(lambda x: x.reshape(2, 2) * 1.0, lambda y, x: y.unsqueeze_(0).squeeze_(0).t_()),
    "ternary": _on(lambda x: x * 1.0, lambda y, x: y.addcmul_(x, x), lambda y, x: y.lerp_(x, 0.3)),
}


def _gradient(f, x, create_graph=False):
    x = x if create_graph else x.detach().requires_grad_()
    return tg.autograd.grad(f(x), x, create_graph=create_graph)[0]


def _agrees(f, rows):
    """All transforms of a function of four numbers against op by op."""
    one = rows[0]
    slopes = tg.stack([_gradient(f, r) for r in rows])
    assert tg.allclose(vmap(f)(rows), tg.stack([f(r) for r in rows]))
    nest = tg.stack([rows, rows + 0.05])
    assert tg.allclose(vmap(vmap(f))(nest), tg.stack([tg.stack([f(r) for r in part]) for part in nest]))
    assert tg.allclose(vmap(vmap(grad(f), 1), 2)(nest.movedim(0, 2).movedim(0, 1))[0], slopes)
    assert tg.allclose(vmap(grad(lambda part: vmap(f)(part).sum()))(nest)[0], slopes)
    assert tg.allclose(grad(f)(one), slopes[0])
    assert tg.allclose(vmap(grad(f))(rows), slopes)
    assert tg.allclose(grad(lambda x: vmap(f)(x).sum())(rows), slopes)
    v = tg.arange(1, 5, dtype=F64) / 4
    assert tg.allclose(jvp(f, (one,), (v,))[1], slopes[0] @ v)
    assert tg.allclose(vmap(lambda r: jvp(f, (r,), (v,))[1])(rows), slopes @ v)
    leaf = one.detach().requires_grad_()
    bends = _gradient(f, leaf, create_graph=True)
    second = tg.stack([tg.autograd.grad(b, leaf, retain_graph=True, allow_unused=True)[0] for b in bends])
    for other in (hessian(f), jacrev(grad(f)), jacfwd(jacfwd(f)), jacrev(jacfwd(f))):
        assert tg.allclose(other(one), second)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_write_have_the_derivatives_of_eager_mode(program):
    _agrees(PROGRAMS[program], tg.rand(3, 4, dtype=F64) * 0.8 + 0.1)


PARTS = [
    lambda y: y,
    lambda y: y[1:3],
    lambda y: y.flip(0)[:2],
    lambda y: y.view(2, 2).t(),
    lambda y: y.view(2, 2).diagonal(),
    lambda y: y[::2],
    lambda y: y[3],
    lambda y: y.reshape(2, 2)[1],
    lambda y: y.unsqueeze(0),
]
STEPS = [
    lambda p, v: p.add_(v),
    lambda p, v: p.mul_(v),
    lambda p, v: p.copy_(v * v),
    lambda p, v: p.tanh_(),
    lambda p, v: p.sub_(v, alpha=0.5).sigmoid_(),
    lambda p, v: p.lerp_(v, 0.25),
    lambda p, v: p.addcmul_(v, v, value=0.3),
    lambda p, v: p.fill_(v.sum()),
    lambda p, v: p.zero_().add_(v),
    lambda p, v: p.mul_(0.5).exp_(),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(STEPS), st.booleans()), min_size=1, max_size=5))
def test_random_writes_have_the_derivatives_of_eager_mode(steps):
    def f(x):
        y = x * 1.25
        for part, step, own in steps:
            shown = part(y)
            step(shown, part(y.clone().sin() if own else x))
        return (y**3).sum() + y.prod()

    rows = tg.rand(3, 4, dtype=F64) + 0.1
    try:
        _gradient(f, rows[0])
    except RuntimeError:
        reject()  # what eager mode keeps was overwritten
    _agrees(f, rows)


def test_forward_mode_keeps_nothing_that_could_be_overwritten():
    x = tg.rand(3, dtype=F64)
    assert tg.allclose(jvp(lambda x: x.sin().mul_(x.sin()).add_(1), (x,), (tg.ones(3, dtype=F64),))[1], (2 * x).sin())

    def squared(x):
        y = x.sin()
        return y.mul_(y)

    assert tg.allclose(jvp(squared, (x,), (tg.ones(3, dtype=F64),))[1], (2 * x).sin())


def test_a_view_sees_the_tangent_of_what_is_written_to_its_base_later():
    def f(x):
        y = x.sin()
        row = y[0]
        kept = row + 0  # the tangent of the view is asked for
        y.mul_(2)
        return row + kept

    x = tg.rand(5, 3, dtype=F64)
    expected = 3 * x.cos()[:, 0]
    assert tg.allclose(vmap(lambda r: jvp(f, (r,), (tg.ones(3, dtype=F64),))[1])(x), expected)


def test_saved_memory_that_is_overwritten_is_refused_as_in_eager_mode():
    def f(x):
        y = x.exp()
        z = y.sin()
        y.mul_(3)
        return z.sum()

    for run in (lambda x: _gradient(f, x[0]), lambda x: grad(f)(x[0]), vmap(grad(f))):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            run(tg.rand(2, 3))


def test_memory_with_strides_of_its_own_is_made_for_each_sample():
    made = vmap(lambda x: x.new_empty_strided((2, 3), (1, 2)).copy_(x))(tg.ones(4, 2, 3))
    assert made.shape == (4, 2, 3) and made.stride() == (6, 1, 2) and (made == 1).all()
