"""save and load: sparse tensors, attributes of tensors, storages, and what has no elements."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.archive.budget import Budget
from tinygrad_ext.archive.object_tree import Decoder


@pytest.mark.parametrize("map_location", [None, "meta"])
def test_sparse_tensors_and_attributes_come_back(tmp_path, map_location):
    path, coo = tmp_path / "x", tg.sparse_coo_tensor([[1, 1], [0, 0]], [1.0, 2.0], (2, 3))
    plain, parameter = tg.ones(2), tg.nn.Parameter(tg.zeros(1))
    plain.told, parameter.told, coo.told = [1, {"a": plain.sum()}], "x", 7
    tg.save({"sparse": [coo, coo.to_sparse_csr()], "plain": plain, "again": plain, "parameter": parameter}, path)
    found = tg.load(path, map_location)
    assert [t.layout for t in found["sparse"]] == [tg.sparse_coo, tg.sparse_csr]
    assert found["plain"] is found["again"] and found["plain"].told[0] == 1 and found["parameter"].told == "x"
    assert found["sparse"][0].told == 7
    assert {t.device.type for t in (*found["sparse"], found["plain"])} == {map_location or "cpu"}
    if map_location is None:
        assert [t.to_dense().tolist() for t in found["sparse"]] == [[[0, 0, 0], [3, 0, 0]]] * 2


def test_storages_in_sets_and_as_keys_come_back(tmp_path):
    one, other = tg.ones(2).storage(), tg.arange(3).untyped_storage()
    for obj, kind in (({one}, type(one)), ({other: 1, "a": 2}, type(other))):
        tg.save(obj, tmp_path / "x", format="torch")
        found = tg.load(tmp_path / "x")
        first = next(iter(found))
        assert type(found) is type(obj) and type(first) is kind and len(found) == len(obj)
        assert first.tolist() == next(iter(obj)).tolist()
    tg.save({(one, 1): 2, (3, "a"): 4}, tmp_path / "x", format="torch")
    first, second = tg.load(tmp_path / "x")
    assert type(first[0]) is type(one) and first[0].tolist() == [1, 1] and second == (3, "a")


class Bytes(tg.UntypedStorage):
    """A class of storages that PyTorch's files do not know."""


def test_storages_that_files_of_pytorch_have_no_class_for_are_saved_as_objects(tmp_path):
    wide = tg.ones(2).to(tg.uint16).storage()
    tg.save([wide, Bytes(4)], tmp_path / "x", format="object")
    found = tg.load(tmp_path / "x", weights_only=False)
    assert found[0].tolist() == [1, 1] and found[0].dtype is tg.uint16 and type(found[1]) is Bytes
    with pytest.raises(TypeError, match="no class of storages of uint16"):
        tg.save(wide, tmp_path / "x", format="torch")


@pytest.mark.parametrize("format", ["torch", "safetensors", "object"])
def test_a_sparse_tensor_that_is_met_twice_is_one(tmp_path, format):
    one, other = tg.eye(2).to_sparse(), tg.eye(3).to_sparse_csr()
    one.told = other
    tg.save({"a": one, "b": [other, one], "c": tg.eye(2).to_sparse()}, tmp_path / "x", format=format)
    found = tg.load(tmp_path / "x", weights_only=format != "object")
    assert found["a"] is found["b"][1] is not found["c"] and found["a"].told is found["b"][0]
    assert found["b"][0].layout is tg.sparse_csr and found["c"].to_dense().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("number", [1, -1, False, True, "0", None])
def test_a_file_that_names_a_sparse_tensor_that_does_not_come_before_is_damaged(number):
    decoder = Decoder([tg.zeros(1, 1, dtype=tg.int64), tg.ones(1)], [], Budget())
    sparse = {"sparse": ["torch.sparse_coo", {"tensor": 0}, {"tensor": 1}, {"Size": [2]}, True]}
    with pytest.raises(ValueError, match="there is no sparse tensor"):
        decoder.decode([sparse, {"same": number}])
    first, again = Decoder(decoder.tensors, [], Budget()).decode([sparse, {"same": 0}])
    assert first is again


def test_a_tensor_among_its_own_attributes_is_refused_by_its_place(tmp_path):
    x = tg.ones(2)
    x.me = x
    with pytest.raises(ValueError, match=r"state\['a'\]\['__dict__'\]\['me'\] is a tensor among its own attributes"):
        tg.save({"a": x}, tmp_path / "x", format="safetensors")


@pytest.mark.parametrize("format", ["torch", "safetensors", "object"])
def test_sparse_tensors_whose_places_share_memory_come_back(tmp_path, format):
    t = tg.sparse_coo_tensor(tg.tensor([[1]]).expand(2, 3), [1.0, 2.0, 3.0], (2, 2))
    tg.save(t, tmp_path / "x", format=format)
    assert tg.load(tmp_path / "x", weights_only=format != "object").to_dense().tolist() == [[0, 0], [0, 6]]


@pytest.mark.parametrize("format", ["torch", "safetensors", "object"])
def test_sparse_tensors_on_meta_come_back(tmp_path, format):
    for t in (tg.eye(3).to_sparse(), tg.eye(3).to_sparse_csr()):
        tg.save(t.to("meta"), tmp_path / "x", format=format)
        found = tg.load(tmp_path / "x", weights_only=format != "object")
        assert found.is_meta and found.layout is t.layout and found.shape == (3, 3)


def test_attributes_that_cannot_be_saved_are_told(tmp_path):
    t = tg.ones(2)
    t.told = object()
    with pytest.raises(TypeError, match=r"state\['a'\]\['__dict__'\]\['told'\] is a builtins.object"):
        tg.save({"a": t}, tmp_path / "x")


def test_what_has_no_elements_stays_where_it_is():
    module = nn.Linear(2, 3, device="meta")
    for saved in ({"a": module.weight, "b": tg.ones(2)}, module.state_dict()):
        file = io.BytesIO()
        tg.save(saved, file)
        file.seek(0)
        found = tg.load(file, map_location="cpu")
        assert [t.device.type for t in found.values()] == [t.device.type for t in saved.values()]
    file = io.BytesIO()
    jit.save(jit.script(nn.Sequential(module, nn.Linear(3, 4))), file)
    file.seek(0)
    devices = [p.device.type for p in jit.load(file, map_location="cpu").parameters()]
    assert devices == ["meta", "meta", "cpu", "cpu"]
