"""Programs for both libraries: each a function of the library that gives a root and inputs, and nodes told alike."""

import math
import operator


def module(T):
    nn = T.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)
            self.scale = nn.Parameter(T.ones(3) * 2)
            self.register_buffer("shift", T.ones(3))
            self.seq = nn.Sequential(nn.ReLU(), nn.Linear(3, 4))

        def forward(self, input, y=1):
            a, b = self.seq(self.fc(input) * self.scale + self.shift).chunk(2, dim=0)
            z = (a + b).relu().sum(dim=[0, 1])
            return {"a": z * y, "b": (a.T, None, [b, 1.5])}

    return Net(), (T.arange(8.0).reshape(4, 2),)


def nested(T):
    nn = T.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.innerLayer = nn.Linear(2, 2)
            self.weight = nn.Parameter(T.ones(2))

        def forward(self, x):
            return T.sigmoid(self.innerLayer(x)) @ self.weight

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])
            self.constant = T.ones(2)

        def forward(self, x):
            for block in self.blocks:
                x = block(x).unsqueeze(-1) + x
            return x * self.constant - self.blocks[0].weight

    return Net(), (T.ones(3, 2),)


def operators(T):
    def f(x, y):
        a = x + 1 - y * 2 / (x**2 + 1) // 1 % 3
        b = -a + abs(x) + (x > y).float() + (x == 1) * 1.0 + 3 - x + 1 / (y + 1)
        c = 2 ** (x / 4) + (x @ y.T)[0, :2].sum() + x[..., None, 1:].squeeze()
        d = x.long() & 1 | 2 ^ y.long()
        a += b
        return a, c, d, ~(x < y), x != y, (x <= y) | (x >= 2)

    return f, (T.arange(4.0).reshape(2, 2), T.ones(2, 2) * 2)


def functions(T):
    F = T.nn.functional

    def f(x, *, k: float = 2.0):
        z = T.zeros(x.size(0), dtype=T.float64)
        y = T.softmax(F.linear(x, x), dim=-1)
        big = x.shape[0] * 2 + len(x.tolist()) if False else x.shape[-1]
        return (
            T.cat([y, y.t()], dim=0).reshape(-1, big) * k,
            z + 1,
            T.add(x, y, alpha=3),
            y.max(dim=0).values,
            float("inf"),
        )

    return f, (T.arange(9.0).reshape(3, 3) / 9,)


def sizes_and_numbers(T):
    def f(x, n):
        return x.view(x.size(0), -1) * math.sqrt(4) + n, math.floor(n), x.dtype, x.numel()

    return f, (T.ones(2, 3, 2), 3.5)


def in_place(T):
    def f(x):
        y = x.clone()
        y.add_(1).mul_(x)
        y[0] if False else y
        return y.clamp_(0, 3)

    return f, (T.arange(4.0),)


def stars(T):
    def f(x, *rest, **more):
        return x + rest[0] * more["k"]

    return f, (T.ones(2), T.ones(2))


def constants(T):
    t, table = T.ones(2) * 3, {"k": [1, (2, None)]}

    def f(x, mode="sum"):
        return (x + t) * t, T.tensor([1.0]) + x, table["k"], slice(0, 2), mode

    return f, (T.ones(2),)


def unused(T):
    def f(x, flag=None):
        x * 2
        x.sin()
        return x.exp()

    return f, (T.ones(2),)


PROGRAMS = [module, nested, operators, functions, sizes_and_numbers, in_place, stars, constants, unused]


def told(value):
    """A value of a node without the library's name."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__.replace("immutable_", ""), [told(v) for v in value]
    if isinstance(value, dict):
        return {k: told(v) for k, v in value.items()}
    if isinstance(value, slice):
        return "slice", told((value.start, value.stop, value.step))
    if callable(value):
        return getattr(operator, value.__name__, None) is value, value.__name__
    return str(value)


def nodes(graph):
    """The nodes of a graph of either library as plain values."""
    found = []
    for n in graph.nodes:
        row = [n.op, n.name, told(n.target), told(n.args), told(n.kwargs), list(map(str, n.users))]
        found.append([*row, list(map(str, n.all_input_nodes)), n.next.name, n.prev.name, told(n.type)])
    return found


def plain(value):
    """A result of either library as plain values."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        return str(value.dtype), list(value.shape), value.tolist()
    return str(value)
