"""vmap over layers and losses: each sample as in a loop, whichever arguments are batched, and so are its gradients."""

import itertools

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.func import functional_call, grad, jvp, stack_module_state, vmap

F = nn.functional
F64 = tg.float64
SIZE = 3


def losses():
    for reduction in ("mean", "sum", "none"):
        for name, shape, target in (("one", (5,), ()), ("rows", (4, 5), (4,)), ("images", (2, 5, 3), (2, 3))):
            for extra in ({}, {"ignore_index": 2}, {"label_smoothing": 0.2}):
                words = {"reduction": reduction, **extra}
                run = lambda x, y, words=words: F.cross_entropy(x, y, **words)
                yield f"cross entropy of {name} {words}", run, (shape, target), {1: 5}
        run = lambda x, y, w, words=words: F.cross_entropy(x, y, w.detach(), **{**words, "label_smoothing": 0.0})
        yield f"weighted cross entropy {words}", run, ((4, 5), (4,), (5,)), {1: 5}
        run = lambda x, y, w, r=reduction: F.nll_loss(x.log_softmax(1), y, w.detach(), ignore_index=1, reduction=r)
        yield f"weighted nll {reduction}", run, ((4, 5, 2), (4, 2), (5,)), {1: 5}
        run = lambda x, y, r=reduction: F.cross_entropy(x, y, reduction=r)
        yield f"probabilities {reduction}", run, ((4, 5), (4, 5)), {}
        run = lambda x, y, r=reduction: F.mse_loss(x, y, reduction=r)
        yield f"mse {reduction}", run, ((4, 5), (4, 5)), {}


def layers():
    for words in ({}, {"stride": 2, "padding": 1}, {"padding": 1, "dilation": 2}, {"groups": 2, "padding": 1}):
        weight = (6, 4 // words.get("groups", 1))
        for shape in ((2, 4, 6, 5), (4, 6, 5)):
            run = lambda x, w, c, words=words: tg.conv2d(x, w, c, **words)
            yield f"conv2d of {len(shape)} dimensions {words}", run, (shape, (*weight, 3, 2), (6,)), {}
        yield f"conv1d {words}", lambda x, w, words=words: tg.conv1d(x, w, **words), ((2, 4, 7), (*weight, 3)), {}
    yield "conv2d same", lambda x, w: tg.conv2d(x, w, padding="same"), ((2, 4, 6, 5), (6, 4, 3, 3)), {}
    yield "max_pool2d", lambda x: F.max_pool2d(x, 2, 1), ((2, 3, 5, 4),), {}
    yield "max_pool1d", lambda x: F.max_pool1d(x, 2, 1), ((3, 5),), {}
    yield "avg_pool2d", lambda x: F.avg_pool2d(x, 2, 1, 1, count_include_pad=False), ((2, 3, 5, 4),), {}
    yield "adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), ((2, 3, 5, 4),), {}
    yield "adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 2), ((3, 5, 4),), {}
    yield "layer_norm", lambda x, w, c: F.layer_norm(x, (4,), w, c), ((3, 4), (4,), (4,)), {}
    yield "layer_norm of all", lambda x, w, c: F.layer_norm(x, (3, 4), w, c), ((3, 4), (3, 4), (3, 4)), {}
    yield "layer_norm without bias", lambda x, w: F.layer_norm(x, (4,), w), ((2, 3, 4), (4,)), {}
    yield "group_norm", lambda x, w, c: F.group_norm(x, 2, w, c), ((2, 4, 3), (4,), (4,)), {}
    yield "instance_norm", lambda x: F.instance_norm(x), ((2, 4, 3),), {}
    yield "batch_norm", lambda x, w, c: F.batch_norm(x, None, None, w, c, True), ((5, 4), (4,), (4,)), {}
    run = lambda x, m, v, w: F.batch_norm(x, m.detach(), v.detach(), w)
    yield "batch_norm in eval mode", run, ((3, 4, 2), (4,), (4,), (4,)), {}
    for words in ({}, {"padding_idx": 1}, {"scale_grad_by_freq": True}):
        run = lambda i, w, words=words: F.embedding(i, w, **words)
        yield f"embedding {words}", run, ((3, 2), (6, 4)), {0: 6}
    yield "embedding of one", F.embedding, ((), (6, 4)), {0: 6}
    yield "linear", lambda x, w, c: F.linear(x, w, c), ((3,), (4, 3), (4,)), {}
    yield "log_softmax of a number", lambda x: F.log_softmax(x, 0), ((),), {}
    yield "normalize", lambda x: F.normalize(x, dim=0), ((4,),), {}


CASES = {name: case for name, *case in [*losses(), *layers()]}


@pytest.mark.parametrize("name", CASES)
def test_each_sample_is_as_in_a_loop(name):
    f, shapes, numbers = CASES[name]
    generator = tg.Generator().manual_seed(3)
    rows = [
        tg.randint(numbers[i], (SIZE, *s), generator=generator)
        if i in numbers
        else tg.rand(SIZE, *s, dtype=F64, generator=generator) + 0.1
        for i, s in enumerate(shapes)
    ]
    places = tuple(i for i in range(len(shapes)) if i not in numbers)
    slope = grad(lambda *x: f(*x).sin().sum(), places)
    bend = grad(lambda *x: sum((g**2).sum() for g in slope(*x)), places)
    for batched in itertools.product((True, False), repeat=len(shapes)):
        if not any(batched):
            continue
        given = [r if on else r[0] for r, on in zip(rows, batched)]
        each = [[r[k] if on else r for r, on in zip(given, batched)] for k in range(SIZE)]
        dims = tuple(0 if on else None for on in batched)
        assert tg.allclose(vmap(f, dims)(*given), tg.stack([f(*e) for e in each]), equal_nan=True)
        for derivative in (slope, bend):
            got, want = vmap(derivative, dims)(*given), zip(*[derivative(*e) for e in each])
            for g, w in zip(got, want):
                assert tg.allclose(g, tg.stack(w), equal_nan=True), batched
        together = grad(lambda *x, dims=dims: vmap(f, dims)(*x).sin().sum(), places)(*given)
        alone = [slope(*e) for e in each]
        for i, g in zip(places, together):
            parts = tg.stack([a[places.index(i)] for a in alone])
            assert tg.allclose(g, parts if batched[i] else parts.sum(0), equal_nan=True), batched


class Net(nn.Module):
    """Images to classes, through every kind of layer whose derivative has a rule of its own."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.MaxPool2d(2)
        self.table, self.scale, self.head = nn.Embedding(5, 16), nn.LayerNorm(16), nn.Linear(16, 3)

    def forward(self, image, number):
        x = self.pool(self.norm(self.conv(image)).relu()).flatten(-3)
        return self.head(self.scale(x + self.table(number)))


def net():
    tg.manual_seed(0)
    model = Net().double()
    return model, {n: p.detach() for n, p in model.named_parameters()}


def test_a_network_has_gradients_for_each_sample():
    model, weights = net()
    images, numbers, classes = tg.rand(4, 1, 1, 4, 4, dtype=F64), tg.randint(5, (4, 1)), tg.randint(3, (4, 1))

    def loss(weights, image, number, wanted):
        return F.cross_entropy(functional_call(model, weights, (image, number)), wanted)

    got = vmap(grad(loss), (None, 0, 0, 0))(weights, images, numbers, classes)
    alone = [grad(loss)(weights, *row) for row in zip(images, numbers, classes)]
    for n in weights:
        assert tg.allclose(got[n], tg.stack([a[n] for a in alone])), n
    slopes = {n: tg.rand_like(w) for n, w in weights.items()}
    pushed = vmap(lambda *row: jvp(lambda w: loss(w, *row), (weights,), (slopes,))[1])(images, numbers, classes)
    assert tg.allclose(pushed, tg.stack([sum((a[n] * slopes[n]).sum() for n in weights) for a in alone]))


def test_networks_that_are_stacked_are_as_each_alone():
    models = [net()[0] for _ in range(3)]
    with tg.no_grad():
        for k, m in enumerate(models):
            for p in m.parameters():
                p.mul_(1 + k)
    stacked, buffers = stack_module_state(models)
    image, number = tg.rand(2, 1, 4, 4, dtype=F64), tg.tensor([1, 3])
    run = lambda w, b: functional_call(models[0], (w, b), (image, number))
    assert tg.allclose(vmap(run)(stacked, buffers), tg.stack([m(image, number) for m in models]))


def test_statistics_that_samples_share_are_not_moved():
    x = tg.rand(3, 5, 4)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor"):
        vmap(lambda x: F.batch_norm(x, tg.zeros(4), tg.ones(4), training=True))(x)

    def moved(x, mean, var):
        out = F.batch_norm(x, mean, var, training=True)
        return out, mean, var

    mean, var = tg.zeros(3, 4), tg.ones(3, 4)
    out, *_ = vmap(moved)(x, mean, var)
    for k in range(3):
        m, v = tg.zeros(4), tg.ones(4)
        assert tg.allclose(out[k], moved(x[k], m, v)[0])
        assert tg.allclose(mean[k], m) and tg.allclose(var[k], v)


def test_an_index_of_one_sample_never_reads_another():
    tables = tg.rand(3, 4, 2)
    for wrong in (4, -1, 7):
        with pytest.raises(IndexError):
            vmap(F.embedding)(tg.tensor([0, wrong, 1]), tables)


@pytest.mark.parametrize("size", [0, 1])
def test_batches_of_none_and_of_one(size):
    x, w, c = tg.rand(size, 2, 4, 5, 5), tg.rand(size, 6, 4, 3, 3), tg.randint(5, (size, 4))
    assert vmap(tg.conv2d)(x, w).shape == (size, 2, 6, 3, 3)
    assert vmap(grad(lambda x, w: tg.conv2d(x, w).sum(), (0, 1)))(x, w)[1].shape == w.shape
    assert vmap(F.cross_entropy)(tg.rand(size, 4, 5), c).shape == (size,)
    assert vmap(lambda x: F.max_pool2d(x, 2))(x).shape == (size, 2, 4, 2, 2)
    assert vmap(F.embedding)(c, tg.rand(size, 5, 2)).shape == (size, 4, 2)
