"""Optimizers as functions of lists do what their classes do, and what PyTorch's functions do."""

import importlib
import inspect

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import optim
from tinygrad_ext.optim import _functional

ADAM = {"amsgrad": True, "beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.05, "eps": 1e-6}
# {name: (lists of state between gradients and steps, options)}; an empty name of a list is one that is not needed
FORMS = {
    "adadelta": (["square_avg", "acc_delta"], {"lr": 0.5, "rho": 0.8, "eps": 1e-5, "weight_decay": 0.1}),
    "adagrad": (["sum"], {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.2, "eps": 1e-8}),
    "adam": (["exp_avg", "exp_avg_sq", "max_exp_avg_sq"], ADAM),
    "adamw": (["exp_avg", "exp_avg_sq", "max_exp_avg_sq"], ADAM),
    "adamax": (["exp_avg", "exp_inf"], {"eps": 1e-6, "beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1}),
    "asgd": (["ax", "mu", "eta"], {"lambd": 0.1, "lr": 0.1, "t0": 2, "alpha": 0.7, "weight_decay": 0.1}),
    "nadam": (
        ["exp_avg", "exp_avg_sq", "mu_product"],
        {"beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1, "eps": 1e-6},
    ),
    "radam": (["exp_avg", "exp_avg_sq"], {"beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-6}),
    "rmsprop": (
        ["square_avg", "grad_avg", "momentum_buffer"],
        {"lr": 0.1, "alpha": 0.8, "eps": 1e-6, "weight_decay": 0.1, "momentum": 0.7, "centered": True},
    ),
    "rprop": (
        ["prev", "step_size"],
        {"step_size_min": 1e-3, "step_size_max": 2.0, "etaminus": 0.5, "etaplus": 1.3},
    ),
}
CLASSES = {
    "adadelta": "Adadelta", "adagrad": "Adagrad", "adam": "Adam", "adamw": "AdamW", "adamax": "Adamax",
    "asgd": "ASGD", "nadam": "NAdam", "radam": "RAdam", "rmsprop": "RMSprop", "rprop": "Rprop", "sgd": "SGD",
}  # fmt: skip
SHAPES = [(3, 2), (4,)]


def _arrays(seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=shape) for shape in SHAPES]
    if np.issubdtype(dtype, np.complexfloating):
        parts = [part + 1j * rng.normal(size=part.shape) for part in parts]
    return [part.astype(dtype) for part in parts]


def _first(name, param):
    """What a list of state begins with."""
    if name in ("mu", "mu_product"):
        return np.ones((), np.float32)
    if name == "eta":
        return np.full((), 0.1, np.float32)
    value = {"step_size": 0.1 + 0.1j if np.iscomplexobj(param) else 0.1}.get(name, 0.0)
    return np.full_like(param, value)


def _run(library, name, dtype, steps=4, **more):
    """The parameters and the state after some steps of a library's function."""
    function = getattr(importlib.import_module(f"{library.__name__}.optim._functional"), name)
    params = [library.from_numpy(x) for x in _arrays(0, dtype)]
    lists, options = FORMS[name]
    state = [[library.from_numpy(_first(kind, x).copy()) for x in _arrays(0, dtype)] for kind in lists]
    counts = [library.tensor(0.0) for _ in params]
    more.setdefault("maximize", True)
    for step in range(steps):
        grads = [library.from_numpy(x) for x in _arrays(step + 1, dtype)]
        function(params, grads, *state, counts, **options, **more)
    return [x.numpy() for x in (*params, *(part for column in state for part in column), *counts)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("name", FORMS)
def test_functions_of_lists_give_pytorchs_numbers(name, dtype):
    torch = pytest.importorskip("torch")
    for maximize in (False, True):
        ours, theirs = (_run(library, name, dtype, maximize=maximize) for library in (tg, torch))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9 if dtype is not np.float32 else 2e-5, atol=1e-7)


@pytest.mark.parametrize("momentum", [0, 0.9])
@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_as_a_function_gives_pytorchs_numbers_and_makes_buffers(momentum, nesterov):
    torch = pytest.importorskip("torch")
    results = []
    for library in (tg, torch):
        function = importlib.import_module(f"{library.__name__}.optim._functional").sgd
        params, buffers = [library.from_numpy(x) for x in _arrays(0)], [None, None]
        for step in range(3):
            grads = [library.from_numpy(x) for x in _arrays(step + 1)]
            function(
                params, grads, buffers, weight_decay=0.1, momentum=momentum, lr=0.1, dampening=0.0 if nesterov else 0.2,
                nesterov=nesterov, maximize=False,
            )  # fmt: skip
        assert [buffer is None for buffer in buffers] == [momentum == 0] * 2
        results.append([x.numpy() for x in (*params, *(b for b in buffers if b is not None))])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_muon_adafactor_and_sparse_adam_as_functions_give_pytorchs_numbers():
    torch = pytest.importorskip("torch")
    results = []
    for library in (tg, torch):
        ours = library is tg
        places = {
            name: _functional if ours else importlib.import_module(f"torch.optim.{name}")
            for name in ("_muon", "_adafactor")
        }
        start, grad = (_arrays(seed)[0] for seed in (0, 1))
        param, state = library.from_numpy(start.copy()), library.zeros(3, 2, dtype=library.float64)
        places["_muon"].muon(
            [param], [library.from_numpy(grad)], [state], lr=0.1, weight_decay=0.1, momentum=0.9, nesterov=True,
            ns_coefficients=(3.4445, -4.775, 2.0315), ns_steps=5, eps=1e-7, adjust_lr_fn=None, has_complex=False,
        )  # fmt: skip
        found = [param, state]
        params = [library.from_numpy(x.copy()) for x in _arrays(0)]
        rows = [library.zeros(3, 1, dtype=library.float64), None]
        columns = [library.zeros(1, 2, dtype=library.float64), None]
        variances, counts = [None, library.zeros(4, dtype=library.float64)], [library.tensor(0.0) for _ in params]
        for step in range(3):
            places["_adafactor"].adafactor(
                params, [library.from_numpy(x) for x in _arrays(step + 1)], rows, columns, variances, counts,
                d=1.0, lr=0.1, beta2_decay=-0.8, weight_decay=0.1, eps1=None, eps2=1e-3, maximize=False,
            )  # fmt: skip
        found += [*params, rows[0], columns[0], variances[1], *counts]
        sparse = importlib.import_module(f"{library.__name__}.optim._functional").sparse_adam
        table, average, square = (library.zeros(4, 2) for _ in range(3))
        grad = library.sparse_coo_tensor(library.tensor([[1, 3, 1]]), library.ones(3, 2), (4, 2), check_invariants=True)
        for step in (1, 2):
            sparse([table], [grad], [average], [square], [step], eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1, maximize=True)
        results.append([x.numpy() for x in (*found, table, average, square)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2 if one is results[0][0] else 1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*FORMS, "sgd"])
def test_signatures_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    assert torch.optim
    theirs = getattr(importlib.import_module(f"torch.optim.{name}"), name)
    ours = inspect.signature(getattr(_functional, name)).parameters.values()
    wanted = inspect.signature(theirs).parameters.values()
    assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in wanted]


def test_a_function_steps_in_the_bits_of_its_class():
    for name, (lists, options) in FORMS.items():
        if name in ("asgd", "rprop", "nadam", "rmsprop", "radam", "adamax", "adam", "adamw"):
            continue  # whose options have other names there
        params = [tg.nn.Parameter(tg.from_numpy(x)) for x in _arrays(0)]
        optimizer = getattr(optim, CLASSES[name])(params, **options)
        for step in range(3):
            for param, grad in zip(params, _arrays(step + 1)):
                param.grad = tg.from_numpy(grad)
            optimizer.step()
        found = _run(tg, name, np.float64, steps=3, maximize=False)
        for param, other in zip(params, found):
            assert param.detach().numpy().tobytes() == other.tobytes(), name
        assert len(lists) * 2 + 4 == len(found)


def test_leaves_that_require_gradients_are_written_without_history_alone():
    param = tg.ones(2, requires_grad=True)
    state = [[tg.zeros(2)], [tg.zeros(2)], [], [tg.tensor(0.0)]]
    options = {**ADAM, "amsgrad": False, "maximize": False}
    with pytest.raises(RuntimeError, match="leaf"):
        _functional.adam([param], [tg.ones(2)], *state, **options)
    with tg.no_grad():
        _functional.adam([param], [tg.ones(2)], *state, **options)
    assert param.detach().tolist() != [1, 1] and param.requires_grad and param.grad is None


@pytest.mark.parametrize("name", ["adam", "sgd", "radam"])
def test_gradients_flow_through_a_step_where_they_are_on(name):
    start, grad = tg.ones(2, dtype=tg.float64, requires_grad=True), tg.ones(2, dtype=tg.float64, requires_grad=True)

    def moved(start, grad):
        param, zeros = start * 1, [tg.zeros(2, dtype=tg.float64)]
        if name == "sgd":
            _functional.sgd(
                [param], [grad * grad], [None], weight_decay=0.1, momentum=0.0, lr=0.1, dampening=0, nesterov=False,
                maximize=False,
            )  # fmt: skip
            return param
        lists = [zeros, [zeros[0].clone()], *([[]] if name == "adam" else [])]
        options = {**ADAM, "amsgrad": False} if name == "adam" else FORMS[name][1]
        _functional.__dict__[name](
            [param], [grad * grad], *lists, [tg.tensor(0.0)], differentiable=True, maximize=False, **options
        )
        return param

    assert tg.autograd.gradcheck(moved, (start, grad))


def test_scales_are_for_fused_steps_and_an_overflow_skips_one():
    state = [[tg.zeros(2)], [tg.zeros(2)], [], [tg.tensor(0.0)]]
    options, param, grad = {**ADAM, "amsgrad": False, "maximize": False}, tg.ones(2), tg.full((2,), 8.0)
    with pytest.raises(AssertionError, match="fused"):
        _functional.adam([param], [grad], *state, grad_scale=tg.tensor(8.0), **options)
    _functional.adam([param], [grad], *state, fused=True, found_inf=tg.tensor(1.0), **options)
    assert param.tolist() == [1, 1] and state[3][0].item() == 0
    _functional.adam([param], [grad], *state, fused=True, grad_scale=tg.tensor(8.0), **options)
    assert grad.tolist() == [1, 1] and state[3][0].item() == 1 and param[0].item() < 1
    with pytest.raises(RuntimeError, match="state_steps"):
        _functional.adam([param], [grad], *state[:3], [1], **options)


def test_they_are_found_where_pytorch_has_them(as_torch):
    for name in (*FORMS, "sgd", "_muon", "_adafactor"):
        found = getattr(importlib.import_module(f"torch.optim.{name}"), name.lstrip("_"))
        assert found is getattr(_functional, name.lstrip("_"))
    assert importlib.import_module("torch.optim._functional").adam is _functional.adam
