"""Averages of weights: means, moving averages, batch norms, the schedule that goes with them."""

import copy

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, optim
from tinygrad_ext.optim import swa_utils

VALUES = [1.0, 2.0, 6.0, -3.0]


def averaged(**kwargs):
    """A model that is averaged over VALUES; its buffer counts them."""
    model = nn.Linear(2, 2)
    model.register_buffer("seen", tg.tensor(0.0))
    average = swa_utils.AveragedModel(model, **kwargs)
    for value in VALUES:
        with tg.no_grad():
            model.weight.fill_(value)
            model.seen += 1
        average.update_parameters(model)
    return model, average


def moving(decay, values=VALUES):
    result = values[0]
    for value in values[1:]:
        result = decay * result + (1 - decay) * value
    return result


@pytest.mark.parametrize("kwargs", [{}, {"avg_fn": swa_utils.get_swa_avg_fn()},
                                    {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}])  # fmt: skip
def test_the_mean_is_the_default(kwargs):
    model, average = averaged(**kwargs)
    tg.testing.assert_close(average.module.weight, tg.full((2, 2), sum(VALUES) / 4))
    assert average.n_averaged.item() == 4
    assert average.module.seen.item() == 4 and average.module.seen is not model.seen


@pytest.mark.parametrize("function", [{"avg_fn": swa_utils.get_ema_avg_fn(0.7)},
                                      {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.7)}])  # fmt: skip
def test_a_moving_average_forgets(function):
    _, average = averaged(**function, use_buffers=True)
    assert average.module.weight[0, 0].item() == pytest.approx(moving(0.7), rel=1e-6)
    assert average.module.seen.item() == pytest.approx(moving(0.7, [1, 2, 3, 4]), rel=1e-6)


def test_the_averages_are_saved_and_the_average_is_called_as_the_model():
    model, average = averaged()
    assert set(average.state_dict()) == {"n_averaged", "module.weight", "module.bias", "module.seen"}
    again = swa_utils.AveragedModel(nn.Linear(2, 2))
    again.module.register_buffer("seen", tg.tensor(0.0))
    again.load_state_dict(average.state_dict())
    x = tg.randn(3, 2)
    assert tg.equal(again(x), average.module(x))
    assert tg.equal(copy.deepcopy(average)(x), average(x))


def test_batch_norms_take_the_statistics_of_one_pass():
    data = tg.randn(4, 8, 3) * 3 + 1
    model = nn.Sequential(nn.BatchNorm1d(3, momentum=0.3), nn.Linear(3, 2))
    model.eval()
    swa_utils.update_bn([(batch, None) for batch in data], model)
    norm = model[0]
    tg.testing.assert_close(norm.running_mean, data.mean(dim=(0, 1)), rtol=1e-5, atol=1e-5)
    tg.testing.assert_close(norm.running_var, data.var(dim=1).mean(dim=0), rtol=1e-5, atol=1e-5)
    assert norm.momentum == 0.3 and not model.training and norm.num_batches_tracked.item() == 4


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 3, 5])
def test_the_schedule_equals_pytorchs(strategy, epochs):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    seen = []
    for module, tensor in ((optim, tg.ones), (torch.optim, torch.ones)):
        opt = module.SGD([{"params": [tensor(2)], "lr": 0.1}, {"params": [tensor(2)], "lr": 0.3}])
        scheduler = module.swa_utils.SWALR(opt, [0.05, 0.5], anneal_epochs=epochs, anneal_strategy=strategy)
        rows = [scheduler.get_last_lr()]
        for _ in range(8):
            opt.step()
            scheduler.step()
            rows.append(scheduler.get_last_lr())
        seen.append(rows)
    assert seen[0] == [pytest.approx(row, rel=1e-12) for row in seen[1]]
    assert seen[0][-1] == pytest.approx([0.05, 0.5])


def test_refusals():
    with pytest.raises(ValueError, match="decay"):
        swa_utils.get_ema_avg_fn(1.5)
    with pytest.raises(AssertionError, match="Only one of"):
        swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=lambda *_: 0, multi_avg_fn=lambda *_: None)
    opt = optim.SGD([tg.ones(1)], lr=0.1)
    for kwargs, message in (
        ({"anneal_strategy": "sine"}, "anneal_strategy"),
        ({"anneal_epochs": -1}, "anneal_epochs"),
        ({"swa_lr": [0.1, 0.2]}, "swa_lr must have the same length"),
    ):
        with pytest.raises(ValueError, match=message):
            swa_utils.SWALR(opt, **{"swa_lr": 0.1, **kwargs})
