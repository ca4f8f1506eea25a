"""Each layer beside PyTorch's: the same seed gives the same parameters, output, gradients and printed form."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

torch = pytest.importorskip("torch", reason="compares with PyTorch")

IMAGE = (2, 4, 8, 8)
PADS = [("Circular",), ("Constant", 1.5), ("Reflection",), ("Replication",), ("Zero",)]
CASES = [
    ("Identity", (3, 4), {"unused": 1}, (2, 3)),
    ("Linear", (5, 3), {}, (2, 5)),
    ("Linear", (5, 3), {"bias": False}, (5,)),
    ("Conv1d", (4, 6, 3), {"padding": 1}, (2, 4, 9)),
    ("Conv2d", (4, 6, 3), {}, IMAGE),
    ("Conv2d", (4, 6, (3, 2)), {"stride": 2, "padding": (1, 0), "dilation": 2, "groups": 2}, IMAGE),
    ("Conv2d", (4, 4, 3), {"padding": "same", "bias": False}, IMAGE),
    ("Conv2d", (4, 4, 3), {"padding": "valid"}, IMAGE),
    ("BatchNorm1d", (5,), {}, (3, 5)),
    ("BatchNorm1d", (5,), {"momentum": None}, (3, 5, 2)),
    ("BatchNorm1d", (5,), {"affine": False, "track_running_stats": False}, (3, 5)),
    ("BatchNorm2d", (4,), {"bias": False}, IMAGE),
    ("LayerNorm", (5,), {}, (2, 5)),
    ("LayerNorm", ((3, 5),), {"bias": False}, (2, 3, 5)),
    ("GroupNorm", (2, 4), {}, IMAGE),
    ("ReLU", (), {}, (7,)),
    ("ReLU6", (), {}, (7,)),
    ("GELU", (), {}, (7,)),
    ("GELU", ("tanh",), {}, (7,)),
    ("SiLU", (), {}, (7,)),
    ("Mish", (), {}, (7,)),
    ("SELU", (), {}, (7,)),
    ("ELU", (0.5,), {}, (7,)),
    ("LeakyReLU", (0.2,), {}, (7,)),
    ("PReLU", (4,), {}, IMAGE),
    ("Sigmoid", (), {}, (7,)),
    ("LogSigmoid", (), {}, (7,)),
    ("Tanh", (), {}, (7,)),
    ("Hardtanh", (-0.5, 0.5), {}, (7,)),
    ("Hardsigmoid", (), {}, (7,)),
    ("Hardswish", (), {}, (7,)),
    ("Softplus", (2.0,), {}, (7,)),
    ("Softsign", (), {}, (7,)),
    ("Softmax", (1,), {}, (2, 5)),
    ("LogSoftmax", (-1,), {}, (2, 5)),
    ("GLU", (), {}, (2, 6)),
    ("MaxPool1d", (2,), {}, (2, 3, 8)),
    ("MaxPool2d", (2,), {"stride": 1, "padding": 1, "ceil_mode": True}, IMAGE),
    ("AvgPool1d", (2,), {}, (2, 3, 8)),
    ("AvgPool2d", ((2, 3),), {"padding": (1, 0), "count_include_pad": False}, IMAGE),
    ("AdaptiveAvgPool1d", (3,), {}, (2, 3, 8)),
    ("AdaptiveAvgPool2d", ((3, 1),), {}, IMAGE),
    ("Dropout", (0.0,), {}, (7,)),
    ("Flatten", (), {}, IMAGE),
    ("Flatten", (0, 1), {}, IMAGE),
    ("Unflatten", (1, (2, 2)), {}, IMAGE),
    ("CELU", (), {"alpha": 0.7}, (3, 4)),
    ("Hardshrink", (0.3,), {}, (3, 4)),
    ("Softshrink", (), {}, (3, 4)),
    ("Tanhshrink", (), {}, (3, 4)),
    ("Threshold", (0.1, 2.0), {}, (3, 4)),
    ("Softmin", (), {"dim": 1}, (3, 4)),
    ("Softmax2d", (), {}, (2, 3, 4, 4)),
    ("PixelShuffle", (2,), {}, (1, 8, 2, 3)),
    ("PixelUnshuffle", (2,), {}, (1, 2, 4, 6)),
    ("ChannelShuffle", (3,), {}, (2, 6, 3)),
    ("BatchNorm3d", (4,), {}, (2, 4, 2, 3, 3)),
    ("InstanceNorm1d", (4,), {"affine": True}, (2, 4, 5)),
    ("InstanceNorm2d", (4,), {"track_running_stats": True}, IMAGE),
    ("InstanceNorm2d", (4,), {"affine": True, "momentum": None, "track_running_stats": True}, (4, 3, 3)),
    ("InstanceNorm3d", (2,), {}, (2, 2, 2, 3, 3)),
    ("RMSNorm", (5,), {}, (2, 5)),
    ("RMSNorm", ((3, 5), 1e-3, False), {}, (2, 3, 5)),
    ("LocalResponseNorm", (3,), {"alpha": 0.1}, IMAGE),
    ("LocalResponseNorm", (2, 0.2, 0.5, 2.0), {}, (2, 5, 3)),
    ("Dropout1d", (0.0,), {}, (2, 3, 4)),
    ("Dropout2d", (0.0,), {}, IMAGE),
    ("Dropout3d", (0.0,), {}, (1, 2, 2, 2, 2)),
    *[(f"{kind}Pad1d", (given, *more), {}, (2, 3, 5)) for kind, *more in PADS for given in (2, (1, 3))],
    *[(f"{kind}Pad2d", (given, *more), {}, (3, 4, 5)) for kind, *more in PADS for given in (1, (2, 1, 0, 3))],
    *[
        (f"{kind}Pad3d", (given, *more), {}, (1, 2, 3, 4, 4))
        for kind, *more in PADS
        for given in (1, (2, 1, 0, 3, 1, 2))
    ],
]


def pair_of(name, args, kwargs):
    """Make our layer and PyTorch's from the same seed."""
    tg.manual_seed(5)
    ours = getattr(nn, name)(*args, **kwargs)
    torch.manual_seed(5)
    return ours, getattr(torch.nn, name)(*args, **kwargs)


def both(values):
    """Return the same values as our tensor and as PyTorch's, both requiring grad."""
    return tg.from_numpy(values.copy()).requires_grad_(), torch.from_numpy(values.copy()).requires_grad_()


def close(ours, theirs, what):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=2e-5, atol=2e-6, err_msg=what)


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_layer_equals_pytorchs(name, args, kwargs, shape):
    ours, theirs = pair_of(name, args, kwargs)
    x, reference_x = both(np.random.default_rng(0).standard_normal(shape).astype("float32"))
    for training in (True, False):
        ours.train(training)
        theirs.train(training)
        out, reference = ours(x), theirs(reference_x)
        close(out, reference, "output")
    weights = np.random.default_rng(1).standard_normal(tuple(reference.shape)).astype("float32")
    (out * tg.from_numpy(weights)).sum().backward()
    (reference * torch.from_numpy(weights)).sum().backward()
    close(x.grad, reference_x.grad, "gradient of the input")
    for (key, parameter), (reference_key, reference) in zip(ours.named_parameters(), theirs.named_parameters()):
        assert key == reference_key
        close(parameter.grad, reference.grad, f"gradient of {key}")
    state, reference_state = ours.state_dict(), theirs.state_dict()
    assert list(state) == list(reference_state)
    for key in state:
        close(state[key], reference_state[key], key)


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_layer_prints_as_pytorchs(name, args, kwargs, shape):
    ours, theirs = pair_of(name, args, kwargs)
    assert repr(ours) == repr(theirs)


def test_inplace_activations_write_over_their_input():
    for name in ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "LeakyReLU", "ELU", "Hardtanh", "Hardswish", "Hardsigmoid"):
        x = tg.tensor([-2.0, 3.0])
        layer = getattr(nn, name)(inplace=True)
        assert (layer(x) is x and "inplace=True" in repr(layer)) or name.startswith("Hard")


def test_embedding_equals_pytorchs():
    ours, theirs = pair_of("Embedding", (5, 3), {"padding_idx": -1})
    assert repr(ours) == repr(theirs)
    close(ours.weight, theirs.weight, "table")
    index = np.array([[0, 4], [2, 2]])
    out, reference = ours(tg.from_numpy(index)), theirs(torch.from_numpy(index))
    out.sum().backward()
    reference.sum().backward()
    close(out, reference, "rows")
    close(ours.weight.grad, theirs.weight.grad, "gradient")


INF = float("inf")


def test_embedding_shortens_the_rows_in_use():
    kinds = [
        {"max_norm": most, "norm_type": p} for most in (0.5, 2.5) for p in (0.0, 0.5, 3.0, float("inf"), float("-inf"))
    ]
    for options in ({"max_norm": 1.0}, {"max_norm": 0.5, "norm_type": 1.0, "padding_idx": 2}, *kinds):
        ours, theirs = pair_of("Embedding", (5, 3), options)
        assert repr(ours) == repr(theirs)
        index, before = np.array([[0, 4], [2, 2]]), ours.weight.detach().clone()
        out, reference = ours(tg.from_numpy(index)), theirs(torch.from_numpy(index))
        (out * out).sum().backward()
        (reference * reference).sum().backward()
        close(out, reference, "rows")
        close(ours.weight, theirs.weight, "table")
        close(ours.weight.grad, theirs.weight.grad, "gradient")
        assert ours.weight[1].equal(before[1]) and ours.weight[3].equal(before[3])
        if options not in kinds:
            assert out.detach().norm(options.get("norm_type", 2.0), -1).max() <= options["max_norm"] + 1e-4


def test_bags_of_embeddings_equal_pytorchs():
    for options in ({}, {"mode": "sum", "max_norm": 1.0}, {"mode": "max", "padding_idx": -1}):
        ours, theirs = pair_of("EmbeddingBag", (5, 3), options)
        assert repr(ours) == repr(theirs)
        index, offsets = np.array([0, 4, 2, 2, 1]), np.array([0, 2, 2])
        out = ours(tg.from_numpy(index), tg.from_numpy(offsets))
        reference = theirs(torch.from_numpy(index), torch.from_numpy(offsets))
        out.sum().backward()
        reference.sum().backward()
        close(out, reference, "bags")
        close(ours.weight.grad, theirs.weight.grad, "gradient")
    table = nn.EmbeddingBag.from_pretrained(tg.eye(3), mode="sum")
    assert not table.weight.requires_grad and table(tg.tensor([[0, 2]])).tolist() == [[1.0, 0.0, 1.0]]
    with pytest.raises(AssertionError, match="2-dimensional"):
        nn.EmbeddingBag.from_pretrained(tg.eye(3)[0])


def test_ctc_loss_equals_pytorchs_through_log_softmax():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 3, 5))
    spoken = np.array([1, 2, 2, 3, 4, 4, 1]), np.array([12, 11, 4]), np.array([3, 4, 0])
    crowded = np.array([[1, 1, 1], [2, 2, 2], [1, 2, 3]]), np.array([3, 12, 5]), np.array([3, 3, 3])
    for targets, steps, labels in (spoken, crowded):
        for options in ({}, {"reduction": "sum", "zero_infinity": True}, {"blank": 0, "reduction": "none"}):
            found = []
            for lib, wrap in ((tg, tg.from_numpy), (torch, torch.from_numpy)):
                scores = wrap(x.copy()).requires_grad_()
                loss = lib.nn.CTCLoss(**options)(
                    lib.nn.functional.log_softmax(scores, 2), wrap(targets), wrap(steps), wrap(labels)
                )
                (slope,) = lib.autograd.grad(loss.sum(), scores)
                found += [loss.detach(), slope]
            np.testing.assert_allclose(found[0].numpy(), found[2].numpy(), 1e-10)
            np.testing.assert_allclose(found[1].numpy(), found[3].numpy(), 1e-8, 1e-10)


LOSSES = [
    ("MSELoss", {}, "values"),
    ("L1Loss", {"reduction": "sum"}, "values"),
    ("SmoothL1Loss", {"beta": 0.5}, "values"),
    ("HuberLoss", {"delta": 0.7, "reduction": "none"}, "values"),
    ("BCEWithLogitsLoss", {}, "values"),
    ("KLDivLoss", {"reduction": "batchmean"}, "values"),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, "classes"),
    ("CrossEntropyLoss", {"ignore_index": 1, "reduction": "sum"}, "classes"),
    ("CrossEntropyLoss", {}, "values"),
    ("NLLLoss", {}, "classes"),
]


@pytest.mark.parametrize(("name", "kwargs", "target"), LOSSES, ids=[f"{c[0]}-{i}" for i, c in enumerate(LOSSES)])
def test_loss_equals_pytorchs(name, kwargs, target):
    ours, theirs = pair_of(name, (), kwargs)
    rng = np.random.default_rng(2)
    x, reference_x = both(rng.standard_normal((4, 3)).astype("float32"))
    goal = rng.random((4, 3)).astype("float32") if target == "values" else np.array([0, 1, 2, 1])
    out, reference = ours(x, tg.from_numpy(goal)), theirs(reference_x, torch.from_numpy(goal))
    close(out, reference, "loss")
    out.sum().backward()
    reference.sum().backward()
    close(x.grad, reference_x.grad, "gradient")
    assert repr(ours) == repr(theirs)


def test_weighted_losses_equal_pytorchs():
    rng = np.random.default_rng(3)
    probability, goal = rng.random((4, 3)).astype("float32"), rng.random((4, 3)).astype("float32")
    weight = np.array([1.0, 2.0, 3.0], "float32")
    for name, keyword in (("BCELoss", "weight"), ("BCEWithLogitsLoss", "pos_weight"), ("CrossEntropyLoss", "weight")):
        ours = getattr(nn, name)(**{keyword: tg.from_numpy(weight)})
        theirs = getattr(torch.nn, name)(**{keyword: torch.from_numpy(weight)})
        close(
            ours(tg.from_numpy(probability), tg.from_numpy(goal)),
            theirs(torch.from_numpy(probability), torch.from_numpy(goal)),
            name,
        )
        assert keyword in dict(ours.named_buffers())


def _numbers(*shape):
    return np.random.default_rng(4).standard_normal(shape).astype("float32")


_SIGNS = np.array([1, -1, 1, -1])
# name, arguments of the module, inputs
OF_SEVERAL = [
    ("MarginRankingLoss", {"margin": 0.3}, [_numbers(4), _numbers(2, 4)[1], _SIGNS]),
    ("HingeEmbeddingLoss", {"reduction": "sum"}, [_numbers(4), _SIGNS]),
    ("CosineEmbeddingLoss", {"margin": -0.2}, [_numbers(4, 3), _numbers(8, 3)[4:], _SIGNS]),
    ("SoftMarginLoss", {"reduction": "none"}, [_numbers(4), _SIGNS]),
    ("MultiLabelSoftMarginLoss", {}, [_numbers(4, 3), (_numbers(8, 3)[4:] > 0).astype("float32")]),
    ("MultiMarginLoss", {"p": 2, "margin": 0.5}, [_numbers(4, 3), np.array([0, 2, 1, 1])]),
    ("TripletMarginLoss", {"swap": True}, [_numbers(4, 3), _numbers(8, 3)[4:], _numbers(12, 3)[8:]]),
    ("TripletMarginWithDistanceLoss", {"swap": True}, [_numbers(4, 3), _numbers(8, 3)[4:], _numbers(12, 3)[8:]]),
    ("PoissonNLLLoss", {"full": True}, [_numbers(4, 3), np.abs(_numbers(8, 3)[4:]) * 3]),
    ("GaussianNLLLoss", {"full": True}, [_numbers(4, 3), _numbers(8, 3)[4:], np.abs(_numbers(4, 1)) + 0.1]),
    ("PairwiseDistance", {"p": 3.0, "keepdim": True}, [_numbers(4, 3), _numbers(8, 3)[4:]]),
    ("CosineSimilarity", {"dim": 0}, [_numbers(4, 3), _numbers(8, 3)[4:]]),
    ("Bilinear", {"in1_features": 3, "in2_features": 2, "out_features": 4}, [_numbers(5, 3), _numbers(5, 2)]),
]


@pytest.mark.parametrize(("name", "kwargs", "inputs"), OF_SEVERAL, ids=[case[0] for case in OF_SEVERAL])
def test_modules_of_several_inputs_equal_pytorchs(name, kwargs, inputs):
    ours, theirs = pair_of(name, (), kwargs)
    given = [both(x) if x.dtype == np.float32 else (tg.from_numpy(x), torch.from_numpy(x)) for x in inputs]
    out, reference = ours(*(x for x, _ in given)), theirs(*(x for _, x in given))
    close(out, reference, name)
    out.sum().backward()
    reference.sum().backward()
    for x, y in given:
        if y.grad is not None:
            close(x.grad, y.grad, "gradient")
    assert repr(ours) == repr(theirs)


def test_batch_norm_that_tracks_no_more_leaves_its_buffers():
    bn, x = tg.nn.BatchNorm1d(3, momentum=None), tg.arange(12.0).reshape(4, 3)
    bn(x)
    before = {name: b.clone() for name, b in bn.named_buffers()}
    bn.track_running_stats = False
    bn(x * 2.0)
    assert before["num_batches_tracked"].item() == 1
    assert all(tg.equal(b, before[name]) for name, b in bn.named_buffers())
