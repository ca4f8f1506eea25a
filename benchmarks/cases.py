"""The table of cases. A row is what the project promises, the budget being a ratio to PyTorch's time.

A case's `build(lib, draw)` makes its operands and returns the zero-argument callable that is timed. Names of
libraries in `also` say who besides PyTorch can run it; the ratio is to PyTorch, or to the library `beside`. Small ops
are timed for every dtype and layout in VARIANTS, and the budget holds for the median of the ratios.
"""

import itertools
from collections import namedtuple
from dataclasses import dataclass, field

Variant = namedtuple("Variant", "dtype strided")
VARIANTS = [Variant(d, s) for d in ("float32", "float64", "int64") for s in (False, True)]
FLOATING = [v for v in VARIANTS if v.dtype.startswith("float")]
DTYPES = [v for v in VARIANTS if not v.strided]
PLAIN = [Variant("float32", False)]
M = 1 << 20


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    group: str
    budget: float | None
    build: object
    variants: list = field(default_factory=lambda: PLAIN)
    also: tuple = ()
    beside: str = "torch"


CASES = []


def case(name, group, budget, variants=PLAIN, also=(), beside="torch"):
    """Decorator: add the function as the builder of a case."""

    def add(build):
        CASES.append(Case(name, group, budget, build, variants, also, beside))
        return build

    return add


def small(name, budget, call, *shapes, variants=VARIANTS, numpy=True, grad=False):
    """A call on a few small operands: `call(lib.module, *operands)` returns the callable."""

    def build(lib, draw):
        operands = [draw(lib, *s, grad=grad and i == 0) for i, s in enumerate(shapes)]
        return call(lib.module, *operands)

    CASES.append(Case(name, "small", budget, build, variants, ("numpy",) if numpy else ()))


def large(name, call, *shapes, budget=1.0, group="large", numpy=True):
    """A call on large float32 operands."""

    def build(lib, draw):
        return call(lib.module, *[draw(lib, *s) for s in shapes])

    CASES.append(Case(name, group, budget, build, PLAIN, ("numpy",) if numpy else ()))


def _cat(cat, *tensors):
    return lambda: cat(tensors)


# ---- small ops: 8 elements -----------------------------------------------------------------------------------------

small("add", 0.20, lambda m, a, b: lambda: a + b, (8,), (8,))
small("mul", 0.20, lambda m, a, b: lambda: a * b, (8,), (8,))
small("relu", 0.20, lambda m, a: lambda f=m.relu: f(a), (8,), numpy=False)
small("sum", 0.20, lambda m, a: lambda: a.sum(), (8,))
small("add with grad", 0.20, lambda m, a, b: lambda: a + b, (8,), (8,), variants=FLOATING, numpy=False, grad=True)
small("view", 0.25, lambda m, a: lambda: a.view(2, 4), (8,), numpy=False)
small("t", 0.25, lambda m, a: lambda: a.t(), (2, 4), numpy=False)
small("matmul 2x8x4", 0.25, lambda m, a, b: lambda: a @ b, (2, 8), (8, 4))
small("cat", 0.25, lambda m, a, b: _cat(m.concatenate, a, b), (8,), (8,))
small("sum(dim)", 0.25, lambda m, a: lambda: a.sum(1), (2, 4))
small("index [i]", 0.30, lambda m, a: lambda: a[1], (2, 4))
small("index [i, a:b]", 0.30, lambda m, a: lambda: a[1, 1:3], (2, 4))
small(
    "fwd+bwd (a*b+a).sum()",
    0.12,
    lambda m, a, b: lambda: (a * b + a).sum().backward(),
    (8,),
    (8,),
    variants=FLOATING,
    numpy=False,
    grad=True,
)


@case("index [tensor]", "small", 0.30, VARIANTS, ("numpy",))
def _index_tensor(lib, draw):
    a, at = draw(lib, 8), draw.ints(lib, 8, 4)
    return lambda: a[at]


@case("zeros", "small", 0.30, DTYPES, ("numpy",))
def _zeros(lib, draw):
    zeros, dtype = lib.module.zeros, getattr(lib.module, draw.dtype)
    return lambda: zeros((2, 4), dtype=dtype)


@case("tensor([...])", "small", 0.40, DTYPES)
def _tensor(lib, draw):
    tensor, values, dtype = lib.module.tensor, draw.array(8).tolist(), getattr(lib.module, draw.dtype)
    return lambda: tensor(values, dtype=dtype)


# ---- overrides -----------------------------------------------------------------------------------------------------


@case("duck type: add", "overrides", 0.6)
def _duck_add(lib, draw):
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls

    add, duck, b = lib.module.add, Duck(), draw(lib, 8)
    return lambda: add(duck, b)


@case("subclass: a + b", "overrides", 0.4)
def _subclass_add(lib, draw):
    class Sub(lib.module.Tensor):
        pass

    a, b = (draw(lib, 8).as_subclass(Sub) for _ in range(2))
    return lambda: a + b


@case("mode that does nothing: 100 a + b", "overrides", 0.5)
def _mode_add(lib, draw):
    class Nothing(lib.module.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    a, b, mode = draw(lib, 8), draw(lib, 8), Nothing()

    def run():
        with mode:
            for _ in range(100):
                a + b

    return run


# ---- a small network -----------------------------------------------------------------------------------------------


def _mlp(lib, draw):
    nn = lib.module.nn
    lib.module.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), draw(lib, 4, 8), draw(lib, 4, 1)


@case("MLP 8-16-1 forward", "network", 0.20)
def _mlp_forward(lib, draw):
    model, x, _ = _mlp(lib, draw)
    return lambda: model(x)


def _training_step(lib, draw, optimizer):
    model, x, y = _mlp(lib, draw)
    mse = lib.module.nn.functional.mse_loss
    opt = optimizer(lib.module.optim, model.parameters())

    def step():
        opt.zero_grad()
        mse(model(x), y).backward()
        opt.step()

    return step


@case("MLP 8-16-1 SGD step", "network", 0.15)
def _sgd(lib, draw):
    return _training_step(lib, draw, lambda optim, p: optim.SGD(p, lr=1e-3))


@case("MLP 8-16-1 Adam step", "network", 0.12)
def _adam(lib, draw):
    return _training_step(lib, draw, lambda optim, p: optim.Adam(p, lr=1e-4))


# ---- Functions of one's own ----------------------------------------------------------------------------------------


def _scale(lib, style):
    """x * scale as a Function of a style; PyTorch knows no legacy style any more and runs the static one instead."""
    Function = lib.module.autograd.Function
    if style == "legacy" and lib.name != "torch":

        class Legacy(Function):
            def __init__(self, scale):
                self.scale = scale

            def forward(self, x):
                self.save_for_backward(x)
                return x * self.scale

            def backward(self, grad):
                (x,) = self.saved_tensors
                return grad * self.scale

        return lambda x: Legacy(2.0)(x)

    class Static(Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.scale, None

    apply = Static.apply
    return (lambda x: apply(x, scale=2.0)) if style == "keyword" else (lambda x: apply(x, 2.0))


def function(name, style, budget):
    """Forward and backward of a Function on 8 elements."""

    def build(lib, draw):
        run, x = _scale(lib, style), draw(lib, 8, grad=True)
        return lambda: run(x).sum().backward()

    CASES.append(Case(name, "functions of one's own", budget, build))


function("Function fwd+bwd", "static", 0.20)
function("Function fwd+bwd keyword", "keyword", 0.20)
function("Function fwd+bwd legacy", "legacy", 0.20)


@case("Function setup_context fwd", "functions of one's own", 0.15)
def _setup_context(lib, draw):
    class Product(lib.module.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return grad * w, grad * x

    x, w, apply = draw(lib, 8, grad=True), draw(lib, 8, grad=True), Product.apply
    return lambda: apply(x, w)


# ---- custom ops ----------------------------------------------------------------------------------------------------

_numbers = itertools.count()  # a name can be registered once


def _custom_op(lib):
    """x * 2 as a custom op with a derivative."""
    library, Tensor = lib.module.library, lib.module.Tensor

    def double(x: Tensor, factor: float) -> Tensor:
        return x * factor

    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor, None

    op = library.custom_op(f"benchmarks::double{next(_numbers)}", double, mutates_args=())
    op.register_autograd(backward, setup_context=setup_context)
    return op


@case("custom op", "custom ops", 0.15)
def _custom_op_without_grad(lib, draw):
    op, x = _custom_op(lib), draw(lib, 8)
    return lambda: op(x, 2.0)


@case("custom op with grad", "custom ops", 0.15)
def _custom_op_with_grad(lib, draw):
    op, x = _custom_op(lib), draw(lib, 8, grad=True)
    return lambda: op(x, 2.0)


@case("custom op fwd+bwd", "custom ops", 0.15)
def _custom_op_backward(lib, draw):
    op, x, seed = _custom_op(lib), draw(lib, 8, grad=True), draw(lib, 8)
    return lambda: op(x, 2.0).backward(seed)


# ---- elementary functions and large operands -----------------------------------------------------------------------

large("exp 100k", lambda m, a: lambda: m.exp(a), (100_000,), budget=0.5, group="functions")
large("tanh 100k", lambda m, a: lambda: m.tanh(a), (100_000,), budget=0.25, group="functions")
large("sin 100k", lambda m, a: lambda: m.sin(a), (100_000,), budget=0.5, group="functions")

for n, size in ((M, "1M"), (4 * M, "4M")):
    large(f"add {size}", lambda m, a, b: lambda: a + b, (n,), (n,))
    large(f"relu {size}", lambda m, a: lambda: m.relu(a), (n,), numpy=False)
    large(f"sum {size}", lambda m, a: lambda: a.sum(), (n,))
    large(f"softmax {size}", lambda m, a: lambda: m.softmax(a, 1), (n // 1024, 1024), numpy=False)
    large(
        f"layer norm {size}",
        lambda m, a: lambda: m.nn.functional.layer_norm(a, (1024,)),
        (n // 1024, 1024),
        numpy=False,
    )
    large(f"transposed add {size}", lambda m, a, b: lambda: a + b.T, (n // 1024, 1024), (1024, n // 1024))


@case("gather 1M", "large", 1.0)
def _gather(lib, draw):
    a, at, gather = draw(lib, 1024, 1024), draw.ints(lib, 1024, 1024, 1024), lib.module.gather
    return lambda: gather(a, 1, at)


# ---- forward + backward at a million elements ----------------------------------------------------------------------


def backward(name, forward, shape=(1024, 1024), also_grad=()):
    """Forward of `forward(module, x, *others)`, backward with a given gradient."""

    def build(lib, draw):
        x = draw(lib, *shape, grad=True)
        others = [draw(lib, *s, grad=True) for s in also_grad]
        run = forward(lib.module, x, *others)
        seed = draw(lib, *run().shape)
        return lambda: run().backward(seed)

    CASES.append(Case(f"fwd+bwd {name} 1M", "backward", 1.0, build))


backward("sigmoid", lambda m, x: lambda: m.sigmoid(x))
backward("gelu", lambda m, x: lambda: m.nn.functional.gelu(x))
backward("softmax", lambda m, x: lambda: m.softmax(x, 1))
backward(
    "layer_norm", lambda m, x, w, b: lambda: m.nn.functional.layer_norm(x, (1024,), w, b), also_grad=((1024,), (1024,))
)
backward(
    "batch_norm",
    lambda m, x, w, b: lambda: m.nn.functional.batch_norm(x, None, None, w, b, True),
    shape=(16, 64, 32, 32),
    also_grad=((64,), (64,)),
)


@case("fwd+bwd cross_entropy 1M", "backward", 1.0)
def _cross_entropy(lib, draw):
    x, target, loss = (
        draw(lib, 1024, 1024, grad=True),
        draw.ints(lib, 1024, 1024),
        lib.module.nn.functional.cross_entropy,
    )
    return lambda: loss(x, target).backward()


# ---- products ------------------------------------------------------------------------------------------------------

large("GEMM 256", lambda m, a, b: lambda: a @ b, (256, 256), (256, 256), budget=0.6, group="products")
large("GEMM 1024", lambda m, a, b: lambda: a @ b, (1024, 1024), (1024, 1024), budget=0.55, group="products")
large(
    "linear 128x784x512",
    lambda m, x, w, b: lambda f=m.nn.functional.linear: f(x, w, b),
    (128, 784),
    (512, 784),
    (512,),
    budget=0.6,
    group="products",
    numpy=False,
)
large(
    "conv 3x3 8x64x56x56",
    lambda m, x, w: lambda f=m.nn.functional.conv2d: f(x, w, padding=1),
    (8, 64, 56, 56),
    (64, 64, 3, 3),
    budget=2.0,
    group="products",
    numpy=False,
)
