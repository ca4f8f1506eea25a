"""Transforms and graphs: a transformed function is written down, and a captured one is transformed."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import graph, nn
from tinygrad_ext.func import functional_call, grad, jacrev, stack_module_state, vjp, vmap


def loss(w, x):
    return (w * x).sin().sum()


W, X = tg.tensor([0.5, -1.0, 2.0]), tg.arange(15.0).reshape(5, 3) / 7

TRANSFORMED = {
    "vmap": (vmap(loss, (None, 0)), (W, X)),
    "grad": (grad(loss), (W, X[0])),
    "gradients of each sample": (vmap(grad(loss), (None, 0)), (W, X)),
    "grad of vmap": (grad(lambda w, x: vmap(loss, (None, 0))(w, x).sum()), (W, X)),
    "grad of grad": (grad(lambda w, x: grad(loss)(w, x).sum()), (W, X[0])),
    "jacrev": (jacrev(lambda w, x: (w * x).exp()), (W, X)),
    "jacobians of each sample": (vmap(jacrev(lambda w, x: (w * x).exp()), (None, 0)), (W, X)),
    "vjp": (lambda w, x: vjp(loss, w, x)[1](tg.tensor(2.0)), (W, X)),
}


def same(a, b):
    if isinstance(a, tuple):
        return all(map(same, a, b))
    return tg.equal(a, b)


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_transformed_function_is_written_down_as_one_graph(name):
    function, given = TRANSFORMED[name]
    traced = tg.jit.trace(function, given)
    assert same(traced(*given), function(*given))
    other = [g * 0.3 + 1 for g in given]
    assert same(traced(*other), function(*other))


CAPTURED = {
    "trace": lambda: tg.jit.trace(loss, (W, W)),
    "script": lambda: tg.jit.script(loss),
    "compile": lambda: tg.compile(loss),
}


@pytest.mark.parametrize("how", CAPTURED)
def test_a_captured_function_is_transformed_as_the_one_it_was_captured_from(how):
    captured = CAPTURED[how]()
    assert same(vmap(captured, (None, 0))(W, X), vmap(loss, (None, 0))(W, X))
    assert same(grad(captured)(W, X), grad(loss)(W, X))
    assert same(vmap(grad(captured), (None, 0))(W, X), vmap(grad(loss), (None, 0))(W, X))
    assert same(jacrev(captured)(W, X), jacrev(loss)(W, X))


def test_a_captured_function_under_vmap_is_written_down_op_by_op():
    scripted = tg.jit.script(loss)
    traced = tg.jit.trace(vmap(grad(scripted), (None, 0)), (W, X))
    assert same(traced(W, X), vmap(grad(loss), (None, 0))(W, X))
    assert "aten::cos" in str(traced.graph)


def test_a_training_step_of_many_models_is_one_graph():
    models = [nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(10)]
    parameters, _ = stack_module_state(models)
    parameters = {name: p.detach() for name, p in parameters.items()}
    x, y = tg.rand(6, 4), tg.rand(6, 2)

    def error(p, x, y):
        return ((functional_call(models[0], p, x) - y) ** 2).mean()

    def step(p, x, y):
        slopes = vmap(grad(error), (0, None, None))(p, x, y)
        return {name: p[name] - 0.1 * slopes[name] for name in p}

    traced = tg.jit.trace(step, (parameters, x, y))
    a = b = parameters
    for _ in range(5):
        a, b = traced(a, x, y), step(b, x, y)
    assert all(tg.equal(a[name], b[name]) for name in a)
    model = models[3]
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    assert all(tg.allclose(p, a[name][3], atol=1e-6) for name, p in model.named_parameters())


def test_a_training_step_of_a_hundred_networks_is_one_plan():
    tg.manual_seed(0)
    layers = lambda: [nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    models = [nn.Sequential(*layers(), nn.Linear(16, 3)) for _ in range(100)]
    stacked, _ = stack_module_state(models)
    stacked = {name: p.detach() for name, p in stacked.items()}
    images, classes = tg.rand(5, 1, 4, 4), tg.randint(3, (5,))

    def error(weights, images, classes):
        return nn.functional.cross_entropy(functional_call(models[0], weights, images), classes)

    def step(weights, images, classes):
        slopes = vmap(grad(error), (0, None, None))(weights, images, classes)
        return {name: w - 0.1 * slopes[name] for name, w in weights.items()}

    traced = tg.jit.trace(step, (stacked, images, classes))
    got, want = traced(stacked, images, classes), step(stacked, images, classes)
    assert all(tg.equal(got[name], want[name]) for name in want)
    assert "1 plan made, for 1 row of nodes" in str(traced.explain())


def test_gradients_of_each_sample_fuse():
    f = vmap(grad(lambda w, x: (w * x).sin().exp().sum()), (None, 0))
    traced = tg.jit.trace(f, (W, X))
    assert tg.allclose(traced(W, X), f(W, X))
    groups = [row.split("  ")[-1].split(", ") for row in str(traced.plan(W, X).table()).splitlines() if "TILE" in row]
    assert len(groups) == 2 and sum(map(len, groups)) == 7


@pytest.mark.parametrize("name", TRANSFORMED)
def test_graph_capture_writes_down_what_is_transformed(name):
    transformed, args = TRANSFORMED[name]
    captured = graph.capture(transformed)(*args)
    found, expected = captured.execute(list(args), [])[0][0], transformed(*args)
    if isinstance(expected, tuple):
        assert all(a.equal(b) for a, b in zip(found, expected, strict=True))
    else:
        assert found.equal(expected)
