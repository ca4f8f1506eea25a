"""Views made in one mode and written to in another, over bases of every kind: allowed and refused as in PyTorch, with
its values and gradients.

What ops with several outputs return (unbind, split, chunk) may be written to here, and PyTorch refuses it. The
gradients are compared with those of the same view made by an index.
"""

import itertools

import pytest

import tinygrad_ext as tg

MODES = {"grad": "enable_grad", "no_grad": "no_grad", "inference": "inference_mode"}
BASES = {
    "plain": lambda T, leaf: T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64),
    "leaf": lambda T, leaf: leaf,
    "made": lambda T, leaf: leaf * 1,
}
SEVERAL = {
    "unbind": lambda b: b.unbind(0)[0],
    "split": lambda b: b.split(1)[0][0],
    "chunk": lambda b: b.reshape(-1).chunk(2)[0],
}
VIEWS = {
    "index": lambda b: b[0],
    "view of a view": lambda b: b[:, :][0],
    "turned": lambda b: b.t()[0],
    "detached": lambda b: b.detach()[0],
    "data": lambda b: b.data[0],
    **SEVERAL,
}
WRITES = {
    "number": lambda T, v, b, w: v.mul_(2),
    "tensor": lambda T, v, b, w: v.mul_(w),
    "zero": lambda T, v, b, w: v.zero_(),
    "fill": lambda T, v, b, w: v.fill_(2),
    "item": lambda T, v, b, w: v.__setitem__(0, 5),
    "item of a tensor": lambda T, v, b, w: v.__setitem__(0, w[0]),
    "all": lambda T, v, b, w: v.__setitem__(slice(None), w),
    "copy": lambda T, v, b, w: v.copy_(w),
    "operator": lambda T, v, b, w: v.__iadd__(1),
    "composite": lambda T, v, b, w: v.clamp_(w - 4, w),
    "out": lambda T, v, b, w: T.mul(T.ones(2, dtype=T.float64), 3, out=v),
    "out of a tensor": lambda T, v, b, w: T.mul(w, 3, out=v),
    "window": lambda T, v, b, w: v.unsqueeze_(0),
    "base": lambda T, v, b, w: b.mul_(2),
    "base by a tensor": lambda T, v, b, w: b.__setitem__(0, w),
}


def run(T, base_in, made_in, view, written_in, write, base):
    """'refused', or for the view and its base: 'refused', or the value and gradients of what is made of it."""

    def mode(name):
        return getattr(T, MODES[name])()

    leaf = T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64, requires_grad=True)
    w = T.tensor([5.0, 6.0], dtype=T.float64, requires_grad=True)
    with mode(base_in):
        b = BASES[base](T, leaf)
    with mode(made_in):
        v = view(b)
    try:
        with mode(written_in):
            WRITES[write](T, v, b, w)
    except RuntimeError:
        return "refused"
    return [used(T, t, [leaf, w]) for t in (v, b)]


def used(T, t, leaves):
    try:
        r = (t * T.arange(1.0, 1.0 + t.numel(), dtype=T.float64).reshape(t.shape)).sum()
        found = T.autograd.grad(r, leaves, allow_unused=True, retain_graph=True) if r.requires_grad else (None, None)
    except RuntimeError:
        return "refused"
    return r.item(), [g.tolist() if g is not None and g.any() else None for g in found]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("written_in", MODES)
@pytest.mark.parametrize("made_in", MODES)
def test_a_write_to_a_view_is_recorded_or_refused_as_in_torch(made_in, written_in, view):
    torch = pytest.importorskip("torch")
    for base_in, base, write in itertools.product(("grad", "inference"), BASES, WRITES):
        case = base_in, made_in, VIEWS[view], written_in, write, base
        ours, theirs = run(tg, *case), run(torch, *case)
        if ours != theirs and view in SEVERAL:
            theirs = run(torch, base_in, made_in, lambda b: b.reshape(2, 2)[0], written_in, write, base)
        assert ours == theirs, (base_in, base, write)


def test_a_write_that_would_be_lost_is_refused():
    """Also without PyTorch: under grad mode, to a view made under no_grad of what requires grad or has a history."""
    for base, write in itertools.product(("leaf", "made"), set(WRITES) - {"base", "base by a tensor"}):
        assert run(tg, "grad", "no_grad", VIEWS["index"], "grad", write, base) == "refused", (base, write)


def test_a_view_of_what_became_a_leaf_later_follows_it():
    b = tg.ones(2, 2, dtype=tg.float64)
    v = b[0]
    b.requires_grad_()
    with tg.no_grad():
        b.mul_(2)
    (v * 3).sum().backward()
    assert b.grad.tolist() == [[3.0, 3.0], [0.0, 0.0]]
