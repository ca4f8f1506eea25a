"""A plugin adds a dtype by one row: the numbers of its codes. A toy float of eight bits goes everywhere."""

import copy
import ctypes
import itertools
import math
import pickle

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import library, plugins
from tinygrad_ext.cli import main
from tinygrad_ext.core.data.coded_tables import side_of


def number(code):
    """One sign, four bits of exponent, three of mantissa, one NaN of each sign and no infinity."""
    sign, exponent, mantissa = -1.0 if code & 128 else 1.0, code >> 3 & 15, code & 7
    if code & 127 == 127:
        return math.copysign(math.nan, sign)
    return sign * (mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


VALUES = [number(code) for code in range(256)]


class Toys:
    """A plugin with one dtype."""

    @tg.hookimpl
    def tgx_register_ops(self, register):
        self.dtype = register.dtype("toy8", values=VALUES)


@pytest.fixture
def toy():
    plugin = Toys()
    plugins.register("toys", plugin)
    plugins.load("toys")
    yield plugin.dtype
    plugins.unregister("toys")


@pytest.fixture
def lib():
    with library.Library("aten", "IMPL") as made:
        yield made


def rounded(t, dtype):
    """What a float32 result becomes."""
    return t.to(dtype)


def same(got, want):
    assert got.dtype is want.dtype and got.shape == want.shape
    assert np.array_equal(got.float().numpy(), want.float().numpy(), equal_nan=True)


OPS = {
    "add": lambda a, b: a + b.t(),
    "add_number": lambda a, b: a + 1.5,
    "sub_from": lambda a, b: 2 - a,
    "mul": lambda a, b: a * a,
    "div": lambda a, b: a / b.t(),
    "exp": lambda a, b: a.exp(),
    "matmul": lambda a, b: a @ b,
    "einsum": lambda a, b: tg.einsum("ij,jk->ik", a, b),
    "linear": lambda a, b: tg.nn.functional.linear(a, b.t()),
    "sum": lambda a, b: a.sum(),
    "sum_dim": lambda a, b: a.sum(1, keepdim=True),
    "mean": lambda a, b: a.mean(0),
    "amax": lambda a, b: a.amax(1),
    "softmax": lambda a, b: a.softmax(1),
    "cumsum": lambda a, b: a.cumsum(1),
    "relu": lambda a, b: a.relu(),
    "clamp": lambda a, b: a.clamp(-1, 1),
    "where_number": lambda a, b: tg.where(a > 0, a, 0.5),
    "pad": lambda a, b: tg.nn.functional.pad(a, (1, 1)),
    "int": lambda a, b: a + tg.ones(3, 4, dtype=tg.int64),
}


@pytest.mark.parametrize("name", OPS)
def test_ops_compute_in_float32_and_round_once(name, toy):
    a, b = tg.randn(3, 4).to(toy), tg.randn(4, 3).to(toy)
    same(OPS[name](a, b), rounded(OPS[name](a.float(), b.float()), toy))


MOVES = {
    "index": lambda x: x[2],
    "slice": lambda x: x[::2],
    "many": lambda x: x[tg.tensor([3, 1])],
    "mask": lambda x: x[tg.tensor([True, False, True, True])],
    "cat": lambda x: tg.cat([x, x]),
    "stack": lambda x: tg.stack([x, x]),
    "clone": lambda x: x.clone(),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1),
    "gather": lambda x: x.gather(0, tg.tensor([0, 3])),
    "contiguous": lambda x: x.expand(3, 4).t().contiguous(),
    "reshape": lambda x: x.reshape(2, 2).t().reshape(4),
    "where": lambda x: tg.where(tg.tensor([True, False, True, False]), x, x.flip(0)),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_elements_moves_bits(name, toy):
    codes = tg.tensor([0x7F, 0xFF, 0x80, 0x3C], dtype=tg.uint8)  # both NaNs, the zero below zero
    got = MOVES[name](codes.view(toy))
    assert got.dtype is toy and got.view(tg.uint8).tolist() == MOVES[name](codes).tolist()


def test_rounding_is_to_the_nearest_and_half_way_to_the_even_code(toy):
    finite = [v for v in VALUES[:127]]
    halves = [(a + b) / 2 for a, b in itertools.pairwise(finite)]
    got = tg.tensor(halves).to(toy).view(tg.uint8).tolist()
    assert got == [code + code % 2 for code in range(126)]
    assert tg.tensor([464.0, -464.0, 464.1, math.inf]).to(toy).view(tg.uint8).tolist() == [0x7E, 0xFE, 0x7F, 0x7F]
    assert tg.tensor(VALUES).to(toy).view(tg.uint8).tolist() == list(range(256))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_bits_are_those_of_pytorch(name, lib):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch, name)
    every = torch.arange(256).to(torch.uint8).view(theirs).float()
    values = [math.copysign(v, -1 if code & 128 else 1) for code, v in enumerate(every.tolist())]
    ours = library.register_dtype("other8", values=values, lib=lib)
    x = torch.cat([torch.randn(5000) * 10.0**k for k in range(-6, 7)] + [every[every.isfinite()]])
    x = x[x.abs() <= torch.finfo(theirs).max]  # what lies beyond became a NaN in some versions, and the last in others
    got = tg.from_numpy(x.numpy()).to(ours).view(tg.uint8).numpy()
    assert np.array_equal(got, x.to(theirs).view(torch.uint8).numpy())
    limits, want = tg.finfo(ours), torch.finfo(theirs)
    for fact in ("bits", "eps", "max", "min", "tiny", "resolution", "smallest_normal"):
        assert getattr(limits, fact) == getattr(want, fact), fact


def test_promotion(toy, lib):
    other = library.register_dtype("other8", values=VALUES, lib=lib)
    for d in (tg.bool, tg.uint8, tg.int64, tg.uint16):
        assert tg.promote_types(toy, d) is toy is tg.promote_types(d, toy)
    for d in (tg.float16, tg.bfloat16, tg.float32, other):
        assert tg.promote_types(toy, d) is tg.float32
    assert tg.promote_types(toy, toy) is toy and tg.promote_types(toy, tg.float64) is tg.float64
    assert tg.promote_types(toy, tg.complex64) is tg.complex64
    x = tg.ones(2, dtype=toy)
    assert (x + tg.ones(2)).dtype is tg.float32 and (x + tg.ones(2, dtype=other)).dtype is tg.float32
    assert (x + tg.tensor(1.0)).dtype is toy and tg.result_type(x, 1.5) is toy
    assert tg.cat([x, tg.ones(2)]).dtype is tg.float32


def test_the_dtype_tells_about_itself(toy):
    assert repr(toy) == "torch.toy8" and (toy.itemsize, toy.is_floating_point, toy.is_signed) == (1, True, True)
    assert pickle.loads(pickle.dumps(toy)) is toy
    x = tg.tensor([1.0, 2.5], dtype=toy)
    assert repr(x) == "tensor([1.0000, 2.5000], dtype=torch.toy8)"
    assert (x.element_size(), x.nbytes, x.device) == (1, 2, tg.device("cpu"))
    assert x.tolist() == [1.0, 2.5] and x[1].item() == 2.5 and bool(x[0])
    assert x.cpu() is x and x.to(toy) is x and x.to("cpu") is x


def test_conversions(toy):
    x = tg.tensor([1.0, -2.5, 3.3])
    for d in (tg.float64, tg.float16, tg.bfloat16, tg.complex64):
        assert x.to(d).to(toy).to(d).dtype is d
        assert x.to(d).to(toy).float().tolist() == [1.0, -2.5, 3.25]
    assert x.to(toy).to(tg.int32).tolist() == [1, -2, 3]
    assert tg.tensor([True, False]).to(toy).tolist() == [1.0, 0.0]
    assert x.expand(2, 3).t().to(toy).tolist() == [[1.0, 1.0], [-2.5, -2.5], [3.25, 3.25]]
    large = tg.randn(300, 300)
    assert tg.equal(large.to(toy).float()[7], large[7].to(toy).float())


def test_factories(toy):
    assert tg.zeros(2, dtype=toy).tolist() == [0, 0] and tg.full((2,), 3.3, dtype=toy).tolist() == [3.25, 3.25]
    assert tg.arange(3, dtype=toy).tolist() == [0, 1, 2]
    x = tg.ones(2, dtype=toy, requires_grad=True)
    assert x.requires_grad and x.is_leaf
    for made in (tg.rand(2, dtype=toy), tg.empty(2, dtype=toy), tg.zeros_like(x), tg.ones(2).new_zeros(2, dtype=toy)):
        assert made.dtype is toy
    assert tg.zeros_like(x, dtype=tg.float32).dtype is tg.float32


def test_in_place_and_out(toy):
    x = tg.ones(2, 2, dtype=toy)
    x.add_(1)
    x[0] = 5
    x[1, 1] = 3.3
    x += tg.ones(2, 2)
    assert x.tolist() == [[6, 6], [3, 4.5]] or x.tolist() == [[6, 6], [3, 4.0]]
    out = tg.empty(2, 2)
    assert tg.add(x, 0, out=out) is out and out.tolist() == x.tolist()
    back = tg.empty(2, 2, dtype=toy)
    tg.cat([out], out=back)
    assert back.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="mm.*Expected out tensor to have dtype float"):
        tg.mm(out, tg.eye(2), out=back)
    into = tg.zeros(2, 2)
    into.add_(x)
    assert into.tolist() == x.tolist()
    assert x.fill_(2).tolist() == [[2, 2], [2, 2]] and x.zero_().sum().item() == 0
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Int"):
        tg.ones(2, 2, dtype=tg.int32).add_(x)


def test_autograd_goes_through_conversions_and_ops(toy):
    w = tg.randn(4, 3, requires_grad=True)
    x = tg.randn(2, 4).to(toy).requires_grad_()
    y = (x @ w.to(toy)).relu()
    y.float().pow(2).sum().backward()
    assert x.grad.dtype is toy and w.grad.dtype is tg.float32 and w.grad.shape == (4, 3)
    model = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.LayerNorm(8), tg.nn.Linear(8, 2)).to(toy)
    before = model[0].weight.clone()
    optimizer = tg.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    model(tg.randn(5, 4).to(toy)).float().pow(2).sum().backward()
    optimizer.step()
    assert model[0].weight.dtype is toy and not tg.equal(before, model[0].weight)


def test_transforms_and_graphs(toy):
    a = tg.randn(3, 4).to(toy)
    f = lambda v: (v * 2 + 1).exp().sum(-1)
    same(tg.vmap(f)(a), tg.stack([f(row) for row in a]))
    assert tg.func.grad(lambda v: f(v).sum())(a).dtype is toy
    compiled = tg.compile(f)
    for _ in range(3):
        same(compiled(a), f(a))
    same(tg.jit.trace(f, (a,))(a), f(a))
    meta = a.to("meta")
    assert ((meta + meta).dtype, meta.sum().dtype, tg.zeros(2, dtype=toy, device="meta").dtype) == (toy, toy, toy)


def test_what_other_libraries_cannot_read_is_refused_with_the_way_out(toy):
    x = tg.ones(2, dtype=toy)
    for call, error in ((x.numpy, TypeError), (x.__dlpack__, BufferError), (lambda: memoryview(x), BufferError)):
        with pytest.raises(error, match=r"toy8.*\.float\(\)"):
            call()
    with pytest.raises(TypeError, match="floating-point types"):
        tg.set_default_dtype(toy)


def test_a_factory_that_is_told_the_cpu_makes_numbers(toy):
    x = tg.zeros(2, dtype=toy)
    for made in (tg.ones_like(x, device="cpu"), x.new_full((2,), 1, device="cpu"), tg.ones(2, dtype=toy, device="cpu")):
        assert made.dtype is toy and made.tolist() == [1, 1]
    assert tg.ones_like(x, device="meta").dtype is toy


def test_pairs_of_it_are_refused(toy):
    with pytest.raises(RuntimeError, match="view_as_real is only supported for complex tensors"):
        tg.view_as_real(tg.ones(2, dtype=toy))


def test_the_command_line_names_it(toy, capsys):
    info = plugins.info("toys")
    assert info.dtypes == ("toy8",)
    assert main(["plugins", "info", "toys"]) == 0 and "toy8" in capsys.readouterr().out
    assert main(["plugins", "list"]) == 0 and "dtype toy8" in capsys.readouterr().out


def test_files(toy, tmp_path):
    x = tg.tensor([[1.0, 2.5, math.nan], [0.5, -1.0, 3.0]], dtype=toy)
    tg.save({"x": x, "t": x.t(), "d": toy, "p": tg.nn.Parameter(x.clone())}, tmp_path / "file")
    back = tg.load(tmp_path / "file")
    assert back["d"] is toy and back["p"].dtype is toy and back["p"].requires_grad
    assert back["x"].view(tg.uint8).tolist() == x.view(tg.uint8).tolist()
    assert back["t"].shape == (3, 2) and tg.equal(back["t"][:2], x.t()[:2])
    assert copy.deepcopy(x).dtype is toy and pickle.loads(pickle.dumps(x)).dtype is toy


def test_a_file_names_what_is_missing(tmp_path, lib):
    with library.Library("aten", "IMPL") as gone:
        d = library.register_dtype("gone8", values=VALUES, lib=gone)
        tg.save({"x": tg.ones(2, dtype=d)}, tmp_path / "file")
    with pytest.raises(RuntimeError, match=r"dtype 'gone8', which is not here.*library\.register_dtype\(\) before"):
        tg.load(tmp_path / "file")
    library.register_dtype("gone8", values=VALUES, lib=lib)
    assert tg.load(tmp_path / "file")["x"].tolist() == [1, 1]
    from tinygrad_ext.archive import layout

    with pytest.raises(RuntimeError, match=r"It comes with tgx-toys 1\.2: python -m pip install 'tgx-toys==1\.2'"):
        layout.check_brought({"never8": ["tgx-toys 1.2", 1]})


def test_it_goes_with_its_plugin_and_comes_back():
    plugin = Toys()
    plugins.register("toys", plugin)
    plugins.load("toys")
    x = tg.ones(2, dtype=plugin.dtype)
    before = plugin.dtype
    plugins.unregister("toys")
    for call in (lambda: x + x, x.tolist, lambda: x.float(), lambda: tg.finfo(before)):
        with pytest.raises(RuntimeError, match="toy8 is gone"):
            call()
    assert x.clone().view(tg.uint8).tolist() == [0x38, 0x38]
    plugins.register("toys", plugin)
    plugins.load("toys")
    assert plugin.dtype is before and (x + x).tolist() == [2, 2]
    plugins.unregister("toys")


def test_a_failing_hook_leaves_no_dtype():
    class Bad:
        @tg.hookimpl
        def tgx_register_ops(self, register):
            register.dtype("bad8", values=VALUES)
            raise ValueError("no")

    with pytest.raises(plugins.PluginError, match="ValueError: no"):
        plugins.register("bad", Bad())
    with library.Library("aten", "IMPL") as made:
        assert library.register_dtype("bad8", values=VALUES, lib=made).name == "bad8"


WIDEN = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint16), ctypes.POINTER(ctypes.c_float), ctypes.c_int64)
NARROW = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_uint16), ctypes.c_int64)


def test_functions_in_c_convert(lib):
    """Sixteen bits: hundredths from -327.68 on."""

    @WIDEN
    def widen(codes, to, n):
        for i in range(n):
            to[i] = (codes[i] - 32768) / 128

    @NARROW
    def narrow(source, codes, n):
        for i in range(n):
            codes[i] = min(max(round(source[i] * 128) + 32768, 0), 65535)

    d = library.register_dtype("fixed16", itemsize=2, widen=widen, narrow=narrow, lib=lib)
    x = tg.tensor([0.5, -1.25, 1000.0], dtype=d)
    assert x.element_size() == 2 and x.tolist() == [0.5, -1.25, 32767 / 128] and (x * 2)[:2].tolist() == [1, -2.5]
    assert tg.finfo(d).max == 32767 / 128 and tg.finfo(d).min == -256


@pytest.mark.parametrize(
    ("facts", "error", "text"),
    [
        ({"name": "No"}, ValueError, "small letters"),
        ({"values": VALUES[:9]}, ValueError, "256 of an itemsize of 1 or 65536 of 2, not 9"),
        ({"values": [0.1] * 256}, ValueError, "which has no 0.1, the value of code 0"),
        ({"values": [math.nan] * 256}, ValueError, "finite"),
        ({"values": None}, TypeError, "either values="),
        ({"values": None, "itemsize": 4, "widen": 1, "narrow": 1}, ValueError, "1 or 2 bytes, not 4"),
        ({"values": None, "itemsize": 1, "widen": "f", "narrow": 1}, TypeError, "or their addresses, not str"),
        ({"name": "float32"}, RuntimeError, "there is a dtype 'float32' already"),
    ],
)
def test_what_is_no_dtype_is_refused(facts, error, text, lib):
    with pytest.raises(error, match=text):
        library.register_dtype(**{"name": "bad8", "values": VALUES, "lib": lib, **facts})


def test_formats_without_a_zero_below_nan_or_numbers_below_zero():
    powers = [2.0**k for k in range(-100, 100)]
    steps, codes, nan = side_of(powers, 0)
    assert codes == list(range(200)) and nan == 0 and len(steps) == 199
    assert side_of(powers, 1) == ([], [0], 0)
