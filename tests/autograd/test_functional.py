"""autograd.functional: closed forms, PyTorch's structures and refusals, and derivatives of derivatives."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import functional as F
from tinygrad_ext.autograd import gradcheck


def point(*shape, seed=0, requires_grad=False):
    return tg.from_numpy(np.random.default_rng(seed).standard_normal(shape)).requires_grad_(requires_grad)


def close(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-12)


X, Y, V = point(3), point(3, seed=1), point(3, seed=2)


# ---- closed forms --------------------------------------------------------------------------------------------------


def test_products_with_the_jacobian_of_a_linear_map():
    a = point(2, 3, seed=3)
    fn, u = lambda x: a @ x, point(2, seed=4)
    for product, v, want in ((F.vjp, u, a.T @ u), (F.jvp, V, a @ V)):
        out, got = product(fn, X, v)
        close(out, a @ X)
        close(got, want)
    close(F.jacobian(fn, X), a)


def test_derivatives_of_a_cube():
    fn = lambda x: (x**3).sum()
    close(F.jacobian(fn, X), 3 * X**2)
    close(F.hessian(fn, X), tg.diag(6 * X))
    for product in (F.hvp, F.vhp):
        out, got = product(fn, X, V)
        close(out, fn(X))
        close(got, 6 * X * V)


def test_blocks_of_several_inputs():
    fn = lambda x, y: (x * x * y).sum()
    blocks = F.hessian(fn, (X, Y))
    close(blocks[0][0], tg.diag(2 * Y))
    close(blocks[0][1], tg.diag(2 * X))
    close(blocks[1][1], tg.zeros(3, 3, dtype=tg.float64))
    _, (px, py) = F.vhp(fn, (X, Y), (V, V))
    close(px, 2 * Y * V + 2 * X * V)
    close(py, 2 * X * V)


def test_v_may_be_left_out_for_a_single_element():
    close(F.vjp(lambda x: (x * x).sum(), X)[1], 2 * X)
    close(F.jvp(lambda x: x.exp(), tg.tensor(0.5))[1], tg.tensor(0.5).exp())


def test_empty_and_unused_outputs_give_zeros():
    assert F.jacobian(lambda x: x[:0], X).shape == (0, 3)
    close(F.jacobian(lambda x: tg.ones(2, dtype=tg.float64), X), tg.zeros(2, 3, dtype=tg.float64))
    close(F.hessian(lambda x: (2 * x).sum(), X), tg.zeros(3, 3, dtype=tg.float64))
    for product in (F.vjp, F.vhp, F.hvp):
        v = V if product is not F.vjp else None
        close(product(lambda x: tg.ones((), dtype=tg.float64), X, v)[1], tg.zeros(3, dtype=tg.float64))


def test_captured_inputs_count_as_constants():
    x = point(3, requires_grad=True)
    close(F.jacobian(lambda y: x * y, x), tg.diag(x))


def test_inputs_and_their_gradients_are_left_alone():
    x = point(3)
    F.hessian(lambda x: (x**3).sum(), x)
    assert not x.requires_grad and x.grad is None
    with tg.no_grad():
        close(F.hessian(lambda x: (x**3).sum(), x), tg.diag(6 * x))
        assert not tg.is_grad_enabled()


# ---- graphs --------------------------------------------------------------------------------------------------------


def test_results_have_a_graph_only_when_asked_for():
    x = point(3, requires_grad=True)
    fn = lambda x: (x**3).sum()
    for call in (F.vjp, F.jacobian, F.hessian, lambda *a, **k: F.jvp(*a, V, **k), lambda *a, **k: F.hvp(*a, V, **k)):
        for create_graph in (False, True):
            found = call(fn, x, create_graph=create_graph)
            assert all(t.requires_grad == create_graph for t in (found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
def test_results_are_differentiable_themselves(name):
    def fn(x, v):
        scalar = lambda x: (x**3).sum() + x[0] * x[1] ** 2
        return {
            "vjp": lambda: F.vjp(lambda x: x**3, x, v, create_graph=True)[1],
            "jvp": lambda: F.jvp(lambda x: x**3, x, v, create_graph=True)[1],
            "jacobian": lambda: F.jacobian(lambda x: x**3, x, create_graph=True) @ v,
            "hessian": lambda: F.hessian(scalar, x, create_graph=True) @ v,
            "vhp": lambda: F.vhp(scalar, x, v, create_graph=True)[1],
            "hvp": lambda: F.hvp(scalar, x, v, create_graph=True)[1],
        }[name]()

    assert gradcheck(fn, (point(3, requires_grad=True), point(3, seed=5, requires_grad=True)))


# ---- refusals ------------------------------------------------------------------------------------------------------


def calls(*names):
    return pytest.mark.parametrize("call", [getattr(F, n) for n in names], ids=names)


@calls("vjp", "jvp", "jacobian", "hessian", "vhp", "hvp")
def test_only_tensors_come_in_and_out(call):
    name = call.__name__
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be .* the given inputs has type"):
        call(lambda x: x, 1.0)
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be .* the value at index 1 has type"):
        call(lambda *x: x, (X, 2))
    one = tg.ones(1)
    with pytest.raises(TypeError, match="The outputs of the user-provided function given to .* has type"):
        call(lambda x: 1.0, one)


def test_v_must_fit():
    with pytest.raises(
        RuntimeError, match="v can only be None if the user-provided function returns a single Tensor with"
    ):
        F.vjp(lambda x: x, X)
    for product in (F.jvp, F.vhp, F.hvp):
        with pytest.raises(
            RuntimeError, match="v can only be None if the input to the user-provided function is a single"
        ):
            product(lambda x: x.sum(), X)
        with pytest.raises(RuntimeError, match=r"v has invalid size: should be torch.Size\(\[3\]\) but got"):
            product(lambda x: x.sum(), X, tg.ones(2))
        with pytest.raises(RuntimeError, match="Entry 1 in v has invalid size"):
            product(lambda x, y: x.sum(), (X, Y), (X, tg.ones(2)))
        with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 2 but got 1"):
            product(lambda x, y: x.sum(), (X, Y), (X,))
        with pytest.raises(RuntimeError, match="The given v should contain a single Tensor"):
            product(lambda x: x.sum(), X, (X, X))
        with pytest.raises(TypeError, match="The v given to"):
            product(lambda x: x.sum(), X, 3)


@calls("hessian", "vhp", "hvp")
def test_second_derivatives_want_one_element(call):
    v = () if call is F.hessian else (X,)
    with pytest.raises(RuntimeError, match=f"The function given to {call.__name__} should return a single Tensor"):
        call(lambda x: (x.sum(), x.sum()), X, *v)
    with pytest.raises(
        RuntimeError, match=f"returned by the function given to {call.__name__} should contain a single el"
    ):
        call(lambda x: x, X, *v)


def test_strategies():
    for name, option in (("jacobian", "strategy"), ("hessian", "outer_jacobian_strategy")):
        with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
            getattr(F, name)(lambda x: x.sum(), X, **{option: "sideways"})
        with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
            getattr(F, name)(lambda x: x.sum(), X, **{option: "forward-mode"})
        for flag, error in (("strict", RuntimeError), ("create_graph", NotImplementedError)):
            with pytest.raises(error, match=f"`{flag}=True` and `strategy="):
                getattr(F, name)(lambda x: x.sum(), X, vectorize=True, **{option: "forward-mode", flag: True})
    close(F.jacobian(lambda x: x**2, X, vectorize=True), tg.diag(2 * X))
    with pytest.raises(RuntimeError, match="`strict=True` and `vectorized=True` are not supported together"):
        F.jacobian(lambda x: x, X, strict=True, vectorize=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but output 0 is torch.complex128"):
        F.jacobian(lambda x: tg.complex(x, x), X)


def test_forward_mode_gives_the_same_matrices():
    inputs = (X.clone().requires_grad_(), tg.randn(*X.shape, 2, dtype=X.dtype))
    f = lambda x, y: (x.exp() * y.sum(), (x @ y).sin())
    got = F.jacobian(f, inputs, vectorize=True, strategy="forward-mode")
    for row, wanted in zip(got, F.jacobian(f, inputs)):
        for a, b in zip(row, wanted):
            close(a, b)
            assert not a.requires_grad
    close(F.jacobian(lambda x: x**2, X, vectorize=True, strategy="forward-mode"), tg.diag(2 * X))
    g = lambda x: (x**3).sum() * x[0]
    close(F.hessian(g, X, vectorize=True, outer_jacobian_strategy="forward-mode"), F.hessian(g, X))
    assert not X.requires_grad


def test_strict_mode_refuses_zeros():
    for text, call in {
        "Output 0 of the user-provided function does not require gradients": lambda: F.vjp(
            lambda x: x.detach().sum(), X, strict=True
        ),
        "The output of the user-provided function is independent of input 1": lambda: F.vjp(
            lambda x, y: x.sum(), (X, Y), strict=True
        ),
        "function is independent of input 1. This": lambda: F.jvp(lambda x, y: x, (X, Y), (V, V), strict=True),
        "The jacobian of the user-provided function is independent of input 0. .* when create_graph=True": lambda: (
            F.vjp(lambda x: (2 * x).sum(), point(3, requires_grad=True), strict=True, create_graph=True)
        ),
        "Output 0 of the user-provided function is independent of input 1": lambda: F.jacobian(
            lambda x, y: x, (X, Y), strict=True
        ),
        "found that the jacobian of the user-provided function with respect to input 0 is": lambda: F.hessian(
            lambda x: (2 * x).sum(), X, strict=True
        ),
        "jacobian of the user-provided function with respect to input 0 is independent": lambda: F.vhp(
            lambda x: (2 * x).sum(), X, V, strict=True
        ),
        "The hessian of the user-provided function is independent of input 0. .*create_graph": lambda: F.vhp(
            lambda x: (x * x).sum(), point(3, requires_grad=True), V, strict=True, create_graph=True
        ),
    }.items():
        with pytest.raises(RuntimeError, match=text):
            call()
    close(F.hessian(lambda x: (x**3).sum(), X, strict=True), tg.diag(6 * X))
    close(F.hvp(lambda x: (x**3).sum(), X, V, strict=True)[1], 6 * X * V)


# ---- PyTorch -------------------------------------------------------------------------------------------------------


FUNCTIONS = {
    "one": (lambda x: x.sin() * x, 1),
    "scalar": (lambda x: (x.exp() * x).sum(), 1),
    "several outputs": (lambda x: (x * x, x.sum(), x.detach()), 1),
    "two inputs": (lambda x, y: x * y.exp(), 2),
    "two inputs, scalar": (lambda x, y: (x * x * y).sum() + y[0] ** 3, 2),
    "two of each": (lambda x, y: (x * y, (y * y).sum()), 2),
    "unused input": (lambda x, y: (x * x).sum(), 2),
    "linear": (lambda x: (3 * x).sum(), 1),
    "constant": (lambda x: x.detach().sum(), 1),
    "tuple of one": (lambda x: (x * x,), 1),
}


def outcome(lib, name, case, options):
    """(structure, values) of a call, or the type and the first ten words of its error."""
    fn, count = FUNCTIONS[case]
    draw = np.random.default_rng(0).standard_normal
    inputs = tuple(lib.from_numpy(draw(3)).requires_grad_(options.get("create_graph", False)) for _ in range(count))
    given = inputs if count > 1 else inputs[0]
    vector = ()
    if name == "vjp":
        out = fn(*inputs)
        row = tuple(
            lib.from_numpy(np.asarray(draw(tuple(o.shape)))) for o in (out if isinstance(out, tuple) else (out,))
        )
        vector = (row if isinstance(out, tuple) else row[0],)
    elif name in ("jvp", "vhp", "hvp"):
        row = tuple(lib.from_numpy(draw(3)) for _ in inputs)
        vector = (row if count > 1 else row[0],)
    try:
        return flat(getattr(lib.autograd.functional, name)(fn, given, *vector, **options))
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, " ".join(str(error).replace(",", " ").split()[:10])


def flat(value):
    if isinstance(value, tuple):
        return [flat(v) for v in value]
    return value.requires_grad, tuple(value.shape), value.detach().numpy().round(9).tolist()


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"strict": True}], ids=["plain", "graph", "strict"])
@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
@pytest.mark.parametrize("case", FUNCTIONS)
def test_equals_pytorch(case, name, options):
    torch = pytest.importorskip("torch")
    assert outcome(tg, name, case, options) == outcome(torch, name, case, options)


@pytest.mark.parametrize("name", F.__all__)
def test_parameters_are_pytorchs(name):
    import inspect

    torch = pytest.importorskip("torch")
    theirs = inspect.signature(getattr(torch.autograd.functional, name)).parameters.values()
    ours = inspect.signature(getattr(F, name)).parameters.values()
    assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in theirs]
