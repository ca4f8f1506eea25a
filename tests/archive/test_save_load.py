"""save and load: what comes back is what was given, damaged and foreign files are refused, nothing is executed."""

import io
import json
import os
import pickle
import random
from collections import OrderedDict

import pytest

import tinygrad_ext as tg


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


class Readable:
    """A path whose methods read and write text."""

    def __init__(self, path):
        self.path = str(path)

    def __fspath__(self):
        return self.path

    def read(self):
        raise AssertionError("the file is opened by its name")

    write = read


def test_a_path_with_methods_of_a_file_is_a_path(tmp_path):
    path = Readable(tmp_path / "x.tgx")
    tg.save({"x": tg.ones(2)}, path)
    assert tg.load(path)["x"].tolist() == [1, 1]
