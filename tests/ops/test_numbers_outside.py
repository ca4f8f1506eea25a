"""Numbers that the dtype of the operands does not hold are refused as PyTorch refuses them, never cut in silence."""

import pytest

import tinygrad_ext as tg

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
