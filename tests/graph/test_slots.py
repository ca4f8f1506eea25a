"""What loops carry is written where it is carried when it is computed, if nothing reads the old value afterwards."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.graph import Graph, interpret
from tinygrad_ext.graph.plan import Executor

# body of a loop over x, y (4,) with w (4, 4): how many copies are left in each trip
BODIES = {
    "one value": ("x = x + 0.1 * (w @ x).tanh()", 0),
    "read by a loop behind": ("x = x * 0.5 + 1\n        y = x.exp() * 0.1", 0),
    "the old one is read behind": ("z = x * 0.5\n        y = (x.tanh() + z).sin() - x\n        x = z", 1),
    "the old one is read by another kernel behind": ("z = x * 0.5\n        y = w @ x\n        x = z + 1", 2),
    "machine code in front of a loop": ("z = x * 0.5 + 1\n        y = x.tanh() * 0.5\n        x = z", 1),
    "exchanged": ("x, y = y, x", 3),
    "exchanged and computed": ("x, y = y * 0.5 + 0.1, x * 0.5 - 0.1", 1),
    "a kernel that is no group": ("y = w @ x\n        x = y * 0.1", 1),
    "in a branch": ("if n > 2:\n            x = x.sin() + 1\n        else:\n            x = x.cos() - 1", 0),
    "left early": ("x = x * 1.5 + y\n        if bool(x.sum() > 9):\n            break\n        y = y + 1", 1),
    "one value carried twice": ("z = x.sin() + 1\n        x = z\n        y = z", 1),
}


def program(body):
    names = {"tg": tg}
    text = f"def f(x, y, w, n: int):\n    for i in range(n):\n        {body}\n    return x + 2 * y, x, y\n"
    exec(text, names)
    return names["f"], tg.jit.CompilationUnit(text).f


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_loops_give_what_they_give_in_eager_mode(name, requires_grad):
    eager, scripted = program(BODIES[name][0])
    for n in (0, 1, 2, 5):
        found = []
        for f in (eager, scripted):
            tg.manual_seed(0)
            x, y, w = (tg.rand(*size, requires_grad=requires_grad) for size in ((4,), (4,), (4, 4)))
            results = f(x, y, w, n)
            grads = tg.autograd.grad(results[0].sum(), [x, y, w], allow_unused=True) if requires_grad else ()
            found.append([*results, *grads, x, y])
        for a, b in zip(*found):
            assert (a is None) == (b is None) and (a is None or tg.equal(a, b)), (name, n)


@pytest.mark.parametrize("name", [n for n in BODIES if n not in ("in a branch", "left early")])
def test_copies_that_are_left(name):
    _, scripted = program(BODIES[name][0])
    x, y, w = tg.rand(4), tg.rand(4), tg.rand(4, 4)
    lines = scripted.graph.plan(x, y, w, 3).table().splitlines()
    begin = next(i for i, line in enumerate(lines) if "prim::Loop" in line)
    names = [part.strip(" []") for line in lines[begin:] for part in line.split("  ")[-1].split(",")]
    assert names.count("copy") <= BODIES[name][1], lines


_UNREAD = """graph f(%a: Tensor, %k: Tensor) {
  %1: Tensor = aten::le.Tensor(%k, 0)
  %2: bool = prim::bool(%1)
  %3: Tensor, %4: Tensor, %5: Tensor = prim::If(%2) {
    block() {
      %6: Tensor = aten::neg(%a)
      %7: Tensor = prim::undefined()
      yield %6, UNDEFINED
    }
    block() {
      %9: Tensor = aten::tan(%k)
      %10: Tensor = aten::mul.Tensor(%9, %a)
      %11: Tensor = aten::sum.dim_IntList(%10, -1, True, None)
      %12: Tensor = aten::div.Tensor(%a, %11)
      %13: Tensor = aten::gt.Tensor(%k, 0)
      %14: Tensor = aten::where.self(%13, %12, %6x)
      yield %14, YIELDS
    }
  }
  return RETURNS
}
""".replace("%6x", "%a")


@pytest.mark.parametrize("returns", ["%3", "%4", "%5", "%3, %5", "%5, %4, %3"])
@pytest.mark.parametrize("yields", ["%10, %12", "%12, %10", "%12, %12", "%12, %9", "%11, %12"])
@pytest.mark.parametrize("undefined", ["%7, %7", "%6, %6", "%7, %6"])
def test_what_a_branch_gives_and_nobody_reads_has_a_place(yields, returns, undefined):
    text = _UNREAD.replace("YIELDS", yields).replace("RETURNS", returns).replace("UNDEFINED", undefined)
    graph = Graph.parse(text)
    a = tg.randn(100, 10, dtype=tg.float64)
    run = Executor(graph)
    for k in (1.0, -1.0, 1.0):
        args = (a, tg.tensor(k, dtype=tg.float64))
        for ours, expected in zip(run(*args), interpret.run(graph, args)[0], strict=True):
            assert k < 0 or tg.equal(ours, expected)  # below zero some are undefined
