"""Names of modules that libraries touch beside the usual ones."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn.modules.rnn import apply_permutation
from tinygrad_ext.utils import data, hooks


def test_constants_of_classes_are_pytorchs():
    torch = pytest.importorskip("torch")
    found = {}
    for name, cls in vars(torch.nn.modules).items():
        ours = getattr(nn, name, None)
        if isinstance(cls, type) and issubclass(cls, torch.nn.Module) and ours is not None:
            wanted = list(getattr(cls, "__constants__", []))
            if list(getattr(ours, "__constants__", [])) != wanted:
                found[name] = wanted
    assert not found
    assert nn.Linear.__constants__ == ["in_features", "out_features"]


def test_a_subclass_adds_to_the_constants_and_is_scripted():
    class Scaled(nn.Linear):
        __constants__ = [*nn.Linear.__constants__, "scale"]

        def __init__(self):
            super().__init__(2, 2)
            self.scale = 3

        def forward(self, x):
            return super().forward(x) * self.scale if self.in_features == 2 else x

    layer = Scaled()
    assert tg.equal(tg.jit.script(layer)(tg.ones(2)), layer(tg.ones(2)))


def test_apply_permutation_is_deprecated():
    with pytest.warns(FutureWarning, match="index_select"):
        assert apply_permutation(tg.tensor([[1, 2, 3]]), tg.tensor([2, 0, 1])).tolist() == [[3, 1, 2]]


def test_a_parameter_may_be_called_training_in_a_dict():
    table = nn.ParameterDict({"training": tg.ones(1)})
    assert table["training"] is table.training and list(table.keys()) == ["training"]
    assert [name for name, _ in table.named_parameters()] == ["training"] and "training" in table.state_dict()
    del table["training"]
    assert not table.state_dict()


def test_modules_move_to_other_kinds_of_devices_where_there_are_such():
    layer = nn.Linear(1, 1)
    for name in ("xpu", "ipu", "mtia"):
        with pytest.raises((AssertionError, NotImplementedError, RuntimeError), match=name.upper()):
            getattr(layer, name)()
        with pytest.raises((AssertionError, NotImplementedError, RuntimeError), match=name.upper()):
            getattr(layer, name)(1)
    assert nn.Module._compiled_call_impl is None and nn.Module.T_destination.__name__ == "T_destination"


def test_the_misspelt_sizes_of_a_concatenation_are_deprecated():
    both = data.ConcatDataset([[1, 2], [3]])
    with pytest.warns(FutureWarning, match="cumulative_sizes"):
        assert both.cummulative_sizes == both.cumulative_sizes == both.cumsum(both.datasets) == [2, 3]


def test_hooks_are_marked_that_files_need_not_have():
    hook = hooks.unserializable_hook(lambda grad: None)
    assert hook.__torch_unserializable__
