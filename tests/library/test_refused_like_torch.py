"""The same program on torch.library and on ours: both refuse it, or PyTorch lets it pass and should not."""

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
