"""`save(..., format="torch")` writes what PyTorch reads, and so do we."""

import importlib.util
import io
import pickletools
import subprocess
import sys
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.core.data.table import DTYPES

SEEN = tg.ones(2)


def _written(obj):
    file = io.BytesIO()
    tg.save(obj, file, format="torch")
    file.seek(0)
    return file


@pytest.fixture
def readers():
    """Pairs of a function that writes and reads again and the library that reads: ours, and PyTorch if it is here."""
    ways = [(lambda obj: tg.load(_written(obj)), tg)]
    if importlib.util.find_spec("torch") is not None:
        torch = pytest.importorskip("torch")
        ways.append((lambda obj: torch.load(_written(obj), weights_only=True), torch))
    return ways


def _nested():
    nested = {
        "numbers": [None, True, 0, -1, 255, 256, 1 << 31, -(1 << 70), 0.5, float("inf"), 2 - 1j],
        "texts": ("", "ä", {"deep": [(), [], {}, OrderedDict()]}),
        1: OrderedDict(b=1, a=2),
        (1, "x"): np.float64(2.5),
    }
    return nested


def test_nested_plain_values_are_written(readers):
    for read, _ in readers:
        again = read(_nested())
        assert again == _nested() and type(again[1]) is OrderedDict and type(again[1, "x"]) is float
        assert type(again["numbers"][1]) is bool and type(again["texts"]) is tuple


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_and_attributes_are_written(readers):
    coo = tg.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 3))
    plain, parameter, meta = tg.ones(2), tg.nn.Parameter(tg.zeros(1)), tg.empty(3, device="meta")
    plain.told, parameter.told, meta.told = {"a": plain.sum()}, (1, "x"), 3
    sparse = [coo, coo.coalesce(), coo.to_sparse_csr(), coo.to_sparse_csc()]
    for read, _ in readers:
        *again, first, second, third, fourth = read([*sparse, plain, plain, parameter, meta])
        assert [str(t.layout) for t in again] == [str(t.layout) for t in sparse]
        assert [t.to_dense().tolist() for t in again] == [[[0, 1, 0], [2, 0, 0]]] * 4
        assert [t.is_coalesced() for t in again[:2]] == [False, True]
        assert first is second and first.told["a"].item() == 2
        assert (type(third).__name__, third.told, third.requires_grad, fourth.told) == ("Parameter", (1, "x"), True, 3)


def _tensors(dtype):
    base = tg.tensor(np.arange(24).reshape(4, 6) % 2).to(dtype)
    return [base, base.t(), base[1:3, ::2], base[0, 0], base[:0], base[0, :1].expand(3, 5), tg.zeros((), dtype=dtype)]


@pytest.mark.parametrize("dtype", [row.name for row in DTYPES])
def test_every_dtype_and_layout_is_written(readers, dtype):
    tensors = _tensors(getattr(tg, dtype))
    want = [(dtype, tuple(t.shape), t.stride(), t.storage_offset(), t.tolist()) for t in tensors]
    for read, _ in readers:
        again = read(tensors)
        assert want == [(str(t.dtype)[6:], tuple(t.shape), t.stride(), t.storage_offset(), t.tolist()) for t in again]
        assert len({t.untyped_storage().data_ptr() for t in again[:6]}) == 1
        assert again[0].untyped_storage().nbytes() == tensors[0].untyped_storage().nbytes()


def test_one_memory_seen_with_two_dtypes_stays_one(readers):
    floats = tg.tensor([1.0, -2.0, 3.0])
    for read, _ in readers:
        a, b = read([floats, floats.view(tg.int32)])
        assert a.tolist() == floats.tolist() and b.tolist() == floats.view(tg.int32).tolist()
        a[0] = 0.0
        assert b[0].item() == 0


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")  # PyTorch says so to whoever asks one anything
def test_storages_are_written(readers):
    t = tg.arange(4.0)
    for read, kind in readers:
        typed, shown, bare, own = read([t.storage(), t[1:], tg.ones(2).untyped_storage(), tg.FloatStorage([1, 2])])
        assert typed.tolist() == [0, 1, 2, 3] and typed.dtype is kind.float32 and own.tolist() == [1, 2]
        assert list(bare) == list(np.ones(2, np.float32).tobytes())
        shown[0] = 9
        assert typed[1] == 9


def test_storages_of_nothing_have_dtypes_of_their_own(readers):
    for read, _ in readers:
        assert [len(s) for s in read([tg.zeros(0).storage(), tg.zeros(0, dtype=tg.int64).storage()])] == [0, 0]


@pytest.mark.parametrize("weights_only", [True, False])
def test_texts_of_python_2_are_utf_8(weights_only):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02U\x03\xc3\xa4x.")
        archive.writestr("archive/version", b"3\n")
    file.seek(0)
    assert tg.load(file, weights_only=weights_only) == "\xe4x"


def test_parameters_gradients_and_words_of_the_library_are_written(readers):
    weight = tg.nn.Parameter(tg.ones(2, 3))
    frozen = tg.nn.Parameter(tg.ones(2), requires_grad=False)
    told = {
        "weight": weight,
        "again": weight,
        "frozen": frozen,
        "leaf": tg.ones(1, requires_grad=True),
        "meta": tg.empty(2, 3, device="meta", dtype=tg.float16),
        "size": tg.Size([2, 3]),
        "dtypes": [tg.bfloat16, tg.complex64, tg.uint16, tg.bool],
        "device": tg.device("cpu"),
        "indexed": tg.device("cpu", 0),
    }
    for read, lib in readers:
        again = read(told)
        assert again["weight"] is again["again"] and type(again["weight"]) is lib.nn.Parameter
        assert again["weight"].requires_grad and not again["frozen"].requires_grad and again["leaf"].requires_grad
        assert again["meta"].is_meta and again["meta"].dtype is lib.float16 and again["meta"].shape == (2, 3)
        assert type(again["size"]) is lib.Size and again["size"] == (2, 3)
        assert again["dtypes"] == [lib.bfloat16, lib.complex64, lib.uint16, lib.bool]
        assert (again["device"], again["indexed"]) == (lib.device("cpu"), lib.device("cpu", 0))


def test_shared_lists_stay_shared(readers):
    shared = [1]
    for read, _ in readers:
        again = read({"a": shared, "b": shared})
        assert again["a"] is again["b"]


def _trained(lib):
    lib.manual_seed(0)
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.LSTM(4, 2))
    optimizer = lib.optim.Adam(model.parameters(), amsgrad=True)
    model(lib.ones(5, 3))[0].sum().backward()
    optimizer.step()
    return model, optimizer


def test_a_checkpoint_goes_on_in_pytorch_and_back():
    torch = pytest.importorskip("torch")
    model, optimizer = _trained(tg)
    there, its_optimizer = _trained(torch)
    state = torch.load(_written({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
    assert state["model"]._metadata == dict(model.state_dict()._metadata)
    there.load_state_dict(state["model"])
    its_optimizer.load_state_dict(state["optimizer"])
    for a, b in zip(model.parameters(), there.parameters()):
        assert a.tolist() == b.tolist()
    file = io.BytesIO()
    torch.save({"model": there.state_dict(), "optimizer": its_optimizer.state_dict()}, file)
    file.seek(0)
    back = tg.load(file)
    model.load_state_dict(back["model"])
    optimizer.load_state_dict(back["optimizer"])


def test_pytorch_maps_the_file(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "x.pt"
    tg.save({"a": tg.arange(1000)}, path, format="torch")
    for mmap in (False, True):
        assert torch.load(path, mmap=mmap)["a"].tolist() == list(range(1000))
    assert tg.load(path, mmap=True)["a"].tolist() == list(range(1000))
    tg.save({"a": 1}, path, format="torch")
    assert tg.load(path) == {"a": 1}


def test_the_file_is_the_same_each_time_and_its_data_are_aligned():
    state = {"a": tg.ones(3), "b": tg.zeros(5, dtype=tg.int8)}
    first = _written(state).read()
    assert first == _written(state).read()
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        codes = {code.name for code, _, _ in pickletools.genops(archive.read("archive/data.pkl"))}
    assert names == [f"archive/{n}" for n in ("data.pkl", "byteorder", "data/0", "data/1", "version")]
    assert "PROTO" in codes and not codes & {"STACK_GLOBAL", "MEMOIZE", "FRAME"}
    assert first.index(tg.ones(3).numpy().tobytes()) % 64 == 0


def test_writing_needs_no_pytorch(tmp_path):
    code = (
        "import sys, tinygrad_ext as tg; sys.modules['torch'] = None;"
        f"tg.save(tg.nn.Linear(2, 1).state_dict(), {str(tmp_path / 'x.pt')!r}, format='torch');"
        f"assert list(tg.load({str(tmp_path / 'x.pt')!r})) == ['weight', 'bias']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("obj", "error", "fragment"),
    [
        ({"a": [np.ones(2)]}, TypeError, r"state\['a'\]\[0\] is a numpy.ndarray.*from_numpy"),
        ({"a": object()}, TypeError, r"state\['a'\] is a builtins.object"),
        ([SEEN.storage(), SEEN.view(tg.int32).storage()], RuntimeError, "view the same data as different types"),
        ([SEEN, SEEN.untyped_storage()], RuntimeError, "as different types: float32 and uint8"),
        ([tg.ones(2, device="meta").storage()], TypeError, "a storage on meta has no numbers"),
        ([tg.ones(2).to(tg.uint16).storage()], TypeError, "no class of storages of uint16"),
        ([1 << 3000], ValueError, "255 bytes"),
        ([-(1 << 3000)], ValueError, "255 bytes"),
    ],
)
def test_what_pytorch_would_not_read_is_refused(obj, error, fragment):
    with pytest.raises(error, match=fragment):
        _written(obj)


def test_the_largest_integers_are_written(readers):
    numbers = [(1 << 2039) - 1, -(1 << 2039)]
    assert all(read(numbers) == numbers for read, _ in readers)


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="'pickle' is unknown"):
        tg.save({}, io.BytesIO(), format="pickle")
