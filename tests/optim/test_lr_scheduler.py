"""Learning rate schedules: PyTorch's numbers, resuming, refusals."""

import copy

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, optim
from tinygrad_ext.optim import lr_scheduler as schedules

CASES = {
    "StepLR": lambda m, o: m.StepLR(o, 3, gamma=0.5),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, [2, 5, 5], gamma=0.5),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, 0.9),
    "ConstantLR": lambda m, o: m.ConstantLR(o, 0.25, total_iters=4),
    "LinearLR": lambda m, o: m.LinearLR(o, 0.1, 0.8, total_iters=6),
    "PolynomialLR": lambda m, o: m.PolynomialLR(o, 6, power=2.0),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, 4, eta_min=0.01),
    "LambdaLR": lambda m, o: m.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.5**e]),
    "MultiplicativeLR": lambda m, o: m.MultiplicativeLR(o, lambda e: 0.9),
    "SequentialLR": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=3), m.CosineAnnealingLR(o, 5), m.ExponentialLR(o, 0.5)], [3, 8]
    ),
    "ChainedScheduler": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, total_iters=2), m.StepLR(o, 4)]),
}


def optimizer(module, tensor, parameter):
    return module.SGD([{"params": parameter(tensor(2)), "lr": 0.1}, {"params": parameter(tensor(2)), "lr": 0.3}])


def ours():
    return optimizer(optim, tg.ones, nn.Parameter)


def run(scheduler, opt, steps):
    seen = []
    for _ in range(steps):
        opt.step()
        scheduler.step()
        seen.append([group["lr"] for group in opt.param_groups])
        assert scheduler.get_last_lr() == seen[-1]
    return seen


@pytest.mark.parametrize("name", CASES)
def test_values_equal_pytorchs(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    opt, reference = ours(), optimizer(torch.optim, torch.ones, torch.nn.Parameter)
    scheduler, other = CASES[name](schedules, opt), CASES[name](torch.optim.lr_scheduler, reference)
    assert scheduler.get_last_lr() == other.get_last_lr()
    assert run(scheduler, opt, 20) == run(other, reference, 20)


@pytest.mark.parametrize("name", CASES)
def test_a_saved_schedule_goes_on(name):
    opt = ours()
    scheduler = CASES[name](schedules, opt)
    run(scheduler, opt, 4)
    state = copy.deepcopy((scheduler.state_dict(), opt.state_dict()))
    expected = run(scheduler, opt, 6)
    fresh = ours()
    again = CASES[name](schedules, fresh)
    again.load_state_dict(state[0])
    fresh.load_state_dict(state[1])
    assert run(again, fresh, 6) == expected


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("SequentialLR", "ChainedScheduler")])
def test_resuming_by_last_epoch_equals_pytorchs(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    seen = []
    for module, opt in (
        (schedules, ours()),
        (torch.optim.lr_scheduler, optimizer(torch.optim, torch.ones, torch.nn.Parameter)),
    ):
        for group in opt.param_groups:
            group["initial_lr"] = group["lr"]
        arguments = {"StepLR": (3,), "MultiStepLR": ([2, 5],), "ExponentialLR": (0.9,), "CosineAnnealingLR": (4,)}
        if name in ("LambdaLR", "MultiplicativeLR"):
            arguments[name] = (lambda e: 1 / (1 + e),)
        scheduler = getattr(module, name)(opt, *arguments.get(name, ()), last_epoch=2)
        seen.append([scheduler.get_last_lr(), *run(scheduler, opt, 8)])
    assert seen[0] == seen[1]


def test_plateau_reduces_after_patience():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    metrics = [3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    for kwargs in ({}, {"cooldown": 2, "min_lr": [0.01, 0.1]}, {"mode": "max", "threshold_mode": "abs"}):
        opt, reference = ours(), optimizer(torch.optim, torch.ones, torch.nn.Parameter)
        scheduler = schedules.ReduceLROnPlateau(opt, patience=1, **kwargs)
        other = torch.optim.lr_scheduler.ReduceLROnPlateau(reference, patience=1, **kwargs)
        for metric in metrics:
            scheduler.step(metric)
            other.step(metric)
            assert scheduler.get_last_lr() == other.get_last_lr()
        fresh = schedules.ReduceLROnPlateau(ours())
        fresh.load_state_dict(scheduler.state_dict())
        assert fresh.state_dict() == scheduler.state_dict()


def test_a_tensor_as_rate_keeps_its_identity():
    lr = tg.tensor(1.0)
    opt = optim.SGD([nn.Parameter(tg.ones(1))], lr=lr)
    scheduler = schedules.StepLR(opt, 1, gamma=0.5)
    opt.step()
    scheduler.step()
    assert opt.param_groups[0]["lr"] is lr and float(lr) == 0.5 and float(opt.param_groups[0]["initial_lr"]) == 1


def test_stepping_before_the_optimizer_and_by_epoch_warn():
    opt = ours()
    scheduler = schedules.StepLR(opt, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    opt.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(4)
    assert scheduler.get_last_lr() == pytest.approx([0.001, 0.003])


def test_a_callable_objects_attributes_are_saved():
    class Factor:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    state = schedules.LambdaLR(ours(), Factor(0.5)).state_dict()
    factor = Factor(0.1)
    schedules.LambdaLR(ours(), factor).load_state_dict(state)
    assert factor.base == 0.5


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda o: schedules.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: schedules.StepLR(o, 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda o: schedules.LRScheduler(o), NotImplementedError, "does not define get_lr"),
        (lambda o: schedules.ConstantLR(o, 2), ValueError, "between 0 and 1"),
        (lambda o: schedules.LinearLR(o, 0), ValueError, "Starting multiplicative factor"),
        (lambda o: schedules.LinearLR(o, 1, 2), ValueError, "Ending multiplicative factor"),
        (lambda o: schedules.LambdaLR(o, [abs]), ValueError, "Expected 2 lr_lambdas, but got 1"),
        (lambda o: schedules.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 1)], [1]), ValueError, "one more than"),
        (lambda o: schedules.SequentialLR(o, [schedules.StepLR(ours(), 1)], []), ValueError, "same optimizer"),
        (lambda o: schedules.SequentialLR(o, [3], []), TypeError, "should have `optimizer`"),
        (lambda o: schedules.SequentialLR(o, [schedules.ReduceLROnPlateau(o)], []), ValueError, "does not support"),
        (lambda o: schedules.ChainedScheduler([]), ValueError, "at least one scheduler"),
        (lambda o: schedules.ReduceLROnPlateau(o, factor=2), ValueError, "Factor should be < 1.0"),
        (lambda o: schedules.ReduceLROnPlateau(o, "x"), ValueError, "mode x is unknown"),
        (lambda o: schedules.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold mode x is unknown"),
        (lambda o: schedules.ReduceLROnPlateau(o, min_lr=[1]), ValueError, "expected 2 min_lrs, got 1"),
        (lambda o: schedules.ReduceLROnPlateau(3), TypeError, "is not an Optimizer"),
    ],
)
def test_wrong_arguments_raise(call, error, text):
    with pytest.raises(error) as caught:
        call(ours())
    assert text in str(caught.value)
