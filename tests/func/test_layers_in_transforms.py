"""Whole modules under transforms: gradients of samples, ensembles, derivatives of any order are as in plain loops."""

import pytest

import tinygrad_ext as tg
from tests.helpers.transformed_modules import (
    MODELS,
    SIZE,
    all_close,
    along,
    bent,
    built,
    close,
    directions,
    loaded,
    loss_of,
    samples,
    slopes_by_backward,
    stacked,
    weights_of,
)
from tinygrad_ext.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    looped,
    stack_module_state,
    vjp,
    vmap,
)

every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(autouse=True)
def no_loops():
    """No layer here may run sample by sample."""
    before = dict(looped.counts)
    yield
    assert looped.counts == before


# ---- gradients of each sample --------------------------------------------------------------------------------------


@every_model
def test_results_of_each_sample(name):
    model, xs = built(name), samples(name)
    want = tg.stack([model(x) for x in xs])
    close(vmap(model)(xs), want)
    close(vmap(model, -1, -1)(xs.movedim(0, -1)), want.movedim(0, -1))
    close(vmap(model, chunk_size=2)(xs), want)
    close(vmap(vmap(model))(tg.stack([xs, xs.flip(0)])), tg.stack([want, want.flip(0)]))


@every_model
@pytest.mark.parametrize("dtype, tolerance", [(tg.float64, 1e-8), (tg.float32, 2e-4)])
def test_gradients_of_each_sample(name, dtype, tolerance):
    model, xs = built(name, dtype), samples(name, dtype=dtype)
    weights = weights_of(model)
    alone = [slopes_by_backward(model, x) for x in xs]
    words = {"atol": tolerance, "rtol": tolerance}
    got, values = vmap(grad_and_value(loss_of(model)), (None, 0))(weights, xs)
    all_close(got, stacked([a[0] for a in alone]), **words)
    close(values, tg.stack([bent(model(x)) for x in xs]).detach(), **words)
    together = grad(lambda w: vmap(loss_of(model), (None, 0))(w, xs).sum())(weights)
    all_close(together, {n: g.sum(0) for n, g in got.items()}, **words)
    if xs.is_floating_point():
        close(vmap(grad(loss_of(model), 1), (None, 0))(weights, xs), tg.stack([a[1] for a in alone]), **words)
        close(grad(lambda x: vmap(model)(x).sum())(xs), grad(lambda x: sum(model(r).sum() for r in x))(xs), **words)


@every_model
def test_gradients_of_batches_of_one(name):
    model, xs = built(name), samples(name)
    got = vmap(grad(loss_of(model)), (None, 0))(weights_of(model), xs[:1])
    all_close(got, stacked([slopes_by_backward(model, xs[0])[0]]))


@pytest.mark.parametrize("name", ["single images", "series", "transformer", "recurrent", "embeddings"])
def test_gradients_of_batches_of_none(name):
    model, xs = built(name), samples(name)
    weights = weights_of(model)
    slopes = vmap(grad(loss_of(model)), (None, 0))
    all_close(slopes(weights, xs[:0]), {n: w.new_zeros((0, *w.shape)) for n, w in weights.items()})


@every_model
def test_modules_that_require_gradients_are_closed_over(name):
    model, xs = built(name), samples(name)
    model.zero_grad()
    vmap(lambda x: bent(model(x)))(xs).sum().backward()
    got = {n: p.grad.clone() for n, p in model.named_parameters()}
    alone = stacked([slopes_by_backward(model, x)[0] for x in xs])
    all_close(got, {n: a.sum(0) for n, a in alone.items()})


# ---- ensembles -----------------------------------------------------------------------------------------------------


@every_model
def test_ensembles_are_their_models(name):
    models, xs = [built(name, seed=k) for k in range(SIZE)], samples(name)
    weights, buffers = stack_module_state(models)
    run = lambda w, b, x: functional_call(models[0], (w, b), (x,))
    close(vmap(run, (0, 0, None))(weights, buffers, xs[0]), tg.stack([m(xs[0]) for m in models]))
    close(vmap(run)(weights, buffers, xs), tg.stack([m(x) for m, x in zip(models, xs)]))
    all_of_all = vmap(vmap(run, (None, None, 0)), (0, 0, None))(weights, buffers, xs)
    close(all_of_all, tg.stack([tg.stack([m(x) for x in xs]) for m in models]))
    vmap(lambda *w: bent(run(*w)))(weights, buffers, xs).sum().backward()
    alone = stacked([slopes_by_backward(m, x)[0] for m, x in zip(models, xs)])
    all_close({n: w.grad for n, w in weights.items()}, alone)


@every_model
def test_gradients_of_each_sample_by_each_model(name):
    models, xs = [built(name, seed=k) for k in range(2)], samples(name)
    weights, buffers = stack_module_state(models)
    weights = {n: w.detach() for n, w in weights.items()}
    loss = lambda w, b, x: bent(functional_call(models[0], (w, b), (x,)))
    alone = [[slopes_by_backward(m, x)[0] for x in xs] for m in models]
    want = stacked([stacked(row) for row in alone])
    all_close(vmap(grad(loss), (0, 0, None))(weights, buffers, xs[0]), {n: w[:, 0] for n, w in want.items()})
    pairs = vmap(vmap(grad(loss), (None, None, 0)), (0, 0, None))(weights, buffers, xs)
    all_close(pairs, want)
    other_way = vmap(vmap(grad(loss), (0, 0, None)), (None, None, 0))(weights, buffers, xs)
    all_close(other_way, {n: w.transpose(0, 1) for n, w in want.items()})


def test_statistics_of_each_model_are_its_own():
    make = lambda: tg.nn.Sequential(tg.nn.Conv2d(1, 2, 2), tg.nn.BatchNorm2d(2), tg.nn.Flatten(), tg.nn.Linear(8, 2))
    tg.manual_seed(0)
    models, x = [make().double() for _ in range(SIZE)], tg.rand(4, 1, 3, 3, dtype=tg.float64)
    weights, buffers = stack_module_state(models)
    loss = lambda w, b: bent(functional_call(models[0], (w, b), (x,)))
    slopes = vmap(grad(loss))({n: w.detach() for n, w in weights.items()}, buffers)
    all_close(slopes, stacked([slopes_by_backward(m, x)[0] for m in models]))
    assert buffers["1.num_batches_tracked"].tolist() == [1] * SIZE
    all_close(buffers, stacked([dict(m.named_buffers()) for m in models]))


def test_statistics_that_samples_share_are_refused_by_modules():
    model, xs = tg.nn.Sequential(tg.nn.Linear(3, 2), tg.nn.BatchNorm1d(2)), tg.rand(SIZE, 4, 3)
    with pytest.raises(RuntimeError, match="set track_running_stats=False"):
        vmap(model)(xs)
    model.eval()
    close(vmap(model)(xs), tg.stack([model(x) for x in xs]), atol=1e-6)


# ---- forward mode and second derivatives ---------------------------------------------------------------------------


@every_model
def test_tangents_are_sums_of_gradients(name):
    model, xs = built(name), samples(name)
    weights = weights_of(model)
    pushed = directions(weights)
    want = tg.stack([along(slopes_by_backward(model, x)[0], pushed) for x in xs])
    loss = loss_of(model)
    one = lambda x: jvp(lambda w: loss(w, x), (weights,), (pushed,))[1]
    close(tg.stack([one(x) for x in xs]), want)
    close(vmap(one)(xs), want)
    close(jvp(lambda w: vmap(loss, (None, 0))(w, xs), (weights,), (pushed,))[1], want)
    close(linearize(lambda w: vmap(loss, (None, 0))(w, xs), weights)[1](pushed), want)
    ways = {n: tg.stack([p, -2 * p]) for n, p in pushed.items()}
    many = vmap(lambda p: jvp(lambda w: loss(w, xs[0]), (weights,), (p,))[1])(ways)
    close(many, tg.stack([want[0], -2 * want[0]]))


@every_model
def test_jacobians_by_rows_and_by_columns(name):
    model, x = built(name), samples(name)[0]
    weights = weights_of(model)
    run = lambda w: functional_call(model, w, (x,))
    y, back = vjp(run, weights)
    rows = [back(r.reshape(y.shape))[0] for r in tg.eye(y.numel(), dtype=y.dtype)]
    want = {n: tg.stack([r[n] for r in rows]).reshape((*y.shape, *w.shape)) for n, w in weights.items()}
    all_close(jacrev(run)(weights), want)
    all_close(jacfwd(run)(weights), want)


@every_model
def test_products_with_the_hessian(name):
    model, xs = built(name), samples(name)
    weights = weights_of(model)
    pushed, loss = directions(weights), loss_of(model)

    def by_backward(x):
        named = dict(model.named_parameters())
        first = tg.autograd.grad(bent(model(x)), list(named.values()), create_graph=True)
        second = tg.autograd.grad(along(dict(zip(named, first)), pushed), list(named.values()), allow_unused=True)
        return {n: tg.zeros_like(p) if g is None else g for (n, p), g in zip(named.items(), second)}

    want = stacked([by_backward(x) for x in xs])
    of = lambda x: lambda w: loss(w, x)
    ways = {
        "forward over reverse": lambda x: jvp(grad(of(x)), (weights,), (pushed,))[1],
        "reverse over forward": lambda x: grad(lambda w: jvp(of(x), (w,), (pushed,))[1])(weights),
        "reverse over reverse": lambda x: grad(lambda w: along(grad(of(x))(w), pushed))(weights),
    }
    for way in ways.values():
        all_close(way(xs[0]), {n: w[0] for n, w in want.items()})
        all_close(vmap(way)(xs), want)
    twice = lambda x: jvp(lambda w: jvp(of(x), (w,), (pushed,))[1], (weights,), (pushed,))[1]
    close(vmap(twice)(xs), tg.stack([along({n: w[k] for n, w in want.items()}, pushed) for k in range(SIZE)]))


@every_model
def test_hessians_by_one_parameter(name):
    model, xs = built(name), samples(name)[:2]
    chosen = min(model.named_parameters(), key=lambda p: p[1].numel())[0]
    rest = weights_of(model)
    p = rest.pop(chosen)

    def by_backward(x):
        leaf = p.clone().requires_grad_()
        (slope,) = tg.autograd.grad(loss_of(model)({**rest, chosen: leaf}, x), leaf, create_graph=True)
        rows = [tg.autograd.grad(s, leaf, retain_graph=True)[0] for s in slope.reshape(-1)]
        return tg.stack(rows).reshape((*p.shape, *p.shape))

    want = tg.stack([by_backward(x) for x in xs])
    loss = lambda p, x: loss_of(model)({**rest, chosen: p}, x)
    close(hessian(loss)(p, xs[0]), want[0])
    for outer in (jacfwd, jacrev):
        for inner in (jacfwd, jacrev):
            close(vmap(outer(inner(loss)), (None, 0))(p, xs), want)


# ---- graphs --------------------------------------------------------------------------------------------------------


@every_model
def test_traced_gradients_of_each_sample(name):
    model, xs = built(name), samples(name)
    slopes = vmap(grad(loss_of(model)), (None, 0))
    traced = tg.jit.trace(slopes, (weights_of(model), xs))
    other = {n: w * 0.9 for n, w in weights_of(model).items()}
    all_close(traced(other, xs.flip(0)), slopes(other, xs.flip(0)))


@every_model
def test_graphs_of_gradients_go_through_vmap(name):
    """A loaded graph is all there is, and in it are the derivatives' ops, any of whose arguments may be batched."""
    models, xs = [built(name, seed=k) for k in range(SIZE)], samples(name)
    stack = {n: w.detach() for n, w in stack_module_state(models)[0].items()}
    slopes = grad(loss_of(models[0]), (0, 1) if xs.is_floating_point() else (0,))
    graph = loaded(tg.jit.trace(slopes, (weights_of(models[0]), xs[0])))
    for dims in ((None, 0), (0, None), (0, 0)):
        weights = stack if dims[0] == 0 else weights_of(models[0])
        got = vmap(graph, dims)(weights, xs if dims[1] == 0 else xs[0])
        alone = [slopes_by_backward(models[k * (dims[0] == 0)], xs[k * (dims[1] == 0)]) for k in range(SIZE)]
        all_close(got[0], stacked([a[0] for a in alone]))
        if xs.is_floating_point():
            close(got[1], tg.stack([a[1] for a in alone]))


@every_model
@pytest.mark.parametrize("way", ["scripted", "traced", "compiled"])
def test_programs_of_modules_go_through_transforms(name, way):
    model, xs = built(name), samples(name)
    ways = {"scripted": tg.jit.script, "traced": lambda m: tg.jit.trace(m, (xs[0],)), "compiled": tg.compile}
    program = ways[way](model)
    close(vmap(program)(xs), tg.stack([model(x) for x in xs]))
    if xs.is_floating_point():
        alone = tg.stack([slopes_by_backward(model, x)[1] for x in xs])
        close(vmap(grad(lambda x: bent(program(x))))(xs), alone)
        pushed = vmap(lambda x: jvp(lambda x: bent(program(x)), (x,), (x * x,))[1])(xs)
        close(pushed, (alone * xs * xs).flatten(1).sum(1))


# ---- statistics, hooks, dropout, training --------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_statistics_move_wherever_their_batch_stands(dim):
    x = tg.rand(SIZE, 5, 4, dtype=tg.float64)
    start = lambda value: tg.full((SIZE, 4), value, dtype=tg.float64).movedim(0, dim).contiguous()
    run = lambda x, mean, var: tg.nn.functional.batch_norm(x, mean, var, training=True)
    for dims in ((0, dim, dim), (None, dim, dim)):
        mean, var = start(0.0), start(1.0)
        got = vmap(run, dims)(x if dims[0] == 0 else x[0], mean, var)
        for k in range(SIZE):
            m, v = tg.zeros(4, dtype=tg.float64), tg.ones(4, dtype=tg.float64)
            close(got[k], run(x[k * (dims[0] == 0)], m, v))
            close(mean.select(dim, k), m)
            close(var.select(dim, k), v)


@pytest.mark.parametrize(
    "run",
    [
        lambda f, x: grad(lambda x: f(x).sin().sum())(x),
        lambda f, x: grad(lambda x: (grad(lambda x: f(x).sin().sum())(x) ** 2).sum())(x),
        lambda f, x: vjp(f, x)[1](x),
        lambda f, x: jvp(f, (x,), (x,)),
        lambda f, x: jvp(grad(lambda x: f(x).sin().sum()), (x,), (x,)),
        lambda f, x: linearize(f, x)[1](x),
        lambda f, x: jacrev(f)(x),
        lambda f, x: jacfwd(f)(x),
    ],
)
def test_statistics_move_once_whatever_is_derived(run):
    x = tg.rand(5, 4, dtype=tg.float64)
    plain, derived = tg.nn.BatchNorm1d(4).double(), tg.nn.BatchNorm1d(4).double()
    plain(x)
    run(derived, x)
    for got, want in zip(derived.buffers(), plain.buffers()):
        assert type(got) is type(want) and not got.requires_grad
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("words", [{"padding_idx": 1}, {"scale_grad_by_freq": True}])
def test_rows_of_a_table_in_a_jacobian(words):
    table, index = tg.rand(4, 2, dtype=tg.float64), tg.tensor([1, 2, 1, 0])
    look = lambda w: tg.nn.functional.embedding(index, w, **words)
    each = [grad(lambda w, i=i, j=j: look(w)[i, j])(table) for i in range(4) for j in range(2)]
    close(jacrev(look)(table), tg.stack(each).reshape(4, 2, 4, 2))


def test_hooks_of_modules_and_tensors_run():
    model, xs = tg.nn.Linear(4, 3).double(), tg.rand(SIZE, 4, dtype=tg.float64)
    model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))

    def doubled(module, args, result):
        assert args[0].shape == (4,) and result.shape == (3,)
        result.register_hook(lambda g: g * 5)
        return result * 2

    model.register_forward_hook(doubled)
    alone = [slopes_by_backward(model, x) for x in xs]
    got = vmap(grad(loss_of(model), (0, 1)), (None, 0))(weights_of(model), xs)
    all_close(got[0], stacked([a[0] for a in alone]))
    close(got[1], tg.stack([a[1] for a in alone]))


def test_ensembles_are_trained_as_each_alone():
    models, xs = [built("single images", seed=k) for k in range(SIZE)], samples("single images")
    weights, _ = stack_module_state(models)
    together = tg.optim.Adam(weights.values(), lr=0.01)
    for _ in range(3):
        together.zero_grad()
        vmap(lambda w, x: bent(functional_call(models[0], w, (x,))))(weights, xs).sum().backward()
        together.step()
    for model, x in zip(models, xs):
        alone = tg.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(3):
            alone.zero_grad()
            bent(model(x)).backward()
            alone.step()
    all_close({n: w.detach() for n, w in weights.items()}, stacked([weights_of(m) for m in models]))


class Dropped(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.drop = tg.nn.Parameter(tg.ones(40)), tg.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x * self.weight)


def test_dropout_of_each_sample_and_of_all():
    model, xs = Dropped(), tg.ones(SIZE, 40)
    run = grad_and_value(lambda w, x: functional_call(model, w, (x,)).sum())
    slopes = lambda **words: vmap(run, (None, 0), **words)(weights_of(model), xs)
    with pytest.raises(RuntimeError, match="randomness"):
        slopes()
    for way in ("same", "different"):
        masks, sums = slopes(randomness=way)
        masks = masks["weight"]
        assert set(masks.unique().tolist()) == {0.0, 2.0}
        close(sums, masks.sum(1))
        assert all(tg.equal(masks[0], m) == (way == "same") for m in masks[1:])
    model.eval()
    assert tg.equal(slopes()[0]["weight"], xs)


# ---- beside PyTorch ------------------------------------------------------------------------------------------------


@every_model
def test_beside_torch_func(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    model, xs = built(name), samples(name)
    theirs = MODELS[name][0](torch).double()
    theirs.load_state_dict({n: torch.from_numpy(t.detach().numpy().copy()) for n, t in model.state_dict().items()})
    weights, x = {n: p.detach() for n, p in theirs.named_parameters()}, torch.from_numpy(xs.numpy().copy())

    def loss(w, x):
        y = torch.func.functional_call(theirs, w, (x,))
        return (y * (torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape) - 1) + y**3).sum()

    want = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, x)
    got = vmap(grad(loss_of(model)), (None, 0))(weights_of(model), xs)
    all_close(got, {n: tg.from_numpy(w.numpy()) for n, w in want.items()})
