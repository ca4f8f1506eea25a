"""Random graphs of pointwise ops, most of them plain arithmetic, over inputs that lie in memory in several ways."""

from hypothesis import strategies as st

import tinygrad_ext as tg
from tests.helpers.emitted import SPECIAL
from tinygrad_ext.graph import Graph

COPY = "aten::_to_copy({}, %s, None, None, None, False, None)"
# {}: a float tensor, {b}: a bool one, {n}: a number that is passed in
OPS = [
    *[f"aten::{name}({{}}, {{}}, {alpha})" for name in ("add.Tensor", "sub.Tensor") for alpha in ("1", "-0.3", "{n}")],
    *[f"aten::{name}({{}}, {{}})" for name in ("mul.Tensor", "div.Tensor", "maximum", "minimum", "copysign.Tensor")],
    *[f"aten::{name}({{}}, {number})" for name in ("mul.Tensor", "div.Tensor") for number in ("0.7", "-3", "{n}")],
    *[
        f"aten::{name}({{}})"
        for name in ("neg", "abs", "sqrt", "reciprocal", "relu", "square", "sign", "rsqrt", "round", "frac")
    ],
    *[f"aten::{name}({{}})" for name in ("exp", "tanh")],
    *[
        "aten::clamp({}, -1.5, None)",
        "aten::clamp({}, {n}, 2.5)",
        "aten::leaky_relu({}, 0.1)",
        "aten::pow.Tensor_Scalar({}, 3)",
    ],
    *["aten::tanh_backward({}, {})", "aten::addcmul({}, {}, {}, {n})", "aten::threshold_backward({}, {}, 0.5)"],
    *["aten::where.self({b}, {}, {})", "aten::where.self({b}, {}, {})", COPY % "float32", COPY % "float64"],
    "aten::_to_copy({b}, float32, None, None, None, False, None)",
]
TRUTHS = [
    *[f"aten::{name}.Tensor({{}}, {{}})" for name in ("eq", "ne", "lt", "le", "gt", "ge")],
    *["aten::lt.Tensor({}, {n})", "aten::isnan({})", "aten::isfinite({})", "aten::logical_not({})"],
    *["aten::logical_or({}, {})", "aten::bitwise_and.Tensor({b}, {b})", COPY % "bool"],
]
LAYOUTS = ("whole", "whole", "whole", "row", "column", "one", "none", "flipped", "apart", "every other")


def values(draw, dtype, count):
    pool = st.sampled_from([x > 0 for x in SPECIAL] if dtype == tg.bool else SPECIAL)
    few = draw(st.lists(pool, min_size=7, max_size=7))
    picked = tg.tensor(few, dtype=dtype)[tg.arange(count) % 7]
    if dtype == tg.bool:
        return picked
    return tg.randn(count, dtype=dtype, generator=tg.Generator().manual_seed(count)).where(
        tg.arange(count) % 3 != 1, picked
    )


def laid_out(draw, dtype, rows, columns):
    """An input that broadcasts to (rows, columns)."""
    how = draw(st.sampled_from(LAYOUTS))
    if how == "row":
        return values(draw, dtype, columns)
    if how in ("column", "one"):
        return values(draw, dtype, rows if how == "column" else 1).reshape(-1, 1)
    if how == "none":
        return values(draw, dtype, 1).reshape(())
    if how == "flipped":
        return values(draw, dtype, rows * columns).reshape(columns, rows).t()
    if how == "apart":
        return values(draw, dtype, 2 * rows * columns).reshape(2 * rows, columns)[rows:]
    if how == "every other":
        return values(draw, dtype, 2 * rows * columns).reshape(rows, columns, 2)[:, :, 1]
    return values(draw, dtype, rows * columns).reshape(rows, columns)


@st.composite
def programs(draw, largest=14):
    """(graph, its inputs)."""
    size = draw(st.one_of(st.integers(0, 70), st.sampled_from([511, 513, 1023, 1024, 1025, 4097])))
    rows = draw(st.sampled_from([1, 1, 2, 5])) if size < 2000 else 1
    dtypes = draw(st.lists(st.sampled_from([tg.float32, tg.float32, tg.float64]), min_size=2, max_size=4))
    inputs = [laid_out(draw, dtype, rows, size) for dtype in dtypes]
    inputs[0] = values(draw, dtypes[0], rows * size).reshape(rows, size)
    inputs.append(laid_out(draw, tg.bool, rows, size))
    floats, truths = [f"%x{i}" for i in range(len(dtypes))], [f"%x{len(dtypes)}"]
    lines = []
    for k in range(draw(st.integers(2, largest))):
        is_truth = draw(st.integers(0, 5)) == 0
        made = draw(st.sampled_from(TRUTHS if is_truth else OPS))
        while "{" in made:
            at = made.index("{")
            kind = made[at : made.index("}", at) + 1]
            pool = {"{}": floats[-6:], "{b}": truths[-3:], "{n}": ["%n", "%m"]}[kind]
            made = made.replace(kind, draw(st.sampled_from(pool)), 1)
        lines.append(f"  %{k}: Tensor = {made}")
        (truths if is_truth else floats).append(f"%{k}")
    returned = {
        f"%{len(lines) - 1}",
        *draw(st.lists(st.sampled_from([f"%{k}" for k in range(len(lines))]), max_size=3)),
    }
    given = ", ".join([*(f"%x{i}: Tensor" for i in range(len(inputs))), "%n: float", "%m: int"])
    text = "\n".join(lines)
    graph = Graph.parse(f"graph p({given}) {{\n{text}\n  return {', '.join(sorted(returned))}\n}}").check()
    return graph, [*inputs, draw(st.sampled_from([0.25, -1.0, 1.0, 7.3])), draw(st.sampled_from([1, 2, -3]))]
