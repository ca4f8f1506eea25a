"""PyTorch's files are read, and nothing of them is executed."""

import io
import os
import pickle
import zipfile

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
