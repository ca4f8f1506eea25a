"""The same program on torch.library and on ours: values, gradients, and who raises what.

Where PyTorch lets something through that it should not, the row says so and ours must raise.
"""

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


# ---- what both refuse ----------------------------------------------------------------------------------------------

PURE = "(Tensor x) -> Tensor"


def op(t, ns, fn, schema=PURE, mutates=()):
    return t.library.custom_op(f"{ns}::f", fn, mutates_args=mutates, schema=schema)


def no_backward(t, ns):
    op(t, ns, lambda x: x * 2)(t.ones(1, requires_grad=True)).backward()


def no_fake(t, ns):
    op(t, ns, lambda x: x * 2)(t.ones(1, device="meta"))


def returns_input(t, ns):
    op(t, ns, lambda x: x)(t.ones(1))


def returns_view(t, ns):
    op(t, ns, lambda x: x[0])(t.ones(1))


def mutates_otherwise(t, ns):
    op(t, ns, lambda x: None, "(Tensor(a!) x) -> ()")


def unhinted(t, ns):
    t.library.custom_op(f"{ns}::f", lambda x: x, mutates_args=())


def unknown_mutated(t, ns):
    def f(x: t.Tensor) -> t.Tensor: ...

    t.library.infer_schema(f, mutates_args=("y",))


def bad_kind(t, ns):
    t.library.Library(ns, "OTHER")


def reserved(t, ns):
    t.library.Library("prim", "FRAGMENT")


def defined_twice(t, ns):
    lib = t.library.Library(ns, "FRAGMENT")
    lib.define(f"f{PURE}")
    lib.define(f"f{PURE}")


def two_definitions(t, ns):
    one = t.library.Library(ns, "DEF")
    two = t.library.Library(ns, "DEF")
    return one, two


def implemented_twice(t, ns):
    lib = t.library.Library(ns, "FRAGMENT")
    lib.define(f"f{PURE}")
    lib.impl("f", lambda x: x, "CPU")
    lib.impl("f", lambda x: x, "CPU")


def unknown_type(t, ns):
    t.library.Library(ns, "FRAGMENT").define("f(Foo x) -> Tensor")


def no_arrow(t, ns):
    t.library.Library(ns, "FRAGMENT").define("f(Tensor x)")


def positional_after_default(t, ns):
    t.library.Library(ns, "FRAGMENT").define("f(int x=1, int y) -> Tensor")


def no_kernel(t, ns):
    t.library.define(f"{ns}::f", PURE)
    getattr(t.ops, ns).f(t.ones(1))


def no_tensor_and_device(t, ns):
    def made(n: int) -> t.Tensor: ...

    t.library.custom_op(f"{ns}::f", made, mutates_args=(), device_types="cpu")


def keyword_only_tensor(t, ns):
    t.library.define(f"{ns}::f", "(Tensor x, *, Tensor y) -> Tensor")
    t.library.register_autograd(f"{ns}::f", lambda ctx, g: g)


def get_context(t, ns):
    t.library.get_ctx()


def not_there(t, ns):
    t.library.define(f"{ns}::f", PURE)
    getattr(t.ops, ns).g


REFUSED = [
    no_backward,
    no_fake,
    returns_input,
    returns_view,
    mutates_otherwise,
    unhinted,
    unknown_mutated,
    bad_kind,
    reserved,
    defined_twice,
    two_definitions,
    unknown_type,
    no_arrow,
    positional_after_default,
    no_kernel,
    no_tensor_and_device,
    keyword_only_tensor,
    not_there,
]


@pytest.mark.parametrize("program", REFUSED, ids=lambda p: p.__name__)
def test_both_raise_the_same(program):
    theirs, ours = run(program, torch), run(program, tg)
    assert isinstance(theirs, type) and issubclass(ours, theirs), (theirs, ours)


# ---- where PyTorch is wrong ----------------------------------------------------------------------------------------


def duplicate_argument(t, ns):
    t.library.Library(ns, "FRAGMENT").define("f(Tensor x, Tensor x) -> Tensor")


def kernel_for_unknown_op(t, ns):
    t.library.Library(ns, "IMPL").impl("f", lambda x: x, "CPU")


def none_for_an_int(t, ns):
    t.library.Library(ns, "FRAGMENT").define("f(int n=None) -> Tensor")


def redefined(t, ns):
    op(t, ns, lambda x: x + 1)
    op(t, ns, lambda x: x + 2)


def undeclared_write(t, ns):
    op(t, ns, lambda x: x.add_(1).clone())(t.ones(1))


def write_to_a_leaf(t, ns):
    def f(x: t.Tensor) -> None:
        x.mul_(2)

    t.library.custom_op(f"{ns}::f", f, mutates_args=("x",))(t.ones(1, requires_grad=True))


def wrong_names(t, ns):
    f = op(t, ns, lambda x: x + 1)
    f.register_autograd(lambda ctx, g: g, setup_context=lambda ctx, args, result: None)


@pytest.mark.parametrize(
    "program, expected",
    [
        (duplicate_argument, RuntimeError),
        (kernel_for_unknown_op, RuntimeError),
        (none_for_an_int, RuntimeError),
        (redefined, RuntimeError),
        (undeclared_write, RuntimeError),
        (write_to_a_leaf, RuntimeError),
        (wrong_names, TypeError),
        (implemented_twice, RuntimeError),
        (get_context, RuntimeError),
    ],
    ids=lambda p: p.__name__,
)
def test_ours_raises_where_pytorch_lets_it_pass(program, expected):
    assert not isinstance(run(program, torch), type)
    assert run(program, tg) is expected


def in_place_derivative(t, ns):
    def f(x: t.Tensor) -> None:
        x.mul_(2)

    f = t.library.custom_op(f"{ns}::f", f, mutates_args=("x",))
    f.register_autograd(lambda ctx, g: g * 2)
    x = t.ones(1, requires_grad=True)
    y = x * 1
    f(y)
    y.backward()
    return x.grad, y._version


def modern_hints(t, ns):
    def f(x: list[t.Tensor] | None, k: int | float, c: complex = 1j, *, names: list[str]) -> None: ...

    return t.library.infer_schema(f, mutates_args=())


@pytest.mark.parametrize(
    "program, result",
    [
        (in_place_derivative, [[2.0], 1]),
        (modern_hints, "(Tensor[]? x, Scalar k, complex c=1j, *, str[] names) -> ()"),
    ],
    ids=lambda p: p.__name__ if callable(p) else "",
)
def test_ours_serves_what_pytorch_refuses(program, result):
    assert isinstance(run(program, torch), type)
    assert run(program, tg) == result


def test_a_name_without_namespace_is_told():
    for t in (torch, tg):
        with pytest.raises(ValueError) as error:
            t.library.custom_op("f", lambda x: x, mutates_args=(), schema=PURE)
    assert "must be a name with a namespace" in str(error.value)
