"""The same program on torch.library and on ours gives the same values and gradients."""

import itertools

import pytest

import tinygrad_ext as tg

torch = pytest.importorskip("torch")
_numbers = itertools.count()


def run(program, lib):
    """What a program returns, as plain values; or the exception's type."""
    try:
        return plain(program(lib, f"like{next(_numbers)}"))
    except Exception as error:
        return type(error)


def plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


# ---- what both do --------------------------------------------------------------------------------------------------


def call(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: t.Tensor, k: float = 2.5, *, n: int = 1) -> t.Tensor:
        assert isinstance(k, float)
        return x * k + n

    x, op = t.ones(2), getattr(t.ops, ns).f
    schema = str(op.default._schema).replace(ns, "")
    return f(x), f(x, 3), f(x, n=5), f(k=4, x=x), op(x), op.default(x), op.overloads(), schema


def gradient(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: t.Tensor, y: t.Tensor) -> t.Tensor:
        return x * y

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, (grad * x if ctx.needs_input_grad[1] else None)

    f.register_autograd(backward, setup_context=setup_context)
    x, y = t.tensor([2.0], requires_grad=True), t.tensor([3.0])
    (first,) = t.autograd.grad(f(x, x), x, create_graph=True)
    f(x, y).backward()
    return first, t.autograd.grad(first, x), x.grad, y.grad, f(y, y).requires_grad


def lists(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=())
    def f(xs: list[t.Tensor], k: float) -> list[t.Tensor]:
        return [x * k for x in xs]

    seen = []

    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        seen.append([len(inputs[0]), len(output)])

    def backward(ctx, grads):
        seen.append([type(grads).__name__, len(grads), list(ctx.needs_input_grad[0]), ctx.needs_input_grad[1]])
        return [g * ctx.k for g in grads], None

    f.register_autograd(backward, setup_context=setup_context)
    xs = [t.ones(1, requires_grad=True), t.ones(1)]
    f(xs, 3.0)[0].backward()
    return xs[0].grad, xs[1].grad, seen


def keyword_only(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: t.Tensor, *, k: float = 2.0) -> t.Tensor:
        return x * k

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.k = keyword_only_inputs["k"]

    f.register_autograd(lambda ctx, g: g * ctx.k, setup_context=setup_context)
    x = t.ones(1, requires_grad=True)
    f(x, k=4.0).backward()
    f(x).backward()
    return x.grad


def several_returns(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: t.Tensor) -> tuple[t.Tensor, int, t.Tensor]:
        return x * 2, 7, x * 3

    got = []
    f.register_autograd(lambda ctx, *g: (got.extend(g), g[0] * 2)[1])
    x = t.ones(1, requires_grad=True)
    y, n, z = f(x)
    y.backward()
    return x.grad, n, z.requires_grad, got


def writes(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=("x",))
    def f(x: t.Tensor, k: float) -> None:
        x.mul_(k)

    x = t.ones(2)
    return f(x, 3.0), x


def fake(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: t.Tensor) -> t.Tensor:
        return x + 1

    @f.register_fake
    def _(x):
        return x.new_empty((3, *x.shape))

    return list(f(t.ones(2, device="meta")).shape)


def device_kernels(t, ns):
    @t.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: t.Tensor) -> t.Tensor:
        return t.zeros(1)

    @f.register_kernel("cpu")
    def _(x):
        return t.ones(1)

    with f.set_kernel_enabled("cpu", enabled=False):
        off = f(t.ones(1))
    return f(t.ones(1)), off


def composite(t, ns):
    lib = t.library.Library(ns, "DEF")
    lib.define("f(Tensor x, int[2] k=1) -> Tensor")
    lib.impl("f", lambda x, k=(1, 1): (x * k[0]).exp() * k[1], "CompositeImplicitAutograd")
    x = t.zeros(1, requires_grad=True)
    getattr(t.ops, ns).f(x, 3).backward()
    return x.grad, getattr(t.ops, ns).f(x.detach(), [2, 5])


def function_forms(t, ns):
    t.library.define(f"{ns}::f", "(Tensor x) -> Tensor")
    t.library.impl(f"{ns}::f", "cpu", lambda x: x * 2)
    t.library.register_autograd(f"{ns}::f", lambda ctx, g: g * 2)
    t.library.register_fake(f"{ns}::f", lambda x: t.empty_like(x))
    x, f = t.ones(1, requires_grad=True), getattr(t.ops, ns).f
    f(x).backward()
    return x.grad, f(t.ones(2, device="meta")).is_meta


def overloads(t, ns):
    lib = t.library.Library(ns, "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    lib.define("f.more(Tensor x, float k) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    lib.impl("f.more", lambda x, k: x * k, "CPU")
    f = getattr(t.ops, ns).f
    return f(t.ones(1)), f(t.ones(1), 5.0), f.more(t.ones(1), 7.0), sorted(f.overloads()), f.more.name()[len(ns) :]


def repr_of(t, ns):
    f = t.library.custom_op(f"{ns}::f", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    return repr(f).replace(ns, ""), str(getattr(t.ops, ns).f.default).replace(ns, "")


def overridden(t, ns):
    f = t.library.custom_op(f"{ns}::f", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    packet, seen = getattr(t.ops, ns).f, []

    class Sub(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return 7

    x = t.ones(1).as_subclass(Sub)
    return f(x), packet(x), packet.default(x), [s is packet.default for s in seen]


def in_place_of_conventions(t, ns):
    def f(x: t.Tensor) -> t.Tensor:
        return x.add_(1)

    op = t.library.custom_op(f"{ns}::f_", f, mutates_args=("x",), tags=t.Tag.inplace)
    x = t.ones(1)
    return op(x) is x, x, str(op._opoverload._schema)[len(ns) :]


PROGRAMS = [
    call,
    gradient,
    lists,
    keyword_only,
    several_returns,
    writes,
    fake,
    device_kernels,
    composite,
    function_forms,
    overloads,
    repr_of,
    overridden,
    in_place_of_conventions,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_both_give_the_same(program):
    theirs = run(program, torch)
    assert not isinstance(theirs, type), theirs
    assert run(program, tg) == theirs
