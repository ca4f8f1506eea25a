"""Truth of numbers, and operators on bits."""

from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _shifts(make):
    yield Sample(make(3, 4), make.ints(0, 7, (3, 4), make.dtype))
    yield Sample(make(3, 4), 2)


op(
    "aten::logical_not(Tensor self) -> Tensor",
    scalar={"bool int float complex": "x == 0"},
    returns="bool",
    variants="function method inplace out",
    reference="numpy.logical_not",
    doc="Whether each element is zero.",
)

op(
    "aten::logical_and(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int float complex": "(x != 0) & (y != 0)"},
    returns="bool",
    reference="numpy.logical_and",
    doc="Whether both elements are nonzero.",
)

op(
    "aten::logical_or(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int float complex": "(x != 0) | (y != 0)"},
    returns="bool",
    reference="numpy.logical_or",
    doc="Whether at least one of two elements is nonzero.",
)

op(
    "aten::logical_xor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int float complex": "(x != 0) ^ (y != 0)"},
    returns="bool",
    reference="numpy.logical_xor",
    doc="Whether exactly one of two elements is nonzero.",
)

op(
    "aten::bitwise_not(Tensor self) -> Tensor",
    scalar={"int": "~x", "bool": "!x"},
    operator="invert",
    variants="function method inplace out",
    reference="numpy.invert",
    tags="exact",
    doc="All bits turned over; for bool the opposite.",
)

op(
    "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int natural": "x & y"},
    operator="and",
    numbers="self|other",
    reference="numpy.bitwise_and",
    doc="Bits that both integers have.",
)

op(
    "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int natural": "x | y"},
    operator="or",
    numbers="self|other",
    reference="numpy.bitwise_or",
    doc="Bits that at least one of two integers has.",
)

op(
    "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int natural": "x ^ y"},
    operator="xor",
    numbers="self|other",
    reference="numpy.bitwise_xor",
    doc="Bits that exactly one of two integers has.",
)

# A shift by the width or more, or by a negative number, would be undefined in C: everything is shifted out.
op(
    "aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "y < 0 || y >= (int)sizeof(x) * 8 ? 0 : (int64_t)((uint64_t)x << y)"},
    operator="lshift",
    numbers="self|other",
    samples=_shifts,
    reference="numpy.left_shift",
    doc="Bits moved up by `other` places; those moved out are lost.",
)

op(
    "aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"int": "y < 0 || y >= (int)sizeof(x) * 8 ? (x < 0 ? -1 : 0) : x >> y"},
    operator="rshift",
    numbers="self|other",
    samples=_shifts,
    reference="numpy.right_shift",
    doc="Bits moved down by `other` places; the sign stays.",
)

op(
    "aten::__rlshift__(Tensor self, Tensor other) -> Tensor",
    compose=lambda self, other: fused.bitwise_left_shift(other, self),
    operator="rlshift",
    types="int",
    numbers="other",
    variants="method",
    samples=lambda make: [Sample(make.ints(0, 5, (3, 4), make.dtype), 2)],
    doc="What `other << self` calls when other is no tensor.",
)

op(
    "aten::__rrshift__(Tensor self, Tensor other) -> Tensor",
    compose=lambda self, other: fused.bitwise_right_shift(other, self),
    operator="rrshift",
    types="int",
    numbers="other",
    variants="method",
    samples=lambda make: [Sample(make.ints(0, 5, (3, 4), make.dtype), 64)],
    doc="What `other >> self` calls when other is no tensor.",
)
