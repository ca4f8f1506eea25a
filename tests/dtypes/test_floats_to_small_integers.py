"""A float outside an integer's range gives the low bits of the int32 or int64 that it becomes, wherever it stands."""

import numpy
import pytest

import tinygrad_ext as tg

FAR = [2.0**31, -(2.0**31), -(2.0**31) - 1024, 2.0**32 + 512, 2.0**40 + 2.0**20, 1e30, float("nan"), -1e30, 300.0]


def low_bits(values, bits, signed, through):
    """By Python's integers. A float that no integer of `through` bits holds becomes the least of these."""
    found = []
    for value in values:
        inside = value == value and -(2.0 ** (through - 1)) <= value < 2.0 ** (through - 1)
        low = (int(value) if inside else -(2 ** (through - 1))) % 2**bits
        found.append(low - 2**bits if signed and low >= 2 ** (bits - 1) else low)
    return found


@pytest.mark.parametrize("source", [tg.float32, tg.float64])
@pytest.mark.parametrize("target", [tg.uint8, tg.int8, tg.uint16, tg.int16, tg.uint32, tg.int32])
@pytest.mark.parametrize("at", [None, 0, 511, 512, 700, 1030])
def test_a_block_with_a_far_float_converts_as_its_elements_do(source, target, at):
    values = numpy.linspace(-3000.0, 3000.0, 1031).astype(numpy.float32).astype(float)
    if at is not None:
        values[at : at + len(FAR)] = FAR[: len(values) - at]
    x = tg.tensor(values.tolist(), dtype=source)
    bits, signed = target.itemsize * 8, target.is_signed
    expected = low_bits(x.tolist(), bits, signed, 64 if target in (tg.uint8, tg.uint32) else 32)
    spread = tg.stack((x, x), 1)[:, 0]
    assert x.to(target).tolist() == expected
    assert spread.to(target).tolist() == expected
