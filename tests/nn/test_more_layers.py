"""Volumes, transposed convolutions, unpooling, folding, upsampling and rarer layers: beside PyTorch's and alone."""

import copy
import io
import pickle

import numpy as np
import pytest
from beside_torch import close, compare, numbers, seeded

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.nn import functional as F

LINE, IMAGE, VOLUME = (2, 4, 9), (2, 4, 7, 6), (2, 4, 5, 4, 6)
PLACES_2D = np.random.default_rng(1).random((2, 4, 2)).astype("float32")
PLACES_3D = np.random.default_rng(2).random((2, 4, 3)).astype("float32")
# name, arguments, keywords, shape of the input
CASES = [
    ("Conv3d", (4, 6, 3), {}, VOLUME),
    ("Conv3d", (4, 6, (1, 2, 3)), {"stride": (1, 2, 1), "padding": (1, 0, 2), "dilation": 2, "groups": 2}, VOLUME),
    ("Conv3d", (4, 2, 3), {"padding": "same", "bias": False}, VOLUME[1:]),
    ("Conv3d", (4, 2, 2), {"padding": 1, "padding_mode": "circular"}, VOLUME),
    ("ConvTranspose1d", (4, 6, 3), {}, LINE),
    ("ConvTranspose1d", (4, 6, 3, 2, 1, 1), {"groups": 2}, LINE[1:]),
    ("ConvTranspose2d", (4, 6, 3), {"bias": False}, IMAGE),
    ("ConvTranspose2d", (4, 6, (3, 2), (2, 3), (1, 0), (1, 2), 2, True, (1, 2)), {}, IMAGE),
    ("ConvTranspose3d", (4, 2, 2), {"stride": 2}, VOLUME),
    ("ConvTranspose3d", (4, 4, (1, 2, 3)), {"padding": (0, 1, 1), "groups": 4}, VOLUME[1:]),
    ("MaxPool3d", (2,), {}, VOLUME),
    ("MaxPool3d", ((1, 2, 3),), {"stride": 1, "padding": (0, 1, 1), "ceil_mode": True}, VOLUME[1:]),
    ("AvgPool3d", (2,), {}, VOLUME),
    ("AvgPool3d", ((2, 3, 2), 1, 1), {"count_include_pad": False, "ceil_mode": True}, VOLUME),
    ("AvgPool3d", (2,), {"divisor_override": 3}, VOLUME[1:]),
    ("LPPool1d", (2, 3), {"stride": 2}, LINE),
    ("LPPool2d", (4.0, (2, 3)), {"ceil_mode": True}, IMAGE),
    ("LPPool3d", (2, 2), {"stride": 1}, VOLUME),
    ("Fold", ((4, 5), 2), {}, (2, 8, 12)),
    ("Fold", ((4, 5), (2, 3)), {"padding": 1, "stride": (2, 1), "dilation": (1, 2)}, (12, 9)),
    ("Unfold", (3,), {}, IMAGE),
    ("Unfold", ((2, 3),), {"dilation": (2, 1), "padding": 1, "stride": 2}, IMAGE),
    ("Upsample", (12,), {}, LINE),
    ("Upsample", (None, 2), {}, IMAGE),
    ("Upsample", (), {"scale_factor": (2, 1.5), "mode": "bicubic", "align_corners": True}, IMAGE),
    ("Upsample", ((7, 3, 9),), {"mode": "trilinear"}, VOLUME),
    ("Upsample", (), {"scale_factor": 1.7, "mode": "linear", "recompute_scale_factor": True}, LINE),
    ("UpsamplingNearest2d", ((9, 5),), {}, IMAGE),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, IMAGE),
    ("CrossMapLRN2d", (3,), {"alpha": 0.3}, IMAGE),
    ("CrossMapLRN2d", (4, 0.5, 0.6, 2.0), {}, (2, 7, 3, 2)),
    ("CrossMapLRN2d", (9, 0.5), {}, IMAGE),
    ("SyncBatchNorm", (4,), {}, IMAGE),
    ("SyncBatchNorm", (4,), {"momentum": None, "bias": False}, (5, 4)),
    ("SyncBatchNorm", (4, 1e-3, 0.1, False, False), {}, VOLUME),
    ("RReLU", (0.2, 0.2), {}, LINE),
    ("AlphaDropout", (0.0,), {}, LINE),
    ("FeatureAlphaDropout", (0.0,), {"inplace": True}, IMAGE),
]
WITH_PLACES = [
    ("FractionalMaxPool2d", (2, 3), {}, PLACES_2D, IMAGE),
    ("FractionalMaxPool2d", ((3, 2),), {"output_ratio": (0.5, 0.7)}, PLACES_2D, IMAGE),
    ("FractionalMaxPool3d", (2,), {"output_size": (2, 2, 3)}, PLACES_3D, VOLUME),
    ("FractionalMaxPool3d", ((1, 2, 3),), {"output_ratio": 0.6}, PLACES_3D, VOLUME),
]
IDS = [f"{case[0]}-{place}" for place, case in enumerate(CASES)]
each_case = pytest.mark.parametrize(("name", "args", "kwargs", "shape"), CASES, ids=IDS)


@each_case
def test_layer_equals_pytorchs(name, args, kwargs, shape):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    ours, theirs = (seeded(library, name, args, kwargs) for library in (tg, torch))
    assert repr(ours) == repr(theirs)
    public = [{key for key in vars(layer) if not key.startswith("_")} for layer in (ours, theirs)]
    assert public[1] <= public[0] | set(theirs._parameters) | set(theirs._buffers)
    for training in (True, False):
        compare(ours.train(training), theirs.train(training), [numbers(*shape)], torch, name)


@pytest.mark.parametrize(("name", "args", "kwargs", "places", "shape"), WITH_PLACES)
def test_fractional_pooling_equals_pytorchs(name, args, kwargs, places, shape):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    for indices in (False, True):
        ours, theirs = (
            getattr(library.nn, name)(
                *args, **kwargs, return_indices=indices, _random_samples=library.from_numpy(places.copy())
            )
            for library in (tg, torch)
        )
        assert repr(ours) == repr(theirs) and "_random_samples" in ours.state_dict()
        compare(ours, theirs, [numbers(*shape)], torch, name)


def the_layer_and_its_input(name, args, kwargs, shape):
    return seeded(tg, name, args, kwargs), tg.from_numpy(numbers(*shape))


@each_case
def test_layer_is_saved_and_copied(name, args, kwargs, shape):
    layer, x = the_layer_and_its_input(name, args, kwargs, shape)
    layer.eval()
    expected = layer(x)
    other = getattr(nn, name)(*args, **kwargs).eval()
    assert repr(other.load_state_dict(layer.state_dict())) == "<All keys matched successfully>"
    file = io.BytesIO()
    tg.save(layer.state_dict(), file)
    file.seek(0)
    loaded = getattr(nn, name)(*args, **kwargs).eval()
    loaded.load_state_dict(tg.load(file))
    for same in (other, loaded, pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        assert repr(same) == repr(layer) and tg.equal(same(x), expected)


@each_case
def test_layer_is_traced_and_scripted(name, args, kwargs, shape):
    layer, x = the_layer_and_its_input(name, args, kwargs, shape)
    layer.eval()
    traced = jit.trace(layer, x)
    assert tg.equal(traced(x), layer(x)) and tg.equal(jit.script(layer)(x), layer(x))
    other = tg.from_numpy(numbers(*shape, seed=3)).requires_grad_()
    (slope,) = tg.autograd.grad(traced(other).sum(), other)
    close(slope, tg.autograd.grad(layer(other).sum(), other)[0])


@pytest.mark.parametrize(
    "name", ["FractionalMaxPool2d", "FractionalMaxPool3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU"]
)
def test_what_draws_follows_the_seed_and_training(name):
    fractional = name.startswith("Frac")
    layer = getattr(nn, name)(*((2, 3) if fractional else ()))
    x = tg.from_numpy(numbers(3, 3, 7, 7, 7))
    x = x[0] if name == "FractionalMaxPool3d" else x[0, 0] if fractional else x
    drawn = []
    for seed in (1, 1, 2):
        tg.manual_seed(seed)
        drawn.append(layer(x))
    assert tg.equal(drawn[0], drawn[1]) and not tg.equal(drawn[0], drawn[2])
    if not fractional:
        layer.eval()
        assert tg.equal(layer(x), F.rrelu(x) if name == "RReLU" else x)
    assert repr(pickle.loads(pickle.dumps(layer))) == repr(layer)
    if name == "FeatureAlphaDropout":
        changed = (drawn[0] != drawn[0].flatten(2)[..., :1].unflatten(2, (1, 1, 1))).flatten(2).any(2)
        assert 0 < changed.sum() < 9
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    torch.manual_seed(2)
    theirs = getattr(torch.nn, name)(*((2, 3) if fractional else ()))
    close(drawn[2], theirs(torch.from_numpy(x.numpy())), "draws")


def test_output_size_of_transposed_convolutions():
    for dims, layer in ((1, nn.ConvTranspose1d), (2, nn.ConvTranspose2d), (3, nn.ConvTranspose3d)):
        convolution = layer(2, 3, 3, stride=3, padding=1)
        x = tg.from_numpy(numbers(2, 2, *(4,) * dims))
        function = getattr(F, f"conv_transpose{dims}d")
        for size in (10, 11, 12):
            expected = function(x, convolution.weight, convolution.bias, 3, 1, size - 10)
            assert expected.shape == (2, 3, *(size,) * dims)
            for given in ((size,) * dims, tg.empty(1, 1, *(size,) * dims).shape):
                assert tg.equal(convolution(x, output_size=given), expected)
            close(convolution(x[0], [size] * dims), expected[0])
            assert tg.equal(jit.script(convolution)(x, [size] * dims), expected)
        assert convolution(x).shape == (2, 3, *(10,) * dims)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_puts_the_greatest_back(dims):
    pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
    unpool = getattr(nn, f"MaxUnpool{dims}d")(2)
    x = tg.from_numpy(numbers(2, 3, *(5,) * dims))
    values, indices = pool(x)
    for size in ((5,) * dims, x.shape):
        back = unpool(values, indices, output_size=size)
        assert back.shape == x.shape
        assert tg.equal(back, tg.where(back != 0, x, 0)) and int((back != 0).sum()) == values.numel()
    x = tg.from_numpy(numbers(2, 3, *(4,) * dims))
    values, indices = pool(x)
    back = unpool(values, indices)
    assert tg.equal(back, tg.where(back != 0, x, 0)) and int((back != 0).sum()) == values.numel()
    again = pickle.loads(pickle.dumps(unpool))
    assert tg.equal(again(values, indices), back)
    for graph in (jit.trace(unpool, (values, indices)), jit.script(unpool)):
        assert tg.equal(graph(values, indices), back)
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    theirs = getattr(torch.nn, f"MaxUnpool{dims}d")(2)
    assert repr(unpool) == repr(theirs)
    compare(unpool, theirs, [values.numpy(), indices.numpy()], torch, "unpooling")


def test_cross_map_normalisation_is_what_it_says_and_has_its_derivative():
    x = numbers(2, 7, 3, 2).astype("float64")
    for size in (1, 3, 4, 5, 20):
        sums = np.zeros_like(x)
        for channel in range(7):
            near = [i for i in range(7) if i == 0 or abs(i - channel) < (size + 1) // 2]
            sums[:, channel] = (x[:, near] ** 2).sum(1)
        layer = nn.CrossMapLRN2d(size, 0.4, 0.6, 1.5)
        close(layer(tg.from_numpy(x)), x / (1.5 + 0.4 / size * sums) ** 0.6, rtol=1e-12)
        assert tg.autograd.gradcheck(layer, tg.from_numpy(x[:1, :, :1]).requires_grad_())


def test_batch_norms_are_converted():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.BatchNorm1d(4, affine=False)), nn.BatchNorm1d(4)).eval()
    x = tg.from_numpy(numbers(5, 3))
    expected, state = model(x), list(model.state_dict())
    weight = model[2].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert converted is model and type(model[2]) is type(model[1][0]) is nn.SyncBatchNorm
    assert model[2].weight is weight and not model[2].training and model[1][0].weight is None
    assert tg.equal(model(x), expected) and list(model.state_dict()) == state
    alone = nn.BatchNorm2d(2)
    assert nn.SyncBatchNorm.convert_sync_batchnorm(alone, "group").process_group == "group"
    kept = nn.InstanceNorm1d(3)
    assert nn.SyncBatchNorm.convert_sync_batchnorm(kept) is kept


def test_names_of_older_code_warn_and_work():
    with pytest.warns(FutureWarning, match="use it instead"):
        loss = nn.NLLLoss2d(ignore_index=1, reduction="sum")
    scores = tg.from_numpy(numbers(2, 3, 2, 2))
    target = tg.from_numpy(np.array([[[0, 1], [2, 2]], [[1, 1], [0, 2]]]))
    assert tg.equal(loss(scores, target), F.nll_loss(scores, target, ignore_index=1, reduction="sum"))
    with pytest.warns(FutureWarning, match="subclass nn.Module"):
        container = nn.Container(first=nn.Linear(2, 3), second=None)
    assert list(container.state_dict()) == ["first.weight", "first.bias"] and container.second is None
    assert list(pickle.loads(pickle.dumps(container)).state_dict()) == list(container.state_dict())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.Conv3d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.ConvTranspose2d(2, 3, 3, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.ConvTranspose1d(2, 3, 3, padding_mode="reflect"), ValueError, "for ConvTranspose1d, got 'reflect'"),
        (
            lambda: nn.ConvTranspose2d(2, 3, 3, 2)(tg.ones(1, 2, 4, 4), (8, 9)),
            ValueError,
            "output size of [8, 9], but valid sizes range from [9, 9] to [10, 10] (for an input of [4, 4])",
        ),
        (lambda: nn.ConvTranspose2d(2, 3, 3)(tg.ones(2, 4, 4), (6,)), ValueError, "must have 2 or 3 elements (got 1)"),
        (lambda: nn.ConvTranspose3d(2, 3, 3)(tg.ones(2, 4)), RuntimeError, "conv_transpose3d"),
        (lambda: nn.MaxUnpool1d(2)(tg.ones(1, 2), tg.tensor([[0, 2]]), (9,)), ValueError, "output_size"),
        (lambda: nn.FractionalMaxPool2d(2), ValueError, "either an output size, or a pooling ratio"),
        (lambda: nn.FractionalMaxPool3d(2, 2, 0.5), ValueError, "only one of output_size and output_ratio"),
        (lambda: nn.FractionalMaxPool2d(2, output_ratio=(0.5, 1)), ValueError, "between 0 and 1 (got (0.5, 1))"),
        (lambda: nn.FractionalMaxPool3d((1, 0, 1), 2), ValueError, "kernel_size must be greater than 0"),
        (lambda: nn.Upsample()(tg.ones(1, 1, 2)), ValueError, "size or scale_factor"),
        (lambda: nn.Upsample(scale_factor=[2, 2]), TypeError, "list"),
        (lambda: nn.AlphaDropout(-0.1), ValueError, "between 0 and 1, but got -0.1"),
        (lambda: nn.RReLU(0.5, 0.1)(tg.ones(2)), RuntimeError, "less than or equal to the upper bound"),
        (lambda: nn.CrossMapLRN2d(3)(tg.ones(2, 3)), ValueError, "to be 4D, got 2D"),
        (lambda: nn.SyncBatchNorm(3)(tg.ones(3)), ValueError, "at least 2D input (got 1D input)"),
        (lambda: nn.SyncBatchNorm(0)(tg.ones(2, 0)), ValueError, "channels should be non-zero"),
        (lambda: nn.LinearCrossEntropyLoss(5, 4, weight=tg.ones(3)), RuntimeError, "shape to be (4,), got (3,)"),
        (lambda: nn.LinearCrossEntropyLoss(5, 4, label_smoothing=1.5), RuntimeError, "range [0, 1], got 1.5"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, []), ValueError, "length larger than 0"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [2, 2]), ValueError, "increasing order"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [0, 2]), ValueError, "between 1 and n_classes-1"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [9]), ValueError, "n_classes=9"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [2.5]), ValueError, "[2.5]"),
        (lambda: adaptive(tg.ones(2, 4), tg.tensor([1, 9])), RuntimeError, "values in range [1, 9] were found"),
        (lambda: adaptive(tg.ones(2, 4), tg.tensor([1])), RuntimeError, "got 2 and 1"),
        (lambda: adaptive(tg.ones(2), tg.tensor([1, 2])), RuntimeError, "1D target tensor expects 2D"),
        (lambda: adaptive(tg.ones(2, 4), tg.tensor(1)), RuntimeError, "0D target tensor expects 1D"),
        (lambda: adaptive(tg.ones(2, 4), tg.tensor([[1, 2]])), RuntimeError, "multi-target not supported"),
    ],
)
def test_wrong_calls_raise(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def adaptive(input, target):
    return nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(input, target)
