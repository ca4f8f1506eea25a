"""Learning rate schedules: PyTorch's numbers, resuming, refusals."""

import copy
import warnings

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
CYCLES = {
    "CosineAnnealingWarmRestarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.01),
    "CosineAnnealingWarmRestarts-same": lambda m, o: m.CosineAnnealingWarmRestarts(o, 4),
    "CyclicLR": lambda m, o: m.CyclicLR(o, [0.1, 0.2], 1.0, step_size_up=3, step_size_down=2),
    "CyclicLR-halved": lambda m, o: m.CyclicLR(o, 0.1, 1.0, step_size_up=2, mode="triangular2", cycle_momentum=False),
    "CyclicLR-exp": lambda m, o: m.CyclicLR(o, 0.1, [1.0, 2.0], step_size_up=3, mode="exp_range", gamma=0.9),
    "CyclicLR-own": lambda m, o: m.CyclicLR(
        o, 0.1, 1.0, step_size_up=3, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"
    ),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, [1.0, 2.0], total_steps=25),
    "OneCycleLR-three": lambda m, o: m.OneCycleLR(
        o, 1.0, epochs=5, steps_per_epoch=6, anneal_strategy="linear", three_phase=True, pct_start=0.4
    ),
}
ALL = {**CASES, **CYCLES}


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


@pytest.mark.parametrize("name", ALL)
def test_values_equal_pytorchs(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    opt, reference = ours(), optimizer(torch.optim, torch.ones, torch.nn.Parameter)
    scheduler, other = ALL[name](schedules, opt), ALL[name](torch.optim.lr_scheduler, reference)
    assert scheduler.get_last_lr() == other.get_last_lr()
    assert run(scheduler, opt, 20) == run(other, reference, 20)


@pytest.mark.parametrize("name", ALL)
def test_a_saved_schedule_goes_on(name):
    opt = ours()
    scheduler = ALL[name](schedules, opt)
    run(scheduler, opt, 4)
    state = copy.deepcopy((scheduler.state_dict(), opt.state_dict()))
    expected = run(scheduler, opt, 6)
    fresh = ours()
    again = ALL[name](schedules, fresh)
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


def test_cycles_move_the_momentum_or_the_first_beta_as_pytorch_does():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    for name in ("CyclicLR", "CyclicLR-exp", "OneCycleLR", "OneCycleLR-three"):
        for kind in ("SGD", "Adam"):
            seen = []
            for module, tensor in ((optim, tg.ones), (torch.optim, torch.ones)):
                opt = getattr(module, kind)([{"params": [tensor(2)], "lr": 0.1}, {"params": [tensor(2)], "lr": 0.3}])
                scheduler = ALL[name](module.lr_scheduler, opt)
                rows = []
                for _ in range(12):
                    opt.step()
                    scheduler.step()
                    rows.append([{k: v for k, v in g.items() if k != "params"} for g in opt.param_groups])
                seen.append(rows)
            assert seen[0] == seen[1]


def test_warm_restarts_go_to_a_fraction_of_an_epoch():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    for factor in (1, 2):
        pair = [(optim, ours()), (torch.optim, optimizer(torch.optim, torch.ones, torch.nn.Parameter))]
        made = [module.lr_scheduler.CosineAnnealingWarmRestarts(opt, 3, T_mult=factor) for module, opt in pair]
        for epoch in (0.5, 2.9, 3.0, 7.25, 10.5, 1.0):
            for scheduler in made:
                scheduler.step(epoch)
            assert made[0].get_last_lr() == made[1].get_last_lr()
        with pytest.raises(ValueError, match="non-negative"):
            made[0].step(-1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 0), "positive integer T_0"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, T_mult=0.5), "T_mult"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, eta_min="0"), "eta_min"),
        (lambda o: schedules.CyclicLR(o, [0.1], 1.0), "base_lr must have the same length"),
        (lambda o: schedules.CyclicLR(o, 0.1, 1.0, mode="square"), "mode is invalid"),
        (lambda o: schedules.OneCycleLR(o, 1.0), "either total_steps OR"),
        (lambda o: schedules.OneCycleLR(o, 1.0, epochs=0, steps_per_epoch=2), "positive integer epochs"),
        (lambda o: schedules.OneCycleLR(o, 1.0, total_steps=3, pct_start=2.0), "pct_start"),
        (lambda o: schedules.OneCycleLR(o, 1.0, total_steps=3, anneal_strategy="sine"), "anneal_strategy"),
    ],
)
def test_cycles_refuse_options_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make(ours())


def test_cycles_refuse_more_steps_than_said_and_an_optimizer_without_momentum():
    opt = ours()
    scheduler = schedules.OneCycleLR(opt, 1.0, total_steps=3)
    run(scheduler, opt, 3)
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        scheduler.step()
    with pytest.raises(ValueError, match="cycle_momentum"):
        schedules.CyclicLR(optim.Adagrad([tg.ones(1)]), 0.1, 1.0)


def test_what_a_plateau_does_to_the_rates_can_be_replaced():
    scheduler, seen = schedules.ReduceLROnPlateau(ours(), patience=0), []
    scheduler._reduce_lr = seen.append
    before = scheduler.optimizer.param_groups[0]["lr"]
    for metric in (1.0, 2.0, 3.0):
        scheduler.step(metric)
    assert seen == [2, 3] and scheduler.optimizer.param_groups[0]["lr"] == before


@pytest.mark.parametrize("kind", ["CyclicLR", "OneCycleLR", "SWALR"])
def test_tensors_that_a_schedule_was_given_may_be_written_to_afterwards(kind):
    low, high, lr = tg.tensor(0.8), tg.tensor(0.9), tg.tensor(0.2)
    optimizer = optim.SGD([tg.nn.Parameter(tg.ones(1))], lr=tg.tensor(0.1), momentum=0.5)
    ends = {"base_momentum": low, "max_momentum": high, "max_lr": lr}
    if kind == "CyclicLR":
        optim.lr_scheduler.CyclicLR(optimizer, base_lr=lr, **ends)
    elif kind == "OneCycleLR":
        optim.lr_scheduler.OneCycleLR(optimizer, total_steps=5, **ends)
    else:
        ends = {"swa_lr": lr}
        optim.swa_utils.SWALR(optimizer, **ends)
    (group,) = optimizer.param_groups
    before = {name: float(group[name]) for name in ("initial_lr", *ends) if name in group}
    for t in (low, high, lr):
        t.mul_(0.5)
    assert len(before) > 1 and {name: float(group[name]) for name in before} == before


def test_chained_schedules_stand_in_a_sequence():
    optimizer = optim.SGD([nn.Parameter(tg.ones(1))], lr=0.05)
    chained = schedules.ChainedScheduler(
        [schedules.LinearLR(optimizer, 0.1, total_iters=4), schedules.ConstantLR(optimizer, 0.1, total_iters=4)]
    )
    then = schedules.ConstantLR(optimizer, 0.5, total_iters=4)
    with pytest.warns(UserWarning, match="before `optimizer.step"):  # as in PyTorch
        sequence = schedules.SequentialLR(optimizer, [chained, then], milestones=[4])
    seen = [optimizer.param_groups[0]["lr"]]
    for _ in range(6):
        optimizer.step()
        sequence.step()
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([0.0005, 0.001625, 0.00275, 0.003875, 0.025, 0.025, 0.025])


def test_a_plateau_with_a_limit_for_each_group_refuses_a_new_group():
    optimizer = optim.SGD([{"params": [nn.Parameter(tg.ones(1))]}, {"params": [nn.Parameter(tg.ones(1))]}], lr=0.1)
    schedule = schedules.ReduceLROnPlateau(optimizer, min_lr=[1e-5, 1e-4], patience=0)
    optimizer.add_param_group({"params": [nn.Parameter(tg.ones(1))]})
    schedule.step(1.0)
    with pytest.raises(RuntimeError, match="The number of param groups in the `optimizer` .3. differs"):
        schedule.step(1.3)


def test_a_plateau_is_a_schedule_as_the_others_are():
    assert issubclass(schedules.ReduceLROnPlateau, schedules.LRScheduler)


@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_multiplicative_goes_on_from_epoch_zero_but_at_the_start():
    optimizer = optim.SGD([nn.Parameter(tg.ones(1))], lr=0.1)
    schedule = schedules.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    assert schedule.get_last_lr() == [0.1]
    optimizer.step()
    schedule.step(0)
    assert schedule.get_last_lr() == [0.05]


def test_a_step_that_is_replaced_after_the_schedule_was_made_is_noticed():
    for early in (True, False):
        opt = optim.SGD([tg.ones(2)])
        if early:
            opt.step = lambda closure=None, step=opt.step: step(closure)
        scheduler = optim.lr_scheduler.StepLR(opt, 3)
        if not early:
            opt.step = lambda closure=None, step=opt.step: step(closure)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            opt.step()
            scheduler.step()
        assert ["has been overridden" in str(w.message) for w in found] == ([] if early else [True])


def test_parts_of_cycles_have_their_private_names():
    opt = optim.SGD([tg.ones(2)], momentum=0.9)
    for mode, value in (("triangular", 1.0), ("triangular2", 0.25), ("exp_range", 0.5**3)):
        cyclic = optim.lr_scheduler.CyclicLR(opt, 0.1, 1.0, mode=mode, gamma=0.5)
        assert cyclic.scale_fn(3) == cyclic._scale_fn_ref(3) == value and "_scale_fn_ref" not in cyclic.state_dict()
    once = optim.lr_scheduler.OneCycleLR(opt, 1.0, total_steps=10)
    assert once._annealing_linear(1, 3, 0.5) == 2 and once._annealing_cos(1.0, 3.0, 1) == 3
    values = [once.get_last_lr()]
    del once._anneal_func_type
    once.load_state_dict({**once.state_dict(), "anneal_func": type(once)._annealing_linear})
    opt.step()
    once.step()
    assert once.get_last_lr() > values[0]
