"""Cases of whole programs: traced or scripted here, run as they are by PyTorch and Python, compiled by JAX.

The same work for each; what a case needs is made before it is timed. Importing it adds them to the table.
"""

import itertools

from benchmarks.cases import case

COMPILED = ("torch.compile", "jax")


def _ready(function, *args):
    """A call of a JAX function that waits for what it gives."""
    import jax

    run = jax.jit(function)
    return lambda: jax.block_until_ready(run(*args))


# ---- gradients -----------------------------------------------------------------------------------------------------


def _loss(m, p, q):
    return (m.exp(p) * q + m.tanh(p) - q * q).sum()


@case("traced chain 100k, forward + backward", "program", 0.10, also=COMPILED)
def _gradient(lib, draw):
    given = [draw(lib, 100_000, grad=lib.name != "jax") for _ in range(2)]
    m = lib.module
    if lib.name == "jax":
        return _ready(m.grad(lambda p, q: _loss(m.numpy, p, q), (0, 1)), *given)
    loss = m.compile(lambda p, q: _loss(m, p, q), dynamic=False) if lib.name == "torch.compile" else None
    step = lambda p, q: m.autograd.grad(_loss(m, p, q) if loss is None else loss(p, q), [p, q])
    if lib.name == "tinygrad_ext":
        step = m.jit.trace(step, tuple(given))
    return lambda: step(*given)


@case("compiled MLP 16-32-32-4, forward + backward", "program", 0.12, also=("torch.compile",))
def _compiled(lib, draw):
    """Few rows: what is timed is the call of the two graphs, and eager autograd around them."""
    m = lib.module
    m.manual_seed(0)
    sizes, layers = (16, 32, 32, 4), []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [m.nn.Linear(inputs, outputs), m.nn.Tanh()]
    model, x, seed = m.nn.Sequential(*layers), draw(lib, 16, 16), draw(lib, 16, 4)
    parameters = list(model.parameters())
    run = model if lib.name == "torch" else m.compile(model)

    def step():
        for p in parameters:
            p.grad = None
        run(x).backward(seed)

    return step


# ---- a training step -----------------------------------------------------------------------------------------------


def _mlp(lib, draw):
    """(step, x, y) of an MLP 8-16-1 with SGD."""
    m = lib.module
    weights = [draw.array(16, 8), draw.array(16), draw.array(1, 16), draw.array(1)]
    x, y = lib.tensor(draw.array(32, 8)), lib.tensor(draw.array(32, 1))
    if lib.name == "jax":
        return _mlp_of_jax(m, [lib.tensor(w) for w in weights], x, y)
    model = m.nn.Sequential(m.nn.Linear(8, 16), m.nn.ReLU(), m.nn.Linear(16, 1))
    with m.no_grad():
        for p, w in zip(model.parameters(), weights):
            p.copy_(lib.tensor(w))
    optimizer = m.optim.SGD(model.parameters(), lr=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    if lib.name == "torch.compile":
        step = m.compile(step, dynamic=False)
    return (m.jit.trace(step, (x, y)) if lib.name == "tinygrad_ext" else step), x, y


def _mlp_of_jax(jax, weights, x, y):
    def loss(weights, x, y):
        a, b, c, d = weights
        return (((jax.numpy.maximum(x @ a.T + b, 0) @ c.T + d) - y) ** 2).mean()

    @jax.jit
    def update(weights, x, y):
        value, grads = jax.value_and_grad(loss)(weights, x, y)
        return value, [w - 1e-3 * g for w, g in zip(weights, grads)]

    held = [weights]

    def step(x, y):
        value, held[0] = update(held[0], x, y)
        return value.block_until_ready()

    return step, x, y


@case("traced MLP step, SGD", "program", 0.012, also=COMPILED)
def _step(lib, draw):
    step, x, y = _mlp(lib, draw)
    return lambda: step(x, y)


# ---- loops ---------------------------------------------------------------------------------------------------------

SCALARS = """\
def scalars(n: int) -> float:
    total, k = 0.0, 1
    for i in range(n):
        if i % 3 == 0:
            total += i * 0.5
        else:
            total -= k
        k = (k * 7 + i) % 1000
    return total
"""


@case("scripted loop of 100,000 turns over numbers", "program", 1 / 8, beside="python")
def _scalars(lib, draw):
    if lib.name == "tinygrad_ext":
        run = lib.module.jit.CompilationUnit(SCALARS).scalars
    elif lib.name == "python":
        names = {}
        exec(SCALARS, names)
        run = names["scalars"]
    else:
        raise NotImplementedError("no loop over numbers")
    return lambda: run(100_000)


LENGTH, WIDTH = 50, 64


def _cell(m, x, h, c, a, b, bias):
    i, f, g, o = m.split(x @ a + h @ b + bias, m.parts, m.axis)
    c = m.sigmoid(f) * c + m.sigmoid(i) * m.tanh(g)
    return m.sigmoid(o) * m.tanh(c), c


class _Names:
    """What the cell calls, by a library's names."""

    def __init__(self, lib):
        m = lib.module
        if lib.name == "jax":
            self.split, self.parts, self.axis = m.numpy.split, 4, -1
            self.sigmoid, self.tanh = m.nn.sigmoid, m.numpy.tanh
        else:
            self.split, self.parts, self.axis = m.chunk, 4, -1
            self.sigmoid, self.tanh = m.sigmoid, m.tanh


@case(f"LSTM by hand, {LENGTH} turns of {WIDTH}, batch 1", "program", 1.0, beside="jax")
def _lstm(lib, draw):
    m, names = lib.module, _Names(lib)
    xs, weights = draw(lib, LENGTH, 1, WIDTH), [draw(lib, WIDTH, 4 * WIDTH), draw(lib, WIDTH, 4 * WIDTH)]
    bias, zero = draw(lib, 4 * WIDTH), lib.tensor(draw.array(1, WIDTH) * 0)

    def run(xs, a, b, bias, h):
        c = h
        for t in range(LENGTH):
            h, c = _cell(names, xs[t], h, c, a, b, bias)
        return h

    given = (xs, *weights, bias, zero)
    if lib.name == "jax":
        return _ready(run, *given)
    if lib.name == "tinygrad_ext":
        run = m.jit.trace(run, given)
    return lambda: run(*given)


TURNS = 10_000
ODE = """\
def ode(x, w, n: int):
    for i in range(n):
        x = x + 0.001 * torch.tanh(w @ x)
    return x
"""


def _ode(lib, draw):
    """(function of the state and the matrix, both)."""
    m = lib.module
    given = draw(lib, 4), draw(lib, 4, 4)
    if lib.name == "jax":
        turn = lambda w: lambda x, _: (x + 0.001 * m.numpy.tanh(w @ x), None)
        return (lambda x, w: m.lax.scan(turn(w), x, None, length=TURNS)[0]), given
    if lib.name == "tinygrad_ext":
        run = m.jit.CompilationUnit(ODE).ode
    else:
        names = {"torch": m}
        exec(ODE, names)
        run = names["ode"]
    return (lambda x, w: run(x, w, TURNS)), given


@case("ODE by a scripted loop of 10,000 turns", "program", 1.5, also=("jax",), beside="jax")
def _integrated(lib, draw):
    run, given = _ode(lib, draw)
    return _ready(run, *given) if lib.name == "jax" else lambda: run(*given)


@case("ODE by a scripted loop of 10,000 turns, with gradient", "program", 1.5, also=("jax",), beside="jax")
def _integrated_with_gradient(lib, draw):
    run, (x, w) = _ode(lib, draw)
    if lib.name == "jax":
        return _ready(lib.module.grad(lambda x, w: run(x, w).sum(), (0, 1)), x, w)
    x, w = x.requires_grad_(), w.requires_grad_()
    return lambda: lib.module.autograd.grad(run(x, w).sum(), [x, w])
