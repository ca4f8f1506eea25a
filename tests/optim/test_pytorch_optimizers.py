"""PyTorch's own table of optimizers (`optim_db`), run on ours: the same gradients move the parameters alike.

Each sample of the table makes both optimizers; after each of some steps parameters must agree, and in the end what
state they keep, by name; and an optimizer that loads the other's state goes on alike. What the table says is refused is
refused with the same exception and words.
"""

import importlib.util
import re
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("expecttest") is None:
    pytest.skip(
        "PyTorch and expecttest, which its table of optimizers imports, are not installed", allow_module_level=True
    )

import torch

from tests.helpers.pytorchs_tables import optim_db

ROWS = [0, 2, 2, 1]  # that are read where gradients are sparse
STEPS = 6
FEWER = {"LBFGS": 2}  # each of 20 iterations; the more, the more a last digit of the curvature decides


def _ours(value):
    if isinstance(value, torch.Tensor):
        return tg.from_numpy(value.detach().numpy().copy())
    if type(value) in (list, tuple):
        return type(value)(map(_ours, value))
    return {k: _ours(v) for k, v in value.items()} if isinstance(value, dict) else value


def _numbers(value):
    """A state as nested plain values and arrays."""
    if isinstance(value, (tg.Tensor, torch.Tensor)):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    return [_numbers(v) for v in value] if isinstance(value, (list, tuple)) else value


def _start(library, values):
    return [library.nn.Parameter(library.from_numpy(v.copy())) for v in values]


def _step(optimizer, params, weights, library, sparse=False):
    """One step on the squared distance from where the parameters, weighed, should be."""

    def read(table):
        if not sparse:
            return table
        return library.nn.functional.embedding(library.tensor(ROWS), table, sparse=True)

    def closure():
        optimizer.zero_grad()
        loss = sum(((read(p) * read(library.from_numpy(w)) - 1) ** 2).sum() for p, w in zip(params, weights))
        loss.backward()
        return loss

    optimizer.step(closure)


def _agree(ours, theirs, what):
    for k, (p, q) in enumerate(zip(ours, theirs)):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-9, 1e-11, err_msg=f"{what}: {k}")


def _same(got, want, name):
    if isinstance(want, list):
        assert len(got) == len(want), name
        for g, w in zip(got, want):
            _same(g, w, name)
    elif want is None:
        assert got is None, name
    else:
        np.testing.assert_allclose(got, want, 1e-8, 1e-10, err_msg=name)


SAMPLES = [(info, sample) for info in optim_db for sample in info.optim_inputs_func(device="cpu")]


def _named(samples):
    return {"argnames": ("info", "sample"), "argvalues": samples,
            "ids": [f"{info.optim_cls.__name__}-{sample.desc}" for info, sample in samples]}  # fmt: skip


def _drawn(shapes):
    rng = np.random.default_rng(0)
    return ([rng.standard_normal(s) for s in shapes] for _ in range(2))


@pytest.mark.parametrize(**_named([row for row in SAMPLES if not row[0].only_supports_sparse_grads]))
def test_moves_as_pytorchs(info, sample):
    values, weights = _drawn(((3, 4), (5, 2)) if info.optim_cls.__name__ == "Muon" else ((3, 4), (5,)))
    cls = getattr(tg.optim, info.optim_cls.__name__)
    ours, theirs = _start(tg, values), _start(torch, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, reference = cls(ours, **_ours(sample.kwargs)), info.optim_cls(theirs, **sample.kwargs)
        for number in range(FEWER.get(cls.__name__, STEPS)):
            _step(mine, ours, weights, tg)
            _step(reference, theirs, weights, torch)
            _agree(ours, theirs, f"{cls.__name__} {sample.desc}, step {number}")
        got, want = _numbers(mine.state_dict()), _numbers(reference.state_dict())
        assert set(got["param_groups"][0]) == set(want["param_groups"][0])
        assert got["state"].keys() == want["state"].keys()
        for key, row in want["state"].items():
            assert got["state"][key].keys() == row.keys()
            for name, value in row.items():
                _same(got["state"][key][name], value, name)
        again = cls(ours, **_ours(sample.kwargs))
        again.load_state_dict(_ours(reference.state_dict()))
        _step(again, ours, weights, tg)
        _step(reference, theirs, weights, torch)
        _agree(ours, theirs, f"{cls.__name__} {sample.desc}, after loading")


@pytest.mark.parametrize(**_named([row for row in SAMPLES if not row[1].kwargs.get("fused")]))
def test_moves_as_pytorchs_with_sparse_gradients(info, sample):
    """Or refuse them, with the same exception and words."""
    values, weights = _drawn(((3, 4), (5, 2)))
    cls = getattr(tg.optim, info.optim_cls.__name__)
    ours, theirs = _start(tg, values), _start(torch, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, reference = cls(ours, **_ours(sample.kwargs)), info.optim_cls(theirs, **sample.kwargs)
        for number in range(FEWER.get(cls.__name__, STEPS)):
            try:
                _step(reference, theirs, weights, torch, sparse=True)
            except RuntimeError as error:
                with pytest.raises(RuntimeError, match=re.escape(str(error).splitlines()[0].rstrip("."))):
                    _step(mine, ours, weights, tg, sparse=True)
                return
            _step(mine, ours, weights, tg, sparse=True)
            _agree(ours, theirs, f"{cls.__name__} {sample.desc}, step {number}")
        got, want = _numbers(_plain(mine.state_dict()["state"])), _numbers(_plain(reference.state_dict()["state"]))
        assert got.keys() == want.keys()
        for key, row in want.items():
            assert got[key].keys() == row.keys()
            for name, value in row.items():
                _same(got[key][name], value, name)


def _plain(value):
    """A state with the zeros of its sparse tensors."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value.to_dense() if getattr(value, "is_sparse", False) else value


def _given(value, made):
    """A PyTorch value as ours; a tensor that stands twice stays one, and parameters stay parameters."""
    if isinstance(value, torch.Tensor):
        if value.is_sparse:
            return _given(value.to_dense(), made).to_sparse()
        if id(value) not in made:
            array = value.detach().numpy().copy()
            made[id(value)] = (
                tg.nn.Parameter(tg.from_numpy(array))
                if isinstance(value, torch.nn.Parameter)
                else tg.from_numpy(array).requires_grad_(value.requires_grad)
            )
        return made[id(value)]
    if isinstance(value, (list, tuple)):
        return type(value)(_given(v, made) for v in value)
    return {k: _given(v, made) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("info", optim_db, ids=lambda i: i.optim_cls.__name__)
def test_refuses_what_pytorch_refuses(info):
    for wrong in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        given, cls = wrong.optimizer_error_input, getattr(tg.optim, info.optim_cls.__name__)
        made = {}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(wrong.error_type, match=re.compile(wrong.error_regex)):
                optimizer = cls(_given(given.params, made), **_given(given.kwargs, made))
                assert "STEP" in str(wrong.error_on), f"{given.desc} was taken"
                for param in optimizer.param_groups[0]["params"]:
                    param.grad = tg.rand_like(param)
                optimizer.step()
