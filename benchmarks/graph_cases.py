"""Cases of graphs: ours runs a plan, the others run the ops one by one. Importing it adds them to the table."""

from benchmarks.cases import case

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
    if lib.name != "tinygrad_ext":
        return lambda: function(lib.module, *given)
    from tinygrad_ext.graph import Graph

    run = Graph.parse(text).check().executor.function
    return lambda: run(*given)


for _name, _count, _budget in (("1k", 1000, 0.06), ("100k", 100_000, 0.16), ("4M", 4 << 20, 0.15)):

    @case(f"planned chain {_name}", "graph", _budget, also=("numpy",))
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


@case("planned 100 adds of 8", "graph", 0.01, also=("numpy",))
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
