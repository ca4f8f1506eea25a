"""Each optimizer beside PyTorch's: same numbers, same state dict, in both directions."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, optim

torch = pytest.importorskip("torch", reason="compares with PyTorch")

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 2, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2), "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"alpha": 0.8, "eps": 1e-3, "momentum": 0.5, "centered": True}),
    ("RMSprop", {"centered": True}),
    ("Adafactor", {}),
    (
        "Adafactor",
        {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-6, 1e-2), "d": 1.5, "weight_decay": 0.1, "maximize": True},
    ),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(CASES)]


def pair(name, kwargs, dtype):
    """Make three parameters on each side; the last one never gets a gradient."""
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape).astype(dtype) for shape in ((3, 2), (4,), (2,))]
    ours = [nn.Parameter(tg.from_numpy(value.copy())) for value in values]
    theirs = [torch.nn.Parameter(torch.from_numpy(value.copy())) for value in values]
    return ours, getattr(optim, name)(ours, **kwargs), theirs, getattr(torch.optim, name)(theirs, **kwargs)


def step(ours, ours_opt, theirs, theirs_opt, rng):
    for a, b in zip(ours[:-1], theirs[:-1]):
        grad = rng.standard_normal(tuple(b.shape)).astype(str(b.dtype).removeprefix("torch."))
        a.grad, b.grad = tg.from_numpy(grad.copy()), torch.from_numpy(grad.copy())
    ours_opt.step()
    theirs_opt.step()
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-7)


def same_state(ours, theirs):
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == list(theirs["state"])
    for number, entries in theirs["state"].items():
        assert set(ours["state"][number]) == set(entries)
        for name, value in entries.items():
            mine = ours["state"][number][name]
            assert tuple(mine.shape) == tuple(value.shape) and str(mine.dtype) == str(value.dtype), name
            np.testing.assert_allclose(mine.numpy(), value.numpy(), rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "kwargs"), CASES, ids=IDS)
def test_updates_and_state_equal_pytorchs(name, kwargs, dtype):
    sides = pair(name, kwargs, dtype)
    rng = np.random.default_rng(1)
    for _ in range(5):
        step(*sides, rng)
    same_state(sides[1].state_dict(), sides[3].state_dict())


@pytest.mark.parametrize(("name", "kwargs"), CASES, ids=IDS)
def test_a_loaded_state_goes_on_the_same_way(name, kwargs):
    ours, ours_opt, theirs, theirs_opt = pair(name, kwargs, "float32")
    rng = np.random.default_rng(1)
    for _ in range(2):
        step(ours, ours_opt, theirs, theirs_opt, rng)
    fresh = getattr(optim, name)(ours, lr=123.0)
    fresh.load_state_dict(ours_opt.state_dict())
    for _ in range(2):
        step(ours, fresh, theirs, theirs_opt, rng)
    same_state(fresh.state_dict(), theirs_opt.state_dict())


@pytest.mark.parametrize(("name", "kwargs"), CASES, ids=IDS)
def test_the_ops_give_what_the_compiled_update_gives(name, kwargs, monkeypatch):
    from tinygrad_ext.optim import _fused

    def run():
        ours, opt, _, _ = pair(name, kwargs, "float32")
        rng = np.random.default_rng(1)
        for _ in range(3):
            for parameter in ours[:-1]:
                parameter.grad = tg.from_numpy(rng.standard_normal(tuple(parameter.shape)).astype("float32"))
            opt.step()
        return ours

    compiled = run()
    for function in ("sgd_step", "adam_step"):
        monkeypatch.setattr(_fused.native, function, lambda *args: False)
    for a, b in zip(compiled, run()):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_an_option_is_converted_before_the_parameters_are_looked_at(name):
    weight = tg.ones(2, requires_grad=True)

    class Decay:
        """A number whose conversion takes the gradient away."""

        def __float__(self):
            weight.grad = None
            return 0.0

    opt = getattr(optim, name)([weight], lr=1.0)
    weight.grad = tg.ones(2)
    opt.step()  # so that there is state
    before = weight.tolist()
    weight.grad = tg.ones(2)
    opt.param_groups[0]["weight_decay"] = Decay()
    opt.step()
    assert weight.grad is None and weight.tolist() == before


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_an_option_that_is_no_number_is_refused(name):
    weight = tg.ones(2, requires_grad=True)
    opt = getattr(optim, name)([weight], lr=1.0)
    weight.grad = tg.ones(2)
    opt.step()
    before = weight.tolist()
    for given in ("0.5", None, [0.5]):
        opt.param_groups[0]["weight_decay"] = given
        with pytest.raises(TypeError, match="number"):
            opt.step()
    assert weight.tolist() == before


def test_repr_equals_pytorchs():
    _, ours, _, theirs = pair("AdamW", {"amsgrad": True}, "float32")
    assert repr(ours) == repr(theirs)


def test_rprop_has_the_factors_of_its_parameters_precision():
    param = tg.nn.Parameter(tg.zeros(1, dtype=tg.float64))
    optimizer = tg.optim.Rprop([param])
    for _ in range(2):
        param.grad = tg.ones(1, dtype=tg.float64)
        optimizer.step()
    assert optimizer.state[param]["step_size"].item() == 0.01 * 1.2


def test_adadelta_writes_to_the_memory_of_a_conjugate_parameter():
    results = []
    for T, library in ((tg, optim), (torch, torch.optim)):
        param = T.tensor([1 + 2j, 3 - 1j]).conj().requires_grad_()
        optimizer = library.Adadelta([param], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (param * T.tensor([1 - 1j, 2 + 1j])).abs().sum().backward()
            optimizer.step()
        results.append(np.array(param.detach().tolist()))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)
