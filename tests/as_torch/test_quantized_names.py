"""Layers of quantized models exist to be asked about, are not those of nn, and say so when they are made."""

import importlib

import pytest

PLACES = {
    "nn.qat": "Linear Conv2d Embedding",
    "nn.qat.dynamic": "Linear",
    "nn.quantized": "Linear Conv2d LSTM ReLU6 QFunctional",
    "nn.quantized.dynamic": "Linear LSTM GRU GRUCell",
    "nn.quantized.modules": "Linear ELU Quantize",
    "nn.quantizable": "LSTM MultiheadAttention",
    "nn.intrinsic": "ConvBn2d LinearReLU",
    "nn.intrinsic.qat": "ConvBnReLU2d LinearReLU",
    "nn.intrinsic.quantized": "LinearReLU",
}


@pytest.mark.parametrize("root", ["torch.", "torch.ao."])
@pytest.mark.parametrize("place", PLACES)
def test_they_are_types_of_their_own(as_torch, place, root):
    torch = importlib.import_module("torch")
    module = importlib.import_module(root + place)
    for name in PLACES[place].split():
        kind = getattr(module, name)
        assert isinstance(kind, type) and not isinstance(torch.nn.Linear(1, 1), kind)
        assert kind is not getattr(torch.nn, name, None)
        with pytest.raises(NotImplementedError, match=name):
            kind(1, 1)


def test_what_floats_can_do_works(as_torch):
    torch = importlib.import_module("torch")
    functional = importlib.import_module("torch.nn.quantized").FloatFunctional()
    assert functional.add_relu(torch.ones(1), torch.ones(1)).item() == 2


def test_names_of_the_compiled_half_and_of_utils(as_torch):
    torch = importlib.import_module("torch")
    weakref = importlib.import_module("weakref")
    one, other = torch.ones(2), torch.zeros(3, requires_grad=True)
    seen = weakref.ref(one)
    torch._C._swap_tensor_impl(one, other)
    assert one.tolist() == [0, 0, 0] and one.requires_grad and other.tolist() == [1, 1] and seen() is one
    with pytest.raises(TypeError, match="two tensors"):
        torch._C._swap_tensor_impl(one, 1)
    with pytest.raises(RuntimeError, match="weakref"):
        torch.utils.swap_tensors(one, other)
    reduction = importlib.import_module("torch.nn._reduction")
    assert [reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="not a valid value"):
        reduction.get_enum("most")
