"""Random programs of ops give the same bits from the interpreter and by plans, in every size, layout and dtype."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tests.helpers.graphs import same_bits
from tinygrad_ext.graph import Graph, interpret
from tinygrad_ext.graph.signature import output_types, signature_of
from tinygrad_ext.graph.types import GENERATOR

DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool", "float16", "bfloat16", "complex64"]

# op: (arguments, letters standing for a value made before; what follows are constants to choose from)
TEMPLATES = {
    **{
        f"aten::{name}": ["x"]
        for name in ("exp", "tanh", "neg", "abs", "sigmoid", "square", "relu", "sgn", "reciprocal")
    },
    **{f"aten::{name}.Tensor": ["x", "y"] for name in ("mul", "div", "gt", "eq", "bitwise_and", "remainder")},
    "aten::add.Tensor": ["x", "y", (1, 2, -0.5)],
    "aten::sub.Tensor": ["x", "y", (1, 3)],
    "aten::maximum": ["x", "y"],
    "aten::where.self": ["b", "x", "y"],
    "aten::lerp.Scalar": ["x", "y", (0.25, 0.75)],
    "aten::clamp": ["x", (None, -0.5), (0.5, 1)],
    "aten::t": ["x"],
    "aten::transpose.int": ["x", (0, -1), (-1, -2)],
    "aten::select.int": ["x", (0, -1), (0, -1)],
    "aten::slice.Tensor": ["x", (0, -1), (0, 1), (None, 2, 100), (1, 2)],
    "aten::unsqueeze": ["x", (0, -1)],
    "aten::expand": ["x", ((2, -1, -1), (-1, -1), (3, -1)), (False,)],
    "aten::reshape": ["x", ((-1,), (2, -1), (-1, 2))],
    "aten::flip": ["x", ((0,), (-1,))],
    "aten::contiguous": ["x", (None,)],
    "aten::clone": ["x", (None,)],
    "aten::_to_copy": ["x", DTYPES, (None,), (None,), (None,), (False,), (None,)],
    "aten::sum.dim_IntList": ["x", ((0,), (-1,), ()), (True, False), (None,)],
    "aten::mean.dim": ["x", ((0,), (-1,)), (True, False), (None,)],
    "aten::amax": ["x", ((0,), (-1,)), (True, False)],
    "aten::var.correction": ["x", ((0,), (-1,)), (0, 1), (False,)],
    "aten::argmax": ["x", (0, -1, None), (False,)],
    "aten::cumsum": ["x", (0, -1), (None,)],
    "aten::sort": ["x", (0, -1), (False, True)],
    "aten::matmul": ["x", "y"],
    "aten::softmax.int": ["x", (0, -1), (None,)],
    "aten::cat": [["x", "y"], (0, -1)],
    "aten::stack": [["x", "y"], (0, -1)],
    "aten::index_select": ["x", (0, -1), "i"],
    "aten::masked_fill.Scalar": ["x", "b", (0, 1.5)],
    "aten::tril": ["x", (0, -1)],
    "aten::nonzero": ["x"],
    "aten::bernoulli.p": ["x", (0.5,), "g"],
    "aten::rand_like": ["x", (None,), (None,), (None,), (None,), (False,), (None,), "g"],
}


class Program:
    """A graph that is written while its values are computed; what eager mode refuses is left out."""

    def __init__(self, draw, inputs):
        self.draw, self.graph, self.known = draw, Graph("program"), {}
        self.inputs = inputs
        for i, value in enumerate(inputs):
            type = GENERATOR if isinstance(value, tg.Generator) else None
            made = self.graph.input(f"x{i}", *([type] if type else []))
            self.known[made] = value

    def operand(self, letter):
        fits = {
            "b": lambda v: isinstance(v, tg.Tensor) and v.dtype is tg.bool,
            "i": lambda v: isinstance(v, tg.Tensor) and v.dtype is tg.int64 and v.dim() <= 1,
            "g": lambda v: isinstance(v, tg.Generator),
        }.get(letter, lambda v: isinstance(v, tg.Tensor))
        found = [value for value, known in self.known.items() if fits(known)]
        return self.draw(st.sampled_from(found)) if found else None

    def argument(self, template):
        if isinstance(template, str):
            return self.operand(template)
        if isinstance(template, list) and len(template[0]) == 1:
            return tuple(map(self.operand, template))
        chosen = self.draw(st.sampled_from(template))
        return getattr(tg, chosen) if isinstance(chosen, str) else chosen

    def step(self):
        op = self.draw(st.sampled_from(sorted(TEMPLATES)))
        args = [self.argument(t) for t in TEMPLATES[op]]
        if any(a is None and isinstance(t, str) for a, t in zip(args, TEMPLATES[op])):
            return
        block = Graph("one").block
        types = output_types(signature_of(op), args)
        node = self.graph.make(block, op, args, types, line=f"model.py:{len(self.graph.nodes)}")
        frame = {id(v): value for v, value in self.known.items()}
        try:
            interpret._run_node(node, frame)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            return
        if any(isinstance(frame[id(v)], tg.Tensor) and frame[id(v)].numel() > 5000 for v in node.outputs):
            return
        self.graph.nodes.append(node)
        self.known.update((v, frame[id(v)]) for v in node.outputs)


@st.composite
def tensors(draw):
    dtype = getattr(tg, draw(st.sampled_from(DTYPES)))
    shape = draw(st.sampled_from([(2, 3), (3,), (), (0, 3), (2, 1), (1, 3), (3, 2), (2, 2, 3), (40, 33)]))
    t = (tg.randn(shape, generator=tg.Generator().manual_seed(draw(st.integers(0, 99)))) * 3).to(dtype)
    layout = draw(st.sampled_from(["plain", "plain", "turned", "apart"]))
    if layout == "turned" and t.dim() > 1:
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    return tg.stack([t, t], -1)[..., 0] if layout == "apart" else t


@st.composite
def programs(draw):
    inputs = [draw(tensors()) for _ in range(draw(st.integers(1, 3)))]
    made = Program(draw, [*inputs, tg.Generator().manual_seed(11)])
    for _ in range(draw(st.integers(1, 14))):
        made.step()
    values = list(made.known)
    made.graph.block.outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    return made.graph.check(), made.inputs


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_programs(made):
    graph, inputs = made
    expected, _ = interpret.run(graph, inputs)
    before = [t.clone() for t in inputs[:-1]]
    for _ in range(2):
        assert same_bits(graph.execute(inputs)[0], expected), f"{graph}\n{graph.plan(*inputs).table()}"
    assert all(map(same_bits, before, [t.clone() for t in inputs[:-1]]))


def test_several_sizes_in_a_row_through_one_graph():
    text = """\
graph f(%x: Tensor, %y: Tensor) {
  %1: Tensor = aten::softmax.int(%x, -1, None)
  %2: Tensor = aten::matmul(%1, %y)
  %3: Tensor = aten::add.Tensor(%2, %x, 2)
  %4: Tensor = aten::t(%3)
  %5: Tensor = aten::gelu(%4, "none")
  %6: Tensor = aten::cat([%5, %x], 0)
  %7: Tensor = aten::sum.dim_IntList(%6, [0], True, None)
  %8: Tensor = aten::div.Tensor(%6, %7)
  return %8, %3
}"""
    graph = Graph.parse(text).check()
    for n, dtype in itertools.product((1, 3, 17, 64, 3, 0), (tg.float32, tg.float64)):
        x, y = tg.randn(n, n, dtype=dtype), tg.randn(n, n, dtype=dtype).t()
        assert same_bits(graph.execute([x, y])[0], interpret.run(graph, [x, y])[0])
    assert not graph.executor.boxed


class Held:
    def __init__(self, number, tensor):
        self.number, self.tensor = number, tensor


def test_what_an_object_holds_is_read_in_each_run():
    text = """\
graph f(%held: Any) {
  %n: float = prim::getattr(%held, "number")
  %t: Tensor = prim::getattr(%held, "tensor")
  %1: Tensor = aten::tensor(%n, None, None, False, False)
  %2: Tensor = aten::mul.Tensor(%t, %1)
  return %2
}"""
    graph = Graph.parse(text).check()
    held = Held(2.0, tg.ones(2))
    for n in (2.0, 3.0, 0.5):
        held.number, held.tensor = n, tg.full((2,), n + 1)
        assert graph.executor(held)[0].tolist() == [n * (n + 1)] * 2


@pytest.mark.parametrize("dtype", [tg.float32, tg.int32, tg.float64, tg.int8])
@pytest.mark.parametrize("rows, columns", [(1, 1), (4, 4), (8, 8), (3, 21), (64, 1), (1, 64), (5, 13)])
def test_small_matrices_are_brought_together_from_any_strides(rows, columns, dtype):
    outer = Graph.parse(
        "graph outer(%a: Tensor, %b: Tensor, %m: Tensor) {\n"
        "  %1: Tensor = aten::mul.Tensor(%a, %b)\n"
        "  %2: Tensor = aten::add.Tensor(%1, %m, 1)\n"
        "  %3: Tensor = aten::sub.Tensor(%2, %a, 1)\n"
        "  return %3\n}"
    ).check()
    a, b, m = [tg.randint(-9, 9, size).to(dtype) for size in ((rows, 1), (1, columns), (columns, rows))]
    for t in (m.t(), m.t().flip(0), tg.stack([m, m], 2)[:, :, 1].t()):
        assert same_bits(outer.execute([a, b, t])[0], [a * b + t - a])
