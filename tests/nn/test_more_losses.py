"""Losses with a softmax in two steps, a linear layer, or several labels: as they are defined, and beside PyTorch's."""

import pickle

import numpy as np
import pytest
from beside_torch import close, compare, numbers, seeded

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.nn import functional as F


def test_multi_label_margin_loss_equals_the_sum_over_pairs():
    x, target = numbers(3, 4), np.array([[2, 0, -1, 1], [1, -1, 1, 1], [-1, 2, 2, 2]])
    wanted = []
    for row, labels in zip(x, ([2, 0], [1], [])):
        others = [i for i in range(4) if i not in labels]
        wanted.append(sum(max(0, 1 - row[i] + row[j]) for i in labels for j in others) / 4)
    for reduction, reduce in (("none", np.array), ("mean", np.mean), ("sum", np.sum)):
        loss = nn.MultiLabelMarginLoss(reduction=reduction)
        close(loss(tg.from_numpy(x), tg.from_numpy(target)), reduce(wanted))
        assert tg.equal(
            jit.trace(loss, (tg.from_numpy(x), tg.from_numpy(target)))(tg.from_numpy(x), tg.from_numpy(target)),
            loss(tg.from_numpy(x), tg.from_numpy(target)),
        )
    with pytest.warns(UserWarning, match="reduction="):
        assert nn.MultiLabelMarginLoss(False).reduction == "sum"
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    ours, theirs = nn.MultiLabelMarginLoss(), torch.nn.MultiLabelMarginLoss()
    assert repr(ours) == repr(theirs)
    compare(ours, theirs, [x, target], torch, "loss")


ADAPTIVE = [((8, 20, [5, 10, 15]), {}), ((8, 20, [3]), {"div_value": 2.0, "head_bias": True}), ((4, 9, (1, 8)), {})]


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize(("args", "kwargs"), ADAPTIVE)
def test_adaptive_softmax(args, kwargs):
    layer = seeded(tg, "AdaptiveLogSoftmaxWithLoss", args, kwargs)
    x = tg.from_numpy(numbers(40, args[0]))
    probable = layer.log_prob(x)
    close(probable.exp().sum(1), np.ones(40), rtol=1e-5)
    assert tg.equal(layer.predict(x), probable.argmax(1)) and len(set(layer.predict(x * 9).tolist())) > 1
    target = tg.from_numpy(np.random.default_rng(2).integers(0, args[1], 40))
    output, loss = result = layer(x, target)
    close(output, probable.gather(1, target.unsqueeze(1)).squeeze(1))
    close(loss, -output.mean())
    assert type(result)._fields == ("output", "loss")
    one = layer(x[3], target[3])
    assert one.output.shape == () and tg.allclose(one.output, output[3]) and tg.allclose(one.loss, -output[3])
    for graph in (jit.trace(layer, (x, target)), jit.script(layer)):
        for classes in (target, target.flip(0), target * 0):
            close(graph(x, classes)[0], layer(x, classes).output)
    layer.zero_grad()
    layer(x[:2], tg.tensor([0, 0])).loss.backward()
    assert all(parameter.grad is None for parameter in layer.tail.parameters())
    again = pickle.loads(pickle.dumps(layer))
    assert repr(again) == repr(layer) and tg.equal(again(x, target).output, output)
    first = layer.head.weight.detach().clone()
    layer.reset_parameters()
    assert not tg.equal(first, layer.head.weight)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize(("args", "kwargs"), ADAPTIVE)
def test_adaptive_softmax_equals_pytorchs(args, kwargs):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    ours, theirs = (seeded(library, "AdaptiveLogSoftmaxWithLoss", args, kwargs) for library in (tg, torch))
    assert repr(ours) == repr(theirs)
    x, target = numbers(30, args[0]) * 3, np.random.default_rng(2).integers(0, args[1], 30)
    compare(ours, theirs, [x, target], torch, "adaptive")
    assert ours.predict(tg.from_numpy(x)).tolist() == theirs.predict(torch.from_numpy(x)).tolist()
    close(ours.log_prob(tg.from_numpy(x)), theirs.log_prob(torch.from_numpy(x)))


LINEAR_LOSS = [
    ((5, 4), {}, ()),
    ((5, 4), {"bias": True, "label_smoothing": 0.2, "reduction": "sum", "ignore_index": 1}, ()),
    ((5, 4), {"out_features": (2, 3), "bias": True, "reduction": "none"}, (2, 3)),
]


@pytest.mark.parametrize(("args", "kwargs", "places"), LINEAR_LOSS)
def test_linear_cross_entropy(args, kwargs, places):
    loss = seeded(tg, "LinearCrossEntropyLoss", args, kwargs)
    x, target = numbers(3, 5), np.random.default_rng(4).integers(0, 4, (3, *places))
    given = tg.from_numpy(x), tg.from_numpy(target)
    options = {key: value for key, value in kwargs.items() if key not in ("bias", "out_features")}
    scores = loss.linear(given[0]).reshape(3, 4, *places)
    close(loss(*given), F.cross_entropy(scores, given[1], **options))
    assert tg.equal(jit.trace(loss, given)(*given), loss(*given))
    assert tg.equal(pickle.loads(pickle.dumps(loss))(*given), loss(*given))
    weighted = nn.LinearCrossEntropyLoss(*args, weight=tg.ones(4) * 2, **kwargs)
    assert next(iter(weighted.state_dict())) == "weight"
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    theirs = seeded(torch, "LinearCrossEntropyLoss", args, kwargs)
    assert repr(loss) == repr(theirs)
    compare(loss, theirs, [x, target], torch, "loss")


def test_options_of_linear_cross_entropy_change_nothing_and_are_checked():
    layer = tg.nn.LinearCrossEntropyLoss(3, 4)
    x, target = tg.ones(2, 3), tg.tensor([0, 3])
    want = layer(x, target)
    layer.options = tg.nn.LinearCrossEntropyOptions(batch_chunk_size=1, chunking_method=None, acc_dtype=tg.float32)
    assert tg.equal(layer(x, target), want)
    assert pickle.loads(pickle.dumps(layer)).options == layer.options
    for wrong, fragment in (
        ({"acc_policy": "best"}, "invalid acc_policy: 'best'"),
        ({"chunking_method": "aspect_ratio:0"}, "invalid chunking_method: 'aspect_ratio:0'"),
        ({"chunking_method": "rows"}, "invalid chunking_method: 'rows'"),
        ({"batch_chunk_size": 0}, "must be positive int or None, got 0"),
        ({"acc_dtype": tg.int64}, "acc_dtype must be None"),
    ):
        with pytest.raises(ValueError, match=fragment):
            tg.nn.LinearCrossEntropyOptions(**wrong)


def test_triplets_by_a_distance_of_ones_own():
    tg.manual_seed(0)
    F, rows = tg.nn.functional, [tg.randn(4, 3) for _ in range(3)]
    own = F.triplet_margin_with_distance_loss
    assert tg.equal(own(*rows, margin=2.0, swap=True), F.triplet_margin_loss(*rows, 2.0, swap=True))
    far = lambda a, b: (a - b).abs().max(-1)[0]
    losses = own(*rows, distance_function=far, reduction="none")
    assert losses.shape == (4,) and tg.equal(losses.sum(), own(*rows, distance_function=far, reduction="sum"))
    with pytest.raises(ValueError, match="abc is not a valid value for reduction"):
        own(*rows, reduction="abc")
    with pytest.raises(ValueError, match="margin must be greater than 0"):
        own(*rows, margin=0)
    with pytest.raises(RuntimeError, match="expected to have the same number of dimensions"):
        own(rows[0][0], *rows[1:])


def test_a_margin_of_exactly_zero_has_no_slope_and_the_target_itself_counts_nothing():
    x = tg.tensor([[1.0, 0.0, 2.0]], requires_grad=True)
    loss = F.multi_margin_loss(x, tg.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(2 / 3)
    assert x.grad.flatten().tolist() == pytest.approx([-1 / 3, 0.0, 1 / 3])
    assert F.multi_margin_loss(tg.tensor([[1.0, float("inf")]]), tg.tensor([1])).item() == 0.0
