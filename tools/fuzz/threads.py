"""Another thread changes what an op works on: writes an index tensor, resizes, exchanges or replaces memory.

Results may be anything then; the process has to live, and what raises has to raise what bad input may raise.
"""

import sys
import threading

import numpy as np

import tinygrad_ext as tg

from .case import Case, Fault, refused
from .operands import touch

BLOCK = 10
ROUNDS = 12
ROWS = 100_000  # enough that kernels let go of the GIL
WRONG = (-(2**63), -(2**40), -1, 0, 1, 7, ROWS, 2**40, 2**63 - 1)


# ops over an index tensor, by name: (source of ROWS x 4, indices) -> anything
BY_INDEX = {
    "index_select": lambda x, i: tg.index_select(x, 0, i),
    "gather": lambda x, i: tg.gather(x[:, 0], 0, i),
    "take": lambda x, i: tg.take(x, i),
    "x[i]": lambda x, i: x[i],
    "x[i, i]": lambda x, i: x[i, i.clamp(0, 3)],
    "x[i] = 1": lambda x, i: x.__setitem__(i, 1.0),
    "index_put_": lambda x, i: x.index_put_((i,), tg.ones(4), accumulate=True),
    "scatter": lambda x, i: x[:, 0].scatter(0, i, 1.0),
    "scatter_add": lambda x, i: x[:, 0].scatter_add(0, i, x[:, 1]),
    "scatter_reduce": lambda x, i: x[:, 0].scatter_reduce(0, i, x[:, 1], "amax"),
    "index_add": lambda x, i: tg.index_add(x, 0, i, x),
    "index_copy": lambda x, i: tg.index_copy(x, 0, i, x),
    "index_fill": lambda x, i: tg.index_fill(x, 0, i, 2.0),
    "embedding": lambda x, i: tg.nn.functional.embedding(i, x),
    "one_hot": lambda x, i: tg.nn.functional.one_hot(i[:500], 9),
    "nll_loss": lambda x, i: tg.nn.functional.nll_loss(x, i),
    "cross_entropy": lambda x, i: tg.nn.functional.cross_entropy(x, i),
    "bincount": lambda x, i: tg.bincount(i),
    "take_along_dim": lambda x, i: tg.take_along_dim(x[:, 0], i, 0),
    "masked_select": lambda x, i: tg.masked_select(x[:, 0], i.view(tg.bool)[::8]),
    "x[mask]": lambda x, i: x[i.view(tg.bool)[::8]],
    "nonzero": lambda x, i: tg.nonzero(i),
    "repeat_interleave": lambda x, i: tg.repeat_interleave(x[:50], i[:50].clamp(0, 9), 0),
    "unique": lambda x, i: tg.unique(i),
    "where": lambda x, i: tg.where(i.view(tg.bool)[::8], x[:, 0], 1.0),
    "sort": lambda x, i: tg.sort(i),
    "searchsorted": lambda x, i: tg.searchsorted(i, i),
    "cumsum": lambda x, i: tg.cumsum(i, 0),
}
# ops over memory that goes away
BY_MEMORY = {
    "exp": tg.exp,
    "add": lambda x: x + x,
    "mul_": lambda x: x.mul_(1.5),
    "sum": lambda x: x.sum(0),
    "sort": lambda x: x.sort(0),
    "mm": lambda x: x.T @ x,
    "clone": lambda x: x.T.contiguous(),
    "softmax": lambda x: x.softmax(0),
    "cat": lambda x: tg.cat([x, x]),
    "cumsum": lambda x: x.cumsum(0),
    "copy_": lambda x: x.copy_(x.flip(0)),
    "max": lambda x: x.max(0),
    "item": lambda x: x[0, 0].item(),
    "tolist": lambda x: x[:50].tolist(),
    "numpy": lambda x: x.numpy().sum(),
    "repr": repr,
    "std": lambda x: x.std(),
    "to": lambda x: x.to(tg.float16),
    "any": lambda x: x.any(),
    "exp out": lambda x: tg.exp(x, out=x),
    "stack": lambda x: tg.stack([x, x], 1),
    "conv1d": lambda x: tg.nn.functional.conv1d(x.T[None], tg.ones(2, 4, 3)),
    "backward": lambda x: (x.detach().requires_grad_() * x).sum().backward(),
}
CHANGES = {
    "resize_": lambda x: (x.resize_(3, 4), x.resize_(ROWS, 4)),
    "grow": lambda x: x.resize_(ROWS + 5, 4),
    "data": lambda x: setattr(x, "data", tg.ones(5, 4)),
    "data back": lambda x: (setattr(x, "data", tg.ones(5, 4)), setattr(x, "data", tg.ones(ROWS, 4))),
    "set_": lambda x: (x.set_(tg.ones(2, 4)), x.set_(tg.zeros(ROWS, 4))),
    "transpose_": lambda x: x.t_() if hasattr(x, "t_") else x.set_(tg.zeros(4, ROWS).T),
    "dtype": lambda x: setattr(x, "data", tg.zeros(ROWS, 4, dtype=tg.int8)),
    "requires_grad_": lambda x: (x.requires_grad_(), x.requires_grad_(False)),
    "fill": lambda x: x.fill_(3),
}


class Race(Case):
    """One op in a loop here, one change in a loop there."""

    def __init__(self, rng):
        self.threads = rng.choice((1, 2, 3))
        self.by_index = rng.random() < 0.5
        self.op = rng.choice(list(BY_INDEX if self.by_index else BY_MEMORY))
        self.change = rng.choice(list(CHANGES))
        self.wrong = rng.sample(WRONG, 3)

    def text(self):
        return (
            f"# threads: {self.op} with {self.threads} threads against {self.wrong if self.by_index else self.change}\n"
        )

    def run(self):
        self.x, self.index = tg.ones(ROWS, 4), tg.zeros(ROWS, dtype=tg.int64)
        over, ready, met = threading.Event(), threading.Event(), []
        other = threading.Thread(target=self._disturb, args=(over, ready, met))
        before = tg.get_num_threads()
        tg.set_num_threads(self.threads)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        other.start()
        ready.wait()
        try:
            for _ in range(ROUNDS):
                self._once()
        finally:
            over.set()
            other.join()
            tg.set_num_threads(before)
            sys.setswitchinterval(interval)
        for error in met:
            refused(error, small=False)
        return ROUNDS

    def _once(self):
        try:
            got = BY_INDEX[self.op](self.x, self.index) if self.by_index else BY_MEMORY[self.op](self.x)
        except Exception as error:
            refused(error, small=False)  # a count of 2**40 asks for that much
            return
        if self.by_index:
            touch(got)

    def _disturb(self, over, ready, met):
        rows = self.index.numpy()
        values = [np.full(ROWS, v, np.int64) for v in (*self.wrong, 0, 1)]
        ready.set()
        while not over.is_set():
            try:
                if self.by_index:
                    for v in values:
                        np.copyto(rows, v)
                else:
                    CHANGES[self.change](self.x)
            except Fault:
                raise
            except Exception as error:
                met.append(error)
                if len(met) > 100:
                    del met[50:]


def case(rng):
    """A random race."""
    return Race(rng)
