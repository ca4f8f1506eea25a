"""Clipping of gradients and parameters as a vector."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


def with_grads(*grads):
    parameters = [nn.Parameter(tg.zeros(len(grad))) for grad in grads]
    for parameter, grad in zip(parameters, grads):
        parameter.grad = tg.tensor(grad)
    return parameters


def test_norm_clipping_scales_all_gradients_together():
    parameters = [*with_grads([3.0, 0.0], [4.0]), nn.Parameter(tg.ones(1))]
    assert float(nn.utils.clip_grad_norm_(parameters, 1.0)) == pytest.approx(5)
    assert float(parameters[0].grad[0]) == pytest.approx(0.6, rel=1e-5)
    assert float(nn.utils.clip_grad_norm_(parameters, 10.0, norm_type=float("inf"))) == pytest.approx(0.8, rel=1e-5)
    assert float(parameters[1].grad) == pytest.approx(0.8, rel=1e-5)


def test_a_single_tensor_and_no_gradient_are_fine():
    (parameter,) = with_grads([3.0, 4.0])
    assert float(nn.utils.clip_grad_norm_(parameter, 100.0)) == 5
    assert float(nn.utils.clip_grad_norm_([nn.Parameter(tg.ones(1))], 1.0)) == 0


def test_a_norm_that_is_not_finite_raises_on_request():
    parameters = with_grads([float("inf")])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_value_clipping_cuts_each_element():
    (parameter,) = with_grads([-3.0, 0.5])
    nn.utils.clip_grad_value_(parameter, 1)
    assert parameter.grad.tolist() == [-1.0, 0.5]


def test_parameters_to_vector_and_back():
    layer = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (6,)
    nn.utils.vector_to_parameters(tg.arange(6.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3]] and layer.bias.tolist() == [4, 5]
    with pytest.raises(TypeError, match="expected torch.Tensor"):
        nn.utils.vector_to_parameters([1], layer.parameters())


def test_a_module_has_other_tensors_inside_a_with():
    layer, given = nn.Linear(2, 1), {"weight": tg.ones(1, 2)}
    kept = layer.weight
    with nn.utils.stateless._reparametrize_module(layer, given):
        assert layer.weight is given["weight"]
    assert layer.weight is kept
    with pytest.raises(RuntimeError, match="Missing key"):
        with nn.utils.stateless._reparametrize_module(layer, given, strict=True):
            pass
