"""PyTorch's files are read, and nothing of them is executed."""

import io
import os
import pickle
import zipfile
from collections import Counter

import pytest

import tinygrad_ext as tg


def _archive(pickled, **entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", entries.pop("compression", zipfile.ZIP_STORED)) as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name, data in entries.items():
            archive.writestr(f"archive/{name}", data)
    file.seek(0)
    return file


class _Calls:
    """Pickles as a call of a function."""

    def __init__(self, fn, *args):
        self.call = fn, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "pickled",
    [
        pickle.dumps(_Calls(os.system, "exit 1"), 2),
        pickle.dumps(_Calls(eval, "1"), 4),
        pickle.dumps(_Calls(print, 1)),
        b"ctorch\nTensor\n(I3\ntR.",  # a class that is only a name here
        b"ctorch\nFloatStorage\n}X\x05\x00\x00\x00dtypeI1\nsb.",  # attributes of our own table
        b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aI1\nsb.",
        b"ccollections\nOrderedDict\n}X\x01\x00\x00\x00aI1\nsb.",
        b"\x80\x02",
        b".",
        b"",
        b"(lp0\n0.",
        b"\x80\x02\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"X\xff\xff\xff\x7f.",
    ],
)
def test_a_pickle_that_does_more_than_hold_tensors_is_refused(pickled):
    with pytest.raises(RuntimeError, match="cannot be read as a PyTorch file"):
        tg.load(_archive(pickled))


def test_archives_of_other_kinds_are_refused():
    plain = pickle.dumps({"a": 1}, 2)
    assert tg.load(_archive(plain)) == {"a": 1}
    for archive, fragment in (
        (_archive(plain, byteorder=b"big"), "big-endian"),
        (_archive(plain, **{"constants.pkl": b""}), "TorchScript"),
        (_archive(plain, compression=zipfile.ZIP_DEFLATED), "compressed"),
    ):
        with pytest.raises(RuntimeError, match=fragment):
            tg.load(archive)


@pytest.fixture
def pytorch():
    return pytest.importorskip("torch")


def test_a_pytorch_checkpoint_is_read(pytorch, tmp_path):
    model = pytorch.nn.Linear(3, 2)
    optimizer = pytorch.optim.Adam(model.parameters())
    model(pytorch.ones(1, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / "x.pt"
    pytorch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "weight": model.weight,
            "bytes": b"abc",
            "size": pytorch.Size([2]),
            "dtype": pytorch.float16,
            "device": pytorch.device("cpu"),
        },
        path,
    )
    again = tg.load(path)
    assert again["model"]["weight"].tolist() == model.weight.tolist() and again["model"]._metadata[""] == {"version": 1}
    assert again["optimizer"]["state"][0]["exp_avg"].tolist() == optimizer.state_dict()["state"][0]["exp_avg"].tolist()
    assert type(again["weight"]) is tg.Parameter and again["bytes"] == b"abc"
    assert (again["size"], again["dtype"], again["device"]) == (tg.Size([2]), tg.float16, tg.device("cpu"))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_pytorch_tensors_of_every_dtype_and_layout_are_read(pytorch, dtype):
    base = pytorch.ones(4, 6, dtype=getattr(pytorch, dtype))
    file = io.BytesIO()
    tensors = [base, base.t(), base[1:3, ::2], base[0, 0], base[:0]]
    pytorch.save(tensors, file)
    file.seek(0)
    again = tg.load(file)
    assert [(t.shape, t.stride(), t.tolist()) for t in again] == [
        (tuple(t.shape), t.stride(), t.tolist()) for t in tensors
    ]
    assert again[0].data_ptr() == again[1].data_ptr()


def test_a_whole_pytorch_module_is_refused(pytorch):
    file = io.BytesIO()
    pytorch.save(pytorch.nn.Linear(1, 1), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"torch.nn.modules.linear.Linear.*state_dict"):
        tg.load(file)


# ---- the format before PyTorch 1.6 -----------------------------------------------------------------------------------

_MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, 2)


def _row(*objects, data=b""):
    return io.BytesIO(_MAGIC + b"".join(pickle.dumps(o, 2) for o in objects) + data)


def test_files_of_older_versions_are_read():
    torch = pytest.importorskip("torch")
    base = torch.arange(6.0).reshape(2, 3)
    held = {
        "base": base,
        "view": base[:, 1:],
        "half": torch.ones(2, dtype=torch.float16),
        "unsigned": torch.ones(2, dtype=torch.uint16),
        "parameter": torch.nn.Parameter(torch.ones(1)),
        "state": torch.nn.BatchNorm1d(2).state_dict(),
        "empty": torch.ones(0),
    }
    file = io.BytesIO()
    file.write(b"before")
    torch.save(held, file, _use_new_zipfile_serialization=False)
    file.seek(6)
    found = tg.load(file)
    assert found["base"].tolist() == base.tolist() and found["view"].stride() == (3, 1)
    found["base"][0, 1] = 9
    assert found["view"][0, 0] == 9 and found["half"].dtype is tg.float16 and found["unsigned"].tolist() == [1, 1]
    assert isinstance(found["parameter"], tg.nn.Parameter) and list(found["state"]) == list(held["state"])
    assert found["state"]["running_var"].tolist() == [1.0, 1.0] and found["empty"].shape == (0,)
    whole = file.getvalue()[6:]
    for cut in range(0, len(whole), 7):
        with pytest.raises(RuntimeError, match="cannot be read|pickle|safetensors"):
            tg.load(io.BytesIO(whole[:cut]))


def test_rows_that_do_not_fit_together_are_refused():
    system = {"little_endian": True}
    assert tg.load(_row(1001, system, {"a": 1}, [])) == {"a": 1}
    for file, fragment in (
        (_row(1000, system, {}, []), "protocol"),
        (_row(1001, {"little_endian": False}, {}, []), "big-endian"),
        (_row(1001, system, {}, ["0"]), "not those"),
        (_row(1001, system, _Calls(os.system, "exit 1"), []), "it names"),
    ):
        with pytest.raises(RuntimeError, match=fragment):
            tg.load(file)
    begin = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    end = b"X\x01\x00\x00\x00kX\x03\x00\x00\x00cpuJ%sNtQK\x00K\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR."
    head = _MAGIC + pickle.dumps(1001, 2) + pickle.dumps(system, 2)
    keys, number = pickle.dumps(["k"], 2), b"\x01" + bytes(7) + b"\x00\x00\x80\x3f"
    assert tg.load(io.BytesIO(head + begin + end % b"\x01\x00\x00\x00" + keys + number)).tolist() == [1.0]
    for count, data, fragment in (
        (b"\xff\xff\xff\x7f", number, "more bytes than the file"),
        (b"\x01\x00\x00\x00", b"\x03" + number[1:], "holds 3 elements"),
        (b"\x01\x00\x00\x00", number[:-1], "cut off"),
    ):
        with pytest.raises(RuntimeError, match=fragment):
            tg.load(io.BytesIO(head + begin + end % count + keys + data))


def test_sets_counters_and_bytes_come_back():
    torch = pytest.importorskip("torch")
    held = {
        "s": {1, "a", (2, 3)},
        "c": Counter("aab"),
        "b": b"\x00\xff",
        "m": bytearray(b"ab"),
        "e": [set(), Counter()],
    }
    file = io.BytesIO()
    torch.save({**held, "l": torch.strided}, file)
    file.seek(0)
    found = tg.load(file)
    assert found.pop("l") is tg.strided and found == held and type(found["c"]) is Counter
    ours = io.BytesIO()
    tg.save({**held, "none": b""}, ours, format="torch")
    for load in (tg.load, lambda f: torch.load(f, weights_only=True)):
        ours.seek(0)
        assert load(ours) == {**held, "none": b""}
    with pytest.raises(TypeError, match="cannot be saved"):
        tg.save({object()}, io.BytesIO(), format="torch")
    bad = b"c__builtin__\nset\n(X\x01\x00\x00\x00atR."
    with pytest.raises(RuntimeError, match="made of a str"):
        tg.load(_archive(bad))


def test_storages_come_back_as_storages(pytorch, tmp_path):
    pytorch.save([pytorch.arange(3.0).untyped_storage()] * 2, tmp_path / "x.pt")
    held, again = tg.load(tmp_path / "x.pt")
    assert held.data_ptr() == again.data_ptr() and held.nbytes() == 12 and tg.empty(0).set_(held).tolist() == [0, 1, 2]


def test_storages_in_attributes_and_objects_are_storages(pytorch, tmp_path):
    x = pytorch.arange(3.0)
    x.told = {"a": [pytorch.ones(2).untyped_storage()], "b": pytorch.zeros(1)}
    pytorch.save({"x": x, "again": x[1:], "bytes": pytorch.ones(1).untyped_storage()}, tmp_path / "x.pt")
    for options in ({}, {"weights_only": False}):
        found = tg.load(tmp_path / "x.pt", **options)
        assert found["x"].told["a"][0].nbytes() == 8 and found["bytes"].nbytes() == 4
        assert found["again"].tolist() == [1, 2]
        assert found["again"].untyped_storage().data_ptr() == found["x"].untyped_storage().data_ptr()
    found = tg.load(tmp_path / "x.pt", map_location="meta")
    assert found["x"].is_meta and found["x"].told["b"].is_meta
