"""The calls whose instructions are counted, and the process that runs them between marks.

    python -m tools.hot_paths RUNS NAME...        what tools/count_instructions.py starts under valgrind

A path's function makes its operands and returns the callable that is counted. Operands are small, so that what is
counted is the way to the kernel and back. Nothing is random and the collector is off: most counts repeat to the digit,
long ones to less than 1 %.
"""

import functools
import gc
import sys

import tinygrad_ext as tg

PATHS = {}
WARM = 20  # calls before the counted ones: Python specialises bytecode, plans are made, memory is kept


def path(name):
    """Decorator: add the function as the builder of a hot path."""

    def add(build):
        PATHS[name] = build
        return build

    return add


def simple(name, call, *shapes, dtype=None):
    """A path of one call: `call(*operands)` returns the callable; operands are filled with ones."""
    PATHS[name] = lambda: call(*[tg.ones(s, dtype=dtype) for s in shapes])


def nothing():
    """The empty call: what it costs is taken off every path."""
    return lambda: None


# ---- ops -----------------------------------------------------------------------------------------------------------

simple("a + b", lambda a, b: lambda: a + b, 8, 8)
simple("a + b, int64", lambda a, b: lambda: a + b, 8, 8, dtype=tg.int64)
simple("a + b, every second element", lambda a, b: lambda a=a[::2], b=b[::2]: a + b, 16, 16)
simple("a + b, broadcast", lambda a, b: lambda: a + b, (2, 4), 4)
simple("a * 2", lambda a: lambda: a * 2, 8)
simple("a.mul_(b)", lambda a, b: lambda: a.mul_(b), 8, 8)
simple("add(a, b)", lambda a, b: lambda add=tg.add: add(a, b), 8, 8)
simple("add(a, b, out=c)", lambda a, b, c: lambda add=tg.add: add(a, b, out=c), 8, 8, 8)
simple("a == b", lambda a, b: lambda: a == b, 8, 8)
simple("where", lambda m, a, b: lambda m=m > 0, where=tg.where: where(m, a, b), 8, 8, 8)
simple("relu", lambda a: lambda relu=tg.relu: relu(a), 8)
simple("sum", lambda a: lambda: a.sum(), 8)
simple("sum of a dim", lambda a: lambda: a.sum(1), (2, 4))
simple("softmax", lambda a: lambda softmax=tg.softmax: softmax(a, 1), (2, 4))
simple("matmul", lambda a, b: lambda: a @ b, (2, 8), (8, 4))
# whole loops: one by one they would take several times as many instructions as in vectors
_CLASSES = tg.zeros(1, 512, dtype=tg.int64)
_cross_entropy = tg.nn.functional.cross_entropy
simple("column * matrix of 40 x 400", lambda a, b: lambda: a * b, (40, 1), (40, 400))
simple("column & matrix of 40 x 400", lambda a, b: lambda: a & b, (40, 1), (40, 400), dtype=tg.int64)
simple("sum of 64 x 128 that repeat one", lambda a: lambda: a.expand(64, 128).sum(0), ())
simple("sum of 2 x 40,001 that repeat a row", lambda a: lambda: a.expand(2, 40001).sum(), 40001)
simple("sum of 30,000 x 3 that lie turned", lambda a: lambda: a.t().sum(), (3, 30000))
simple("cumsum over 3 x 2,000", lambda a: lambda: a.cumsum(0), (3, 2000))
simple("cumprod of 16 x 300 doubles", lambda a: lambda: a.cumprod(1), (16, 300), dtype=tg.float64)
simple("group_norm of 16 x 256", lambda a: lambda norm=tg.group_norm: norm(a, 4), (16, 256))
simple("cross_entropy of 3 x 512", lambda a: lambda loss=_cross_entropy, t=_CLASSES: loss(a, t), (1, 3, 512))
simple("max_pool2d of 64 x 4 x 4", lambda a: lambda pool=tg.max_pool2d: pool(a, 3, 2, 1), (1, 64, 4, 4))
simple("cat", lambda a, b: lambda cat=tg.cat: cat((a, b)), 8, 8)
simple("clone", lambda a: lambda: a.clone(), 8)
simple("to another dtype", lambda a: lambda to=tg.float64: a.to(to), 8)

# ---- views, indexing, creation, reading ----------------------------------------------------------------------------

simple("view", lambda a: lambda: a.view(2, 4), 8)
simple("t", lambda a: lambda: a.t(), (2, 4))
simple("detach", lambda a: lambda: a.detach(), 8)
simple("a[i]", lambda a: lambda: a[1], (2, 4))
simple("a[i, b:c]", lambda a: lambda: a[1, 1:3], (2, 4))
simple("a[i] = 1.0", lambda a: lambda: a.__setitem__(1, 1.0), (2, 4))
simple("item", lambda a: lambda: a.item(), 1)
simple("shape", lambda a: lambda: a.shape, (2, 4))
simple("zeros", lambda: lambda zeros=tg.zeros: zeros((2, 4)))
simple("empty_like", lambda a: lambda empty_like=tg.empty_like: empty_like(a), 8)
simple("tensor([...])", lambda: lambda tensor=tg.tensor, values=[1.0] * 8: tensor(values))


@path("a[tensor]")
def _index():
    a, at = tg.ones(8), tg.tensor([1, 5, 3, 2])
    return lambda: a[at]


@path("no_grad")
def _no_grad():
    def call():
        with tg.no_grad():
            pass

    return call


# ---- derivatives ---------------------------------------------------------------------------------------------------


def _leaf(*shape):
    return tg.ones(*shape, requires_grad=True)


@path("a + b with grad")
def _add():
    a, b = _leaf(8), tg.ones(8)
    return lambda: a + b


@path("(a + b).backward")
def _add_backward():
    a, b, seed = _leaf(8), tg.ones(8), tg.ones(8)
    return lambda: (a + b).backward(seed)


@path("(a * b + a).sum().backward")
def _backward():
    a, b = _leaf(8), tg.ones(8)
    return lambda: (a * b + a).sum().backward()


@path("autograd.grad")
def _grad():
    a, b, seed, grad = _leaf(8), tg.ones(8), tg.ones(8), tg.autograd.grad
    return lambda: grad(a * b, a, seed)


class _Twice(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.scale, None


@path("Function.apply")
def _apply():
    x, apply = _leaf(8), _Twice.apply
    return lambda: apply(x, 2.0)


@path("Function.apply and backward")
def _apply_backward():
    x, seed, apply = _leaf(8), tg.ones(8), _Twice.apply
    return lambda: apply(x, 2.0).backward(seed)


# ---- modules and optimizers ----------------------------------------------------------------------------------------


@path("call of a module")
def _module():
    class Same(tg.nn.Module):
        def forward(self, x):
            return x

    module, x = Same(), tg.ones(8)
    return lambda: module(x)


@path("Linear")
def _linear():
    linear, x = tg.nn.Linear(8, 4), tg.ones(2, 8)
    return lambda: linear(x)


def _network():
    nn = tg.nn
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), tg.ones(4, 8), tg.ones(4, 1)


@path("MLP 8-16-1")
def _mlp():
    model, x, _ = _network()
    return lambda: model(x)


def _optimizer(make):
    model, x, _ = _network()
    model(x).sum().backward()
    return make(model.parameters(), lr=1e-6).step


path("SGD.step")(lambda: _optimizer(tg.optim.SGD))
path("Adam.step")(lambda: _optimizer(tg.optim.Adam))


def _step():
    model, x, y = _network()
    opt, mse = tg.optim.SGD(model.parameters(), lr=1e-6), tg.nn.functional.mse_loss

    def step(x, y):
        opt.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        opt.step()
        return loss

    return step, x, y


@path("step of a network")
def _eager_step():
    step, x, y = _step()
    return lambda: step(x, y)


# ---- graphs, transforms, extensions --------------------------------------------------------------------------------


@path("call of a graph")
def _graph():
    a, b = tg.ones(8), tg.ones(8)
    run = tg.jit.trace(lambda a, b: a * b + a, (a, b))
    return lambda: run(a, b)


@path("call of a graph and backward")
def _graph_backward():
    a, b, seed = _leaf(8), tg.ones(8), tg.ones(8)
    run = tg.jit.trace(lambda a, b: a * b + a, (a, b))
    return lambda: run(a, b).backward(seed)


@path("step of a network as a graph")
def _graph_step():
    step, x, y = _step()
    traced = tg.jit.trace(step, (x, y))
    return lambda: traced(x, y)


@path("vmap of add")
def _vmap():
    run, a, b = tg.func.vmap(tg.add), tg.ones(8, 2), tg.ones(8, 2)
    return lambda: run(a, b)


@functools.cache
def _twice():
    from benchmarks.extension_cases import OURS
    from tinygrad_ext.utils import cpp_extension

    cpp_extension.load_inline("bench_c", c_sources=OURS)
    return tg.ops.bench_c.twice


@path("op in C")
def _c_op():
    op, x = _twice(), tg.ones(8)
    return lambda: op(x)


@path("op in C with grad")
def _c_op_recorded():
    op, x = _twice(), _leaf(8)
    return lambda: op(x)


@path("op in C and autograd.grad")
def _c_op_backward():
    op, x, seed, grad = _twice(), _leaf(8), tg.ones(8), tg.autograd.grad
    return lambda: grad(op(x), x, seed)


@path("op in Python")
def _custom_op():
    def double(x: tg.Tensor, factor: float) -> tg.Tensor:
        return x * factor

    op, x = tg.library.custom_op("hot_paths::double", double, mutates_args=()), tg.ones(8)
    return lambda: op(x, 2.0)


@path("__torch_function__ of another type")
def _duck():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls

    add, duck, b = tg.add, Duck(), tg.ones(8)
    return lambda: add(duck, b)


@path("subclass: a + b")
def _subclass():
    class Sub(tg.Tensor):
        pass

    a, b = tg.ones(8).as_subclass(Sub), tg.ones(8)
    return lambda: a + b


def main(runs, names):
    """Run the empty call and then each path `runs` times between two marks."""
    gc.disable()
    for build in (nothing, *(PATHS[name] for name in names)):
        call = build()
        _loop(call, WARM)
        sys.setrecursionlimit(1000)
        _loop(call, runs)
        sys.setrecursionlimit(1000)


def _loop(call, runs):
    for _ in range(runs):
        call()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
