"""Names of the steps that autograd records, which programs read that follow `grad_fn`: those that PyTorch gives."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

CALLS = {
    "ViewBackward0": [
        lambda x: x.view(2, -1),
        lambda x: x.reshape(2, -1),
        lambda x: x.flatten(1),
        lambda x: x.unflatten(1, (2, 2)),
        lambda x: nn.Flatten()(x),
    ],
    "ConvolutionBackward0": [nn.Conv2d(4, 2, 1), lambda x: nn.Conv1d(4, 2, 1)(x[0])],
    "NativeGroupNormBackward0": [nn.GroupNorm(2, 4)],
    "NativeLayerNormBackward0": [nn.LayerNorm(4)],
    "NativeBatchNormBackward0": [nn.BatchNorm2d(4)],
    "AvgPool2DBackward0": [nn.AvgPool2d(2)],
    "AdaptiveAvgPool2DBackward0": [nn.AdaptiveAvgPool2d(2)],
    "MaxPool2DWithIndicesBackward0": [nn.MaxPool2d(2)],
    "SplitBackward0": [lambda x: x.split(2, 1)[0], lambda x: x.chunk(2, 1)[0]],
    "SliceBackward0": [lambda x: x[:, 1:2], lambda x: x.narrow(1, 0, 2)],
    "CloneBackward0": [lambda x: x.mT.contiguous(), lambda x: x.clone()],
    "CatBackward0": [lambda x: tg.cat([x, x], 1)],
    "PermuteBackward0": [lambda x: x.permute(0, 2, 3, 1)],
    "ConstantPadNdBackward0": [nn.ZeroPad2d(1)],
}


@pytest.mark.parametrize("name", CALLS)
def test_nodes_have_the_names_of_pytorch(name):
    for call in CALLS[name]:
        node = call(tg.ones(2, 4, 4, 4, requires_grad=True)).grad_fn
        assert node.name() == name and type(node).__name__ == name
