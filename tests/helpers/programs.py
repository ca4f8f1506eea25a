"""Random programs of views, writes and Functions: the gradient equals finite differences, or the program is refused.

`check(draw(seed))` is for whoever wants to run many; programs_beside_torch.py has programs in all modes, with hooks.
"""

import random

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function

LEAVES = [[[1.0, 2.0], [3.0, 4.0]], [[0.5, -1.0], [2.0, 0.25]]]
PLAIN = [[1.5, 0.1], [0.2, -0.3]]


def function(forward, backward):
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply


def saving(ctx, result, *tensors):
    ctx.save_for_backward(*tensors)
    return result


def dirty(ctx, result, *tensors):
    ctx.mark_dirty(*tensors)
    return result


CUBE = function(lambda ctx, x: saving(ctx, x**3, x), lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)
SAME = function(lambda ctx, x: x, lambda ctx, g: g)
TURNED = function(lambda ctx, x: x.t() if x.dim() == 2 else x.clone(), lambda ctx, g: g.t() if g.dim() == 2 else g)
TWO = function(lambda ctx, x: (x * 2, x * 5), lambda ctx, g, h: g * 2 + h * 5)
DOUBLE_ = function(lambda ctx, x: dirty(ctx, x.mul_(2), x), lambda ctx, g: g * 2)
ADD_ = function(lambda ctx, x, w: dirty(ctx, x.add_(w * 3), x), lambda ctx, g: (g, g * 3))
ADD_BEHIND_ = function(lambda ctx, w, x: dirty(ctx, x.mul_(0.5).add_(w), x), lambda ctx, g: (g, g * 0.5))
BOTH_ = function(lambda ctx, x, w: dirty(ctx, (x.mul_(0.5), w.mul_(2)), x, w), lambda ctx, g, h: (g * 0.5, h * 2))
FUNCTIONS_OF_TWO = [ADD_, ADD_BEHIND_, BOTH_]


def plain_with_views():
    t = tg.tensor(PLAIN, dtype=tg.float64)
    return t, t[0], t.t()


STEPS = {
    "new": lambda x, y: plain_with_views(),
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "exp": lambda x, y: (x * 0.1).exp(),
    "where": lambda x, y: tg.where(x > 0.3, x, x * 2),
    "cat": lambda x, y: tg.cat([x, y]),
    "gather": lambda x, y: x[tg.tensor([0, 0])],
    "clone": lambda x, y: x.clone(),
    "slice": lambda x, y: x[:1],
    "row": lambda x, y: x[0],
    "column": lambda x, y: x[..., 0],
    "turn": lambda x, y: x.t(),
    "reshape": lambda x, y: x.reshape(-1),
    "unbind": lambda x, y: tuple(x.unbind(0)),
    "expand": lambda x, y: x.expand(2, *x.shape)[0],
    "add_": lambda x, y: (x.add_(y), None)[1],
    "mul_": lambda x, y: (x.mul_(y), None)[1],
    "halve_": lambda x, y: (x.mul_(0.5), None)[1],
    "copy_": lambda x, y: (x.copy_(y), None)[1],
    "setitem": lambda x, y: x.__setitem__(0, y[0]),
    "put": lambda x, y: x.__setitem__(tg.tensor([0]), y[tg.tensor([0])]),
    "zero_row": lambda x, y: (x[-1].zero_(), None)[1],
    "cube": lambda x, y: CUBE(x),
    "same": lambda x, y: SAME(x),
    "turned": lambda x, y: TURNED(x),
    "two": lambda x, y: TWO(x),
    "Double_": lambda x, y: DOUBLE_(x),
    "Add_": lambda x, y: ADD_(x, y),
    "AddBehind_": lambda x, y: ADD_BEHIND_(x, y),
    "Both_": lambda x, y: BOTH_(x, y),
}


def draw(seed):
    rng = random.Random(seed)
    return [(rng.choice(list(STEPS)), rng.random(), rng.random()) for _ in range(rng.randint(2, 9))]


def run(program, values):
    """(leaves, scalar result); a step that does not fit its tensors is left out."""
    leaves = [tg.tensor(v, dtype=tg.float64, requires_grad=True) for v in values]
    pool = [*leaves, tg.tensor(PLAIN, dtype=tg.float64)]
    for name, i, k in program:
        x, y = pool[int(i * len(pool))], pool[int(k * len(pool))]
        if name in ("Add_", "AddBehind_", "Both_") and (
            x.shape != y.shape or x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
        ):
            continue
        try:
            made = STEPS[name](x, y)
        except (RuntimeError, IndexError, ValueError):
            if name.endswith("_") and name[0].isupper():
                raise  # its forward has written before it was refused
            continue
        pool.extend(made if isinstance(made, tuple) else () if made is None else (made,))
    return leaves, sum(((t * t).sum() for t in pool[2:]), (leaves[0] * leaves[0]).sum() + (leaves[1] * 0.3).sum())


def slope(program, place, eps=1e-6):
    """Central difference of the result along one element of a leaf."""
    leaf, row, column = place
    results = []
    for step in (eps, -eps):
        values = [[list(r) for r in leaf] for leaf in LEAVES]
        values[leaf][row][column] += step
        results.append(run(program, values)[1].item())
    return (results[0] - results[1]) / (2 * eps)


def check(program):
    """Whether the program was allowed; AssertionError when its gradient is wrong."""
    try:
        leaves, total = run(program, LEAVES)
        found = tg.autograd.grad(total, leaves, allow_unused=True)
    except RuntimeError:
        return False
    size = abs(total.item())
    if not size < 1e6:
        return False
    for place in ((k, i, j) for k in range(2) for i in range(2) for j in range(2)):
        g = 0.0 if found[place[0]] is None else found[place[0]].tolist()[place[1]][place[2]]
        assert g == pytest.approx(slope(program, place), rel=1e-4, abs=1e-4 + 1e-6 * size), (place, program)
    return True
