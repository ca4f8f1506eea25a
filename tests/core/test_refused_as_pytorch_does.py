"""Arguments that PyTorch refuses or gives back as they are, of ops in several rooms."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


def test_flatten_of_one_dimension_is_the_tensor_itself():
    line, plane = tg.zeros(4, requires_grad=True), tg.zeros(2, 2)
    assert line.flatten() is line and tg.flatten(line) is line and plane.flatten(1, 1) is plane
    assert plane.flatten() is not plane and tg.zeros(()).flatten().shape == (1,)
    assert tg.zeros(3, 2).t().flatten(0, 0).stride() == (1, 2)
    (grad,) = tg.autograd.grad((line * 2).flatten().sum(), line)
    assert grad.tolist() == [2] * 4


def test_rows_of_nothing_are_not_told_apart():
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions, and they aren't selected.*got shape"):
        tg.unique(tg.zeros(2, 0, 3), dim=0)
    assert tg.unique(tg.zeros(2, 0, 3), dim=1).shape == (2, 0, 3) and tg.unique(tg.zeros(0)).shape == (0,)


def test_grids_are_made_on_one_device():
    with pytest.raises(RuntimeError, match="meshgrid expects all tensors to have the same device: got cpu and meta"):
        tg.meshgrid(tg.ones(1), tg.ones(1, device="meta"), indexing="ij")


def test_bytes_behind_an_offset_are_counted():
    with pytest.raises(
        ValueError,
        match=r"buffer length \(33 bytes\) after offset \(7 bytes\) must be a multiple of element size \(8\)",
    ):
        tg.frombuffer(bytearray(40), offset=7, dtype=tg.float64)


def test_a_parameter_can_be_left_out_of_a_functional_call():
    layer, x = nn.Linear(2, 2), tg.ones(1, 2)
    y = tg.func.functional_call(layer, {"bias": None}, x)
    assert tg.equal(y, x @ layer.weight.T) and layer.bias is not None
    with pytest.raises(TypeError, match="functional_call: expected 'bias' to be a Tensor, got int"):
        tg.func.functional_call(layer, {"bias": 1}, x)
