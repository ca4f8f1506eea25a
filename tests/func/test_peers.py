"""The transforms beside those of PyTorch and of JAX, where these are installed."""

import pytest

import tinygrad_ext as tg

SHAPES = {"x": (3, 3), "v": (3,), "s": ()}
F64 = tg.float64

# functions of one argument, in the names that all three have
SHARED = {
    "square": ("v", lambda m, x: (x**2).sum()),
    "sine": ("v", lambda m, x: m.sin(x).sum()),
    "product": ("v", lambda m, x: m.prod(x)),
    "logsumexp": ("v", lambda m, x: m.log(m.exp(x).sum())),
    "softplus": ("v", lambda m, x: m.log1p(m.exp(x)).sum()),
    "norm": ("v", lambda m, x: m.sqrt((x * x).sum())),
    "rational": ("v", lambda m, x: (x / (1 + x * x)).sum()),
    "tanh": ("v", lambda m, x: m.tanh(x).sum() * m.cos(x).sum()),
    "quadratic": ("x", lambda m, x: (x @ x.T).sum()),
    "trace": ("x", lambda m, x: m.diagonal(x).sum() * m.exp(x).mean()),
    "inner": ("x", lambda m, x: (x[0] * x[1]).sum() * x[2, 0]),
    "rows": ("x", lambda m, x: m.exp(x - x.mean(1)[:, None]).sum()),
    "turned": ("x", lambda m, x: (x.T * x).sum()),
    "cumsum": ("v", lambda m, x: (m.cumsum(x, 0) ** 2).sum()),
    "stacked": ("v", lambda m, x: m.stack([x, x * x, m.sin(x)]).sum()),
    "choice": ("v", lambda m, x: m.where(x > 0, x * x, m.exp(x)).sum()),
    "power": ("v", lambda m, x: ((2 + m.tanh(x)) ** x).sum()),
    "slices": ("v", lambda m, x: (x[1:] * x[:-1]).sum()),
    "rosenbrock": ("v", lambda m, x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()),
    "number": ("s", lambda m, x: m.sin(x) * m.exp(-x * x)),
    "logistic": ("x", lambda m, x: (1 / (1 + m.exp(-x))).sum() + m.abs(x).sum()),
}
# what they are put into: (ours of PyTorch's names, JAX's of its own)
NESTS = {
    "grad": (lambda f, g, x, v: g.grad(f)(x), lambda f, j, x, v: j.grad(f)(x)),
    "jvp": (lambda f, g, x, v: g.jvp(f, (x,), (v,))[1], lambda f, j, x, v: j.jvp(f, (x,), (v,))[1]),
    "vjp": (lambda f, g, x, v: g.vjp(f, x)[1](f(v))[0], lambda f, j, x, v: j.vjp(f, x)[1](f(v))[0]),
    "hessian": (lambda f, g, x, v: g.hessian(f)(x), lambda f, j, x, v: j.hessian(f)(x)),
    "jacfwd": (lambda f, g, x, v: g.jacfwd(g.grad(f))(x), lambda f, j, x, v: j.jacfwd(j.grad(f))(x)),
    "jacrev": (lambda f, g, x, v: g.jacrev(g.grad(f))(x), lambda f, j, x, v: j.jacrev(j.grad(f))(x)),
    "push of grad": (
        lambda f, g, x, v: g.jvp(g.grad(f), (x,), (v,))[1],
        lambda f, j, x, v: j.jvp(j.grad(f), (x,), (v,))[1],
    ),
    "linearize": (lambda f, g, x, v: g.linearize(f, x)[1](v), lambda f, j, x, v: j.linearize(f, x)[1](v)),
}
BATCHED = {
    "vmap": (lambda f, g, x, v: g.vmap(f)(x), lambda f, j, x, v: j.vmap(f)(x)),
    "vmap of grad": (lambda f, g, x, v: g.vmap(g.grad(f))(x), lambda f, j, x, v: j.vmap(j.grad(f))(x)),
    "vmap of hessian": (lambda f, g, x, v: g.vmap(g.hessian(f))(x), lambda f, j, x, v: j.vmap(j.hessian(f))(x)),
    "grad of vmap": (
        lambda f, g, x, v: g.grad(lambda x: (g.vmap(f)(x) ** 2).sum())(x),
        lambda f, j, x, v: j.grad(lambda x: (j.vmap(f)(x) ** 2).sum())(x),
    ),
    "push of vmap": (
        lambda f, g, x, v: g.jvp(g.vmap(f), (x,), (v,))[1],
        lambda f, j, x, v: j.jvp(j.vmap(f), (x,), (v,))[1],
    ),
}


def inputs(shape, name):
    generator = tg.Generator().manual_seed(7)
    shape = (4, *SHAPES[shape]) if name in BATCHED else SHAPES[shape]
    return [tg.randn(shape, dtype=F64, generator=generator) for _ in range(2)]


def close(got, want):
    tg.testing.assert_close(got, tg.tensor(want, dtype=got.dtype), rtol=1e-7, atol=1e-9)


@pytest.fixture(scope="module")
def jax():
    found = pytest.importorskip("jax", reason="compares with JAX")
    found.config.update("jax_enable_x64", True)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("nest", ["grad", "jvp", "hessian", "vmap", "vmap of grad"])
@pytest.mark.parametrize("name", SHARED)
def test_derivatives_are_those_of_jax(name, nest, jax):
    shape, f = SHARED[name]
    ours, theirs = {**NESTS, **BATCHED}[nest]
    x, v = inputs(shape, nest)
    jnp = jax.numpy
    want = theirs(lambda x: f(jnp, x), jax, jnp.array(x.tolist()), jnp.array(v.tolist()))
    close(ours(lambda x: f(tg, x), tg.func, x, v), want.tolist())


# ---- PyTorch -------------------------------------------------------------------------------------------------------


def theirs_of(value, torch):
    if isinstance(value, tg.Tensor):
        return torch.tensor(value.tolist(), dtype=getattr(torch, str(value.dtype).removeprefix("torch.")))
    return type(value)(theirs_of(v, torch) for v in value) if isinstance(value, (list, tuple)) else value


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="compares with PyTorch")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("nest", [*NESTS, *BATCHED])
@pytest.mark.parametrize("name", SHARED)
def test_derivatives_are_those_of_torch(name, nest, torch):
    shape, f = SHARED[name]
    run = {**NESTS, **BATCHED}[nest][0]
    x, v = inputs(shape, nest)
    want = run(lambda x: f(torch, x), torch.func, *theirs_of([x, v], torch))
    close(run(lambda x: f(tg, x), tg.func, x, v), want.tolist())


ROW, ROWS = tg.tensor([0.5, -1.0, 2.0], dtype=F64), tg.arange(12, dtype=F64).reshape(4, 3) / 5
STRUCTURED = {
    "tree in": lambda m, r, x: m.func.grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": r, "b": (r * 2,)})["a"],
    "argnums": lambda m, r, x: m.func.grad(lambda a, b: (a * b.sin()).sum(), argnums=1)(r, r + 1),
    "two argnums": lambda m, r, x: m.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(r, r + 1)[1],
    "last argnum": lambda m, r, x: m.func.jacrev(lambda a, b: a * b.sin(), argnums=-1)(r, r + 1),
    "has_aux": lambda m, r, x: m.func.grad(lambda a: ((a**2).sum(), a.sin()), has_aux=True)(r)[1],
    "value": lambda m, r, x: m.func.grad_and_value(lambda a: (a**2).sum())(r)[1],
    "vjp of a tree": lambda m, r, x: m.func.vjp(lambda a: (a.sin(), {"k": a * 2}), r)[1]((r, {"k": r}))[0],
    "vjp with aux": lambda m, r, x: m.func.vjp(lambda a: (a.sin(), a * 2), r, has_aux=True)[2],
    "jacobian of a tree": lambda m, r, x: m.func.jacrev(lambda a: {"u": a.sin(), "w": a * a})(r)["w"],
    "jacfwd with aux": lambda m, r, x: m.func.jacfwd(lambda a: (a.sin(), a * 3), has_aux=True)(r)[1],
    "hessian of two": lambda m, r, x: m.func.hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(r, r)[0][1],
    "jvp of two": lambda m, r, x: m.func.jvp(lambda a, b: a * b, (r, r + 1), (r, r))[1],
    "jvp with aux": lambda m, r, x: m.func.jvp(lambda a: (a.sin(), a), (r,), (r,), has_aux=True)[2],
    "rows in chunks": lambda m, r, x: m.func.jacrev(lambda a: a.sin(), chunk_size=2)(r),
    "in_dims": lambda m, r, x: m.func.vmap(lambda a, b: a * b, in_dims=(0, None))(x, r),
    "in_dims of a tree": lambda m, r, x: m.func.vmap(lambda t: t[0] * t[1]["k"], in_dims=((1, {"k": None}),))(
        (x, {"k": x[:, 0]})
    ),
    "out_dims": lambda m, r, x: m.func.vmap(lambda a: (a, a * 2), out_dims=(0, 1))(x)[1],
    "keywords": lambda m, r, x: m.func.vmap(lambda a, *, k: a * k)(x, k=r),
    "chunked": lambda m, r, x: m.func.vmap(lambda a: a.sum() * a, chunk_size=3)(x),
    "nested": lambda m, r, x: m.func.vmap(m.func.vmap(lambda a, b: a * b, (0, None)), (None, 0))(r, r),
    "negative dims": lambda m, r, x: m.func.vmap(lambda a: a.sum(), in_dims=-1)(x),
    "samples of what is shared": lambda m, r, x: m.func.vmap(m.func.grad(lambda w, a: (w * a).sin().sum()), (None, 0))(
        r, x
    ),
    "constant": lambda m, r, x: m.func.vmap(lambda a: m.ones(2))(x),
    "unused": lambda m, r, x: m.func.grad(lambda a, b: b.sum(), argnums=0)(r, r),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", STRUCTURED)
def test_arguments_and_results_are_arranged_as_in_torch(name, torch):
    run = STRUCTURED[name]
    want = run(torch, *theirs_of([ROW, ROWS], torch))
    close(run(tg, ROW, ROWS), want.tolist())


WRONG = {
    "grad of a vector": lambda m, r, x: m.func.grad(lambda a: a)(r),
    "grad of a tuple": lambda m, r, x: m.func.grad(lambda a: (a.sum(), a.sum()))(r),
    "grad of no tensor": lambda m, r, x: m.func.grad(lambda a: 3)(r),
    "grad by integers": lambda m, r, x: m.func.grad(lambda a: a.sum())(m.arange(3)),
    "argnums out of range": lambda m, r, x: m.func.grad(lambda a: a.sum(), argnums=3)(r),
    "argnums of a wrong type": lambda m, r, x: m.func.grad(lambda a: a.sum(), argnums="0")(r),
    "argnums of floats": lambda m, r, x: m.func.jacfwd(m.mul, argnums=(1, 0.0))(r, r),
    "argnums of strings": lambda m, r, x: m.func.grad(lambda a, b: (a * b).sum(), argnums=("0",))(r, r),
    "argnums empty": lambda m, r, x: m.func.grad(lambda a: a.sum(), argnums=())(r),
    "argnums twice": lambda m, r, x: m.func.grad(lambda a, b: a.sum(), argnums=(0, 0))(r, r),
    "aux missing": lambda m, r, x: m.func.grad(lambda a: a.sum(), has_aux=True)(r),
    "vjp of no tensor": lambda m, r, x: m.func.vjp(lambda a: 3, r),
    "cotangent of a wrong structure": lambda m, r, x: m.func.vjp(lambda a: (a, a), r)[1](r),
    "cotangent of a wrong shape": lambda m, r, x: m.func.vjp(lambda a: a, r)[1](x),
    "jvp of no tuple": lambda m, r, x: m.func.jvp(lambda a: a, r, (r,)),
    "tangents of a wrong structure": lambda m, r, x: m.func.jvp(lambda a: a, (r,), (r, r)),
    "tangent of a wrong shape": lambda m, r, x: m.func.jvp(lambda a: a, (r,), (x,)),
    "jvp of no tensor": lambda m, r, x: m.func.jvp(lambda a: 3, (r,), (r,)),
    "jvp without inputs": lambda m, r, x: m.func.jvp(lambda: 3, (), ()),
    "strict": lambda m, r, x: m.func.jvp(lambda a: m.ones(2), (r,), (r,), strict=True),
    "jacrev of nothing": lambda m, r, x: m.func.jacrev(lambda a: ())(r),
    "jacrev of no tensor": lambda m, r, x: m.func.jacrev(lambda a: 3)(r),
    "chunk of nothing": lambda m, r, x: m.func.jacrev(lambda a: a, chunk_size=0)(r),
    "vmap without inputs": lambda m, r, x: m.func.vmap(lambda: 3)(),
    "vmap of no tensor": lambda m, r, x: m.func.vmap(lambda a: a)(3),
    "sizes differ": lambda m, r, x: m.func.vmap(lambda a, b: a)(x, r),
    "in_dims of a wrong structure": lambda m, r, x: m.func.vmap(lambda a: a, in_dims=(0, 0))(x),
    "in_dims of a wrong type": lambda m, r, x: m.func.vmap(lambda a: a, in_dims=[0])(x),
    "in_dims out of range": lambda m, r, x: m.func.vmap(lambda a: a, in_dims=2)(x),
    "in_dims all None": lambda m, r, x: m.func.vmap(lambda a: a, in_dims=None)(x),
    "out_dims of a wrong structure": lambda m, r, x: m.func.vmap(lambda a: a, out_dims=(0, 0))(x),
    "out_dims out of range": lambda m, r, x: m.func.vmap(lambda a: a, out_dims=5)(x),
    "out_dims of a wrong type": lambda m, r, x: m.func.vmap(lambda a: a, out_dims="0")(x),
    "returns no tensor": lambda m, r, x: m.func.vmap(lambda a: 3)(x),
    "randomness": lambda m, r, x: m.func.vmap(lambda a: a, randomness="some")(x),
    "draws": lambda m, r, x: m.func.vmap(lambda a: m.rand(2))(x),
    "chunks": lambda m, r, x: m.func.vmap(lambda a: a, chunk_size=0)(x),
    "truth": lambda m, r, x: m.func.vmap(lambda a: a if a.sum() > 0 else -a)(x),
    "item": lambda m, r, x: m.func.vmap(lambda a: a.sum().item())(x),
    "nonzero": lambda m, r, x: m.func.vmap(lambda a: a.nonzero())(x),
    "mask": lambda m, r, x: m.func.vmap(lambda a: a[a > 0])(x),
    "write to what is shared": lambda m, r, x: m.func.vmap(lambda a: r.clone().add_(a))(x),
    "dims of a sample": lambda m, r, x: m.func.vmap(lambda a: a.sum(1))(x),
    "shapes of a sample": lambda m, r, x: m.func.vmap(lambda a: a @ x)(x),
    "mm of vectors": lambda m, r, x: m.func.vmap(m.mm)(x, x),
    "mm of batches": lambda m, r, x: m.func.vmap(m.mm, (0, None))(m.stack([x[None], x[None]]), x.T),
    "mv of matrices": lambda m, r, x: m.func.vmap(m.mv, (None, 0))(x, m.stack([x.T, x.T])),
    "dot of matrices": lambda m, r, x: m.func.vmap(m.dot)(m.stack([x[:3], x[:3]]), m.stack([x[:3], x[:3]])),
    "bmm of matrices": lambda m, r, x: m.func.vmap(m.bmm)(m.stack([x[:3]]), m.stack([x[:3]])),
    "addmm of batches": lambda m, r, x: m.func.vmap(m.addmm, (None, 0, 0))(
        m.ones(3), m.ones(2, 2, 3, 3), m.ones(2, 3, 3)
    ),
    "baddbmm of matrices": lambda m, r, x: m.func.vmap(m.baddbmm)(*[m.ones(2, 3, 3)] * 3),
    "data": lambda m, r, x: m.func.vmap(lambda a: a.data)(x),
    "hessian of a vector": lambda m, r, x: m.func.hessian(lambda a: a, argnums=2)(r),
    "functionalize": lambda m, r, x: m.func.functionalize(lambda a: a, remove="all")(r),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_raise_what_torch_raises(name, torch):
    run = WRONG[name]
    with pytest.raises(Exception) as theirs:
        run(torch, *theirs_of([ROW, ROWS], torch))
    with pytest.raises(type(theirs.value)) as ours:
        run(tg, ROW, ROWS)
    assert len(str(ours.value)) > 20
