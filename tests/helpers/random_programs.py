"""Random programs as Python source, in every way that they can run: eager, scripted, traced, from text and from files.

Besides what random_scripts.py writes (ints, lists, if, for, while, break, return): views and writes to them, random
numbers, Functions, custom ops, and calls of functions that are captured the other way: traced ones in script, scripted
ones where it is traced. `check(seed)` is for whoever wants to run many.
"""

import contextlib
import io
import linecache

import tinygrad_ext as tg
from tests.helpers.random_scripts import Writer
from tinygrad_ext import jit, library
from tinygrad_ext.autograd import Function
from tinygrad_ext.graph import Graph
from tinygrad_ext.registry import scope

INPUTS = [([0.5, -1.0, 2.0], 0, 1), ([0.5, 1.0], 4, -2), ([-3.0, 0.25, 1.0], 7, 3)]


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh() ** 3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x


class Pair(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * 0.5, y - x

    @staticmethod
    def backward(ctx, one, other):
        (x,) = ctx.saved_tensors
        return one * 2 + x, other * 0.25


@contextlib.contextmanager
def custom_ops():
    """`fuzzed::mixed`, in NumPy, and `fuzzed::turned`, made of ops, with derivatives, inside the `with`."""
    mark = scope.application.mark()

    @library.custom_op("fuzzed::mixed", mutates_args=())
    def mixed(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        return tg.from_numpy(x.numpy() * 0.5 - y.numpy())

    mixed.register_fake(lambda x, y: x.new_empty(x.shape))
    mixed.register_autograd(lambda ctx, grad: (grad * 0.5, -grad))

    @library.custom_op("fuzzed::turned", mutates_args=())
    def turned(x: tg.Tensor) -> tg.Tensor:
        return x.flip(0) * 2

    turned.register_fake(lambda x: x.new_empty(x.shape))
    turned.register_autograd(lambda ctx, grad: grad.flip(0) * 2)
    try:
        yield
    finally:
        scope.application.undo(mark)


WRITES = [
    "y = y.clone(); v = y[1:]; v.mul_(2)",
    "y = y.clone(); y[0] = x[-1]",
    "y = y.clone(); y[:-1].copy_(x[1:])",
    "y = y.clone(); y.view(-1, 1).mul_(x.view(-1, 1))",
    "y = torch.stack([y, x]); y[0].add_(y[1]); y.t()[0] = 0.5; y = y[1]",
    "y = torch.cat([y, x]); y[::2].zero_(); y = y[: x.shape[0]]",
    "y = y.clone(); y[y > 1] = 0.25",
    "y = y + 0; y.relu_(); y.unsqueeze(0)[0, :1].fill_(float(a % 3))",
]


# lists and dicts of tensors that grow, and of which a number picks
GROWING = [
    ("ts = [x]", "for k in range(b % 4):", "    ts.append(ts[-1] * 0.5 + y)", "y = torch.stack(ts).sum(0)"),
    ("ts = [x, y]", "for k in range(3):", "    ts.insert(1, ts[k % 2].sin())", "y = ts.pop(0) * ts[-1]"),
    ("td = {'a': x, 'b': y}", "for k in range(a % 3):", "    td['a'] = td['b'] - td['a'] * 0.5", "y = td['a']"),
    ("ts = [x * k for k in range(3)]", "for k in range(3):", "    ts[k] = ts[(k + 1) % 3] + y", "y = ts[a % 3]"),
]


class Wide(Writer):
    """A Writer of more tensor expressions and statements. data: whether conditions may ask tensors."""

    def __init__(self, seed, data=True):
        super().__init__(seed)
        self.data = data

    def condition(self, depth=0):
        text = super().condition(depth)
        return text if self.data else text.replace("bool(x.sum() > 0)", "x.shape[0] > 2")

    def tensor(self, depth=0):
        if depth > 2 or self.random.random() < 0.5:
            return super().tensor(depth)
        one, other = super().tensor(depth + 1), super().tensor(depth + 1)
        return self.pick(
            f"Cube.apply({one})",
            f"Pair.apply({one}, {other})[{self.pick(0, 1)}]",
            f"torch.ops.fuzzed.mixed({one}, {other})",
            f"torch.ops.fuzzed.turned({one})",
            f"inner({one}, {other})",
            f"(torch.rand_like({one}) + {other})",
            f"torch.dropout({one}, 0.5, True)",
            f"torch.where({one} > {other}, {one}, {other} * 0.5)",
            f"torch.cat([{one}, {other}])[::2]",
            f"torch.stack([{one}, {other}]).sum(0)",
            f"({one}).cumsum(0).flip(0)",
            f"({one}).softmax(0)",
            f"({one} - ({other}).mean())",
            f"({one}).detach()",
        )

    def assignment(self, depth):
        kind = self.random.random()
        if kind < 0.22:
            self.write(depth, self.random.choice(WRITES))
        elif kind < 0.3:
            for line in self.random.choice(GROWING):
                self.write(depth, line)
        else:
            super().assignment(depth)


INNER = """\
def inner(p, q):
    r = torch.stack([p, q])
    r[1] += 1
    return Cube.apply(r.sum(0)) * 0.5
"""


def made(text, name, **space):
    """A function of a source, in a namespace of its own."""
    filename = f"<random program {hash(text)} {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names = {"torch": tg, "Cube": Cube, "Pair": Pair, **space}
    exec(compile(text, filename, "exec"), names)
    return names[name]


class Program:
    """The program of a seed: its source, and how it runs with another function for `inner`."""

    def __init__(self, seed):
        self.traceable = bool(seed % 2)
        self.text = Wide(seed, data=not self.traceable).source()
        self.loops = "for " in self.text or "while " in self.text
        self.writes = any(w in self.text for w in WRITES) or "y +=" in self.text

    def function(self, inner):
        return made(self.text, "f", inner=inner)


def outcome(call, row, wants=True):
    """(what a program gives, as text; its gradient, as a list; if it gives x back); an error by its type and text."""
    values, a, b = row
    tg.manual_seed(7)
    x = tg.tensor(values, requires_grad=wants)
    try:
        number, tensor, other, last, log = call(x, a, b)
        total = tensor.sum() + last.sum()
        grad = tg.autograd.grad(total, x, allow_unused=True)[0] if wants and total.requires_grad else None
    except (RuntimeError, IndexError, OverflowError) as error:  # such as a saved tensor that was written to
        return f"{type(error).__name__}: {error}", None, False
    told = number, tensor.tolist(), other, last.tolist(), log
    return repr(told), None if grad is None else grad.tolist(), tensor is x or last is x  # nan is nan, as text


def filed(program):
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    return jit.load(file)


def read_back(graph):
    assert Graph.parse(str(graph)).check() == graph, str(graph)


def hands_on(graph):
    """Whether a branch yields a tensor that was made outside of it."""
    blocks = [block for node in graph.walk() if node.kind() == "prim::If" for block in node.blocks]
    yielded = [(o, set(block.walk())) for block in blocks for o in block.outputs]
    return any("Tensor" in str(getattr(o, "type", "")) and o.node not in within for o, within in yielded)


def agree(program, expected, ways, scripted=None):
    for way, call in ways:
        for wants in (True, False):
            for row, (wanted, grad, gives_back) in zip(INPUTS if wants else INPUTS[:2], expected[wants]):
                if "modified by an inplace" in wanted:
                    continue  # a graph has nothing that could be modified
                found, got, _ = outcome(call, row, wants)
                if "Error: " in wanted:  # messages of graphs name the line too
                    wanted, found = wanted.partition(":")[0], found.partition(":")[0]
                    if way == "trace, loaded" and found == "GuardFailed":
                        continue  # no graph was captured of a way that ends in an error
                # several gradients that meet are added in another order where views were written to, or where one comes
                # past the graph; a loop gives its part of one as one number, as does a branch for what it hands on
                loose = gives_back or (program.writes if "trace" in way else program.loops or hands_on(scripted))
                same = near(got, grad) if loose else repr(got) == repr(grad)
                told = f"{way}, {row}, gradient {wants}:\n{found} {got}\n{wanted} {grad}\n{program.text}"
                assert found == wanted and same, told


def near(a, b):
    if a is None or b is None:
        return a is b
    return tg.allclose(tg.tensor(a), tg.tensor(b), 1e-4, 1e-5, equal_nan=True)


MOST_NODES = 10_000  # of a trace; loops in loops unroll to more, whose derivatives take minutes


def check(seed):
    """Run the program of a seed in every way; AssertionError where two differ. Returns how many ways there were."""
    with custom_ops():
        return _check(Program(seed))


def _check(program):
    inner = made(INNER, "inner")
    eager = program.function(inner)
    expected = {wants: [outcome(eager, row, wants) for row in INPUTS] for wants in (True, False)}
    example = tg.ones(3), tg.ones(3)
    scripted = jit.script(program.function(jit.trace(inner, example)))
    read_back(scripted.graph)
    agree(program, expected, [("script", scripted), ("script, loaded", filed(scripted))], scripted.graph)
    if not program.traceable or any("modified by an inplace" in w for w, *_ in expected[True]):
        return 2
    if "Error: " in expected[True][0][0]:
        return 2  # the example itself ends in an error, so there is nothing to write down
    values, *numbers = INPUTS[0]
    traced = jit.trace(program.function(jit.script(inner)), (tg.tensor(values), *numbers), check_trace=False)
    if sum(1 for _ in traced.graph.walk()) > MOST_NODES:
        return 2
    agree(program, expected, [("trace", traced)])
    for found in traced._runner.graphs.values():
        for captured in found:
            read_back(captured.graph)
    agree(program, expected, [("trace, loaded", filed(traced))])
    return 4
