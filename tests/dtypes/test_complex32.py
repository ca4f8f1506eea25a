"""complex32 is two float16 side by side: moved bit for bit, computed in complex64 and rounded once."""

import copy
import pickle

import numpy as np
import pytest

import tinygrad_ext as tg

SOME = [1 + 2j, -0.333 + 1e-3j, 5e-8j, 300 - 200j, 0j]


@pytest.fixture
def x():
    return tg.tensor(SOME, dtype=tg.complex32)


def bits(t):
    return tg.view_as_real(t).view(tg.int16).tolist() if t.dtype is tg.complex32 else t.view(tg.int16).tolist()


def rounded(t):
    """What complex64 and float32 become."""
    return t.chalf() if t.is_complex() else t.half() if t.is_floating_point() else t


# ---- the dtype -----------------------------------------------------------------------------------------------------


def test_names_and_facts():
    assert tg.complex32 is tg.chalf and repr(tg.complex32) == "torch.complex32" and tg.complex32.itemsize == 4
    assert tg.complex32.is_complex and tg.complex32.is_signed and not tg.complex32.is_floating_point
    assert tg.complex32.to_real() is tg.float16 and tg.complex32.to_complex() is tg.complex32
    assert tg.float16.to_complex() is tg.complex32 and tg.bfloat16.to_complex() is tg.complex64
    assert tg.finfo(tg.complex32) == tg.finfo(tg.float16)
    assert pickle.loads(pickle.dumps(tg.complex32)) is tg.complex32
    assert tg.zeros(2, dtype=tg.chalf).type() == "torch.ComplexHalfTensor"


def test_promotion():
    for other, want in {
        "bool": "complex32",
        "int64": "complex32",
        "float16": "complex32",
        "bfloat16": "complex64",
        "float32": "complex64",
        "float64": "complex128",
        "complex32": "complex32",
        "complex64": "complex64",
        "complex128": "complex128",
    }.items():
        a, b = getattr(tg, other), getattr(tg, want)
        assert tg.promote_types(tg.complex32, a) is tg.promote_types(a, tg.complex32) is b
        assert (tg.ones(2, dtype=tg.complex32) + tg.ones(2, dtype=a)).dtype is b
    with pytest.raises(RuntimeError, match="UInt16"):
        tg.promote_types(tg.complex32, tg.uint16)
    assert tg.can_cast(tg.complex32, tg.complex64) and not tg.can_cast(tg.complex32, tg.float16)
    half = tg.ones(2, dtype=tg.half)
    assert tg.result_type(half, 1j) is (half * 1j).dtype is (half + tg.tensor(1j)).dtype is tg.complex32
    assert (half.bfloat16() * 1j).dtype is tg.complex64
    assert (half * 1j).tolist() == [1j, 1j] and (half == 1j).tolist() == [False, False]
    assert (tg.ones(2, dtype=tg.chalf) + tg.ones((), dtype=tg.double)).dtype is tg.complex32


def test_a_default_dtype_of_halves():
    with tg.overrides.default_dtype(tg.float16):
        assert tg.tensor(1j).dtype is tg.complex32


# ---- values --------------------------------------------------------------------------------------------------------


def test_parts_round_as_halves_do(x):
    real = tg.tensor([v.real for v in SOME]).half()
    imag = tg.tensor([v.imag for v in SOME]).half()
    assert x.tolist() == [complex(a, b) for a, b in zip(real.tolist(), imag.tolist())]
    assert bits(x.real) == bits(real) and bits(x.imag) == bits(imag)
    assert x[3].item() == complex(x[3]) == 300 - 200j
    assert bits(tg.complex(real, imag)) == bits(x)
    assert str(x[:2]) == "tensor([ 1.0000+2.0000e+00j, -0.3330+1.0004e-03j], dtype=torch.complex32)"


def test_parts_are_views(x):
    x.real[0] = 7
    x.imag.mul_(0)
    assert x.tolist()[0] == 7 and not x.imag.any()
    pairs = tg.tensor([[1.0, 2.0], [3.0, 4.0]]).half()
    y = tg.view_as_complex(pairs)
    y[1] = 5j
    assert pairs.tolist() == [[1, 2], [0, 5]] and y.dtype is tg.complex32
    assert tg.view_as_real(y).dtype is tg.float16 and tg.view_as_real(y).data_ptr() == y.data_ptr() == pairs.data_ptr()
    assert y.view(tg.float16).shape == (4,) and pairs.view(tg.complex32).shape == (2, 1)


def test_conversions(x):
    assert x.cfloat().tolist() == x.cdouble().tolist() == x.tolist() and x.cfloat().chalf().tolist() == x.tolist()
    assert x.half().dtype is tg.float16 and x.to(tg.float64).tolist() == [v.real for v in x.tolist()]
    assert x.bool().tolist() == [True, True, True, True, False]
    assert tg.arange(3).chalf().tolist() == [0, 1, 2]


def test_others_know_no_such_dtype(x):
    with pytest.raises(TypeError, match="unsupported ScalarType ComplexHalf"):
        x.numpy()
    with pytest.raises(BufferError, match="complex32"):
        memoryview(x)
    lent = tg.from_dlpack(x)
    assert lent.dtype is tg.complex32 and lent.data_ptr() == x.data_ptr()


# ---- ops -----------------------------------------------------------------------------------------------------------


def test_what_moves_elements_keeps_bits():
    codes = tg.tensor([[0x7E01, -1], [0x7D55, 3], [1, -0x8000]], dtype=tg.int16)  # NaNs with a payload among them
    x = tg.view_as_complex(codes.view(tg.float16).clone())
    at = tg.tensor([2, 0, 1])
    for made, want in (
        (x.clone(), codes),
        (x.flip(0), codes.flip(0)),
        (x[at], codes[at]),
        (tg.cat([x, x]), tg.cat([codes, codes])),
        (tg.stack([x, x], 1), tg.stack([codes, codes], 1)),
        (x.index_select(0, at), codes[at]),
        (x.roll(1), codes.roll(1, 0)),
        (x.expand(2, 3).contiguous(), codes.expand(2, 3, 2)),
    ):
        assert bits(made) == want.tolist()


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x + x,
        lambda x: x * 0.1,
        lambda x: 2j - x,
        lambda x: x / 3,
        lambda x: x * x[::2].sum(),
        lambda x: x.exp(),
        lambda x: x.abs(),
        lambda x: x.angle(),
        lambda x: x.sgn(),
        lambda x: x.sum(),
        lambda x: x.mean(),
        lambda x: x.conj(),
        lambda x: tg.addcmul(x, x, x, value=0.5),
        lambda x: x[:4].reshape(2, 2) @ x[1:].reshape(2, 2),
        lambda x: x == x.flip(0),
        lambda x: x.isnan(),
        lambda x: tg.where(x.real > 0, x, 1),
        lambda x: tg.linalg.vector_norm(x),
        lambda x: x.cumsum(0),
        lambda x: x.clone().mul_(3),
        lambda x: tg.add(x, x, out=tg.empty_like(x)),
        lambda x: x.clone().index_add_(0, tg.tensor([0, 0]), x[:2]),
        lambda x: x.masked_fill(x.real > 0, 0.1j),
    ],
)
def test_computed_in_complex64_and_rounded_once(x, fn):
    got, want = fn(x), rounded(fn(x.cfloat()))
    assert got.dtype is want.dtype and got.shape == want.shape
    assert tg.equal(got, want)


def test_factories():
    assert tg.full((2,), 1j, dtype=tg.complex32).tolist() == [1j, 1j]
    assert tg.eye(2, dtype=tg.complex32).tolist() == [[1, 0], [0, 1]]
    assert tg.randn(3, dtype=tg.complex32).imag.any()
    x = tg.zeros(2, dtype=tg.complex32)
    assert tg.ones_like(x, device="cpu").tolist() == x.new_full((2,), 1, device="cpu").tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex"):
        x.abs_()
    assert tg.ones_like(tg.randn(2), dtype=tg.chalf).new_zeros(2).dtype is tg.complex32
    assert tg.zeros(2, dtype=tg.chalf, device="meta").abs().dtype is tg.float16
    with pytest.raises(RuntimeError, match="can't be cast"):
        tg.ones(2).half().mul_(1j)


# ---- autograd, transforms, files -------------------------------------------------------------------------------------


def test_gradients_are_those_of_complex64_rounded(x):
    def slopes(x, y, w):
        x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
        return tg.autograd.grad(((x * y).abs() * w).sum(), [x, y])

    y, w = tg.full((5,), 0.5 + 0.25j, dtype=tg.complex32), tg.arange(5).half()
    x[2] = 1  # whose product with y is not lost
    for got, want in zip(slopes(x, y, w), slopes(x.cfloat(), y.cfloat(), w.float())):
        assert got.dtype is tg.complex32
        assert tg.allclose(got.cfloat(), want, 2e-3, 1e-4)
    real = tg.ones(5).half().requires_grad_()
    (real * x).sum().abs().backward()
    assert real.grad.dtype is tg.float16
    pairs = tg.ones(3, 2).half().requires_grad_()
    tg.view_as_complex(pairs).real.sum().backward()
    assert pairs.grad.tolist() == [[1, 0]] * 3


def test_transforms_and_graphs(x):
    assert tg.func.vmap(lambda t: t * 2)(x).tolist() == (x * 2).tolist()
    _, slope = tg.func.jvp(lambda t: t * t, (x,), (tg.ones_like(x),))
    assert slope.dtype is tg.complex32 and slope.tolist() == (2 * x).tolist()
    traced = tg.jit.trace(lambda t: (t + 1).conj() * 0.5, x)
    assert traced(x.flip(0)).tolist() == ((x.flip(0) + 1).conj() * 0.5).tolist()


@pytest.mark.parametrize("form", ["ours", "torch"])
def test_files(x, form, tmp_path):
    path = tmp_path / ("x.pt" if form == "torch" else "x.tg")
    what = {"x": x, "window": x[1:3], "turned": x[:4].reshape(2, 2).t().clone(memory_format=tg.preserve_format)}
    tg.save(what, path, format="torch" if form == "torch" else "safetensors")
    back = tg.load(path)
    for name, t in what.items():
        assert back[name].dtype is tg.complex32 and bits(back[name]) == bits(t) and back[name].stride() == t.stride()
    assert bits(copy.deepcopy(x)) == bits(pickle.loads(pickle.dumps(x))) == bits(x)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_beside_pytorch(x, tmp_path):
    torch = pytest.importorskip("torch")
    theirs = torch.tensor(SOME, dtype=torch.complex32)
    torch.save({"x": theirs}, tmp_path / "theirs.pt")
    assert bits(tg.load(tmp_path / "theirs.pt")["x"]) == bits(x)
    assert str(x) == str(theirs)
    lent = tg.from_dlpack(theirs)
    assert bits(lent) == bits(x) and lent.data_ptr() == theirs.data_ptr() == torch.from_dlpack(lent).data_ptr()
    for a in ("float16", "bfloat16", "float64", "int8", "complex64"):
        want = torch.promote_types(torch.complex32, getattr(torch, a))
        assert str(tg.promote_types(tg.complex32, getattr(tg, a))) == str(want)
        ours, theirs = (m.result_type(m.ones(2, dtype=getattr(m, a)), 1j) for m in (tg, torch))
        assert str(ours) == str(theirs)


def test_numbers_round_as_numpys_halves_do_whatever_the_strides():
    values = [0.0, -0.0, 1 / 3, 65519.9, 65520.0, 6e-8, 2.9e-8, 1e-45, np.inf, -np.inf, 2049.0, -1e6]
    pairs = np.array([complex(re, im) for re in values for im in values], np.complex64)
    with np.errstate(over="ignore"):
        want = pairs.view(np.float32).astype(np.float16)
    wide = tg.tensor(np.stack([pairs, pairs + 1], 1))
    for narrow in (tg.tensor(pairs).chalf(), wide[:, 0].chalf(), tg.tensor(pairs[::-1].copy()).flip(0).chalf()):
        assert tg.view_as_real(narrow).numpy().tobytes() == want.tobytes()
        spread = tg.stack([narrow, narrow], 1)[:, 0]
        assert spread.cfloat().numpy().tobytes() == narrow.cfloat().numpy().tobytes()
        np.testing.assert_array_equal(narrow.cfloat().numpy().view(np.float32), want.astype(np.float32))
