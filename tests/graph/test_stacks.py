"""What a loop keeps of its turns: stacks inside plans, across two of them, and in steps between them."""

import random
import signal
import subprocess
import sys
import time

import pytest
from tinygrad_ext.core.data.storage import memory_stats
from tinygrad_ext.graph.stacks import Stack

import tinygrad_ext as tg
from tests.helpers.graphs import same_bits
from tests.helpers.plans import agree, graph, indented
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph, GraphError, interpret


def steps(y, w, dt: float, n: int):
    for _ in range(n):
        k = tg.tanh(y @ w)
        y = y + tg.tanh((y + k * (0.5 * dt)) @ w) * dt
    return y


def nested(y, w, dt: float, n: int):
    for i in range(n):
        z = y
        for j in range(i % 3):
            z = tg.sin(z @ w) * float(i - j)
        y = y + z * dt
    return y


def transposed(y, w, dt: float, n: int):
    for i in range(n):
        y = tg.sin((y.t() @ y) @ w.t()) * dt + tg.cos(w) * float(i % 3)
    return y


def counted(y, w, dt: float, n: int):
    i = 0
    while i < n and bool(y.abs().max() < 50):
        y = (y @ w.exp()) * dt + dt * i
        i += 1
    return y


def branching(y, w, dt: float, n: int):
    for i in range(n):
        if i % 3 == 0:
            y = y + tg.sin(y @ w) * dt
        else:
            y = tg.cos(y) * y - tg.sin(w) * (dt * i)
    return y


PROGRAMS = [steps, nested, transposed, counted, branching]
SCRIPTED = {p: jit.script(p) for p in PROGRAMS}


def tensors(rows=4, dtype=tg.float32):
    tg.manual_seed(3)
    return (tg.randn(rows, 4) / 2).to(dtype).requires_grad_(), (tg.randn(4, 4) / 2).to(dtype).requires_grad_()


def gradients(call, n, **more):
    y, w = tensors(**more)
    out = call(y, w, 0.125, n)
    return [out.detach(), *tg.autograd.grad(out.sum(), [y, w], allow_unused=True)]


def joints(scripted):
    return [j for found in scripted.graph.derivative.joints.values() for j in found]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_a_loop_and_the_loop_back_are_one_plan_each_with_the_bits_of_eager_mode(program, dtype):
    for n in (1, 7, 2, 300):
        assert same_bits(gradients(SCRIPTED[program], n, dtype=dtype), gradients(program, n, dtype=dtype))
    for joint in joints(SCRIPTED[program]):
        for half in (joint.run_forward, joint.run_backward):
            assert not half.boxed and len(half.parts) == 1, half.explain()


def test_a_loop_of_no_turns_has_the_gradients_of_eager_mode():
    for n in (5, 0, -1):
        found, expected = gradients(SCRIPTED[steps], n), gradients(steps, n)
        assert [t is None for t in found] == [t is None for t in expected]
        assert same_bits([t for t in found if t is not None], [t for t in expected if t is not None])


def test_a_second_backward_pass_finds_what_the_first_one_found():
    y, w = tensors()
    out = SCRIPTED[nested](y, w, 0.125, 20).sum()
    first = tg.autograd.grad(out, [y, w], retain_graph=True)
    assert same_bits(tg.autograd.grad(out, [y, w], retain_graph=True), first)
    other = SCRIPTED[nested](y, w, 0.5, 9).sum()  # the same plan, whose rows are others
    assert same_bits(tg.autograd.grad(out, [y, w]), first)
    tg.autograd.grad(other, [y, w])


def test_what_was_pushed_goes_with_the_last_that_holds_it():
    y, w = tensors()
    SCRIPTED[steps](y, w, 0.125, 10).sum().backward()
    y.grad = w.grad = None
    before = memory_stats()["allocated"]
    out = SCRIPTED[steps](y, w, 0.125, 5000)
    assert memory_stats()["allocated"] > before + 5000 * 4 * 4 * 4 * 3
    del out
    assert memory_stats()["allocated"] == before  # no backward pass ever ran


def test_rows_of_changing_sizes_are_left_to_steps():
    def program(y, w, dt: float, n: int):
        for i in range(n):
            y = tg.cat([y, (y[i : i + 1] @ w).tanh() * dt])
        return y

    scripted = jit.script(program)
    for n in (3, 6):
        assert same_bits(gradients(scripted, n), gradients(program, n))
    assert any(joint.run_forward.boxed for joint in joints(scripted))


def test_what_is_pushed_lies_as_it_did():
    """Operands whose elements are shared or lie in another order have their strides again, on which bits may depend."""

    def program(y, w, dt: float, n: int):
        for _ in range(n):
            wide = (y.sum(0) * dt).expand(4, 4)
            turned = (y * 2).t()
            y = wide * turned * wide + (wide @ turned).t().tanh() * w
        return y

    assert same_bits(gradients(jit.script(program), 9), gradients(program, 9))


def test_the_first_turn_may_find_what_lies_otherwise():
    """What matmul does with three dimensions depends on strides."""

    def program(y, w, n: int):
        for i in range(n):
            y = (y @ w).tanh() + float(i)
        return y

    scripted, w = jit.script(program), tensors()[1].detach()
    for shape, n in (((7, 1, 4), 4), ((1, 1, 4), 3), ((1, 5, 1), 1), ((1, 5, 1), 0)):
        y = tg.randn(*shape).expand(7, 5, 4)
        assert same_bits(scripted(y, w, n), program(y, w, n))
        assert scripted(y, w, n).stride() == program(y, w, n).stride()


# ---- random graphs -------------------------------------------------------------------------------------------------

KINDS = ["int", "float", "bool", "Tensor", "List[int]"]


class Rows:
    """The text of a random graph that pushes and pops, in whatever order, in loops and branches."""

    def __init__(self, seed):
        self.draw, self.count = random.Random(seed), 0
        self.row = [self.draw.choice(KINDS) for _ in range(self.draw.randint(1, 4))]
        self.stack = f"Stack[{', '.join(self.row)}]"
        kinds = {"int": ["%a"], "float": ["%f"], "bool": ["%t"], "Tensor": ["%x", "%y"]}
        kinds.update({self.stack: ["%s"], "List[int]": ["%l"]})
        self.lines = ["  %l: List[int] = prim::list(%a, 3)", f"  %s: {self.stack} = prim::stack()"]
        self.block(kinds, 8, 2)
        kinds.pop(self.stack)
        results = ", ".join(self.draw.choice(names) for names in kinds.values())
        head = "graph f(%a: int, %f: float, %t: bool, %x: Tensor, %y: Tensor) {"
        self.text = indented("\n".join([head, *self.lines, f"return {results}", "}"]))

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def block(self, scope, count, depth):
        for _ in range(count):
            self.statement(scope, depth)

    def statement(self, scope, depth):
        draw, name = self.draw, self.name()
        which = draw.randint(0, 9 if depth else 7)
        if which < 3:
            values = ", ".join([draw.choice(scope[self.stack]), *(draw.choice(scope[kind]) for kind in self.row)])
            self.add(scope, self.stack, name, f"prim::push({values})")
        elif which == 3 and draw.random() < 0.5:
            names = [self.name() for _ in self.row]
            given = ", ".join(f"{n}: {kind}" for n, kind in zip([name, *names], [self.stack, *self.row]))
            self.lines.append(f"{given} = prim::pop({draw.choice(scope[self.stack])})")
            for n, kind in zip([name, *names], [self.stack, *self.row]):
                scope[kind].append(n)
        elif which < 6:
            self.add(
                scope,
                "Tensor",
                name,
                f"aten::mul.Tensor({draw.choice(scope['Tensor'])}, {draw.choice(scope['float'])})",
            )
        elif which == 6:
            self.add(scope, "int", name, f"prim::add({draw.choice(scope['int'])}, {draw.choice(scope['int'])})")
        elif which == 7:
            self.add(scope, "bool", name, f"prim::not({draw.choice(scope['bool'])})")
        else:
            self.around(scope, depth - 1, "If" if which == 8 else "Loop")

    def add(self, scope, kind, name, said):
        self.lines.append(f"{name}: {kind} = {said}")
        scope[kind].append(name)

    def around(self, scope, depth, word):
        kinds = [self.stack, self.draw.choice(KINDS[:4])]
        outputs = [self.name() for _ in kinds]
        told = ", ".join(f"{n}: {kind}" for n, kind in zip(outputs, kinds))
        if word == "If":
            self.lines.append(f"{told} = prim::If({self.draw.choice(scope['bool'])}) {{")
        else:
            starts = ", ".join(self.draw.choice(scope[kind]) for kind in kinds)
            self.lines.append(f"{told} = prim::Loop({self.draw.randint(0, 4)}, True, {starts}) {{")
        for _ in range(2 if word == "If" else 1):
            inner = {kind: list(names) for kind, names in scope.items()}
            inputs = []
            if word == "Loop":
                inputs = [(self.name(), kind) for kind in ["int", *kinds]]
                for n, kind in inputs:
                    inner[kind].append(n)
            self.lines.append(f"block({', '.join(f'{n}: {kind}' for n, kind in inputs)}) {{")
            self.block(inner, self.draw.randint(1, 4), depth)
            yields = ", ".join(self.draw.choice(inner[kind][-3:]) for kind in kinds)
            self.lines.extend([f"yield {'True, ' if word == 'Loop' else ''}{yields}", "}"])
        self.lines.append("}")
        for n, kind in zip(outputs, kinds):
            scope[kind].append(n)


def test_whoever_pushes_and_pops_as_he_likes_has_the_values_of_the_interpreter():
    planned = 0
    for seed in range(200):
        g = graph(Rows(seed).text)
        args = 2, 0.5, True, tg.arange(6.0).reshape(2, 3), tg.ones(2, 3)
        try:
            interpret.run(g, list(args))
        except IndexError:
            with pytest.raises(IndexError, match="the stack is empty"):
                g.execute(args)
            continue
        agree(g, *args)
        planned += g.plan(*args).parts[0] not in g.nodes and len(g.plan(*args).parts) == 1
    assert planned > 60


@pytest.mark.parametrize(
    "body",
    [
        "%s: Tensor = prim::stack()",
        "%s: Stack[Tensor] = prim::stack()\n  %p: Stack[Tensor] = prim::push(%s, 1)",
        "%s: Stack[Tensor] = prim::stack()\n  %p: Stack[Tensor] = prim::push(%s, %x, %x)",
        "%s: Stack[Tensor] = prim::stack()\n  %p: Stack[int] = prim::push(%s, %x)",
        "%p: Stack[Tensor] = prim::push(%x, %x)",
        "%s: Stack[Tensor] = prim::stack()\n  %p: Stack[Tensor], %t: int = prim::pop(%s)",
        "%s: Stack[Tensor] = prim::stack()\n  %p: Stack[Tensor] = prim::pop(%s)",
        "%s: Stack[int] = prim::stack()\n  %p: Stack[Tensor], %t: Tensor = prim::pop(%s)",
    ],
)
def test_types_on_a_stack_are_those_that_it_names(body):
    with pytest.raises(GraphError, match="stack|Stack"):
        Graph.parse(f"graph f(%x: Tensor) {{\n  {body}\n  return %x\n}}").check()


def test_what_is_no_stack_of_the_plan_s_is_refused_and_never_read():
    g = graph("graph f(%s: Stack[Tensor]) {\n  %r: Stack[Tensor], %t: Tensor = prim::pop(%s)\n  return %t\n}")
    with pytest.raises(IndexError, match="the stack is empty"):
        g.execute([Stack()])
    with pytest.raises(IndexError, match="the stack is empty"):
        g.execute([()])
    made = graph(
        "graph f(%x: Tensor) {\n  %s: Stack[Tensor] = prim::stack()\n"
        "  %p: Stack[Tensor] = prim::push(%s, %x)\n  return %p, %s\n}"
    )
    for x in (tg.ones(3), tg.zeros(2, 2), tg.ones(1, dtype=tg.int64), tg.zeros(0, 4)):
        full, empty = made.execute([x])[0]
        assert same_bits(g.execute([full])[0], [x]) and same_bits(g.execute([((), x)])[0], [x])
        assert same_bits(full.pop()[1], x) and "turns" in repr(full)
        with pytest.raises(IndexError):
            g.execute([full.pop()[0]])
        with pytest.raises(IndexError):
            g.execute([empty])


# ---- the run -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["forward", "backward"])
def test_both_loops_are_interrupted(half):
    class Stop(Exception):
        pass

    def stop(number, frame):
        raise Stop

    y, w = tensors(1)
    SCRIPTED[steps](y, w, 1e-3, 9).sum().backward()
    out = SCRIPTED[steps](y, w, 1e-3, 3 * 10**5).sum() if half == "backward" else None
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        with pytest.raises(Stop):
            if out is None:
                SCRIPTED[steps](y, w, 1e-3, 10**9)
            else:
                out.backward()
            time.sleep(5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    y.grad = w.grad = None
    SCRIPTED[steps](y, w, 1e-3, 9).sum().backward()


@pytest.mark.slow
def test_a_loop_that_keeps_more_than_there_is_memory_says_so():
    text = """
import linecache, resource
import tinygrad_ext as tg
from tinygrad_ext import jit
source = "def f(x, n: int):\\n    for _ in range(n):\\n        x = x.sin()\\n    return x\\n"
linecache.cache["<f>"] = (len(source), None, source.splitlines(True), "<f>")
space = {"tg": tg}
exec(compile(source, "<f>", "exec"), space)
f = jit.script(space["f"])
f(tg.zeros(1 << 22, requires_grad=True), 2)
most = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + (1 << 28)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    f(tg.zeros(1 << 22, requires_grad=True), 10**6)
except MemoryError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert "keeps more of its turns" in out.stdout, out.stderr
