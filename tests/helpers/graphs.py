"""Graphs to try things on: texts with every construct, and one graph of one node for every sample of the op table."""

import tinygrad_ext as tg
from tests.helpers.captured import one_nan
from tinygrad_ext.archive import layout
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.graph import Graph
from tinygrad_ext.graph.signature import output_types, signature_of
from tinygrad_ext.graph.text import write_arg
from tinygrad_ext.overrides import Observer
from tinygrad_ext.testing import sweep

EVERYTHING = """\
graph net.forward(%x: Tensor, %n: int, %class: float) {
  state %w: Tensor = parameter "fc.weight"
  state %g: Generator = generator "default"
  %1: Tensor = aten::mul.Tensor(%x, %w)  # net.py:3 in forward
  %x.1: int = prim::size(%x, 0)  # net.py:3 in forward
  %2: Tensor = aten::sum.dim_IntList(%1, [0, -1], True, float64)  # net.py:4 in forward
  %c: bool = prim::gt(%n, 3)
  %3: Tensor, %max: int = prim::If(%c) {  # net.py:5 in forward
    block() {
      %4: Tensor = aten::exp(%2)
      yield %4, %n
    }
    block() {
      yield %2, -1
    }
  }
  %5: Tensor, %a: int, %b: int = prim::Loop(%n, True, %3, %n, 7) {
    block(%i: int, %acc: Tensor, %p: int, %q: int) {
      %6: Tensor = aten::add.Tensor(%acc, %i, -1.5e-05)
      yield True, %6, %q, %p
    }
  }
  %7: int = prim::Loop(None, %c, %a) {
    block(%j: int, %k: int) {
      %8: int = prim::pow(-2, %j)
      %9: int = prim::add(%k, %8)
      %10: bool = prim::lt(%9, 40)
      yield %10, %9
    }
  }
  %11: int = prim::Loop(%n, %c, %7) {
    block(%l: int, %m: int) {
      %12: bool = prim::lt(%l, 2)
      %13: int = prim::mul(%m, 3)
      yield %12, %13
    }
  }
  %14: Tensor = aten::full([%x.1], 0.25, float32, None, None, None, False)
  %15: Tensor, %h: Generator = aten::bernoulli.p(%14, 0.5, %g)
  %16: Tensor, %17: Generator = aten::uniform(%14, 0.0, 2.0, %h)
  %19: Tensor, %20: Tensor = prim::Function("Cube", %x, %n) {
    block(%y: Tensor, %o: int) {
      %21: Tensor = aten::mul.Tensor(%y, %y)
      %22: Tensor = aten::mul.Tensor(%21, %y)
      %23: Tensor = aten::mul.Tensor(%22, %class)
      yield %23, %21, %21, %o
    }
    block(%s: Tensor, %t: Tensor, %u: Tensor, %v: int) {
      %24: Tensor = aten::mul.Tensor(%s, %u)
      %25: Tensor = aten::mul.Tensor(%24, 3)
      %26: Tensor = aten::mul.Tensor(%25, %class)
      yield %26, None
    }
  }
  %27: List[Any] = prim::list(%1, None, inf)
  %28: Dict[str, int] = prim::dict("a b", %n, "c", %max)
  %29: int = prim::getitem(%28, "c")
  %30: int = prim::unpack([%n])
  %31: int, %32: int = prim::unpack([%30, %a])
  return %5, [%31, %32], [%a, %b, %7, %11], %15, %16, %19, %20, %27, %28, %29
  write "fc.weight" = %1
  write "default" = %17
}"""


def everything():
    """(graph, inputs, state) of a graph with every construct."""
    inputs = [tg.arange(6.0).reshape(2, 3) - 2, 5, 0.25]
    return Graph.parse(EVERYTHING).check(), inputs, [tg.ones(3) * 1.5, tg.Generator().manual_seed(3)]


class _First(Observer):
    """Notes the first operation."""

    def __init__(self):
        self.seen = None

    def process(self, operation, args):
        if self.seen is None:
            self.seen = operation, args
        return operation(*args)


def graph_of_sample(op, sample):
    """(graph of one node, its inputs) for a call of an op; None for what a graph cannot hold."""
    watching = _First()
    with watching:
        sweep.call(op, sample.args, sample.kwargs)
    if watching.seen is None or getattr(watching.seen[0], "kind", "") != "functional":
        return None
    operation, args = watching.seen
    graph, inputs = Graph("sample"), []

    def held(a):
        if isinstance(a, tg.Tensor):
            inputs.append(a.detach())
            return graph.input(f"x{len(inputs)}")
        if isinstance(a, (list, tuple)):
            return tuple(map(held, a))
        if isinstance(a, Generator):
            raise TypeError
        write_arg(a)
        return a

    try:
        given = tuple(map(held, args))
    except TypeError:
        return None
    types = output_types(signature_of(operation.op.name), given)
    node = graph.make(graph.block, operation.op.name, given, types)
    graph.block.outputs = list(node.outputs)
    return graph.check(), inputs


def same_bits(a, b):
    """Whether two values are equal to the bit, in type and in order; any NaN is one."""
    if type(a) is not type(b) and not (isinstance(a, tuple) and isinstance(b, tuple)):
        return False
    if isinstance(a, tg.Tensor):
        a, b = (t.resolve_conj().resolve_neg() for t in (a, b))  # views with a bit are copies in a plan
        if a.dtype != b.dtype or a.shape != b.shape or a.stride() != b.stride():
            return False
        return a.is_meta or bits(a) == bits(b) or bits(one_nan(a)) == bits(one_nan(b))
    if isinstance(a, Generator):
        return a.get_state().equal(b.get_state())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same_bits, a.values(), b.values()))
    return repr(a) == repr(b)


def bits(t):
    return b"".join(map(bytes, layout.pieces(t.detach().resolve_conj() if t.is_conj() else t.detach())))
