"""Starting values: the same draws as PyTorch's, and what is refused."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import init

FILLS = [
    ("uniform_", (), {"a": -1.0, "b": 3.0}, (3, 4)),
    ("normal_", (), {"mean": 1.0, "std": 2.0}, (3, 8)),
    ("trunc_normal_", (), {"std": 0.5, "a": -0.6, "b": 0.9}, (3, 8)),
    ("trunc_normal_", (), {"a": 1.0, "b": 2.0}, (3, 8)),
    ("constant_", (4.0,), {}, (3,)),
    ("ones_", (), {}, (3,)),
    ("zeros_", (), {}, (3,)),
    ("eye_", (), {}, (3, 4)),
    ("dirac_", (), {}, (4, 2, 3, 3)),
    ("dirac_", (2,), {}, (4, 2, 3)),
    ("xavier_uniform_", (2.0,), {}, (3, 4)),
    ("xavier_normal_", (), {}, (3, 4, 2, 2)),
    ("kaiming_uniform_", (), {"a": 0.2, "mode": "fan_out"}, (3, 4)),
    ("kaiming_normal_", (), {"nonlinearity": "relu"}, (3, 4, 2, 2)),
    ("sparse_", (0.4,), {}, (5, 4)),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), FILLS, ids=[f"{f[0]}{i}" for i, f in enumerate(FILLS)])
def test_values_equal_pytorchs(name, args, kwargs, shape):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    tg.manual_seed(3)
    ours = tg.zeros(shape)
    assert getattr(init, name)(ours, *args, **kwargs) is ours
    torch.manual_seed(3)
    theirs = getattr(torch.nn.init, name)(torch.zeros(shape), *args, **kwargs)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.skipif(not hasattr(tg.linalg, "qr"), reason="needs linalg.qr")
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal_rows_or_columns(shape):
    filled = init.orthogonal_(tg.empty(shape), gain=2.0).numpy().reshape(shape[0], -1)
    product = filled @ filled.T if filled.shape[0] <= filled.shape[1] else filled.T @ filled
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_gains():
    assert init.calculate_gain("linear") == 1 == init.calculate_gain("conv2d")
    assert init.calculate_gain("tanh") == pytest.approx(5 / 3)
    assert init.calculate_gain("relu") ** 2 == pytest.approx(2)
    assert init.calculate_gain("leaky_relu", 1) == 1
    assert init.calculate_gain("selu") == 0.75


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: init.calculate_gain("nothing"), "Unsupported nonlinearity nothing"),
        (lambda: init.calculate_gain("leaky_relu", "x"), "not a valid number"),
        (lambda: init.eye_(tg.ones(1)), "2 dimensions"),
        (lambda: init.sparse_(tg.ones(1), 0.1), "2 dimensions"),
        (lambda: init.dirac_(tg.ones(1)), "3, 4, or 5 dimensions"),
        (lambda: init.dirac_(tg.ones(3, 1, 1), 2), "divisible by groups"),
        (lambda: init.xavier_uniform_(tg.ones(1)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(tg.ones(1, 1), mode="x"), "Mode x not supported"),
        (lambda: init.orthogonal_(tg.ones(1)), "2 or more dimensions"),
    ],
)
def test_wrong_arguments_raise(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_nothing_to_fill_and_far_means_warn():
    with pytest.warns(UserWarning, match="no-op"):
        init.kaiming_uniform_(tg.empty(0, 3))
    with pytest.warns(UserWarning, match="more than 2 std"):
        init.trunc_normal_(tg.empty(2), mean=10.0)


def test_filling_a_parameter_leaves_no_graph():
    parameter = tg.nn.Parameter(tg.ones(2))
    assert init.normal_(parameter) is parameter and parameter.grad_fn is None and parameter.requires_grad
