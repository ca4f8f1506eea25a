"""uint16, uint32 and uint64: what PyTorch takes gives the same here, what it refuses raises the same here."""

import itertools
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.core.data.table import NAMED


class PyTorch:
    """PyTorch's names; a test that asks for one is skipped where it is not installed."""

    def __getattr__(self, name):
        if name.startswith("__"):  # pytest's own question whether this is a test
            raise AttributeError(name)
        return getattr(pytest.importorskip("torch"), name)


torch = PyTorch()
NAMES = ("uint16", "uint32", "uint64")
EVERY = [row.name for row in NAMED]
MOST = {"uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1}


def outcome(call):
    """What a call returns, as lists with their dtype, or the class of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = call()
        except Exception as error:
            return type(error)
    return plain(got)


def plain(got):
    if isinstance(got, (tuple, list)):
        return [plain(g) for g in got]
    return (str(got.dtype), got.tolist()) if hasattr(got, "tolist") else got


def alike(call):
    """Both libraries do the same; returns what."""
    ours, theirs = outcome(lambda: call(tg)), outcome(lambda: call(torch))
    assert repr(ours) == repr(theirs)
    return ours


@pytest.mark.parametrize("name", EVERY)
def test_every_pair_promotes_and_casts_as_in_pytorch(name):
    for other in EVERY:
        alike(lambda t: str(t.promote_types(getattr(t, name), getattr(t, other))))
        alike(lambda t: t.can_cast(getattr(t, name), getattr(t, other)))
        for a, b in itertools.product(((2,), ()), ((2,), ())):
            make = lambda t: (t.ones(a, dtype=getattr(t, name)), t.ones(b, dtype=getattr(t, other)))
            alike(lambda t: str(t.result_type(*make(t))))
    for number, shape in itertools.product((True, 1, 1.5, 1j), ((2,), ())):
        alike(lambda t: str(t.result_type(t.ones(shape, dtype=getattr(t, name)), number)))


def test_the_refusal_names_both_dtypes():
    with pytest.raises(RuntimeError, match=r"Promotion .* attempted to promote UInt16 and Long: convert one"):
        tg.ones(2, dtype=tg.uint16) * tg.ones(2, dtype=tg.int64)
    with pytest.raises(RuntimeError, match=r"attempted to promote UInt32 and Bool"):
        tg.stack([tg.ones(2, dtype=tg.uint32), tg.ones(2, dtype=tg.bool)])


@pytest.mark.parametrize("name", NAMES)
def test_conversions_from_and_to_every_dtype(name):
    values = np.array([0, 1, 2, 255, 256, 2**15, 2**16 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63, 2**64 - 1], "u8")
    with np.errstate(over="ignore"):
        values = values.astype(name)
    for other in EVERY:
        for step in (1, 2):
            there = tg.from_numpy(values)[::step].to(getattr(tg, other))
            with warnings.catch_warnings():  # PyTorch's of complex32, once a process
                warnings.simplefilter("ignore", UserWarning)
                theirs = torch.from_numpy(values)[::step].to(getattr(torch, other))
            assert repr(there.tolist()) == repr(theirs.tolist()), other
            assert repr(there.to(getattr(tg, name)).tolist()) == repr(there_and_back(theirs, name)), other


def there_and_back(t, name):
    """PyTorch's way back, except from floats: what 2**64 becomes in uint64 there hangs on the processor."""
    if not (t.dtype.is_floating_point or t.dtype.is_complex):
        return t.to(getattr(torch, name)).tolist()
    return [whole_of(v.real if isinstance(v, complex) else v, name) for v in t.tolist()]


def whole_of(v, name):
    """What a float becomes here: cut to int64, or int32, and to the bits; uint64 keeps what lies above int64."""
    if name == "uint16":
        return int(v) & MOST[name] if -(2.0**31) <= v < 2.0**31 else 0
    if v != v or v < -(2.0**63):
        return 2**63 & MOST[name]
    if v >= 2.0**63:
        return int(v) if name == "uint64" and v < 2.0**64 else 0
    return int(v) & MOST[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_floats_outside_have_a_defined_result(name, source):
    values = [-1.5, -70000.0, 1e5, 3.7, 5e9, 1e19, 1e20, -1e20, float("nan"), float("inf"), -float("inf")] * 5
    given = tg.tensor(values, dtype=getattr(tg, source))
    real = [v.real if isinstance(v, complex) else v for v in given.tolist()]
    assert given.to(getattr(tg, name)).tolist() == [whole_of(v, name) for v in real]
    assert given[::2].to(getattr(tg, name)).tolist() == [whole_of(v, name) for v in real[::2]]


TAKEN_OR_NOT = {
    "add": lambda t, x, y: x + y,
    "sub": lambda t, x, y: x - y,
    "mul": lambda t, x, y: x * y,
    "div": lambda t, x, y: x / y,
    "floor_divide": lambda t, x, y: x // y,
    "remainder": lambda t, x, y: x % y,
    "fmod": lambda t, x, y: t.fmod(x, y),
    "eq": lambda t, x, y: x == y,
    "ne": lambda t, x, y: x != y,
    "lt": lambda t, x, y: x < y,
    "ge": lambda t, x, y: x >= y,
    "maximum": lambda t, x, y: t.maximum(x, y),
    "and": lambda t, x, y: x & y,
    "or": lambda t, x, y: x | y,
    "xor": lambda t, x, y: x ^ y,
    "shift": lambda t, x, y: x << y,
    "logical_and": lambda t, x, y: t.logical_and(x, y),
    "not": lambda t, x, y: ~x,
    "neg": lambda t, x, y: -x,
    "abs": lambda t, x, y: abs(x),
    "sign": lambda t, x, y: t.sign(x),
    "signbit": lambda t, x, y: t.signbit(x),
    "sqrt": lambda t, x, y: t.sqrt(y * 0 + 4),
    "reciprocal": lambda t, x, y: t.reciprocal(y * 0 + 4),
    "sum": lambda t, x, y: x.sum(),
    "sum_dim": lambda t, x, y: x.reshape(2, 2).sum(0),
    "prod": lambda t, x, y: y.prod(),
    "sum_f": lambda t, x, y: y.sum(dtype=t.float32),
    "sum_u": lambda t, x, y: y.sum(dtype=t.uint16),
    "mean": lambda t, x, y: x.mean(),
    "mean_f": lambda t, x, y: y.mean(dtype=t.float64),
    "var": lambda t, x, y: x.var(),
    "std_mean": lambda t, x, y: t.std_mean(x),
    "amax": lambda t, x, y: x.amax(),
    "max": lambda t, x, y: x.max(),
    "argmin": lambda t, x, y: x.argmin(),
    "all": lambda t, x, y: x.all(),
    "any": lambda t, x, y: x.any(0),
    "cumsum": lambda t, x, y: y.cumsum(0),
    "cummax": lambda t, x, y: y.cummax(0),
    "sort": lambda t, x, y: tuple(x.sort()),
    "argsort": lambda t, x, y: x.argsort(descending=True),
    "unique": lambda t, x, y: t.unique(x),
    "nonzero": lambda t, x, y: x.nonzero(),
    "isnan": lambda t, x, y: t.isnan(x),
    "isfinite": lambda t, x, y: t.isfinite(x),
    "clone": lambda t, x, y: x.clone(),
    "floor": lambda t, x, y: t.floor(x),
    "round": lambda t, x, y: t.round(x),
    "clamp": lambda t, x, y: t.clamp(x, 1, 3),
    "median": lambda t, x, y: t.median(x),
    "tril": lambda t, x, y: t.tril(x.reshape(2, 2)),
    "cat": lambda t, x, y: t.cat([x, y]),
    "stack": lambda t, x, y: t.stack([x, y]),
    "where": lambda t, x, y: t.where(x == y, x, y),
    "where_number": lambda t, x, y: t.where(x == y, x, 1),
    "get": lambda t, x, y: x[1],
    "slice": lambda t, x, y: x[1:],
    "mask": lambda t, x, y: x[x != y],
    "get_many": lambda t, x, y: x[t.tensor([0, 2])],
    "as_index": lambda t, x, y: t.arange(9)[y],
    "set": lambda t, x, y: (x.__setitem__(0, 2), x)[1],
    "set_most": lambda t, x, y: (x.__setitem__(0, t.iinfo(x.dtype).max), x)[1],
    "set_over": lambda t, x, y: x.__setitem__(0, t.iinfo(x.dtype).max + 1),
    "set_many": lambda t, x, y: x.__setitem__(t.tensor([0, 1]), 2),
    "set_mask": lambda t, x, y: x.__setitem__(x == y, 2),
    "set_slice": lambda t, x, y: (x[1:].fill_(7), x)[1],
    "index_select": lambda t, x, y: x.index_select(0, t.tensor([1])),
    "gather": lambda t, x, y: x.gather(0, t.tensor([1])),
    "take": lambda t, x, y: x.take(t.tensor([1])),
    "masked_fill": lambda t, x, y: x.masked_fill(x == y, 3),
    "masked_select": lambda t, x, y: x.masked_select(x == y),
    "scatter": lambda t, x, y: x.scatter(0, t.tensor([1]), y),
    "index_add": lambda t, x, y: x.index_add(0, t.tensor([1]), y[:1]),
    "add_number": lambda t, x, y: x + 1,
    "mul_number": lambda t, x, y: x * 2,
    "and_number": lambda t, x, y: x & 3,
    "eq_number": lambda t, x, y: x == 3,
    "eq_most": lambda t, x, y: x == t.iinfo(x.dtype).max,
    "add_float": lambda t, x, y: y + 1.5,
    "div_number": lambda t, x, y: y / 2,
    "add_f32": lambda t, x, y: y + t.ones(4),
    "mul_i64": lambda t, x, y: y * t.ones(4, dtype=t.int64),
    "mul_0d": lambda t, x, y: y * t.tensor(3),
    "eq_bool": lambda t, x, y: y == t.ones(4, dtype=t.bool),
    "mul_": lambda t, x, y: x.mul_(y),
    "mul_i64_": lambda t, x, y: x.mul_(t.ones(4, dtype=t.int64)),
    "equal": lambda t, x, y: t.equal(x, x.clone()),
    "bool": lambda t, x, y: bool(y[0]),
    "item": lambda t, x, y: x[2].item(),
    "view": lambda t, x, y: x.view(t.uint8),
    "roll": lambda t, x, y: x.roll(1),
    "repeat": lambda t, x, y: x.repeat(2),
    "flip": lambda t, x, y: x.flip(0),
    "matmul": lambda t, x, y: x @ y,
    "pad": lambda t, x, y: t.nn.functional.pad(x, (1, 1)),
    "repeat_interleave": lambda t, x, y: t.repeat_interleave(x, 2),
    "topk": lambda t, x, y: x.topk(1),
    "diag_embed": lambda t, x, y: t.diag_embed(x),
    "unfold": lambda t, x, y: x.unfold(0, 2, 1),
    "requires_grad": lambda t, x, y: x.requires_grad_(),
    "diff": lambda t, x, y: t.diff(x),
    "outer": lambda t, x, y: t.outer(x, y),
    "iter": lambda t, x, y: list(x),
    "range": lambda t, x, y: list(range(10))[y[1]],
    "float": lambda t, x, y: x.float(),
    "zero_": lambda t, x, y: x.zero_(),
    "copy_": lambda t, x, y: x.copy_(t.tensor([1.5, 2.5, 3.0, 4.0])),
    "slice_scatter": lambda t, x, y: x.slice_scatter(y[:2], 0, 0, 2),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("op", TAKEN_OR_NOT)
def test_what_pytorch_takes_and_what_it_refuses(name, op):
    def call(t):
        most = MOST[name]
        x = t.tensor([3, most - 1, most, 3], dtype=getattr(t, name))
        return TAKEN_OR_NOT[op](t, x, t.tensor([1, 3, most, 3], dtype=getattr(t, name)))

    alike(call)


@pytest.mark.parametrize("name", NAMES)
def test_refused_ops_say_what_to_do(name):
    x = tg.ones(2, dtype=getattr(tg, name))
    for call in (lambda: x + x, lambda: x @ x, lambda: tg.arange(3, dtype=x.dtype), lambda: x.max()):
        with pytest.raises(NotImplementedError, match=rf"not implemented for 'UInt{name[4:]}'.*\.long\(\)"):
            call()


FACTORIES = {
    "zeros": lambda t, d: t.zeros(2, dtype=d),
    "ones": lambda t, d: t.ones(2, dtype=d),
    "full": lambda t, d: t.full((2,), 3, dtype=d),
    "most": lambda t, d: t.full((2,), t.iinfo(d).max, dtype=d),
    "over": lambda t, d: t.full((2,), min(t.iinfo(d).max, 2**32) + 1, dtype=d),
    "minus": lambda t, d: t.full((2,), -1, dtype=d),
    "fill": lambda t, d: t.zeros(2, dtype=d).fill_(t.iinfo(d).max),
    "tensor": lambda t, d: t.tensor([[1, 2]], dtype=d),
    "tensor_most": lambda t, d: t.tensor(t.iinfo(d).max, dtype=d),
    "tensor_over": lambda t, d: t.tensor([t.iinfo(d).max + 1], dtype=d),
    "tensor_minus": lambda t, d: t.tensor([-1], dtype=d),
    "tensor_float": lambda t, d: t.tensor([1.5], dtype=d),
    "arange": lambda t, d: t.arange(3, dtype=d),
    "eye": lambda t, d: t.eye(2, dtype=d),
    "linspace": lambda t, d: t.linspace(0, 3, 4, dtype=d),
    "rand": lambda t, d: t.rand(2, dtype=d),
    "like": lambda t, d: t.ones_like(t.zeros(2, 3), dtype=d),
    "new_full": lambda t, d: t.zeros(1, dtype=d).new_full((2,), 7),
    "randint": lambda t, d: t.randint(5, 6, (3,), dtype=d),
    "bernoulli": lambda t, d: t.zeros(2, dtype=d).bernoulli_(),
    "of_tensors": lambda t, d: t.tensor([t.tensor(1, dtype=d), t.tensor(2, dtype=d)]),
    "int64_over": lambda t, d: t.full((1,), 2**63, dtype=t.int64),
    "int64_fill": lambda t, d: t.zeros(1, dtype=t.int64).fill_(2**63),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("made", FACTORIES)
def test_factories(name, made):
    alike(lambda t: FACTORIES[made](t, getattr(t, name)))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_above_the_largest_are_refused(name):
    d = getattr(tg, name)
    for call in (lambda n: tg.full((2,), n, dtype=d), lambda n: tg.tensor([n], dtype=d), tg.zeros(2, dtype=d).fill_):
        with pytest.raises((RuntimeError, OverflowError)):
            call(MOST[name] + 1)


def test_floats_above_int64_are_numbers_of_uint64():
    assert tg.full((1,), 1e19, dtype=tg.uint64).tolist() == [10**19]
    with pytest.raises(RuntimeError, match="without overflow: 1e"):
        tg.full((1,), 1e20, dtype=tg.uint64)
    with pytest.raises(RuntimeError, match="int64 without overflow: 18446744073709551615"):
        tg.full((1,), 2**64 - 1, dtype=tg.int64)


@pytest.mark.parametrize("name", NAMES)
def test_printing_and_limits(name):
    alike(lambda t: repr(t.tensor([[1, MOST[name]], [22, 0]], dtype=getattr(t, name))))
    alike(lambda t: repr(t.tensor(3, dtype=getattr(t, name))) + str(getattr(t, name)) + str(getattr(t, name).is_signed))
    ours, theirs = tg.iinfo(getattr(tg, name)), torch.iinfo(getattr(torch, name))
    assert (ours.bits, ours.min, ours.max, ours.dtype) == (theirs.bits, theirs.min, theirs.max, theirs.dtype)
    alike(lambda t: t.finfo(getattr(t, name)))


@pytest.mark.parametrize("name", NAMES)
def test_files(name, tmp_path):
    pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file

    values = np.array([0, 1, MOST[name]], name)
    ours, theirs = tg.from_numpy(values.copy()), torch.from_numpy(values.copy())
    tg.save({"x": ours}, tmp_path / "own")
    assert plain(tg.load(tmp_path / "own")["x"]) == plain(theirs)
    tg.save({"x": ours}, tmp_path / "own.safetensors")
    assert plain(load_file(tmp_path / "own.safetensors")["x"]) == plain(theirs)
    save_file({"x": theirs}, tmp_path / "theirs.safetensors")
    assert plain(tg.load(tmp_path / "theirs.safetensors")["x"]) == plain(theirs)
    torch.save({"x": theirs}, tmp_path / "theirs.pt")
    assert plain(tg.load(tmp_path / "theirs.pt")["x"]) == plain(theirs)


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_exchanged(name):
    values = np.array([[1, MOST[name]], [3, 4]], name)
    shared = tg.from_numpy(values)
    values[0, 0] = 9
    assert shared.tolist() == values.tolist() and shared.dtype is getattr(tg, name)
    assert shared.numpy().dtype == values.dtype and np.shares_memory(shared.numpy(), values)
    assert plain(torch.from_numpy(shared.numpy())) == plain(shared)
    there = torch.from_dlpack(shared)
    assert plain(there) == plain(shared)
    back = tg.from_dlpack(there)
    assert plain(back) == plain(shared) and back.data_ptr() == shared.data_ptr()
    assert plain(tg.tensor(memoryview(values))) == plain(shared)


@pytest.mark.parametrize("name", NAMES)
def test_in_compiled_functions(name):
    def f(x, y):
        return tg.where(x == y, x * y, y)

    x = tg.tensor([1, 2, MOST[name]], dtype=getattr(tg, name))
    y = tg.tensor([1, 3, MOST[name]], dtype=getattr(tg, name))
    assert plain(tg.compile(f)(x, y)) == plain(f(x, y))
    assert plain(tg.func.vmap(f)(tg.stack([x, y]), tg.stack([y, y]))) == plain(f(tg.stack([x, y]), tg.stack([y, y])))
