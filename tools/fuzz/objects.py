"""What can be done to a tensor as an object: its attributes, its memory, indices of any kind, hooks, copies.

A few tensors, some over one storage, go through a dozen steps; after each step all of them must still be readable.
"""

import contextlib
import copy
import gc
import pickle
import random

import tinygrad_ext as tg

from . import nonsense, values
from .case import Case, refused
from .operands import touch

BLOCK = 200
STEPS = 12


class Session(Case):
    """Steps drawn from a generator of its own, since what is possible depends on what the steps before did."""

    def __init__(self, rng):
        self.seed = rng.getrandbits(64)

    def text(self):
        names = [name for name, _ in self._steps(random.Random(self.seed))]
        return f"# steps on a few tensors: {', '.join(names)}\n"

    def _steps(self, rng):
        return [rng.choice(list(STEP.items())) for _ in range(STEPS)]

    def run(self):
        rng = random.Random(self.seed)
        steps = self._steps(rng)
        pool = [values.dressed(rng, values.laid_out(rng, values.tensor(rng))) for _ in range(3)]
        pool.append(values.relative(rng, pool[0]))
        for _, step in steps:
            at = rng.randrange(len(pool))
            try:
                made = step(rng, pool[at], rng.choice(pool))
            except Exception as error:
                refused(error, small=False)
                continue
            if isinstance(made, tg.Tensor):
                pool[rng.randrange(len(pool))] = made
            touch(pool)
        return STEPS


def _index(rng, t, other, depth=0):
    """An index, right or wrong."""
    one = rng.randrange(11)
    if one < 3:
        return nonsense.integer(rng)
    if one == 3:
        return slice(*(rng.choice((None, nonsense.integer(rng))) for _ in range(3)))
    if one == 4:
        return rng.choice((None, Ellipsis, True, False))
    if one == 5:
        return t > 0 if not t.is_complex() else t.bool()
    if one == 6:
        return values.tensor(rng, rng.choice((tg.int64, tg.int32, tg.uint8, tg.bool, tg.float32)))
    if one == 7 and not depth:
        return tuple(_index(rng, t, other, 1) for _ in range(rng.choice((1, 2, 3, 70))))
    if one == 8:
        return [nonsense.integer(rng) for _ in range(rng.choice((0, 1, 2, 70)))]
    return rng.choice((other, nonsense.other(rng), tg.arange(3)))


def _backward(rng, t, other):
    roots = t * other if rng.random() < 0.5 else t
    roots.backward(rng.choice((None, tg.ones_like(roots), other)), retain_graph=rng.random() < 0.3)


def _hook(rng, t, other):
    answers = (
        lambda g: None,
        lambda g: g * 2,
        lambda g: other,
        lambda g: "x",
        lambda g: g.zero_(),
        lambda g: g.detach().resize_(0),
        lambda g: setattr(t, "data", tg.ones(1)),
        lambda g: 1 / 0,
    )
    (t.register_hook if rng.random() < 0.7 else t.register_post_accumulate_grad_hook)(rng.choice(answers))


def _swallowing(step):
    """A step in which the hooks of an earlier one may raise what they like."""

    def run(rng, t, other):
        try:
            return step(rng, t, other)
        except ZeroDivisionError:
            return None

    return run


def _grow_graph(rng, t, other):
    with tg.no_grad():
        small = t.numel() < 5000
    return (t * other if rng.random() < 0.5 else t.exp() + 1) if small else None


STEP = {
    "x[i]": lambda rng, t, o: t[_index(rng, t, o)],
    "x[i] = v": lambda rng, t, o: t.__setitem__(_index(rng, t, o), rng.choice((o, 1, 2.5, nonsense.other(rng)))),
    "del x[i]": lambda rng, t, o: t.__delitem__(0) if hasattr(t, "__delitem__") else None,
    "data =": lambda rng, t, o: setattr(t, "data", rng.choice((o, values.tensor(rng), nonsense.other(rng)))),
    "grad =": lambda rng, t, o: setattr(t, "grad", rng.choice((o, None, tg.ones_like(t), nonsense.other(rng)))),
    "requires_grad =": lambda rng, t, o: setattr(t, "requires_grad", rng.choice((True, False, "x", None))),
    "requires_grad_": lambda rng, t, o: t.requires_grad_(rng.choice((True, False, "x"))),
    "resize_": lambda rng, t, o: t.resize_(nonsense.integers(rng)),
    "set_": lambda rng, t, o: t.set_(*rng.choice(((o,), (), (o, 0, [1], [1]), (nonsense.other(rng),)))),
    "set_ storage": lambda rng, t, o: t.set_(
        o.untyped_storage(), nonsense.integer(rng), nonsense.integers(rng), nonsense.integers(rng)
    ),
    "as_strided": lambda rng, t, o: t.as_strided(
        nonsense.integers(rng), nonsense.integers(rng), rng.choice((None, nonsense.integer(rng)))
    ),
    "view dtype": lambda rng, t, o: t.view(rng.choice(values.DTYPES)),
    "type": lambda rng, t, o: t.type(rng.choice((*values.DTYPES, "torch.FloatTensor", "x", tg.FloatTensor))),
    "detach_": lambda rng, t, o: t.detach_(),
    "in place": lambda rng, t, o: rng.choice((t.mul_, t.add_, t.copy_, t.sub_, t.pow_, t.clamp_))(o),
    "in place view": lambda rng, t, o: t.reshape(-1)[:2].mul_(2),
    "transpose_": lambda rng, t, o: t.transpose_(nonsense.integer(rng), nonsense.integer(rng)),
    "squeeze_": lambda rng, t, o: t.squeeze_(),
    "unsqueeze_": lambda rng, t, o: t.unsqueeze_(nonsense.integer(rng)),
    "op": _grow_graph,
    "backward": _swallowing(_backward),
    "hook": _hook,
    "retain_grad": lambda rng, t, o: t.retain_grad(),
    "grad": lambda rng, t, o: t.grad,
    "deepcopy": lambda rng, t, o: copy.deepcopy(t),
    "copy": lambda rng, t, o: copy.copy(t),
    "pickle": lambda rng, t, o: pickle.loads(pickle.dumps(t)),
    "setstate": lambda rng, t, o: t.__setstate__(nonsense.other(rng)) if hasattr(t, "__setstate__") else None,
    "numpy": lambda rng, t, o: tg.from_numpy(t.numpy(force=rng.random() < 0.5)),
    "dlpack": lambda rng, t, o: tg.from_dlpack(t),
    "memoryview": lambda rng, t, o: tg.asarray(memoryview(t), dtype=tg.uint8),
    "tolist": lambda rng, t, o: t.tolist() and None if max(t.shape, default=0) < 10**4 else None,  # [[], [], ...]
    "iter": lambda rng, t, o: list(t)[-1] if t.dim() and len(t) < 10**4 else None,
    "number": lambda rng, t, o: rng.choice((int, float, bool, complex, len, t.__class__.__index__))(t) and None,
    "format": lambda rng, t, o: f"{t}{t:}{t!r}" and None,
    "new": lambda rng, t, o: t.new(*nonsense.integers(rng)[:3]),
    "new_tensor": lambda rng, t, o: t.new_tensor(rng.choice((o, [1, 2], nonsense.other(rng)))),
    "subclass": lambda rng, t, o: t.as_subclass(rng.choice((values.Sub, tg.Tensor, tg.nn.Parameter, int))),
    "make_subclass": lambda rng, t, o: tg.Tensor._make_subclass(rng.choice((values.Sub, tg.Tensor, int)), t),
    "wrapper": lambda rng, t, o: tg.Tensor._make_wrapper_subclass(
        values.Sub,
        nonsense.integers(rng),
        **rng.choice(({}, {"strides": nonsense.integers(rng)}, {"storage_offset": 2**62})),
    ),
    "with no_grad": lambda rng, t, o: _without_grad(t, o),
    "init": lambda rng, t, o: tg.Tensor.__init__(t, 1) or tg.Tensor.__new__(values.Sub, *nonsense.integers(rng)[:2]),
    "collect": lambda rng, t, o: gc.collect(1) and None,
    "own attribute": lambda rng, t, o: _own_attribute(rng, t, o),
}  # fmt: skip


def _without_grad(t, other):
    with tg.no_grad():
        return t.add_(other)


def _own_attribute(rng, t, other):
    with contextlib.suppress(AttributeError):  # Python's own answer for what cannot be set
        setattr(t, rng.choice(("x", "shape", "dtype", "T", "_version")), other)


def case(rng):
    """A random session."""
    return Session(rng)
