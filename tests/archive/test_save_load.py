"""save and load: what comes back is what was given, damaged and foreign files are refused, nothing is executed."""

import io
import json
import os
import pickle
import random
from collections import OrderedDict

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.archive.budget import Budget
from tinygrad_ext.archive.object_tree import Decoder


def through_file(obj, **kwargs):
    """obj saved and loaded again."""
    file = io.BytesIO()
    tg.save(obj, file)
    file.seek(0)
    return tg.load(file, **kwargs)


# ---- values


PLAIN = [
    None,
    True,
    3,
    2**80,
    -1.5,
    float("inf"),
    "text é \U0001f600 \ud83d",
    1j,
    (1, (2,)),
    [1, [2]],
    {},
    {"a": {"b": 1}},
    {7: 2, None: 3, 2.5: 4, True: 5},
    {(1, "x"): [1]},
    OrderedDict(b=1, a=2),
    tg.Size([2, 3]),
    tg.float32,
    tg.device("cpu"),
    [],
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_come_back_equal_and_of_their_type(value):
    again = through_file({"x": value})["x"]
    assert again == value and type(again) is type(value)


def test_nan_and_attributes_of_an_ordered_dict_come_back():
    state = OrderedDict(a=float("nan"))
    state._metadata = {"version": 1}
    again = through_file(state)
    assert again["a"] != again["a"] and again._metadata == {"version": 1}


def test_no_length_of_the_header_is_taken_for_another_format():
    for n in range(300):  # a header of 128 bytes begins as a pickle does
        assert through_file("x" * n) == "x" * n


def test_numpy_scalars_become_numbers():
    np = pytest.importorskip("numpy")
    assert through_file([np.float64(1.5), np.int8(2)]) == [1.5, 2]


# ---- tensors


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_every_dtype_and_layout_comes_back(dtype):
    base = tg.ones(4, 6, dtype=getattr(tg, dtype))
    for t in (base, base.t(), base[1:3, ::2], base[0, 0], base[:0], base[:1].expand(3, 6), base.t()[1:3]):
        again = through_file(t)
        assert (again.dtype, again.shape, again.tolist()) == (t.dtype, t.shape, t.tolist())


def test_dense_layouts_keep_their_strides():
    t = tg.arange(24).reshape(2, 3, 4).permute(2, 0, 1)
    again = through_file(t)
    assert again.stride() == t.stride() and again.tolist() == t.tolist()


def test_what_expand_repeats_is_written_once():
    file = io.BytesIO()
    tg.save(tg.ones(1, 1000).expand(1000, 1000), file)
    assert len(file.getvalue()) < 10_000


def test_parameters_and_requires_grad_come_back():
    again = through_file([tg.Parameter(tg.ones(2)), tg.ones(2, requires_grad=True), tg.ones(2)])
    assert [type(t) is tg.Parameter for t in again] == [True, False, False]
    assert [t.requires_grad for t in again] == [True, True, False]


def test_tied_tensors_stay_tied():
    weight = tg.Parameter(tg.ones(3))
    a, b, alias = through_file([weight, weight, weight.detach()])
    assert a is b and alias.data_ptr() == a.data_ptr()


def test_views_of_one_storage_stay_views_of_one():
    base = tg.arange(12.0).reshape(3, 4)
    whole, row, column, real = through_file([base, base[1], base[:, 2], tg.view_as_complex(base.reshape(3, 2, 2))])
    whole.fill_(5)
    assert row.tolist() == [5] * 4 and column.tolist() == [5] * 3 and real[0, 0].item() == 5 + 5j


def test_meta_tensors_are_saved_without_data():
    assert through_file(tg.empty(2, 3, device="meta")).is_meta


def test_map_location_moves_every_tensor():
    again = through_file({"a": [tg.ones(2), tg.Parameter(tg.ones(1))]}, map_location="meta")
    assert again["a"][0].is_meta and type(again["a"][1]) is tg.Parameter
    with pytest.raises(RuntimeError, match="cuda"):
        through_file(tg.ones(1), map_location="cuda")


def test_another_program_reads_row_major_tensors_by_path(tmp_path):
    from safetensors.numpy import load_file

    path = tmp_path / "x.safetensors"
    t = tg.arange(6.0).reshape(2, 3).t()
    tg.save({"layer": {"weight": t}}, path)
    assert load_file(path)["layer.weight"].tolist() == t.tolist()


def test_any_safetensors_file_is_a_dict_of_tensors(tmp_path):
    np = pytest.importorskip("numpy")
    from safetensors.numpy import save_file

    save_file({"a": np.ones((2, 3), "f4"), "b": np.arange(3)}, tmp_path / "x.safetensors")
    again = tg.load(tmp_path / "x.safetensors")
    assert again["a"].shape == (2, 3) and again["b"].tolist() == [0, 1, 2]


def test_a_training_state_comes_back():
    state = {
        "step": 3,
        "model": OrderedDict(w=tg.randn(3, 2)),
        "optimizer": {
            "state": {0: {"exp_avg": tg.zeros(3, 2)}},
            "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999), "params": [0]}],
        },
    }
    again = through_file(state)
    assert again["optimizer"]["param_groups"] == state["optimizer"]["param_groups"]
    assert again["model"]["w"].tolist() == state["model"]["w"].tolist() and list(again["optimizer"]["state"]) == [0]


# ---- refusals


@pytest.mark.parametrize(
    "obj, error, fragment",
    [
        ({"a": [object()]}, TypeError, "state['a'][0] is a builtins.object"),
        ({"a": {1, 2}}, TypeError, "state['a'] is a builtins.set"),
        (lambda: 0, TypeError, "state is a builtins.function"),
        ({"f": tg.relu}, TypeError, "state['f']"),
        ([tg.ones(1).as_subclass(type("Sub", (tg.Tensor,), {}))], TypeError, "as_subclass(Tensor)"),
    ],
)
def test_what_cannot_be_saved_is_named_by_its_place(obj, error, fragment):
    with pytest.raises(error) as raised:
        tg.save(obj, io.BytesIO())
    assert fragment in str(raised.value)


def test_cycles_and_bottomless_nesting_are_refused():
    loop, deep = [], []
    loop.append(loop)
    for _ in range(5000):
        deep = [deep]
    for obj in (loop, deep):
        with pytest.raises(ValueError, match="itself|levels deep"):
            tg.save(obj, io.BytesIO())


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x"
    tg.save({"a": tg.ones(2)}, path)
    with pytest.raises(TypeError):
        tg.save({"a": object()}, path)
    with pytest.raises(IsADirectoryError):
        tg.save(1, tmp_path)
    assert tg.load(path)["a"].tolist() == [1, 1] and os.listdir(tmp_path) == ["x"]


def _bytes(obj):
    file = io.BytesIO()
    tg.save(obj, file)
    return file.getvalue()


@pytest.mark.parametrize(
    "data, fragment",
    [
        (b"", "no safetensors file"),
        (b"hello world", "no safetensors file"),
        (b"\xff" * 40, "no safetensors file"),
        (_bytes(tg.ones(9))[:-3], "damaged or cut off"),
        (_bytes(tg.ones(9))[:40], "damaged or cut off"),
        (pickle.dumps({"a": 1}), "bare pickle"),
        (b"PK\x03\x04 no zip", "PyTorch file"),
    ],
    ids=["empty", "text", "noise", "without its end", "header only", "pickle", "half a zip"],
)
def test_foreign_and_damaged_files_are_refused(data, fragment):
    with pytest.raises(RuntimeError, match=fragment):
        tg.load(io.BytesIO(data))


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        tg.load(tmp_path / "nothing")


def test_a_missing_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in ("no", "no/such", "file"):
        with pytest.raises(RuntimeError, match=f"Parent directory .*{folder} does not exist.*make it"):
            tg.save(tg.ones(2), tmp_path / folder / "a.pt")


def _edited(**changes):
    """A file with some of its metadata replaced."""
    data = _bytes(tg.arange(6.0).reshape(2, 3).t())
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    header["__metadata__"].update(changes)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return io.BytesIO(len(text).to_bytes(8, "little") + text + data[8 + n :])


@pytest.mark.parametrize(
    "changes",
    [
        {"object": '{"tensor": 1}'},
        {"object": '{"tensor": -1}'},
        {"object": '{"system": "ls"}'},
        {"object": "{}"},
        {"object": "["},
        {"object": '{"__class__": 1}'},
        {"object": '{"dict": [[[1], 2]]}'},
        {"object": '{"device": "nowhere"}'},
        {"object": '{"dtype": "int3"}'},
        {"object": "[" * 100_000 + "]" * 100_000},
        {"object": '{"tuple": 3}'},
        {"object": '{"dict": [], "attributes": {"dict": []}}'},
        {"tensors": '[["nothing", "float32", [3, 2], [1, 3], 0, false, false]]'},
        {"tensors": "[[]]"},
        {"tensors": "3"},
        {"tensors": '[["tensor", "float32", [300, 2], [1, 3], 0, false, false]]'},
        {"tensors": '[["tensor", "float32", [3, 2], [1, 3], -1, false, false]]'},
        {"tensors": '[["tensor", "float32", [3, 2], [1, 3], 1, false, false]]'},
        {"tensors": '[["tensor", "float64", [3, 2], [1, 3], 0, false, false]]'},
        {"tensors": '[["tensor", "float32", [1099511627776, 1099511627776], [0, 0], 0, false, false]]'},
        {"tensors": '[["tensor", "int64", [1], [1], 0, true, true]]'},
        {"strides": '{"tensor": [5, 1]}'},
        {"strides": '{"tensor": ["a"]}'},
        {"format": "tinygrad_ext 99"},
    ],
)
def test_metadata_that_does_not_fit_is_refused(changes):
    with pytest.raises(RuntimeError, match="load"):
        tg.load(_edited(**changes))


def test_flipped_bytes_never_crash():
    rng = random.Random(0)
    data = _bytes({"a": tg.arange(6.0).reshape(2, 3).t(), "b": [1, tg.ones(2, dtype=tg.complex64)]})
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            repr(tg.load(io.BytesIO(bytes(damaged))))
        except RuntimeError:
            pass


def test_an_open_file_is_flushed(tmp_path):
    for name, options in (("whole.pt", {"format": "torch"}), ("parts.safetensors", {})):
        with open(tmp_path / name, "wb") as file:
            tg.save({"a": tg.arange(3)}, file, **options)
            assert tg.load(tmp_path / name)["a"].tolist() == [0, 1, 2]


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
