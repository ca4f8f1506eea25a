"""Steps of random programs of two 3 x 3 matrices."""

import tinygrad_ext as tg

STEPS = (
    lambda a, b: a * b,
    lambda a, b: (a + 2 * b).sin(),
    lambda a, b: a @ b.T,
    lambda a, b: tg.softmax(a, 1) - b,
    lambda a, b: tg.cat([a[:1], b[1:]]) * 0.5,
    lambda a, b: tg.where(a > b, a.exp() * 0.1, b),
    lambda a, b: a.sort(0)[0] + b.cumsum(1) * 0.3,
    lambda a, b: tg.logsumexp(a, 1, keepdim=True) * b,
    lambda a, b: (a / (2 + b.square())).clone().mul_(b),
    lambda a, b: a.t() * b.mean(),
)
