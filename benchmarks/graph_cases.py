"""Cases of graphs: ours runs a plan, PyTorch and NumPy the ops one by one, its compiler and JAX what they made of them.

Importing it adds them to the table.
"""

from benchmarks.cases import case

ALL = ("numpy", "torch.compile", "jax")

CHAIN = """\
graph chain(%p: Tensor, %q: Tensor) {
  %1: Tensor = aten::exp(%p)
  %2: Tensor = aten::mul.Tensor(%1, %q)
  %3: Tensor = aten::tanh(%p)
  %4: Tensor = aten::add.Tensor(%2, %3, 1)
  %5: Tensor = aten::mul.Tensor(%q, %q)
  %6: Tensor = aten::sub.Tensor(%4, %5, 1)
  return %6
}"""


def _chain(m, p, q):
    return m.exp(p) * q + m.tanh(p) - q * q


def _planned(lib, text, function, *given):
    """The graph of a text where it can run, else the function."""
    if lib.name == "jax":
        run = lib.module.jit(lambda *xs: function(lib.module.numpy, *xs))
        return lambda: run(*given).block_until_ready()
    if lib.name == "torch.compile":
        run = lib.module.compile(lambda *xs: function(lib.module, *xs), dynamic=False)
        return lambda: run(*given)
    if lib.name != "tinygrad_ext":
        return lambda: function(lib.module, *given)
    from tinygrad_ext.graph import Graph

    run = Graph.parse(text).check().executor.function
    return lambda: run(*given)


for _name, _count, _budget in (("1k", 1000, 0.06), ("100k", 100_000, 0.16), ("4M", 4 << 20, 0.15)):

    @case(f"planned chain {_name}", "graph", _budget, also=ALL)
    def _(lib, draw, count=_count):
        return _planned(lib, CHAIN, _chain, draw(lib, count), draw(lib, count))


def _repeated(first, step, count=100):
    """A graph of `count` nodes, each on what the one before made."""
    lines = [f"  %0: Tensor = {first}", *(f"  %{i}: Tensor = {step.format(i - 1)}" for i in range(1, count))]
    return f"graph many(%x: Tensor, %y: Tensor) {{\n{chr(10).join(lines)}\n  return %{count - 1}\n}}"


def _hundred_sums(m, x, y):
    x = x * y
    for _ in range(99):
        x = x + y
    return x


@case("planned 100 adds of 8", "graph", 0.01, also=ALL)
def _adds(lib, draw):
    text = _repeated("aten::mul.Tensor(%x, %y)", "aten::add.Tensor(%{}, %y, 1)")
    return _planned(lib, text, _hundred_sums, draw(lib, 8), draw(lib, 8))


def _hundred_softmaxes(m, x, y):
    x = x * y
    for _ in range(99):
        x = m.softmax(x, 0)
    return x


@case("planned 100 softmax of 8", "graph", 0.05)
def _softmaxes(lib, draw):
    text = _repeated("aten::mul.Tensor(%x, %y)", "aten::softmax.int(%{}, 0, None)")
    return _planned(lib, text, _hundred_softmaxes, draw(lib, 8), draw(lib, 8))


@case("call of a planned add of 8", "graph", 0.25, also=("numpy",))
def _call(lib, draw):
    text = _repeated("aten::add.Tensor(%x, %y, 1)", "", 1)
    return _planned(lib, text, lambda m, x, y: x + y, draw(lib, 8), draw(lib, 8))


# ---- whole steps ---------------------------------------------------------------------------------------------------

MANY = 100  # steps, or ops, that one call is timed for; the others do as many


def _steps(lib, draw, optimizer, repeat):
    """A hundred training steps of a small MLP: ours from one graph, the others' as they were written."""
    m = lib.module
    m.manual_seed(0)
    model = m.nn.Sequential(m.nn.Linear(8, 16), m.nn.ReLU(), m.nn.Linear(16, 1))
    x, y, mse = draw(lib, 4, 8), draw(lib, 4, 1), m.nn.functional.mse_loss
    opt = optimizer(m.optim, model.parameters())

    def step(x, y):
        opt.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        opt.step()
        return loss

    if lib.name == "tinygrad_ext":
        step = m.jit.trace(step, (x, y))
        if repeat:
            return lambda: step.repeat([(x, y)] * MANY)

    def run():
        for _ in range(MANY):
            step(x, y)

    return run


def _sgd(optim, parameters):
    return optim.SGD(parameters, lr=1e-3)


def _adam(optim, parameters):
    return optim.Adam(parameters, lr=1e-4)


for _name, _optimizer in (("SGD", _sgd), ("Adam", _adam)):
    for _way, _repeat, _budget in (("traced", False, 0.012), ("by repeat", True, 0.007)):

        @case(f"MLP 8-16-1 {_name}: 100 steps {_way}", "graph", _budget)
        def _(lib, draw, optimizer=_optimizer, repeat=_repeat):
            return _steps(lib, draw, optimizer, repeat)


@case("trace of 100 ops", "graph", None)
def _trace(lib, draw):
    x, y = draw(lib, 8), draw(lib, 8)

    def f(x, y):
        for _ in range(MANY // 2):
            x = (x * y).tanh()
        return x

    trace = lib.module.jit.trace
    return lambda: trace(f, (x, y), check_trace=False)
