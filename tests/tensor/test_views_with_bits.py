"""Conjugate and negative views: what they share, show, refuse, and keep, as in PyTorch."""

import copy
import pickle
import random

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import sweep
from tinygrad_ext.testing.beside_torch import to_torch


def numbers(*shape, of=tg):
    """Complex numbers whose products and sums are exact."""
    n = int(np.prod(shape))
    data = [complex(k % 7 - 3, k % 5 - 1) for k in range(n)]
    return of.tensor(data, dtype=of.complex64).reshape(shape)


def bits(t):
    return t.is_conj(), t.is_neg()


# ---- what a view shares and shows ----------------------------------------------------------------------------------


def test_conj_is_a_view_with_a_bit():
    x = numbers(2, 3)
    y = x.conj()
    assert y.is_conj() and not x.is_conj() and tg.is_conj(y) and y._is_view() and y._base is x._base
    assert y.data_ptr() == x.data_ptr() and y.dtype is tg.complex64 and y.device == x.device
    assert not y.conj().is_conj() and y.conj().equal(x)
    assert y.tolist() == np.conj(x.numpy()).tolist() and y[0, 1].item() == x[0, 1].item().conjugate()
    assert complex(y[0, 1]) == x[0, 1].item().conjugate() and repr(y) == repr(x.conj_physical())
    assert tg.ones(2).conj().is_conj() is False


def test_writes_reach_the_tensor_and_come_from_it():
    x = numbers(4)
    y = x.conj()
    y[0] = 1j
    assert x[0].item() == -1j and x._version == y._version == 1
    y.mul_(2j)
    assert x[0].item() == -2 and y[0].item() == -2
    x[1] = 3 + 4j
    assert y[1].item() == 3 - 4j
    y.imag[2] = 5
    assert x[2].item().imag == -5 and y[2].item().imag == 5
    y.copy_(x)
    assert x[1].item() == 3 - 4j and y[1].item() == 3 + 4j
    y.fill_(1 + 1j)
    assert x.tolist() == [1 - 1j] * 4
    y.zero_()
    assert not x.any()


def test_neg_views_write_and_read_negatives():
    for dtype in (tg.float16, tg.bfloat16, tg.float32, tg.float64, tg.complex64, tg.complex128, tg.int8, tg.int64):
        x = tg.tensor([1, 2, 3], dtype=dtype)
        y = x._neg_view()
        assert y.is_neg() and not y._neg_view().is_neg() and y.equal(-x)
        y[0] = 5
        assert x[0].item() == -5
    z = tg.tensor([1 + 2j], dtype=tg.complex64)
    both = z._neg_view().conj()
    assert bits(both) == (True, True) and both.item() == -1 + 2j and bits(both.imag) == (False, False)
    assert bits(both.real) == (False, True)


def test_half_complex_numbers_have_bits_too():
    x = tg.tensor([1 + 2j, 3 - 4j], dtype=tg.complex32)
    y = x.conj()
    assert y.is_conj() and y.tolist() == [1 - 2j, 3 + 4j] and (y * 2).tolist() == [2 - 4j, 6 + 8j]
    y[0] = 7j
    assert x.tolist() == [-7j, 3 - 4j] and y.imag.is_neg() and y.clone().tolist() == y.tolist()
    assert y.index_select(0, tg.tensor([1])).tolist() == [3 + 4j] and y.flip(0).tolist() == [3 + 4j, 7j]


CALLS = {
    "clone": lambda x: x.conj().clone(),
    "contiguous": lambda x: x.conj().contiguous(),
    "detach": lambda x: x.conj().detach(),
    "data": lambda x: x.conj().data,
    "reshape": lambda x: x.conj().reshape(-1),
    "reshape that copies": lambda x: x.conj().t().reshape(-1),
    "as_strided": lambda x: x.conj().as_strided((2,), (1,), 1),
    "slice": lambda x: x.conj()[1:, ::2],
    "select": lambda x: x.conj()[0],
    "expand": lambda x: x.conj().expand(2, *x.shape),
    "unbind": lambda x: x.conj().unbind(1),
    "split": lambda x: x.conj().split(1),
    "diagonal": lambda x: x.conj().diagonal(),
    "permute": lambda x: x.conj().permute(1, 0),
    "unsqueeze_": lambda x: x.conj().unsqueeze_(0),
    "imag": lambda x: x.conj().imag,
    "real": lambda x: x.conj().real,
    "imag of conj of neg": lambda x: x._neg_view().conj().imag,
    "view_as_real of neg": lambda x: x._neg_view().conj().conj().real,
    "mH": lambda x: x.mH,
    "H": lambda x: x.H,
    "adjoint": lambda x: x.adjoint(),
    "to itself": lambda x: x.conj().to(x.dtype),
    "to another dtype": lambda x: x.conj().cdouble(),
    "resolve_conj": lambda x: x.conj().resolve_conj(),
    "resolve_neg": lambda x: x.conj().resolve_neg(),
    "resolve_neg of imag": lambda x: x.conj().imag.resolve_neg(),
    "conj_physical": lambda x: x.conj().conj_physical(),
    "conj_physical_": lambda x: x.conj().conj_physical_(),
    "neg": lambda x: x.conj().neg(),
    "sum of parts": lambda x: x.conj().imag + x.conj().real,
    "sum": lambda x: x.conj().sum(0),
    "matmul": lambda x: x.mH @ x,
    "matmul of conjugates": lambda x: x.conj() @ x.mH.mT.mT,
    "index by a tensor": lambda x: x.conj()[[0]],
    "cat": lambda x: x.conj().repeat(2, 1),
    "requires_grad_": lambda x: x.conj().requires_grad_(),
    "deepcopy": lambda x: copy.deepcopy(x.conj()),
    "copy": lambda x: copy.copy(x.conj()),
    "pickle": lambda x: pickle.loads(pickle.dumps(x.conj())),
    "pickle of neg": lambda x: pickle.loads(pickle.dumps(x.conj().imag)),
    "in place": lambda x: x.conj().mul_(2j).add_(1),
    "resize_": lambda x: x.conj().resize_(2),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_bits_and_numbers_are_pytorch_s(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    got, want = CALLS[name](numbers(2, 3)), CALLS[name](numbers(2, 3, of=torch))
    rows = ([got], [want]) if isinstance(want, torch.Tensor) else (got, want)
    for g, w in zip(*rows, strict=True):
        assert bits(g) == bits(w) and tuple(g.shape) == tuple(w.shape)
        assert g.tolist() == w.tolist()


def test_assigning_data_takes_the_bit_over():
    y, made = numbers(2, 3).conj(), tg.empty(0, dtype=tg.complex64)
    made.data = y
    assert made.is_conj() and made.equal(y)
    parameter = tg.nn.Parameter(y)
    assert parameter.is_conj() and parameter.equal(y) and parameter.data_ptr() == y.data_ptr()


def test_modules_load_the_numbers_of_a_view():
    layer = tg.nn.Linear(3, 2, dtype=tg.complex64)
    layer.load_state_dict({"weight": numbers(2, 3).conj(), "bias": numbers(2)})
    assert not layer.weight.is_conj() and layer.weight.equal(numbers(2, 3).conj_physical())


# ---- what leaves the library ---------------------------------------------------------------------------------------


def test_numpy_and_its_like_refuse_what_memory_does_not_hold():
    y, z = numbers(2, 3).conj(), numbers(2, 3).conj().imag
    for call in (lambda: y.numpy(), lambda: np.asarray(y), lambda: y.__array__()):
        with pytest.raises(RuntimeError, match=r"has conjugate bit set\. Use tensor\.resolve_conj\(\)\.numpy\(\)"):
            call()
    with pytest.raises(RuntimeError, match=r"has negative bit set\. Use tensor\.resolve_neg\(\)\.numpy\(\)"):
        z.numpy()
    assert np.array_equal(y.numpy(force=True), np.conj(numbers(2, 3).numpy()))
    assert np.array_equal(z.resolve_neg().numpy(), z.numpy(force=True))
    for t in (y, z):
        for call in (lambda t=t: t.__dlpack__(), lambda t=t: tg.from_dlpack(t)):
            with pytest.raises(BufferError, match="bit set"):
                call()
        with pytest.raises(BufferError, match="does not lend its memory"):
            memoryview(t)


@pytest.mark.parametrize("format", [None, "torch", "object"])
def test_files_keep_the_numbers(format, tmp_path):
    x = numbers(2, 3)
    rows = {"x": x, "y": x.conj(), "z": x.conj().imag, "w": tg.nn.Parameter(x.mH)}
    tg.save(rows, tmp_path / "f", **({} if format is None else {"format": format}))
    found = tg.load(tmp_path / "f", **({"weights_only": False} if format == "object" else {}))
    for name, t in rows.items():
        assert found[name].tolist() == t.tolist(), name
    assert found["w"].requires_grad


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_pytorch_s_files_keep_the_bits(writer, tmp_path):
    torch = pytest.importorskip("torch", reason="reads and writes PyTorch's files")
    one, other = (tg, torch) if writer == "ours" else (torch, tg)
    x = numbers(2, 3, of=one)
    options = {"format": "torch"} if writer == "ours" else {}
    rows = [x, x.conj(), x._neg_view().conj(), (x * 2).conj().imag]  # the last in memory of its own, as PyTorch asks
    one.save(rows, tmp_path / "f", **options)
    for t, want in zip(other.load(tmp_path / "f"), rows, strict=True):
        assert bits(t) == bits(want) and t.tolist() == want.tolist()


def test_a_window_made_by_hand_checks_its_bits():
    from tinygrad_ext.core.call.interop import storage_of, window

    with pytest.raises(RuntimeError, match="cannot have the conjugate and negative bits 1"):
        window(storage_of(tg.ones(2)), tg.float32, (2,), (1,), 0, flips=1)
    with pytest.raises(RuntimeError, match="cannot have the conjugate and negative bits 7"):
        window(storage_of(numbers(2)), tg.complex64, (2,), (1,), 0, flips=7)


@pytest.mark.parametrize("value, dtype", [(-128, tg.int8), (1, tg.uint8), (-(2**63), tg.int64), (5, tg.int16)])
def test_python_s_numbers_are_those_of_the_dtype(value, dtype):
    x = tg.tensor([value], dtype=dtype)._neg_view()
    assert int(x) == x.item() == x.__index__() == x.clone().item()


@pytest.mark.parametrize("source", ["complex64", "complex128", "float32", "float64", "int16", "int64"])
def test_bits_are_not_shown_as_numbers_of_another_dtype(source):
    parts = {("complex64", "float32"), ("complex128", "float64")}
    x = tg.ones(8, dtype=getattr(tg, source))._neg_view()
    for name in sweep.ALL_DTYPES:
        if name != source and (source, name) not in parts and (name, source) not in parts:
            with pytest.raises(RuntimeError, match="would show other"):
                x.view(getattr(tg, name))


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "int8", "int64", "float16", "complex64"])
def test_pytorch_s_files_hold_negative_numbers_of_any_dtype(name, tmp_path):
    torch = pytest.importorskip("torch", reason="writes the file")
    torch.save(torch._neg_view(torch.ones(3).to(getattr(torch, name))), tmp_path / "f")
    found = tg.load(tmp_path / "f")
    want = 2 ** tg.iinfo(found.dtype).bits - 1 if name.startswith("u") else -1
    assert found.is_neg() and found.clone().tolist() == [want] * 3 == [t.item() for t in found]


def test_storages_show_what_lies_in_memory():
    x = tg.tensor([1 + 2j])
    assert x.conj().storage()[0] == 1 + 2j and x.conj().imag.storage()[1] == 2
    assert x.conj().untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_meta_tensors_have_no_elements_to_be_read_otherwise():
    x = tg.empty(2, 3, dtype=tg.complex64, device="meta")
    assert x.conj().is_meta and not x.conj().is_conj() and x.mH.shape == (3, 2) and x.conj().imag.dtype is tg.float32


# ---- chains of views and writes, beside NumPy ----------------------------------------------------------------------


class Model:
    """A view as NumPy has it: the memory that it shows, and whether that is read conjugated or negated."""

    def __init__(self, lying, conj=False, neg=False):
        self.lying, self.conj, self.neg = lying, conj, neg

    def turned(self, array):
        array = np.conj(array) if self.conj else array
        return -array if self.neg else array

    def shown(self):
        return self.turned(self.lying)

    def write(self, array):
        self.lying[...] = self.turned(np.asarray(array)).astype(self.lying.dtype)


def step(draw, t, m):
    """A view of a view, in both worlds."""
    complex_ = t.is_complex()
    kind = draw.choice(["slice", "transpose", "select", "neg", *(["conj", "conj", "real", "imag"] if complex_ else [])])
    if kind == "conj":
        return t.conj(), Model(m.lying, not m.conj, m.neg)
    if kind == "neg":
        return t._neg_view(), Model(m.lying, m.conj, not m.neg)
    if kind == "real":
        return t.real, Model(m.lying.real, False, m.neg)
    if kind == "imag":
        return t.imag, Model(m.lying.imag, False, m.neg != m.conj)
    if kind == "transpose" and t.dim() > 1:
        return t.transpose(0, -1), Model(m.lying.swapaxes(0, -1), m.conj, m.neg)
    if kind == "select" and t.dim() > 1:
        i = draw.randrange(t.shape[0])
        return t[i], Model(m.lying[i], m.conj, m.neg)
    at = slice(draw.randrange(t.shape[0]), None, draw.choice([1, 2]))
    return t[at], Model(m.lying[at], m.conj, m.neg)


def write(draw, t, m, others):
    """A write to a view, in both worlds."""
    number = draw.choice([2, -1, 3]) if not t.is_complex() else draw.choice([1j, 2, 1 - 1j])
    kind = draw.choice(["fill", "mul", "add", "copy", "set", "out", "masked"])
    if kind == "fill":
        t.fill_(number)
        m.write(np.full(m.lying.shape, number))
    elif kind == "mul":
        if np.abs(m.lying).max(initial=0) < 2**12:
            t.mul_(number)
            m.write(m.shown() * number)
    elif kind == "masked":
        mask = m.shown().real > 0
        t.masked_fill_(tg.from_numpy(mask.copy()), number)
        m.write(np.where(mask, number, m.shown()))
    elif kind == "set":
        t[-1] = number
        new = m.shown().copy()
        new[-1] = number
        m.write(new)
    else:
        fits = [(o, n) for o, n in others if o.shape == t.shape and o.dtype == t.dtype]
        o, n = draw.choice(fits)
        if kind == "copy":
            new = n.shown().copy()
            t.copy_(o)
        elif kind == "add":
            new = m.shown() + n.shown()
            t.add_(o.clone())
        else:
            new = m.shown() - n.shown()
            tg.sub(t.clone(), o.clone(), out=t)
        m.write(new)


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_views_and_writes_are_numpy_s(seed):
    draw = random.Random(seed)
    start = np.array([complex(draw.randint(-4, 4), draw.randint(-4, 4)) for _ in range(24)]).reshape(2, 3, 4)
    start = start.astype(draw.choice([np.complex64, np.complex128]))
    pool = [(tg.from_numpy(start.copy()), Model(start))]
    for _ in range(30):
        t, m = draw.choice(pool)
        if draw.random() < 0.5 and t.dim():
            pool.append(step(draw, t, m))
        elif t.dim():
            write(draw, t, m, pool)
        for t, m in pool:
            assert bits(t) == (m.conj, m.neg)
            assert np.array_equal(t.numpy(force=True), m.shown()) and t.tolist() == m.shown().tolist()
            assert (t + 0).tolist() == m.shown().tolist() and t.sum().item() == m.shown().sum()


def test_views_from_pytorch_come_resolved():
    torch = pytest.importorskip("torch", reason="brings tensors over")
    x = numbers(3)
    assert to_torch(x.conj(), torch).tolist() == x.conj().tolist()
