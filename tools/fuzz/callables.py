"""What users give to be called answers what it should not, and changes lists that others walk over.

Compiled code takes such answers apart. It may believe nothing: neither that a list is as long as it was, nor that a row
has the length that was asked for, nor that an object whose class was looked at once is a tensor.
"""

import contextlib
import pickle
import random

import tinygrad_ext as tg
from tinygrad_ext.as_torch.stand_ins import _utils
from tinygrad_ext.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from tinygrad_ext.registry import scope
from tinygrad_ext.utils import _pytree
from tinygrad_ext.utils.checkpoint import checkpoint

from . import nonsense
from .answers import Clearing, Lengthless, Liar, Long, LongTuple, Short, answer
from .callbacks import batched_seeds, dispatch, function, hooks, leaves, modules, overrides, saved
from .case import Case, refused
from .operands import touch

BLOCK = 200
STEPS = 8
# what a wrong answer may meet in code written in Python
PYTHONS = (AttributeError, KeyError, AssertionError, StopIteration, tg.autograd.GradcheckError, pickle.PickleError)


def transforms(rng):
    """Functions of transforms that answer anything, and dimensions that do."""
    args = leaves(2)
    rows = [args]
    f = lambda *a: answer(rng, a[0] * a[-1], rows)
    way = rng.choice((grad, jacrev, jacfwd, hessian, tg.func.grad_and_value, vmap))
    kind = rng.randrange(7)
    if kind == 0:
        dims = rng.choice((answer(rng, (0, 0)), nonsense.integers(rng)))
        return vmap(f, in_dims=dims)(*args)
    if kind == 1:
        return vmap(f, out_dims=rng.choice((answer(rng, 0), nonsense.integers(rng))))(*args)
    if kind == 2:
        return vjp(f, *args)[1](answer(rng, args[0].detach()))
    if kind == 3:
        return jvp(f, answer(rng, tuple(args)), answer(rng, tuple(args)))
    if kind == 4:
        return linearize(f, *args)[1](*answer(rng, args))
    if kind == 5:
        return vmap(way(f))(*args)
    return way(lambda *a: answer(rng, (a[0] * a[-1]).sum(), rows))(*args)


def control(rng):
    """Branches, bodies and steps of control flow."""
    from tinygrad_ext import _higher_order_ops as flow

    rows = [leaves(2)]
    f = lambda *a: answer(rng, a[0] * 2, rows)
    pair = lambda a, b: answer(rng, (a + b, a * b), rows)
    go_on = lambda *a: answer(rng, tg.tensor(False), rows)
    both = (contextlib.nullcontext(),) * 2
    x = rows[0][0]
    return rng.choice((
        lambda: flow.cond(answer(rng, tg.tensor(True)), f, f, rows[0]),
        lambda: flow.while_loop(go_on, lambda *a: answer(rng, a, rows), tuple(rows[0])),
        lambda: flow.scan(pair, x, tg.stack([x, x]), dim=0),
        lambda: flow.associative_scan(lambda a, b: answer(rng, a + b, rows), tg.stack([x, x]), 0),
        lambda: checkpoint(f, *rows[0], use_reentrant=rng.random() < 0.5).sum().backward(),
        lambda: checkpoint(f, *rows[0], use_reentrant=False, context_fn=lambda: answer(rng, both)),
    ))()  # fmt: skip


def numbers(rng):
    """Lists of numbers and tensors that lie about their length, or that the reading of one changes."""
    row = []
    row += [
        Clearing(row) if rng.random() < 0.6 else rng.choice((1, 1.0, tg.ones(2), None))
        for _ in range(rng.choice((1, 3, 30)))
    ]
    row = rng.choice(
        (row, row, tuple(row), Long([1]), Long(), LongTuple((1,)), Long([tg.ones(2)]), Short([2]), Lengthless())
    )
    x = tg.ones(8)
    return rng.choice((
        lambda: tg.zeros(row), lambda: x.view(row), lambda: x.reshape(row), lambda: x.sum(row), lambda: x[row],
        lambda: tg.cat(row),
        lambda: tg.stack(row), lambda: tg.tensor(row), lambda: x.expand(row), lambda: x.as_strided(row, row),
        lambda: tg.Size(row),
        lambda: x.permute(row), lambda: x.split(row), lambda: x.tile(row), lambda: x.roll(row, row),
        lambda: tg._foreach_add(row, row),
        lambda: tg._foreach_mul([x] * 3, row), lambda: tg.index_put(x, row, x), lambda: x.index_put_(tuple(row), x),
        lambda: tg.nn.functional.pad(x, row), lambda: tg.einsum("i,i", row), lambda: tg.autograd.grad(row, row),
        lambda: tg.autograd.backward(row, row), lambda: x.__setitem__(tuple(row), row), lambda: tg.block_diag(*row),
        lambda: tg.nn.functional.interpolate(x[None, None], size=row), lambda: tg.fft.fftn(x, s=row),
        lambda: x.new_tensor(row),
        lambda: tg.linalg.norm(x, dim=row), lambda: tg.tensordot(x, x, (row, row)), lambda: tg.quantile(x, row),
        lambda: x.flip(row),
        lambda: tg.broadcast_tensors(*row), lambda: tg.nn.utils.clip_grad_norm_(row, 1.0),
        lambda: tg.cartesian_prod(*row),
        lambda: tg.nn.functional.embedding(tg.tensor([0]), x.view(4, 2), row),
        lambda: tg.histogramdd(x.view(4, 2), row),
        lambda: x.__dlpack__(max_version=row), lambda: x.__dlpack__(dl_device=row),
        lambda: tg.randint(Clearing([]), row),
        lambda: tg.full(row, Clearing(row if isinstance(row, list) else [])), lambda: tg.block_diag(row),
        lambda: tg.empty_strided(row, row),
    ))()  # fmt: skip


def optimizers(rng):
    """Options and state of optimizers, and what a closure answers."""
    params = leaves()
    for p in params:
        p.grad = tg.ones(2)
    cls = rng.choice(
        (
            tg.optim.SGD,
            tg.optim.Adam,
            tg.optim.AdamW,
            tg.optim.RMSprop,
            tg.optim.Adagrad,
            tg.optim.LBFGS,
            tg.optim.Rprop,
        )
    )
    opt = cls(params)
    for _ in range(2):
        for group in opt.param_groups:
            if rng.random() < 0.5:
                group[rng.choice([k for k in group if k != "params"])] = answer(
                    rng, Clearing(group["params"]), [group["params"]]
                )
        for p in list(opt.state):
            state = opt.state[p]
            if state and rng.random() < 0.4:
                state[rng.choice(list(state))] = answer(rng, tg.ones(2))
        opt.step(lambda: answer(rng, params[0].sum(), [params]))
    return params


def states(rng):
    """What pickles carry."""
    x = tg.ones(2)
    g = tg.Generator()
    return rng.choice((
        lambda: g.__setstate__(answer(rng, (1, None, x))), lambda: g.set_state(answer(rng, x)),
        lambda: _utils._rebuild_parameter(answer(rng, x), True, answer(rng, {})),
        lambda: _utils._rebuild_tensor_v2(x.untyped_storage(), 0, answer(rng, (2,)), answer(rng, (1,)), False, {}),
        lambda: tg.set_rng_state(answer(rng, x)),
        lambda: tg.Size.__reduce__(answer(rng, x.shape)), lambda: type(x).__reduce_ex__(answer(rng, x), 2),
        lambda: tg.nn.Linear(1, 1).__setstate__(answer(rng, {})),
        lambda: tg.optim.SGD([x]).__setstate__(answer(rng, {})),
        lambda: tg.optim.SGD([x]).load_state_dict(answer(rng, tg.optim.SGD([x]).state_dict())),
        lambda: pickle.loads(pickle.dumps(x, protocol=2)), lambda: tg.UntypedStorage(answer(rng, [1, 2])),
    ))()  # fmt: skip


def trees(rng):
    """Containers registered by their users."""

    class Box:
        def __init__(self, x):
            self.x = x

    _pytree.register_pytree_node(
        Box, lambda box: answer(rng, ([box.x], None)), lambda children, context: answer(rng, Box(next(iter(children))))
    )
    try:
        x = tg.ones(2)
        flat, spec = _pytree.tree_flatten((Box(x), [Box(x)]))
        _pytree.tree_unflatten(answer(rng, flat, [flat] if isinstance(flat, list) else []), spec)
        return vmap(lambda box: box)(Box(x))
    finally:
        _pytree._deregister_pytree_node(Box)


def graphs(rng):
    """Functions that are captured and called again with other things."""
    rows = [leaves(2)]
    f = lambda *a: answer(rng, a[0] * a[-1], rows)
    if rng.random() < 0.5:
        return tg.jit.trace(f, tuple(rows[0]), check_trace=False)(*answer(rng, leaves(2)))
    g = tg.compile(f)
    return [g(*leaves(2)), g(*answer(rng, leaves(2)))]


def customs(rng):
    """Ops of users' own, which are gone afterwards."""
    mark = scope.application.mark()
    try:
        return _custom(rng)
    finally:
        scope.application.undo(mark)


def _custom(rng):
    rows = [leaves(2)]
    name = f"fuzz_callables::op{rng.getrandbits(40)}"
    at = rng.randrange(5)
    some = lambda here, honest: answer(rng, honest, rows) if at == here else honest

    @tg.library.custom_op(name, mutates_args=())
    def op(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        return some(0, x * y)

    op.register_fake(lambda x, y: some(1, tg.empty_like(x)))
    op.register_autograd(
        lambda ctx, g: some(2, (g, g)),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*some(3, inputs)),
    )
    op.register_vmap(lambda info, dims, x, y: some(4, (x * y, 0)))
    a, b = rows[0]
    return rng.choice((
        lambda: op(a, b).sum().backward(), lambda: vmap(op)(a, b), lambda: op(a.to("meta"), b.to("meta")),
        lambda: grad(lambda a: op(a, b).sum())(a),
    ))()  # fmt: skip


WAYS = (function, hooks, batched_seeds, saved, modules, overrides, dispatch, transforms, control, numbers, optimizers,
        states, trees, graphs, customs)  # fmt: skip


class Answers(Case):
    """A few of these ways, drawn from a generator of its own."""

    def __init__(self, rng):
        self.seeds = [rng.getrandbits(64) for _ in range(STEPS)]
        self.ways = rng.choices(WAYS, k=STEPS)

    def text(self):
        return "# users' callables answer wrongly: " + ", ".join(way.__name__ for way in self.ways) + "\n"

    def run(self):
        for seed, way in zip(self.seeds, self.ways, strict=True):
            try:
                made = way(random.Random(seed))
            except PYTHONS:
                continue
            except Exception as error:
                refused(error, small=False)
                continue
            with contextlib.suppress(*PYTHONS):
                touch([t for t in _pytree.tree_leaves(made) if type(t) is tg.Tensor])
        return STEPS


def reset():
    """Leaves what is the process's as it was."""
    Liar.told = None
    tg.set_grad_enabled(True)


def case(rng):
    """A few random ways."""
    return Answers(rng)
