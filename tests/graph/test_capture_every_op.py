"""A captured call of any op gives eager's bits, and so does its captured gradient, from the graph and from its text."""

import warnings

import pytest
from captured import captured, evaluated, leaves, mapped, same_bits

import tinygrad_ext as tg
from tinygrad_ext.graph import Graph
from tinygrad_ext.graph.signature import signature_of
from tinygrad_ext.testing import sweep

OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}
# a call gives Python values, or a shape that Python works out of elements
SPLIT = "tensor_split.tensor_indices_or_sections"
READS = {"tolist", "equal", "allclose", "bincount", "repeat_interleave.self_Tensor", SPLIT}
# composites that read elements: nodes of their own, of which a capture knows no derivative but by a rule
WHOLE = {name for name, op in OPS.items() if signature_of(op.name).whole and not op.record.grad}
# takes an index as a tuple, which a graph does not tell from a list; captured indexing never comes to it
INSIDE = {"_basic_index_backward"}
UNSET = {name for name, op in OPS.items() if sweep.tagged(op, "unset")}


def samples(op, dtype):
    """(function of tensors, function that makes those tensors) of each sample that eager mode takes."""
    for s in sweep.samples(op, dtype):
        given = leaves((s.args, s.kwargs))

        def call(*tensors, s=s):
            rest = iter(tensors)
            args, kwargs = mapped(lambda _: next(rest), (s.args, s.kwargs))
            return sweep.call(op, args, kwargs)

        yield call, lambda given=given: [t.detach().clone() for t in given]


def eager(function, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tg.manual_seed(1)
            return function(*args)
        except (RuntimeError, TypeError, IndexError, ValueError):
            return None  # what eager mode refuses is not the point here


def check(function, make):
    expected = eager(function, make())
    if expected is None:
        return 0
    tg.manual_seed(1)
    graph = captured(function, *make())
    for again in (graph, Graph.parse(str(graph))):  # neither the capture nor a run draws from the default generator
        with tg.no_grad():
            assert same_bits(evaluated(again, *make()), expected), str(graph)
    return 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(OPS) - READS - UNSET - INSIDE))
def test_a_call(name):
    op = OPS[name]
    dtype = next((d for d in ("float32", "int64", "bool", "complex64") if d in sweep.supported(op)), "float32")
    for call, make in samples(op, dtype):
        check(call, make)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(OPS) - READS - UNSET - INSIDE - WHOLE))
def test_a_gradient(name):
    op = OPS[name]
    if "float32" not in sweep.supported(op):
        pytest.skip("takes no floats")

    def gradient(call):
        def function(*tensors):
            outputs = [t for t in leaves(call(*tensors)) if t.requires_grad]
            if not outputs:
                return None
            loss = sum((t * t).sum() for t in outputs if t.is_floating_point())
            return tg.autograd.grad(loss, [t for t in tensors if t.requires_grad], allow_unused=True)

        return function

    for call, make in samples(op, "float32"):
        check(gradient(call), lambda make=make: [t.requires_grad_(t.is_floating_point()) for t in make()])


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_gradient_through_what_is_called_whole_is_refused(name):
    for call, make in samples(OPS[name], "float32"):
        with pytest.raises(RuntimeError, match="calls it whole, and knows no derivative of it"):
            captured(
                lambda *given, call=call: sum(t.sum() for t in leaves(call(*given))).backward(),
                *[t.requires_grad_(t.is_floating_point()) for t in make()],
            )


@pytest.mark.parametrize("name", sorted(READS - {"bincount", "repeat_interleave.self_Tensor", SPLIT}))
def test_what_reads_elements_is_refused_by_name(name):
    for call, make in samples(OPS[name], "float32"):
        with pytest.raises(RuntimeError, match=r"reads the elements"):
            captured(call, *make())
