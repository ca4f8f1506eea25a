"""Objects of any class: pickled when asked for, or under the alias; read by an explicit word alone."""

import argparse
import io
import pickle
import zipfile
from collections import defaultdict

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


class Settings:
    def __init__(self):
        self.rate = np.float64(0.5)
        self.start = tg.arange(4.0)
        self.part = self.start[1:3]
        self.table = np.arange(3)
        self.itself = self


class Marked(tg.Tensor):
    pass


def through(obj, **options):
    file = io.BytesIO()
    tg.save(obj, file, **options)
    file.seek(0)
    return tg.load(file, weights_only=False)


def test_objects_come_back_with_what_they_share():
    again = through(Settings(), format="object")
    assert again.itself is again and type(again.rate) is np.float64 and again.table.tolist() == [0, 1, 2]
    again.part.zero_()
    assert again.start.tolist() == [0, 0, 0, 3]


def test_values_of_all_kinds_come_back():
    held = {
        "d": defaultdict(list, {1: [2]}),
        "s": {1, 2},
        "n": 10**700,
        "b": b"\x00\xff",
        "c": 1j,
        "t": tg.float16,
        "f": tg.relu,
        "w": tg.device("cpu"),
        "r": range(3),
    }
    assert through(held, format="object") == held
    param = through([nn.Parameter(tg.ones(2)), tg.ones(2).half(), tg.ones(2).as_subclass(Marked)], format="object")
    assert [type(p) for p in param] == [nn.Parameter, tg.Tensor, Marked] and param[1].dtype == tg.half


def test_a_module_and_its_optimizer_go_on_as_they_were():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU())
    optimizer = tg.optim.Adam(model.parameters(), lr=0.1)
    model(tg.ones(2, 2) * tg.arange(2.0)).sum().backward()
    optimizer.step()
    again, stepper = through((model, optimizer), format="object")
    assert stepper.param_groups[0]["params"][0] is again[0].weight
    x = tg.randn(4, 2)
    for m, o in ((model, optimizer), (again, stepper)):
        o.zero_grad()
        m(x).pow(2).sum().backward()
        o.step()
    for a, b in zip(again.parameters(), model.parameters(), strict=True):
        assert tg.equal(a, b)


def test_without_the_word_nothing_is_run():
    file = io.BytesIO()
    tg.save(Settings(), file, format="object")
    for options in ({}, {"weights_only": True}, {"weights_only": None}):
        file.seek(0)
        with pytest.raises(RuntimeError, match=r"it names .*Settings.*weights_only=False") as raised:
            tg.load(file, **options)
        assert isinstance(raised.value, pickle.UnpicklingError)


def test_what_pickle_refuses_is_refused(tmp_path):
    path = tmp_path / "x"
    tg.save([1], path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        tg.save(lambda: 0, path, format="object")
    with pytest.raises(ValueError, match="'torch' or 'object'"):
        tg.save(1, path, format="json")
    assert tg.load(path, weights_only=False) == [1]


def test_under_the_alias_what_safetensors_cannot_hold_is_pickled(as_torch, tmp_path):
    import torch

    given = argparse.Namespace(steps=3, weight=torch.ones(2))
    torch.save(given, tmp_path / "args", pickle_protocol=4, _use_new_zipfile_serialization=True)
    assert torch.load(tmp_path / "args", weights_only=False).steps == 3
    with pytest.raises(pickle.UnpicklingError, match="argparse.Namespace"):
        torch.load(tmp_path / "args")
    torch.save({"weight": torch.ones(2)}, tmp_path / "state")
    assert torch.load(tmp_path / "state")["weight"].tolist() == [1, 1]


def test_reads_what_pytorch_pickled(tmp_path):
    torch = pytest.importorskip("torch", reason="writes the file")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.GELU()).eval()
    held = {"model": model, "args": argparse.Namespace(kind=torch.float16, weight=torch.ones(2)), "n": np.arange(2)}
    for new in (True, False):
        torch.save(held, tmp_path / "x", _use_new_zipfile_serialization=new)
        again = tg.load(tmp_path / "x", weights_only=False)
        assert again["args"].kind is tg.float16 and again["n"].tolist() == [0, 1]
        assert type(again["model"][0]) is nn.Linear and again["args"].weight.tolist() == [1, 1]
        x = np.float32([[1, -2], [0.5, 3]])
        expected = model(torch.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(again["model"](tg.from_numpy(x)).detach().numpy(), expected, 1e-5)
    assert tg.load(tmp_path / "x", map_location="meta", weights_only=False)["args"].kind is tg.float16


def of_python_2(path, text):
    """A file as Python 2 wrote it, whose texts are bytes."""
    pickled = b"\x80\x02U" + bytes([len(text)]) + text + b"."
    tg.save({"a": 1}, path, format="torch")
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, pickled if name.endswith("/data.pkl") else data)


def test_texts_of_python_2_are_in_the_encoding_that_is_told(tmp_path):
    path = tmp_path / "x"
    of_python_2(path, "é".encode("latin1"))
    assert tg.load(path, weights_only=False, encoding="latin1") == "é"
    assert tg.load(path, weights_only=False, encoding="bytes") == b"\xe9"
    assert tg.load(path, weights_only=False, errors="replace") == "\N{REPLACEMENT CHARACTER}"
    with pytest.raises(UnicodeDecodeError):
        tg.load(path, weights_only=False)
    with pytest.raises(TypeError):
        tg.load(path, weights_only=False, encoding=3)


def test_what_only_pickle_knows_is_refused_where_it_does_not_read(tmp_path):
    path = tmp_path / "x"
    for format in ("safetensors", "torch"):
        tg.save({"a": tg.ones(1)}, path, format=format)
        with pytest.warns(UserWarning, match="encoding='latin1' has an effect with weights_only=False only"):
            assert tg.load(path, encoding="latin1")["a"].item() == 1
        assert tg.load(path, weights_only=False, encoding="latin1")["a"].item() == 1
        with pytest.raises(TypeError, match="load.. got an unexpected keyword argument 'fix_imports'"):
            tg.load(path, fix_imports=True)
