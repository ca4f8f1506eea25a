"""Graphs of the ops that ran, as counters of operations ask for them, with the kinds and inputs of PyTorch's."""

import importlib
from math import prod

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.jit import _get_trace_graph
from tinygrad_ext.nn import functional as F


def ops(graph):
    return [node for node in graph.nodes() if not node.kind().startswith("prim::")]


def kinds(function, *args, **options):
    return [node.kind() for node in ops(_get_trace_graph(function, args, **options)[0])]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(self.norm(self.conv(x)).relu_().mean((2, 3)))


def test_nodes_are_the_ops_of_a_module():
    net, x = Net(), tg.ones(2, 3, 8, 8)
    graph, result = _get_trace_graph(net, (x,))
    assert [node.kind() for node in ops(graph)] == [
        "aten::_convolution", "aten::add_", "aten::batch_norm", "aten::relu_", "aten::mean", "aten::linear",
    ]  # fmt: skip
    assert result.shape == (2, 5)
    sizes = [value.type().sizes() for value in graph.inputs()]
    assert sizes == [list(t.shape) for t in (x, *net.state_dict().values())]
    conv = graph.findNode("aten::_convolution")
    assert conv.inputsSize() == 13 and conv.output().type().sizes() == [2, 4, 8, 8]
    assert [v.toIValue() for v in conv.inputsAt(4).node().inputs()] == [1, 1] and conv.inputsAt(6).toIValue() is False
    norm = graph.findNode("aten::batch_norm")
    assert norm.inputsAt(0) is graph.findNode("aten::add_").output() or norm.inputsAt(0) is conv.output()
    assert norm.inputsAt(5).toIValue() is True and norm.outputsSize() == 1
    (end,) = graph.outputs()
    assert end.node().kind() == "aten::linear" and end.uses()[0].user is graph.return_node()


def test_operations_are_counted_from_a_graph():
    graph, _ = _get_trace_graph(Net().eval(), tg.ones(2, 3, 8, 8))
    count = 0
    for node in graph.findAllNodes("aten::_convolution") + graph.findAllNodes("aten::linear"):
        weight, made = node.inputsAt(1).type().sizes(), node.output().type().sizes()
        count += prod(weight[1:]) * prod(made)
    assert count == 3 * 9 * 2 * 4 * 64 + 4 * 2 * 5


def test_types_tell_what_was_seen():
    graph, _ = _get_trace_graph(lambda x: (x.t(), x.chunk(2)), (tg.ones(2, 3, dtype=tg.float64),))
    (x,) = graph.inputs()
    kind = x.type()
    assert (kind.kind(), kind.scalarType(), kind.dtype(), kind.dim()) == ("TensorType", "Double", tg.float64, 2)
    assert kind.strides() == [3, 1] and kind.device() == tg.device("cpu") and x.isCompleteTensor()
    assert str(kind) == "Double(2, 3, strides=[3, 1], requires_grad=0, device=cpu)" and not x.requires_grad()
    assert graph.findNode("aten::t").output().type().strides() == [1, 3]
    parts = graph.findNode("prim::ListUnpack")
    assert parts.input().node().kind() == "aten::chunk" and parts.input().type().getElementType().kind() == "TensorType"
    assert [v.type().sizes() for v in parts.outputs()] == [[1, 3], [1, 3]] and not parts.input().isCompleteTensor()
    (result,) = graph.outputs()
    assert result.node().kind() == "prim::TupleConstruct" and len(result.type().elements()) == 3
    number = graph.findNode("aten::chunk").inputsAt(1)
    assert (number.type().kind(), number.toIValue(), number.node().kindOf("value")) == ("IntType", 2, "i")
    assert number.node().i("value") == 2 and number.node().attributeNames() == ["value"]
    assert "aten::chunk(%0, %" in str(graph) and "test_trace_graph.py" in graph.findNode("aten::t").sourceRange()


@pytest.mark.parametrize(
    "call, kind, number",
    [
        (lambda x: F.interpolate(x, scale_factor=2), "aten::upsample_nearest2d", 3),
        (lambda x: F.interpolate(x, size=4, mode="bilinear"), "aten::upsample_bilinear2d", 4),
        (lambda x: F.interpolate(x, scale_factor=0.5, mode="area"), "aten::adaptive_avg_pool2d", 2),
        (lambda x: F.group_norm(x, 1), "aten::group_norm", 6),
        (lambda x: F.layer_norm(x, (4,)), "aten::layer_norm", 6),
        (lambda x: F.instance_norm(x), "aten::instance_norm", 9),
        (lambda x: F.softmax(x, 1), "aten::softmax", 3),
        (lambda x: F.dropout(x, 0.5), "aten::dropout", 3),
        (lambda x: F.embedding(x.long(), tg.ones(3, 2)), "aten::embedding", 5),
        (lambda x: F.conv_transpose2d(x, tg.ones(2, 3, 1, 1)), "aten::_convolution", 13),
        (lambda x: F.conv2d(x, tg.ones(3, 2, 3, 3), padding="same"), "aten::_convolution_mode", 7),
        (lambda x: F.grid_sample(x, tg.zeros(1, 1, 1, 2), align_corners=True), "aten::grid_sampler", 5),
        (lambda x: tg.einsum("abcd,abcd->a", x, x), "aten::einsum", 3),
    ],
)
def test_functions_are_told_as_ops_of_pytorch(call, kind, number):
    graph, _ = _get_trace_graph(call, (tg.ones(1, 2, 4, 4),))
    assert graph.findNode(kind).inputsSize() == number


def test_what_pytorch_has_no_op_of_is_told_in_ops():
    assert kinds(lambda x: x[0, 1:], tg.ones(2, 3)) == ["aten::select", "aten::slice"]


@pytest.mark.parametrize("name, read", [("__bool__", bool), ("__int__", int), ("item", tg.Tensor.item)])
def test_reading_elements_warns(name, read):
    with pytest.warns(tg.jit.TracerWarning, match=rf"{name}\(\) of a tensor: the graph tells what"):
        assert kinds(lambda x: -x if read(x.sum()) else x, tg.ones(2)) == ["aten::sum", "aten::neg"]


def test_writes_may_be_told_as_what_computes():
    assert kinds(lambda x: x.clone().relu_(), tg.ones(2)) == ["aten::clone", "aten::relu_"]
    assert kinds(lambda x: x.clone().relu_(), tg.ones(2), _force_outplace=True) == ["aten::clone", "aten::relu"]


def test_a_function_is_one_node():
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    graph, _ = _get_trace_graph(lambda x: Double.apply(x) + 1, (tg.ones(2),))
    first, second = [n for n in graph.nodes() if n.kind() != "prim::Constant"]
    assert first.kind() == "prim::PythonOp" and first.pyname() == "Double" and second.inputsAt(0) is first.output()


def test_inputs_are_given_back_where_they_are_asked_for():
    x = tg.ones(2)
    _, result, before = _get_trace_graph(lambda x: x.add_(1), (x,), return_inputs=True)
    assert result is x and [t.tolist() for t in before] == [[1, 1]]
    _, _, (before, after) = _get_trace_graph(lambda x: x.add_(1), (x,), _return_inputs_states=True)
    assert before[0].tolist() == [2, 2] and after[0].tolist() == [3, 3]


def test_scopes_are_those_of_the_alias(as_torch):
    state = importlib.import_module("torch._C")._get_tracing_state
    assert state() is None

    def scoped(x):
        assert as_torch.jit.is_tracing()
        state().push_scope("outer")
        x = x + 1
        state().push_scope("inner")
        x = x * 2
        state().pop_scope()
        state().pop_scope()
        return -x

    graph, _ = as_torch.jit._get_trace_graph(scoped, (as_torch.ones(2),))
    assert [node.scopeName() for node in ops(graph)] == ["outer", "outer/inner", ""]
