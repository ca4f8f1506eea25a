"""Ops on tensors that other threads write to, resize or give other memory. Run as a program: no run may crash.

    python tests/helpers/races.py index|mask|values|memory [case ...]

One thread calls the op a fixed number of times; another changes what the op reads until the first one is done. What an
op makes of that is a result or one of REFUSALS.
"""

import sys
import threading
import warnings

from tinygrad_ext.core.data.storage import empty_cache

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F

N = 60_000  # more than GRAIN: fill_ and copy_ of so many elements let go of the GIL
FAR = 1 << 44  # an index whose use is a crash
CALLS = 40
REFUSALS = (IndexError, RuntimeError, ValueError, MemoryError)  # the last: so many repeats as an index says
aten = tg.ops.aten

table, row, square = tg.rand(N), tg.rand(64), tg.rand(300, 200)
index = tg.arange(N) % 64
wide = index.reshape(300, 200)

INDEX = {
    "gather": lambda: tg.gather(row, 0, index),
    "gather, many rows": lambda: tg.gather(square, 1, wide),
    "_gather_backward": lambda: aten._gather_backward(table, [64], 0, index),
    "scatter": lambda: row.clone().scatter_(0, index, table),
    "scatter, many rows": lambda: square.clone().scatter_(1, wide, square),
    "scatter_add": lambda: row.scatter_add(0, index, table),
    "scatter_reduce": lambda: row.scatter_reduce(0, index, table, "mean"),
    "take_along_dim": lambda: tg.take_along_dim(square, wide, 1),
    "index_select": lambda: tg.index_select(row, 0, index),
    "_index_select_backward": lambda: aten._index_select_backward(table, [64], 0, index),
    "index_add": lambda: row.index_add(0, index, table),
    "index_copy": lambda: row.index_copy(0, index, table),
    "index_fill": lambda: row.index_fill(0, index, 1.0),
    "index": lambda: row[index],
    "index, two": lambda: square[index, index],
    "_index_backward": lambda: aten._index_backward(table, [64], [index]),
    "index_put": lambda: row.index_put((index,), table),
    "index_put, accumulate": lambda: row.index_put((index,), table, accumulate=True),
    "setitem": lambda: row.clone().__setitem__(index, 1.0),
    "take": lambda: tg.take(row, index),
    "embedding": lambda: F.embedding(index, row[:, None]),
    "embedding_dense_backward": lambda: aten.embedding_dense_backward(table[:, None], index, 64, -1, True),
    "_embedding_renorm": lambda: aten._embedding_renorm(row[:, None], index, 0.5, 2.0),
    "one_hot": lambda: F.one_hot(index, 64),
    "nll_loss": lambda: F.nll_loss(table[:, None].expand(N, 64), index),
    "_nll_loss_backward": lambda: aten._nll_loss_backward(tg.ones(()), index, None, [N, 64], "mean", -100),
    "cross_entropy": lambda: F.cross_entropy(table[:, None].expand(N, 64), index),
    "_class_scale": lambda: aten._class_scale(tg.ones(()), table[:, None].expand(N, 64), index, row, "mean", -100),
    "repeat_interleave": lambda: tg.repeat_interleave(index),
    "searchsorted": lambda: tg.searchsorted(table[:64], table, sorter=index[:64]),
    "_max_pool_backward": lambda: aten._max_pool_backward(table[None], index[None], [1, 64], 1),
    "_max_pool_gather": lambda: aten._max_pool_gather(row[None], index[None], 1),
}

sheet = tg.rand(600, 5 * N // 600)  # enough for several threads
mask = sheet > 0.5
MASK = {
    "masked_select": lambda: tg.masked_select(sheet, mask),
    "_masked_select_backward": lambda: aten._masked_select_backward(sheet.reshape(-1), [*sheet.shape], mask),
    "masked_scatter": lambda: tg.masked_scatter(sheet, mask, sheet),
    "masked_fill": lambda: tg.masked_fill(sheet, mask, 1.0),
    "nonzero": lambda: tg.nonzero(mask),
    "index": lambda: sheet[mask],
    "index, rows": lambda: tg.rand(*sheet.shape, 2)[mask],
    "setitem": lambda: sheet.clone().__setitem__(mask, 1.0),
}

values, others = tg.rand(5 * N), tg.rand(5 * N)
VALUES = {
    "median": lambda: tg.median(values),
    "nanmedian": lambda: tg.nanmedian(values.reshape(300, -1), 1),
    "sort": lambda: tg.sort(values),
    "topk": lambda: tg.topk(values, 100),
    "kthvalue": lambda: tg.kthvalue(values, 100),
    "multinomial": lambda: tg.multinomial(values, 100),
    "multinomial, again": lambda: tg.multinomial(values, 100, replacement=True),
    "searchsorted": lambda: tg.searchsorted(values, values),
    "argmax": lambda: row.repeat(5000)[tg.argmax(values)],
    "max_pool1d": lambda: F.max_pool1d(values[None], 4),
}

a, b, c = tg.rand(300, 200), tg.rand(200, 300), tg.rand(300, 300)
MEMORY = {
    "add": lambda: a + b.t(),
    "add, in place": lambda: c.add_(1.0),
    "add, out": lambda: tg.add(c, 1.0, out=a),
    "where": lambda: tg.where(c > 0.5, c, 1.0),
    "to": lambda: a.double(),
    "clone": lambda: b.t().clone(),
    "copy_": lambda: a.copy_(b.t()),
    "fill_": lambda: a.fill_(2.0),
    "sum": lambda: a.sum(0),
    "var": lambda: a.var(1),
    "cumsum": lambda: tg.cumsum(a, 0),
    "softmax": lambda: tg.softmax(a, 1),
    "layer_norm": lambda: F.layer_norm(a, a.shape[-1:]),
    "batch_norm": lambda: F.batch_norm(a, None, None, training=True),
    "mm": lambda: tg.mm(a, b),
    "mm, out": lambda: tg.mm(a, b, out=c),
    "outer": lambda: tg.outer(a.reshape(-1)[:300], b.reshape(-1)[:300]),
    "mm, small to large": lambda: tg.mm(a.reshape(-1)[:1000, None], b.reshape(-1)[None, :1000]),
    "cat": lambda: tg.cat([a, c], 1),
    "sort": lambda: tg.sort(a, 0),
    "median": lambda: tg.median(a, 1),
    "tril": lambda: tg.tril(a),
    "flip": lambda: tg.flip(a, [0, 1]),
    "gather": lambda: tg.gather(a, 1, wide.clamp(0, 199)),
    "index": lambda: a[index[:300]],
    "masked_select": lambda: a[a > 0.5],
    "masked_fill": lambda: a.masked_fill(a > 0.5, 0.0),
    "mse_loss": lambda: F.mse_loss(a, c[:, :200]),
    "max_pool2d": lambda: F.max_pool2d(a[None], 2),
    "conv2d": lambda: F.conv2d(a[None, None], b[:3, :3][None, None]),
    "repeat": lambda: a.repeat(2, 2),
}


def optimizer_step():
    """The fused update of a parameter whose memory is exchanged."""
    p = tg.nn.Parameter(a.detach())
    p.grad = c.reshape(-1)[: p.numel()].reshape(p.shape).clone()
    MOVED.append(p)
    tg.optim.Adam([p], lr=0.1).step()


MEMORY["adam"] = optimizer_step
MOVED = []


def spoil_index():
    """Write indices that are far outside, and right ones again."""
    index.fill_(FAR)
    index.fill_(-FAR)
    index.copy_(tg.arange(N) % 64)


def spoil_mask():
    """Let the number of true elements change."""
    mask.fill_(True)
    mask.fill_(False)


def spoil_values():
    """Write NaN, and numbers again."""
    values.fill_(float("nan"))
    values.copy_(others)


def spoil_memory():
    """Give the tensors other memory and other shapes, smaller and larger."""
    for t, rows, columns in ((a, 300, 200), (b, 200, 300), (c, 300, 300), *((p, 300, 200) for p in MOVED[-1:])):
        t.data = tg.zeros(1, 2)
        t.data = tg.zeros(rows, columns)
        if not t.requires_grad:
            t.resize_(0)
            t.resize_(1, 1)
            t.resize_(rows * 2, columns)
        t.data = tg.rand(columns, rows).t()
    empty_cache()


KINDS = {
    "index": (INDEX, spoil_index),
    "mask": (MASK, spoil_mask),
    "values": (VALUES, spoil_values),
    "memory": (MEMORY, spoil_memory),
}


def race(call, spoil):
    """Call while another thread spoils; (calls that returned, calls that were refused)."""
    call()
    done, returned = threading.Event(), 0

    def keep_spoiling():
        while not done.is_set():
            spoil()

    other = threading.Thread(target=keep_spoiling)
    other.start()
    try:
        for _ in range(CALLS):
            try:
                call()
                returned += 1
            except REFUSALS:
                pass
    finally:
        done.set()
        other.join()
    return returned, CALLS - returned


def main(kind, *cases):
    """All races of a kind, or those named."""
    warnings.simplefilter("ignore")
    calls, spoil = KINDS[kind]
    sys.setswitchinterval(1e-5)
    for case in cases or calls:
        print(kind, case, end=" ", flush=True)
        print(*race(calls[case], spoil), flush=True)
    print("ended", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
