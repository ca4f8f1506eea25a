"""Muon makes the singular values of its steps alike, and takes matrices alone; its numbers are held to PyTorch's."""

import numpy as np
import pytest

import tinygrad_ext as tg


def test_a_step_has_singular_values_near_one():
    for shape in ((6, 4), (4, 6)):
        start = np.random.default_rng(0).standard_normal(shape).astype("float32")
        param = tg.nn.Parameter(tg.from_numpy(start.copy()))
        optimizer = tg.optim.Muon([param], lr=1.0, weight_decay=0, adjust_lr_fn="original")
        param.grad = tg.from_numpy(np.random.default_rng(1).standard_normal(shape).astype("float32"))
        optimizer.step()
        values = np.linalg.svd(start - param.detach().numpy(), compute_uv=False) / max(1, shape[0] / shape[1]) ** 0.5
        assert values.min() > 0.5 and values.max() < 1.5
        assert list(optimizer.state[param]) == ["momentum_buffer"]


def test_parameters_without_a_gradient_stay_and_a_closure_is_called():
    param = tg.nn.Parameter(tg.ones(2, 2))
    assert tg.optim.Muon([param]).step(lambda: 3) == 3 and param.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"lr": -1}, "earning rate"),
        ({"momentum": -1}, "momentum"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"adjust_lr_fn": "other"}, "function other is not supported"),
    ],
)
def test_options_out_of_range_are_refused(options, fragment):
    with pytest.raises(ValueError, match=fragment):
        tg.optim.Muon([tg.nn.Parameter(tg.ones(2, 2))], **options)


def test_what_is_no_matrix_or_complex_is_refused():
    with pytest.raises(ValueError, match=r"only supports 2D parameters.*\(2,\)"):
        tg.optim.Muon([tg.nn.Parameter(tg.ones(2))])
    for dtype, options, error in (
        (tg.complex64, {}, RuntimeError),
        (tg.float32, {"ns_steps": 100}, ValueError),
        (tg.float32, {"ns_coefficients": (1, 2)}, ValueError),
    ):
        param = tg.nn.Parameter(tg.ones(2, 2, dtype=dtype))
        param.grad = tg.ones(2, 2, dtype=dtype)
        with pytest.raises(error, match="Muon"):
            tg.optim.Muon([param], **options).step()
