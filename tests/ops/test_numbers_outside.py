"""Numbers that the dtype of the operands does not hold are refused as PyTorch refuses them, never cut in silence."""

import io
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.testing import sweep
from tinygrad_ext.testing.beside_torch import to_torch, torch_function

# by what is called; each is given int8 and a number
REFUSING = {
    "clamp, min": lambda L, x, n: x.clamp(min=n),
    "clamp, max": lambda L, x, n: x.clamp(max=n),
    "clamp_max": lambda L, x, n: L.clamp_max(x, n),
    "threshold": lambda L, x, n: L.threshold(x, 1, n),
    "hardtanh": lambda L, x, n: L.nn.functional.hardtanh(x, -1, n),
    "pow": lambda L, x, n: x**n,
    "add, alpha": lambda L, x, n: L.add(x, x, alpha=n),
    "where": lambda L, x, n: L.where(x > 2, x, n),
    "masked_fill": lambda L, x, n: x.masked_fill(x > 2, n),
    "masked_fill of a tensor": lambda L, x, n: x.masked_fill(x > 2, L.tensor(n)),
    "masked_fill in place": lambda L, x, n: x.masked_fill_(x > 2, n),
    "index_fill": lambda L, x, n: x.index_fill(0, L.tensor([0]), n),
    "fill": lambda L, x, n: x.fill_(n),
    "pad": lambda L, x, n: L.nn.functional.pad(x, (1, 1), value=n),
}
# numbers that only take part
WRAPPING = {
    "add": lambda L, x, n: x + n,
    "mul": lambda L, x, n: x * n,
    "remainder": lambda L, x, n: x % n,
    "and": lambda L, x, n: x & n,
    "less": lambda L, x, n: x < n,
    "power of a number": lambda L, x, n: n**x,
    "floor_divide": lambda L, x, n: x // n,
}


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("number", [128, 300, 1 << 40])
def test_a_number_outside_is_refused(name, number):
    x = tg.tensor([2, 3], dtype=tg.int8)
    with pytest.raises(
        RuntimeError, match="value cannot be converted to type int8(_t)? without overflow.*" + str(number)
    ):
        REFUSING[name](tg, x, number)
    assert x.tolist() == [2, 3]


@pytest.mark.parametrize("name", REFUSING)
def test_the_last_number_inside_is_taken(name):
    if name == "pow":
        assert (tg.tensor([1, -1], dtype=tg.int8) ** 127).tolist() == [1, -1]
        return
    REFUSING[name](tg, tg.tensor([2, 3], dtype=tg.int8), 127)


FILLING = ["masked_fill", "masked_fill of a tensor", "masked_fill in place", "index_fill", "fill", "pad"]
FLOATING = sorted({*REFUSING, "full", "full_like", "lerp", "addcmul"} - {"pow"})


def with_floats(name, library, x, n):
    more = {
        "full": lambda: library.full((2,), n, dtype=x.dtype),
        "full_like": lambda: library.full_like(x, n),
        "lerp": lambda: x.lerp(x, n),
        "addcmul": lambda: x.addcmul(x, x, value=n),
    }
    if name == "masked_fill of a tensor":
        return x.masked_fill(x > 2, library.tensor(n, dtype=library.float64))
    return more[name]() if name in more else REFUSING[name](library, x, n)


@pytest.mark.parametrize("name", FLOATING)
def test_a_number_beyond_a_floating_dtype_is_refused_and_infinity_is_not(name):
    for number in (1e39, -1e300, 3.4028236e38):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float32 without overflow"):
            with_floats(name, tg, tg.tensor([2.0, 3.0]), number)
    for number in (float("inf"), float("nan"), 3.4028234663852886e38):
        with_floats(name, tg, tg.tensor([2.0, 3.0]), number)
    with_floats(name, tg, tg.tensor([2.0, 3.0], dtype=tg.float64), 1e300)
    if name in FILLING:
        for dtype, number in ((tg.float16, 65505.0), (tg.bfloat16, 3.39e38 + 1e36), (tg.complex64, 1e39)):
            with pytest.raises(RuntimeError, match="without overflow"):
                tg.tensor([2.0, 3.0], dtype=dtype).fill_(number)


def test_as_pytorch_with_floating_numbers():
    torch = pytest.importorskip("torch")
    for name in FLOATING:
        for number in (3.4e38, 3.41e38, float("inf")):
            results = []
            for library in (tg, torch):
                try:
                    results.append(str(with_floats(name, library, library.tensor([2.0, 3.0]), number).tolist()))
                except RuntimeError:
                    results.append("refused")
            assert results[0] == results[1], (name, number)


def test_numbers_that_are_operands_or_make_a_tensor_round():
    x = tg.tensor([1.0])
    for y in (x + 1e100, x * 1e100, tg.tensor(1e100), x**1e100 + 1e100):
        assert y.item() == float("inf")
    half = tg.zeros(3, dtype=tg.float16)
    half[0], half[1], half[half == 0] = 1e9, -65510.0, 70000.0
    assert half.tolist() == [float("inf"), -65504.0, float("inf")]
    assert tg.full((), 1e9, dtype=tg.float16).item() == float("inf")


def test_bounds_of_linspace_are_elements():
    for dtype, bound in ((tg.uint8, 300), (tg.int8, -200)):
        with pytest.raises(RuntimeError, match="without overflow"):
            tg.linspace(0, bound, 4, dtype=dtype)
    assert tg.linspace(0, 255, 4, dtype=tg.uint8).tolist() == [0, 85, 170, 255]


def test_nan_is_no_integer():
    with pytest.raises(RuntimeError, match="without overflow: nan"):
        tg.tensor([2, 3]).masked_fill(tg.tensor([True, False]), float("nan"))


@pytest.mark.parametrize("name", [*REFUSING, *WRAPPING])
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    for number in (127, 300):
        results = []
        for library in (tg, torch):
            try:
                results.append(
                    {**REFUSING, **WRAPPING}[name](library, library.tensor([2, 3], dtype=library.int8), number).tolist()
                )
            except RuntimeError:
                results.append("refused")
        assert results[0] == results[1], number


def test_negative_numbers_wrap_in_unsigned_dtypes():
    assert tg.tensor([2], dtype=tg.uint8).clamp(min=-1).tolist() == [255]
    with pytest.raises(RuntimeError, match="uint8 without overflow"):
        tg.tensor([2], dtype=tg.uint8).clamp(min=-256)


@pytest.mark.parametrize("name", sorted({*REFUSING, *WRAPPING} - {"masked_fill of a tensor", "fill"}))
def test_a_graph_answers_as_the_program_does(name):
    """Also where the number is an input of the graph, so that one plan would serve all."""
    call = {**REFUSING, **WRAPPING}[name]

    def program(x, n):
        return call(tg, x.clone(), n) + 0

    x = tg.tensor([2, 3], dtype=tg.int8)
    traced = jit.trace(program, (x, 50))
    file = io.BytesIO()
    jit.save(traced, file)
    file.seek(0)
    for way in (traced, jit.load(file)):
        for number in (50, 300, 60):
            assert outcome(lambda: way(x, number)) == outcome(lambda: program(x, number)), (way, number)


# ---- every op with numbers among its arguments ---------------------------------------------------------------------

# where the answers differ and both are sound
APART = {
    "linspace": "computed in float32, whose last bit differs",
    "scatter.value": "PyTorch does not look at the number where no place is written",
    "searchsorted.Scalar": "the number is compared as it is; PyTorch's wraps and stands elsewhere",
    "bucketize.Scalar": "the number is compared as it is; PyTorch's wraps and stands elsewhere",
    "gradient": "computed in float32, whose last bit differs",
    "logspace": "infinite; PyTorch refuses a power that its float does not hold",
}
SCALARS = {
    op.name.removeprefix("aten::"): op
    for op in sweep.ops()
    if any(str(a.type).startswith("Scalar") for a in op.schema.args) and "int8" in sweep.supported(op)
}


def outcome(call):
    """What a call gives, as lists; or that it refuses."""
    try:
        result = call()
    except (RuntimeError, TypeError, ValueError, IndexError, MemoryError):
        return "refused"
    row = result if isinstance(result, (tuple, list)) else [result]
    return str([r.tolist() if hasattr(r, "tolist") else r for r in row])


def with_number(sample, place, name, number):
    """The sample's arguments, one of them the number."""
    args, kwargs = list(sample.args), dict(sample.kwargs)
    if name not in kwargs and place < len(args):
        args[place] = number
    else:
        kwargs[name] = number
    return tuple(args), kwargs


@pytest.mark.parametrize("name", sorted(set(SCALARS) - set(APART)))
def test_every_op_takes_or_refuses_a_number_as_pytorch(name):
    torch = pytest.importorskip("torch")
    op = SCALARS[name]
    theirs = torch_function(op, torch)
    if theirs is None:
        pytest.skip("PyTorch has no such function")
    for dtype in {"int8", "uint8"} & set(sweep.supported(op)):
        for sample in sweep.samples(op, dtype)[:2]:
            for place, argument in enumerate(op.schema.args):
                if not str(argument.type).startswith("Scalar"):
                    continue
                for number in (100, 300, -300):
                    args, kwargs = with_number(sample, place, argument.name, number)
                    given, keywords = to_torch(args, torch), to_torch(kwargs, torch)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        ours = outcome(lambda: sweep.call(op, args, kwargs))
                        assert ours == outcome(lambda: theirs(*given, **keywords)), (dtype, argument.name, number, args)


def test_as_pytorch_with_integers_beyond_int64():
    torch = pytest.importorskip("torch")
    ways = {
        "add": lambda m, x, n: x + n,
        "rsub": lambda m, x, n: n - x,
        "mul": lambda m, x, n: x * n,
        "div": lambda m, x, n: x / n,
        "eq": lambda m, x, n: x == n,
        "clamp": lambda m, x, n: x.clamp(max=n),
        "alpha": lambda m, x, n: m.add(x, x, alpha=n),
        "fill": lambda m, x, n: x.clone().fill_(n),
        "masked_fill": lambda m, x, n: x.masked_fill(x > 2, n),
        "where": lambda m, x, n: m.where(x > 2, x, n),
    }
    for number in (2**63, 2**64 - 1, 2**64, -(2**63) - 1):
        for dtype in ("int8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
            for name, way in ways.items():
                if dtype == "complex64" and name in ("clamp", "masked_fill", "where"):
                    continue
                results = []
                for library in (tg, torch):
                    try:
                        x = library.tensor([2, 3]).to(getattr(library, dtype))
                        results.append(way(library, x, number).tolist())
                    except (RuntimeError, OverflowError) as refusal:
                        results.append(type(refusal))
                assert results[0] == results[1], (name, dtype, number)


def test_limits_are_elements_of_halves():
    torch = pytest.importorskip("torch")
    for dtype, number in (("float16", 65505.0), ("float16", 65504.0), ("float16", float("inf")), ("bfloat16", 1e39)):
        for way in (lambda x, n: x.clamp(max=n), lambda x, n: x.clamp(min=n), lambda x, n: x.add(x, alpha=n)):
            results = []
            for library in (tg, torch):
                try:
                    results.append(way(library.ones(2).to(getattr(library, dtype)), number).tolist())
                except RuntimeError:
                    results.append("refused")
            assert results[0] == results[1], (dtype, number)


def test_a_complex_number_is_true_for_a_bool():
    assert tg.full((2,), 2j, dtype=tg.bool).tolist() == [True, True]
    assert tg.zeros(1, dtype=tg.bool).fill_(0j).tolist() == [False]
