"""Cases of transforms: vmap, gradients of each sample, forward mode, Hessians. Importing it adds them to the table."""

from benchmarks.cases import case


@case("vmap of add over 1,000", "transforms", 0.15)
def _vmap(lib, draw):
    run = lib.module.func.vmap(lib.module.add)
    a, b = draw(lib, 1000), draw(lib, 1000)
    return lambda: run(a, b)


@case("vmap of a product of sums over 1,000", "transforms", None)
def _rows(lib, draw):
    run = lib.module.func.vmap(lambda a, b: (a * b).sum())
    a, b = draw(lib, 1000, 10), draw(lib, 1000, 10)
    return lambda: run(a, b)


def _mlp(lib, draw):
    """(function of parameters and one row, its parameters) of an MLP 16-64-64-10."""
    m = lib.module
    sizes = ((64, 16), (64,), (64, 64), (64,), (10, 64), (10,))
    weights = tuple(lib.tensor(draw.array(*s, low=-0.2, high=0.2)) for s in sizes)

    def forward(weights, x):
        linear, (a, b, c, d, e, f) = m.nn.functional.linear, weights
        return linear(linear(linear(x, a, b).tanh(), c, d).tanh(), e, f)

    return forward, weights


@case("gradients of each sample, MLP 16-64-64-10, batch 64", "transforms", 0.3)
def _samples(lib, draw):
    m = lib.module
    forward, weights = _mlp(lib, draw)
    x, y = draw(lib, 64, 16), draw.ints(lib, 10, 64)
    loss = lambda weights, x, y: m.nn.functional.cross_entropy(forward(weights, x), y)
    run = m.func.vmap(m.func.grad(loss), (None, 0, 0))
    return lambda: run(weights, x, y)


@case("jvp of an MLP 16-64-64-10, batch 64", "transforms", 0.2)
def _jvp(lib, draw):
    forward, weights = _mlp(lib, draw)
    x, slopes = draw(lib, 64, 16), tuple(w * 0.5 for w in weights)
    return lambda: lib.module.func.jvp(lambda w: forward(w, x), (weights,), (slopes,))


@case("Hessian of a function of 10 numbers", "transforms", 0.1)
def _hessian(lib, draw):
    run = lib.module.func.hessian(lambda x: (x.sin() * x).sum() + x.prod())
    x = draw(lib, 10)
    return lambda: run(x)


@case("gradient of a function of 10 numbers", "transforms", None)
def _grad(lib, draw):
    run = lib.module.func.grad(lambda x: (x * x).sum())
    x = draw(lib, 10)
    return lambda: run(x)
