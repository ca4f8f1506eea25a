"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


def kinds(modules):
    return [type(module).__name__ for module in modules]


def test_sequential_behaves_like_a_list():
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    net.append(nn.Sigmoid()).insert(0, nn.GELU())
    assert kinds(net) == ["GELU", "ReLU", "Tanh", "Sigmoid"] and list(net._modules) == ["0", "1", "2", "3"]
    assert kinds(net[1:3]) == ["ReLU", "Tanh"] and list(net[1:3]._modules) == ["1", "2"]
    assert kinds([net[-1], net.pop(0)]) == ["Sigmoid", "GELU"]
    net[0] = nn.SiLU()
    del net[1]
    assert kinds(net) == ["SiLU", "Sigmoid"] and len(net) == 2
    assert kinds(net + nn.Sequential(nn.ReLU())) == ["SiLU", "Sigmoid", "ReLU"]
    assert kinds(2 * net) == ["SiLU", "Sigmoid"] * 2
    net *= 2
    net += nn.Sequential(nn.ReLU())
    net.extend([nn.Tanh()])
    assert len(net) == 6
    del net[1:]
    assert kinds(net) == ["SiLU"]


def test_sequential_takes_names():
    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.ReLU()))
    assert net.a is net[0] and net(tg.ones(1, 2)).shape == (1, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda s: s[5], IndexError, "out of range"),
        (lambda s: s["x"], TypeError, "interpreted as an integer"),
        (lambda s: s.insert(9, nn.ReLU()), IndexError, "out of range"),
        (lambda s: s.insert(0, 3), AssertionError, "should be of type"),
        (lambda s: s + 3, ValueError, "add operator supports only"),
        (lambda s: s * 0, ValueError, "Non-positive"),
        (lambda s: s * "x", TypeError, "unsupported operand"),
        (lambda s: s.append(3), TypeError, "is not a Module subclass"),
        (lambda s: nn.ModuleList(3), TypeError, "should be called with an iterable"),
        (lambda s: nn.ModuleList()(3), NotImplementedError, "missing the required"),
        (lambda s: nn.ModuleDict(3), TypeError, "should be called with an iterable"),
        (lambda s: nn.ModuleDict([3]), TypeError, "should be Iterable"),
        (lambda s: nn.ModuleDict([("a",)]), ValueError, "2 is required"),
        (lambda s: nn.ModuleDict({"keys": nn.ReLU()}), KeyError, "already exists"),
        (lambda s: nn.ModuleDict()["x"], KeyError, "x"),
        (lambda s: nn.ParameterList(3), TypeError, "should be called with an iterable"),
        (lambda s: nn.ParameterList()[0], IndexError, "out of range"),
        (lambda s: nn.ParameterList()(0), RuntimeError, "should not be called"),
        (lambda s: nn.ParameterDict(3), TypeError, "should be called with an iterable"),
        (lambda s: nn.ParameterDict({3: 1}), TypeError, "not a string"),
        (lambda s: nn.ParameterDict()(0), RuntimeError, "should not be called"),
    ],
)
def test_wrong_use_raises(call, error, text):
    with pytest.raises(error) as caught:
        call(nn.Sequential(nn.ReLU(), nn.Tanh()))
    assert text in str(caught.value)


def test_module_list_registers_and_groups_equal_lines():
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))
    layers += [nn.ReLU()]
    assert len(list(layers.parameters())) == 4
    assert repr(layers) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n  (2): ReLU()\n)"
    )
    assert kinds(layers[1:]) == ["Linear", "ReLU"] and kinds(layers + [nn.Tanh()])[-1] == "Tanh"
    assert kinds([layers.pop(-1)]) == ["ReLU"]


def test_module_dict_keeps_order():
    table = nn.ModuleDict({"z": nn.ReLU(), "a": nn.Tanh()})
    table.update([("b", nn.GELU())])
    assert list(table) == ["z", "a", "b"] and "a" in table and len(table) == 3
    assert kinds([table.pop("a")]) == ["Tanh"] and kinds(table.values()) == ["ReLU", "GELU"]
    del table["z"]
    table.clear()
    assert not len(table) and not list(table.items())


def test_parameter_list_makes_parameters_of_tensors():
    values = nn.ParameterList([tg.ones(2), 3])
    values.append(tg.zeros(1))
    values[1] = tg.ones(4)
    assert isinstance(values[0], nn.Parameter) and len(values) == 3
    assert [name for name, _ in values.named_parameters()] == ["0", "2", "1"]
    assert len(values[1:]) == 2 and values[-1].shape == (1,)
    values += [5]
    assert list(values)[-1] == 5 and "Object of type: int" in repr(values)


def test_parameter_dict_behaves_like_a_dict():
    values = nn.ParameterDict({"z": tg.ones(2), "a": 1})
    assert list(values) == ["a", "z"], "a plain dict is sorted"
    assert isinstance(values["z"], nn.Parameter) and values.get("q", 4) == 4
    assert values.setdefault("b", 2) == 2 and list(reversed(values)) == ["b", "z", "a"]
    assert values.popitem() == ("b", 2) and values.pop("a") == 1
    merged = values | nn.ParameterDict({"c": 1})
    assert list(merged.keys()) == ["z", "c"] and merged["z"] is values["z"]
    assert list(values.fromkeys(["x"], 1).items()) == [("x", 1)]
    copied = values.copy()
    values.clear()
    assert len(values) == 0 and len(list(copied.parameters())) == 1


def test_a_module_in_parallel_is_the_module():
    layer = tg.nn.Linear(2, 3)
    parallel = tg.nn.DataParallel(layer, device_ids=[0])
    assert tg.equal(parallel(tg.ones(1, 2)), layer(tg.ones(1, 2)))
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"] and parallel.device_ids == []
