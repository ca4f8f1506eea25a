"""vmap over ops that change shapes, reduce everything or multiply: each sample as in a loop, and views are views."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import grad, vmap

X = tg.arange(24.0).reshape(4, 2, 3) / 7


def loop(f, *rows):
    return tg.stack([f(*row) for row in zip(*rows)])


SHAPES = {
    "view": lambda x: x.view(3, -1),
    "reshape": lambda x: x.t().reshape(-1),
    "flatten": lambda x: x[0, 0].flatten(),
    "squeeze": lambda x: x[:, :1].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "permute": lambda x: x.permute(-1, 0),
    "expand": lambda x: x[0].expand(5, -1),
    "expand_as": lambda x: x[0].expand_as(x),
    "repeat": lambda x: x.repeat(2, 1, 2),
    "roll": lambda x: x.roll(1) + x.roll((1, 1), (0, -1)),
    "index": lambda x: x[None, ..., 1:, 0],
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2)),
    "stack": lambda x: tg.stack([x, x + 1, tg.ones(2, 3)], -1),
    "cat": lambda x: tg.cat([x, tg.ones(2, 1)], 1),
    "reductions": lambda x: x.sum() + x.mean() * x.prod() + x.max() + x.argmax() + x.var() + x.median() + (x > 1).any(),
    "along": lambda x: x.sum(0) + x.amax(-2) + x.mean((0,)) + x.sum((), keepdim=True)[0],
    "truth": lambda x: (x > 1).any(()) | (x > 1).all(0),
    "memory": lambda x: x.new_zeros(2, 5).add_(1) + tg.ones_like(x)[:, :1] + x.new_full((2, 1), 3.0),
    "scalar": lambda x: x[0, 0].unsqueeze(0).softmax(0) + x[0, 0].sum() + x[1, 1].max() + x[0, 1].cumsum(0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_each_sample_is_as_in_a_loop(name):
    f = SHAPES[name]
    assert tg.allclose(vmap(f)(X).float(), loop(f, X).float())
    assert tg.allclose(vmap(f, in_dims=1, out_dims=-1)(X.movedim(0, 1)).float(), loop(f, X).float().movedim(0, -1))


@pytest.mark.parametrize("left", [(3,), (2, 3), (5, 2, 3)])
@pytest.mark.parametrize("right", [(3,), (3, 4), (5, 3, 4)])
@pytest.mark.parametrize("batched", ["left", "right", "both"])
def test_products_of_every_rank(left, right, batched):
    a, b = tg.rand(4, *left), tg.rand(4, *right)
    in_dims = (None if batched == "right" else 0, None if batched == "left" else 0)
    given = [x if d == 0 else x[0] for x, d in zip((a, b), in_dims)]
    rows = [x if d == 0 else [x[0]] * 4 for x, d in zip((a, b), in_dims)]
    assert tg.allclose(vmap(tg.matmul, in_dims)(*given), loop(tg.matmul, *rows), atol=1e-6)


@pytest.mark.parametrize("in_dims", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0), (0, 0, None)])
@pytest.mark.parametrize("rows", [(3,), (2, 3), (5, 2, 3)])
def test_linear_with_any_of_its_operands_batched(rows, in_dims):
    operands = tg.rand(4, *rows), tg.rand(4, 6, 3), tg.rand(4, 6)
    given = [x if d == 0 else x[0] for x, d in zip(operands, in_dims)]
    each = [x if d == 0 else [x[0]] * 4 for x, d in zip(operands, in_dims)]
    f = tg.nn.functional.linear
    assert tg.allclose(vmap(f, in_dims)(*given), loop(f, *each), atol=1e-6)
    g = lambda *row: grad(lambda *row: f(*row).tanh().sum(), (0, 1, 2))(*row)
    for one, other in zip(vmap(g, in_dims)(*given), zip(*[g(*row) for row in zip(*each)])):
        assert tg.allclose(one, tg.stack(list(other)), atol=1e-6)


@pytest.mark.parametrize("beta", [0, 1, 2.5])
def test_added_products_do_not_read_what_beta_hides(beta):
    start = tg.full((4, 2, 5), float("nan")) if beta == 0 else tg.rand(4, 2, 5)
    f = lambda s, a, b: tg.addmm(s, a, b, beta=beta, alpha=2)
    a, b = tg.rand(4, 2, 3), tg.rand(4, 3, 5)
    assert tg.allclose(vmap(f)(start, a, b), loop(f, start, a, b), atol=1e-6)
    assert tg.allclose(vmap(f, (0, None, None))(start, a[0], b[0]), loop(f, start, [a[0]] * 4, [b[0]] * 4), atol=1e-6)


def test_views_are_views_of_the_users_memory():
    x = tg.zeros(3, 2, 2)

    def write(row):
        row.t()[0].add_(1)
        row[1].view(1, 2)[0, 1:].mul_(5)
        return row

    got = vmap(write)(x)
    assert x.tolist() == [[[1.0, 0.0], [1.0, 0.0]]] * 3 and tg.equal(got, x)


def test_what_is_wrong_is_told_in_terms_of_a_sample():
    for f, words in [
        (lambda x: x.sum(2), r"\[-2, 1\], but got 2"),
        (lambda x: x.unsqueeze(4), r"\[-3, 2\], but got 4"),
        (lambda x: x.unsqueeze(0).t(), "self is 3D"),
        (lambda x: x[0, 0] @ x, "at least 1D"),
    ]:
        with pytest.raises((IndexError, RuntimeError), match=words):
            vmap(f)(X)


@pytest.mark.parametrize("name", ["median", "nanmedian", "max", "min", "amax", "amin"])
def test_equal_elements_share_the_gradient_as_in_a_loop(name):
    inf = float("inf")
    x = tg.tensor([[1.0, 1, 0, 1], [2, 2, 2, 2], [0, 3, float("nan"), 1], [inf, inf, 1, inf], [-inf, -inf, 1, -inf]])
    f = lambda x: getattr(x, name)()
    got = vmap(grad(f))(x)
    assert tg.allclose(got, tg.stack([grad(f)(row) for row in x]), equal_nan=True)
    assert tg.allclose(vmap(f)(x), tg.stack([f(row) for row in x]), equal_nan=True)


def test_each_sample_is_asked_whether_it_is_contiguous():
    said = []

    def note(x):
        said.append(x.is_contiguous())
        return x

    x = tg.rand(4, 3, 5)
    vmap(note)(x)
    vmap(note, in_dims=1)(x)
    vmap(note, in_dims=2)(x)
    vmap(vmap(note), in_dims=1)(x)
    vmap(vmap(note, in_dims=1))(x)
    vmap(note, in_dims=1)(tg.rand(0, 2, 3))
    assert said == [True, False, False, True, False, True]


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(tg.bmm)(tg.ones(2, 1, 3, 3), tg.ones(2, 4, 3, 3)),
        lambda f: f(tg.addmm)(tg.ones(2, 4, 3), tg.ones(2, 1, 3), tg.ones(2, 3, 3)),
        lambda f: f(tg.addmm)(tg.ones(2, 2, 3, 3), tg.ones(2, 3, 3), tg.ones(2, 3, 3)),
        lambda f: f(tg.addmv)(tg.ones(2, 3, 3), tg.ones(2, 3, 3), tg.ones(2, 3)),
    ],
)
def test_what_a_product_of_samples_refuses_is_refused(call):
    with pytest.raises(RuntimeError):
        call(lambda op: lambda *t: loop(op, *t))
    with pytest.raises(RuntimeError, match="mm|mv|expand"):
        call(vmap)
