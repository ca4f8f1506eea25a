"""state_dict and load_state_dict."""

import copy
import gc
import warnings
import weakref
from collections import OrderedDict

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


class WithExtra(nn.Module):
    def __init__(self):
        super().__init__()
        self.extra = 1

    def get_extra_state(self):
        return {"extra": self.extra}

    def set_extra_state(self, state):
        self.extra = state["extra"]


def make():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_keys_are_dotted_names_and_metadata_holds_versions():
    state = make().state_dict()
    assert list(state) == [
        "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked",
    ]  # fmt: skip
    assert state._metadata["1"] == {"version": 2} and state._metadata[""] == {"version": 1}
    assert not state["0.weight"].requires_grad
    assert make().state_dict(keep_vars=True)["0.weight"].requires_grad


def test_destination_and_prefix_are_used():
    destination = OrderedDict()
    assert nn.Linear(1, 1).state_dict(destination=destination, prefix="a.") is destination
    assert list(destination) == ["a.weight", "a.bias"]


def test_values_round_trip_by_copy():
    a, b = make(), make()
    weight = b[0].weight
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert b[0].weight is weight and weight.tolist() == a[0].weight.tolist()


def test_assign_takes_the_given_tensors():
    given = {"weight": tg.ones(1, 1), "bias": tg.ones(1)}
    layer = nn.Linear(1, 1)
    layer.load_state_dict(given, assign=True)
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad
    layer.weight.data.fill_(5)
    assert float(given["weight"]) == 5


def test_all_problems_are_reported_together_with_near_misses():
    state = {"wieght": tg.ones(1), "bias": tg.ones(7)}
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(1, 1).load_state_dict(state)
    text = str(caught.value)
    assert "Error(s) in loading state_dict for Linear" in text
    assert 'Missing key(s) in state_dict: "weight"' in text
    assert 'Unexpected key(s) in state_dict: "wieght"' in text
    assert "Did you mean: 'weight'?" in text
    assert "size mismatch for bias" in text


def test_not_strict_returns_what_did_not_match():
    result = nn.Sequential(nn.Linear(1, 1)).load_state_dict({"0.bias": tg.ones(1), "9.x": tg.ones(1)}, strict=False)
    assert result.missing_keys == ["0.weight"] and result.unexpected_keys == ["9.x"]
    missing, unexpected = result
    assert "9.x" in repr(result)


def test_what_is_no_mapping_or_tensor_is_refused():
    with pytest.raises(TypeError, match="dict-like"):
        nn.Linear(1, 1).load_state_dict(3)
    with pytest.raises(RuntimeError, match="expected torch.Tensor"):
        nn.Linear(1, 1).load_state_dict({"weight": 3, "bias": tg.ones(1)})


def test_one_element_vectors_load_into_scalars():
    net = nn.Module()
    net.p = nn.Parameter(tg.tensor(0.0))
    net.load_state_dict({"p": tg.ones(1)})
    assert net.p.tolist() == 1


def test_extra_state_travels():
    net = nn.Sequential(WithExtra())
    net[0].extra = 5
    state = net.state_dict()
    assert state["0._extra_state"] == {"extra": 5}
    other = nn.Sequential(WithExtra())
    other.load_state_dict(state)
    assert other[0].extra == 5
    with pytest.raises(RuntimeError, match="Missing"):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected"):
        nn.Sequential(nn.ReLU()).load_state_dict(state)


def test_state_dict_hooks():
    layer = nn.Linear(1, 1)
    seen = []
    layer.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(prefix))
    layer.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update(more=1))
    assert layer.state_dict()["more"] == 1 and seen == [""]
    layer._register_state_dict_hook(lambda module, state, prefix, metadata: {"only": 2})
    assert layer.state_dict() == {"only": 2}
    layer.register_state_dict_post_hook(lambda *_: {})
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()


def test_load_hooks_rename_and_edit():
    layer = nn.Linear(1, 1)

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        assert module is layer
        state["weight"] = state.pop("w")

    with layer.register_load_state_dict_pre_hook(rename):
        with layer.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear()):
            layer.load_state_dict({"w": tg.ones(1, 1)})
    assert layer.weight.tolist() == [[1]]
    layer._register_load_state_dict_pre_hook(lambda *args: args[0].update(bias=tg.ones(1) * 4))
    layer.load_state_dict({"weight": tg.ones(1, 1)})
    assert layer.bias.tolist() == [4]
    layer.register_load_state_dict_post_hook(lambda *_: 1)
    with pytest.raises(AssertionError, match="not expected to return"):
        layer.load_state_dict({"weight": tg.ones(1, 1)})


def test_batch_norm_reads_states_from_before_it_counted_batches():
    layer = nn.BatchNorm1d(1)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    del state._metadata
    layer.load_state_dict(state)
    assert int(layer.num_batches_tracked) == 0


def test_tables_of_hooks_hold_functions_that_others_can_call():
    layer, seen = nn.Linear(1, 1), []
    layer.register_load_state_dict_pre_hook(lambda module, *rest: seen.append((module, len(rest))))
    layer.register_state_dict_post_hook(lambda module, *rest: seen.append((module, len(rest))))
    layer._register_state_dict_hook(lambda module, *rest: seen.append((module, len(rest))))
    for hook in layer._load_state_dict_pre_hooks.values():
        hook({}, "", {}, True, [], [], [])
    for hook in layer._state_dict_hooks.values():
        hook(layer, {}, "", {})
    assert seen == [(layer, 7), (layer, 3), (layer, 3)]
    copied = copy.deepcopy(layer)
    copied.load_state_dict(layer.state_dict())
    assert (copied, 7) in seen


def test_tables_of_parts_can_be_made_like_dicts():
    m = nn.Linear(2, 2)
    kind = type(m._parameters)
    assert kind() == {} and kind([("a", 1)]) == {"a": 1} and kind(m._parameters) == m._parameters


def test_a_hook_that_gets_its_module_makes_no_circle_and_follows_a_copy():
    met = []
    m = nn.Linear(2, 2)
    m.register_load_state_dict_pre_hook(lambda module, *rest: met.append(module))
    other = copy.deepcopy(m)
    other.load_state_dict(m.state_dict())
    assert met == [other]
    there = weakref.ref(m)
    gc.disable()
    try:
        del m
        assert there() is None
    finally:
        gc.enable()


def test_numbers_for_parameters_without_memory_are_told():
    numbers = nn.Linear(2, 3).state_dict()
    empty = nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning) as told:
        empty.load_state_dict(numbers)
    for name, found in zip(("weight", "bias"), told, strict=True):
        assert f"for {name}: copying from a non-meta parameter" in str(found.message)
    assert empty.weight.is_meta
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty.load_state_dict(nn.Linear(2, 3, device="meta").state_dict())
        assert not nn.Linear(2, 3, device="meta").load_state_dict(numbers, assign=True).missing_keys
    with pytest.raises(RuntimeError, match="expected torch.Tensor or Tensor-like object from checkpoint but received"):
        nn.Linear(2, 3).load_state_dict({"weight": [1], "bias": [2]})


def test_a_state_takes_its_arguments_by_position_and_warns():
    model, into = nn.Linear(2, 1), OrderedDict()
    with pytest.warns(FutureWarning, match="Positional args"):
        assert model.state_dict(into, "model.", True) is into
    assert list(into) == ["model.weight", "model.bias"] and into["model.weight"] is model.weight
    with pytest.warns(FutureWarning), pytest.raises(TypeError, match="at most 3"):
        model.state_dict(into, "", False, None)


def test_a_spectral_norm_tells_its_version_in_the_state():
    model = nn.utils.spectral_norm(nn.Linear(3, 2))
    assert model.state_dict()._metadata[""] == {"version": 1, "spectral_norm": {"weight.version": 1}}
    nn.utils.remove_spectral_norm(model)
    assert model.state_dict()._metadata[""] == {"version": 1}
