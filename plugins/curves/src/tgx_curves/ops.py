"""The ops. scalar= is an expression of C over x, y, z, the tensors in order, and over the other arguments by name."""

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Sample


def bump_samples(make):
    """Inputs for the checks."""
    yield Sample(make(3, 4))
    yield Sample(make(5), width=0.5)
    yield Sample(make(0, 2))


def bend_samples(make):
    """Inputs for the checks, of sizes that broadcast."""
    yield Sample(make(3, 4), make(4))
    yield Sample(make(3, 1), make(2))


def register_all(register):
    """Called once, from the hook. The build reads the records as text, so their fields for loops are literals."""
    register(
        "curves::bump(Tensor self, float width=1.0) -> Tensor",
        scalar="1.0 / (1.0 + x * x * width)",
        types="float",
        promote="float",
        grad={"self": lambda grad, self, width, result: grad * (-2 * width) * self * result * result},
        reference=lambda x, width=1.0: 1 / (1 + x * x * width),
        samples=bump_samples,
        doc="1 / (1 + width * self²) of each element: 1 at zero, falling to both sides.",
    )
    register(
        "curves::bend(Tensor self, Tensor other) -> Tensor",
        scalar="x * exp(-fabs(y))",
        types="float",
        promote="float",
        grad={
            "self": lambda grad, other: grad * tg.exp(-other.abs()),
            "other": lambda grad, other, result: -grad * result * other.sign(),
        },
        reference=lambda x, y: x * 2.718281828459045 ** -abs(y),
        samples=bend_samples,
        doc="self * exp(-|other|) of each pair of elements.",
    )
