"""Random tensors: every dtype, rank and memory layout, sharing memory or not."""

import tinygrad_ext as tg
from tinygrad_ext.core.call import interop as core
from tinygrad_ext.testing import layouts, sweep

DTYPES = [getattr(tg, name) for name in sweep.ALL_DTYPES]
SIZES = (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 7, 8, 17, 33)
LARGEST = 3000  # elements
SMALL = (-3, -2, -1, 0, 0, 1, 1, 2, 3, 4)
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 1e-320, 3.4e38, 1.8e308, -1e30, 0.5, 1.5)


class Sub(tg.Tensor):
    """A plain subclass: goes through the protocol of overrides."""


def shape(rng, rank=None):
    """Sizes with a bounded product, of any rank up to 64."""
    if rank is None:
        rank = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5)) if rng.random() < 0.97 else rng.randint(6, 64)
    sizes, room = [], LARGEST
    for _ in range(rank):
        size = rng.choice(SIZES) if rank < 6 else rng.choice((1, 1, 1, 1, 2, 0))
        size = size if size <= room else 1
        room //= max(size, 1)
        sizes.append(size)
    return sizes


def block(rng, dtype, count):
    """A fresh row of elements, in memory of exactly that length."""
    kind = rng.random()
    if kind < 0.65 or count > 500:
        low = 0 if dtype in (tg.uint8, tg.bool) else -4
        small = [v for v in SMALL if v >= low]
        return tg.tensor(rng.choices(small, k=count), dtype=dtype)
    if kind < 0.75 and (dtype.is_floating_point or dtype.is_complex):
        return tg.tensor(rng.choices(SPECIAL, k=count), dtype=tg.float64).to(dtype)
    if dtype == tg.bool or count == 0:
        return tg.tensor(rng.choices((False, True), k=count), dtype=tg.bool).to(dtype)
    data = bytearray(rng.randbytes(count * dtype.itemsize))
    return tg.frombuffer(data, dtype=dtype).clone()


def tensor(rng, dtype=None, sizes=None):
    """A contiguous tensor."""
    dtype = dtype or rng.choice(DTYPES)
    sizes = shape(rng) if sizes is None else sizes
    count = 1
    for s in sizes:
        count *= s
    return block(rng, dtype, count).reshape(sizes)


def overlapping(t):
    """A window of the same shape in which neighbours share memory."""
    if t.dim() == 0 or t.numel() < 2:
        return None
    strides = [1] * t.dim()
    reach = sum(s - 1 for s in t.shape) + 1
    return t.reshape(-1)[:reach].clone().as_strided(t.shape, strides)


def unused_strides(t):
    """Strides near 2**62 where a size of 1 makes them irrelevant."""
    if 1 not in t.shape or not t.numel():
        return None
    return t.contiguous().as_strided(
        t.shape, [2**61 if n == 1 else s for n, s in zip(t.shape, t.contiguous().stride())]
    )


def many_dims(t):
    """Ones added until the rank is the largest there is."""
    return t.reshape([1] * (64 - t.dim()) + list(t.shape))


def lent(t):
    """Memory of NumPy's."""
    return tg.from_numpy(t.detach().numpy().copy()) if t.dtype != tg.bfloat16 else None


def read_only(t):
    """Memory of NumPy's that must not be written."""
    import numpy as np

    return tg.from_numpy(np.broadcast_to(t.detach().numpy().copy(), t.shape)) if t.dtype != tg.bfloat16 else None


def on_meta(t):
    """Geometry without data."""
    return tg.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


USUAL = (*layouts.KEEP_SHAPE.values(), overlapping, unused_strides, lent)
ODD = (*layouts.CHANGE_SHAPE.values(), many_dims, read_only, on_meta)


def laid_out(rng, t):
    """The tensor in a layout, most often a usual one."""
    chance = rng.random()
    if chance < 0.4 or t.is_meta:
        return t
    layout = rng.choice(USUAL if chance < 0.93 else ODD)
    try:
        changed = layout(t.detach())
    except (RuntimeError, TypeError):  # a layout that this dtype or shape does not have
        changed = None
    return t if changed is None else changed


def relative(rng, t):
    """Another tensor over the memory of t, or t itself."""
    kind = rng.randrange(7)
    if kind == 0 or core.storage_of(t) is None or not t.numel():
        return t
    if kind == 1:
        return t.detach()
    if kind == 2:
        return t.transpose(0, -1) if t.dim() else t
    if kind == 3:
        return t[1:] if t.dim() else t
    if kind == 4:
        return t.flip(0) if t.dim() else t  # a copy, as a change from all the sharing
    room = core.storage_of(t)
    dtype = t.dtype if kind == 5 else rng.choice(DTYPES)
    held = max(room_bytes(t) // dtype.itemsize, 0)
    sizes = [rng.randint(0, min(held, 6))] if held else [0]
    return core.window(room, dtype, sizes, [1], rng.randint(0, held - sizes[0]))


def room_bytes(t):
    """Bytes of the storage behind a tensor."""
    from tinygrad_ext.core.data.storage import storage_facts

    return storage_facts(core.storage_of(t))[1]


def dressed(rng, t):
    """Perhaps with requires_grad, as a Parameter, or of a subclass."""
    chance = rng.random()
    floating = t.dtype.is_floating_point or t.dtype.is_complex
    if floating and chance < 0.2:
        return t.detach().requires_grad_()
    if floating and chance < 0.23:
        return tg.nn.Parameter(t.detach())
    if floating and chance < 0.26:
        return t.detach().requires_grad_() * 1
    return t.as_subclass(Sub) if chance > 0.99 else t
