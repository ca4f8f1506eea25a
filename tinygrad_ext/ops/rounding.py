"""Rounding to integers and decimals."""

from tinygrad_ext.ops.fused import zeros
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _decimals(make):
    for n in (0, 1, 3, -1):
        yield Sample(make(3, 4), decimals=n)


op(
    "aten::floor(Tensor self) -> Tensor",
    scalar={"int natural": "x", "float": "floor(x)"},
    grad={"self": zeros},
    reference="numpy.floor",
    tags="exact",
    doc="Largest integer not above each element.",
)

op(
    "aten::ceil(Tensor self) -> Tensor",
    scalar={"int natural": "x", "float": "ceil(x)"},
    grad={"self": zeros},
    reference="numpy.ceil",
    tags="exact",
    doc="Smallest integer not below each element.",
)

op(
    "aten::trunc(Tensor self) -> Tensor",
    scalar={"int natural": "x", "float": "trunc(x)"},
    grad={"self": zeros},
    aliases="fix",
    reference="numpy.trunc",
    tags="exact",
    doc="Each element without its fraction.",
)

op(
    "aten::round(Tensor self) -> Tensor",
    scalar={"int natural": "x", "float": "rint(x)"},
    grad={"self": zeros},
    reference="numpy.rint",
    aliases="special.round",
    tags="exact",
    doc="Nearest integer; of two equally near the even one.",
)

op(
    "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
    scalar={
        "float": {
            "decimals < 0": "rint(x / vm_ten_to(-decimals)) * vm_ten_to(-decimals)",
            "decimals == 0": "rint(x)",
            "else": "rint(x * vm_ten_to(decimals)) / vm_ten_to(decimals)",
        }
    },
    grad={"self": zeros},
    reference="numpy.round",
    samples=_decimals,
    aliases="special.round",
    tags="exact",
    doc="Each element rounded to `decimals` places after the point, or before it when negative.",
)

op(
    "aten::frac(Tensor self) -> Tensor",
    scalar={"float": "x - trunc(x)"},
    grad={"self": "grad"},
    reference=lambda x: x - x.astype("int64").astype(x.dtype),
    tags="exact",
    doc="The fraction of each element, with its sign.",
)
