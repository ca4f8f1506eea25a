"""Layers under vmap at the edges: no samples, what one sample is refused, errors in each sample's own sizes."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import grad, jvp, vmap

F = tg.nn.functional


def numbers(*shape):
    return tg.zeros(shape, dtype=tg.int64)


NORMS = {
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (5, 4)),
    "batch_norm in eval mode": (lambda x: F.batch_norm(x, tg.zeros(4), tg.ones(4)), (5, 4)),
    "instance_norm": (F.instance_norm, (2, 4, 3)),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_no_samples(name):
    f, shape = NORMS[name]
    assert vmap(f)(tg.rand(0, *shape)).shape == (0, *shape)
    assert vmap(grad(lambda x: f(x).sum()))(tg.rand(0, *shape)).shape == (0, *shape)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_losses_of_no_samples_and_of_one_row(loss):
    assert vmap(loss)(tg.rand(0, 5), numbers(0)).shape == (0,)
    weighted = lambda x, y, w: loss(x, y, w, reduction="sum")
    assert vmap(weighted)(tg.rand(0, 5), numbers(0), tg.rand(0, 5)).shape == (0,)
    x, y = tg.rand(3, 5), numbers(3, 1)
    assert tg.allclose(vmap(loss)(x, y), tg.stack([loss(a, b) for a, b in zip(x, y)]))
    slope = grad(lambda x, y: loss(x, y).sin())
    assert tg.allclose(vmap(slope)(x, y), tg.stack([slope(a, b) for a, b in zip(x, y)]))


def test_the_padding_row_has_a_tangent_and_no_gradient():
    tables, index = tg.rand(3, 4, 2), tg.tensor([0, 1, 2])
    look = lambda table: F.embedding(index, table, padding_idx=1)
    got = jvp(vmap(look), (tables,), (tables + 1,))[1]
    assert tg.allclose(got, tg.stack([jvp(look, (t,), (t + 1,))[1] for t in tables]))
    assert (vmap(grad(lambda t: look(t).sum()))(tables)[:, 1] == 0).all()


REFUSED = {
    "size of class weights": (F.cross_entropy, ((4, 5), numbers(4), (4,))),
    "size of class weights of nll": (F.nll_loss, ((4, 5), numbers(4), (4,))),
    "dtype of class weights": (lambda x, y, w: F.cross_entropy(x, y, w.double()), ((4, 5), numbers(4), (5,))),
    "weight of layer_norm": (lambda x, w: F.layer_norm(x, (2, 4), w), ((2, 4), (4,))),
    "dtype of layer_norm": (lambda x, w: F.layer_norm(x, (4,), w.double()), ((2, 4), (4,))),
    "reduction": (lambda x, y: F.cross_entropy(x, y, reduction="x"), ((4, 5), numbers(4))),
    "no row": (F.cross_entropy, ((), numbers())),
    "no classes": (F.cross_entropy, ((4, 0), numbers(4), (0,))),
    "rank of batch_norm": (lambda x: F.batch_norm(x, tg.zeros(4), tg.ones(4)), ((4,),)),
    "no channels": (lambda x: F.max_pool2d(x, 2), ((0, 5, 5),)),
    "channels of conv2d": (tg.conv2d, ((2, 4, 5, 5), (6, 3, 2, 2))),
    "rows of cross_entropy": (F.cross_entropy, ((4, 5), numbers(3))),
    "rows of an embedding": (F.embedding, (numbers(4) + 5, (5, 2))),
    "weight of batch_norm": (lambda x, w: F.batch_norm(x, None, None, w, training=True), ((5, 4), (3,))),
    "bias of conv2d": (lambda x, w, c: tg.conv2d(x, w, c), ((2, 4, 5, 5), (6, 4, 2, 2), (1,))),
    "dtype of the bias of conv1d": (lambda x, w, c: tg.conv1d(x, w, c.double()), ((2, 4, 5), (6, 4, 2), (6,))),
    "window of a pool": (lambda x: F.max_pool2d(x, 9), ((2, 5, 5),)),
}

OF_VALUES = {"rows of an embedding", "no classes"}  # which there are none of without samples


@pytest.mark.parametrize("name", REFUSED)
def test_what_one_sample_is_refused_all_are_in_the_same_words(name):
    f, given = REFUSED[name]
    one = [tg.rand(g) if isinstance(g, tuple) else g for g in given]
    with pytest.raises(Exception) as alone:
        f(*one)
    with pytest.raises(alone.type) as batched:
        vmap(f)(*[tg.stack([x, x, x]) for x in one])
    assert str(batched.value).splitlines()[0] == str(alone.value).splitlines()[0]
    if name not in OF_VALUES:
        with pytest.raises(alone.type) as of_none:
            vmap(f)(*[x.new_zeros((0, *x.shape)) for x in one])
        assert str(of_none.value).splitlines()[0] == str(alone.value).splitlines()[0]


@pytest.mark.parametrize("bias", [(1,), (5,), (6, 1)])
def test_a_shared_bias_has_a_number_for_each_channel(bias):
    x, w, c = tg.rand(3, 2, 4, 5, 5), tg.rand(3, 6, 4, 2, 2), tg.rand(bias)
    with pytest.raises(RuntimeError) as alone:
        tg.conv2d(x[0], w[0], c)
    with pytest.raises(RuntimeError) as batched:
        vmap(tg.conv2d, (0, 0, None))(x, w, c)
    assert str(batched.value).splitlines()[0] == str(alone.value).splitlines()[0]


def test_a_batch_of_planes_is_no_image():
    with pytest.raises(RuntimeError, match="Expected 3D"):
        vmap(tg.conv2d, (0, None))(tg.rand(3, 5, 5), tg.rand(6, 3, 2, 2))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_weights_of_each_sample_read_one_input(groups):
    x, w = tg.rand(2, 4, 6, 6, dtype=tg.float64), tg.rand(3, 8, 4 // groups, 3, 3, dtype=tg.float64)
    convolve = lambda w: tg.conv2d(x, w, groups=groups, padding=1)
    assert tg.allclose(vmap(convolve)(w), tg.stack([convolve(v) for v in w]))
    tg.empty_cache()
    tg.reset_peak_memory_stats()
    before = tg.memory_stats()["allocated"]
    wide, many = tg.rand(1, 64, 32, 32), tg.rand(16, 64, 64 // groups, 1, 1)
    vmap(lambda w: tg.conv2d(wide, w, groups=groups))(many)
    results = 16 * wide.numel() * 4
    assert tg.memory_stats()["peak"] - before < 3.2 * results  # the input is not repeated for each of them
