"""What PyTorch's tutorials of fx do: shapes at nodes, splitting, fusing conv and batch norm, inverting, timing."""

import operator

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn
from tinygrad_ext.fx.passes.shape_prop import ShapeProp
from tinygrad_ext.fx.passes.split_module import split_module


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)), nn.Linear(4, 5)
        self.conv, self.bn = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x):
        x = self.first(x).relu()
        x = x + tg.relu(self.bn(self.conv(x)))
        return self.head(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", tg.ones(8, 8).tril().bool())

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, 2)
        q, k, v = [p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in (q, k, v)]
        scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        scores = scores.masked_fill(~self.mask[:t, :t], float("-inf")).softmax(-1)
        return self.out((scores @ v).transpose(1, 2).reshape(b, t, c))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(11, 8), nn.Parameter(tg.randn(1, 8, 8))
        self.ln, self.attention, self.head = nn.LayerNorm(8), Attention(8, 2), nn.Linear(8, 11)

    def forward(self, tokens):
        x = self.tok(tokens)
        x = x + self.pos[:, : tokens.size(1)]
        return self.head(x + self.attention(self.ln(x)))


class Opened(fx.Tracer):
    proxy_buffer_attributes = True

    def is_leaf_module(self, m, module_qualified_name):
        return not isinstance(m, (Attention, nn.Sequential))


def images():
    return tg.randn(2, 3, 6, 6)


@pytest.mark.filterwarnings("ignore")
def test_modules_like_resnet_and_gpt_are_traced():
    net, x = Resnet().eval(), images()
    assert fx.symbolic_trace(net)(x).equal(net(x))


def test_shapes_stand_at_the_nodes():
    made, x = fx.symbolic_trace(Resnet().eval()), images()
    assert ShapeProp(made).propagate(x).equal(made(x))
    found = {n.name: n.meta["tensor_meta"] for n in made.graph.nodes if "tensor_meta" in n.meta}
    assert found["x"].shape == (2, 3, 6, 6) and found["conv"].shape == (2, 4, 6, 6) and found["head"].shape == (2, 5)
    assert found["conv"].dtype == tg.float32 and found["conv"].requires_grad and found["x"].stride == (108, 36, 6, 1)


@pytest.mark.parametrize("count, named", [(1, True), (2, False), (3, True), (50, False)])
def test_a_module_is_split_into_parts_that_give_the_same(count, named):
    made, x = fx.symbolic_trace(Resnet().eval()), images()
    order = {n: i for i, n in enumerate(made.graph.nodes)}
    split = split_module(made, made if named else None, lambda node: order[node] * count // len(order))
    assert split(x).equal(made(x))
    assert {n.target for n in split.graph.nodes if n.op == "call_module"} == {n for n, _ in split.named_children()}
    assert len(dict(split.named_children())) == min(count, len(order) - 2)


def test_parts_that_need_each_other_are_refused():
    made = fx.symbolic_trace(lambda x: (x.exp() + x).sin())
    names = iter("aba")
    with pytest.raises(RuntimeError, match="the parts a, b need each other"):
        split_module(made, made, lambda node: next(names))


def test_conv_and_batch_norm_are_fused():
    net, x = Resnet(), images()
    net(x)
    want, made = net.eval()(x), fx.symbolic_trace(net)
    modules = dict(made.named_modules())
    for node in made.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        before = node.args[0]
        conv, bn = modules[before.target], modules[node.target]
        scale = bn.weight / (bn.running_var + bn.eps).sqrt()
        conv.weight = nn.Parameter(conv.weight * scale[:, None, None, None])
        conv.bias = nn.Parameter((conv.bias - bn.running_mean) * scale + bn.bias)
        node.replace_all_uses_with(before)
        made.graph.erase_node(node)
    made.graph.lint()
    made.recompile()
    made.delete_all_unused_submodules()
    assert not any(isinstance(m, nn.BatchNorm2d) for m in made.modules())
    assert tg.allclose(made(x), want, 1e-4, 1e-5)


def test_a_function_is_inverted():
    inverse = {tg.sin: tg.asin, tg.tanh: tg.atanh, operator.neg: operator.neg}
    made = fx.symbolic_trace(lambda x: -tg.tanh(tg.sin(x)))
    graph, value = fx.Graph(), None
    value = graph.placeholder("y")
    for node in reversed(made.graph.nodes):
        if node.op == "call_function":
            value = graph.call_function(inverse[node.target], (value,))
    graph.output(value)
    back, x = fx.GraphModule({}, graph), tg.tensor([0.1, 0.5])
    assert tg.allclose(back(made(x)), x)


def test_an_interpreter_counts_the_calls_of_each_node():
    class Counting(fx.Interpreter):
        def __init__(self, module):
            super().__init__(module)
            self.runs = {}

        def run_node(self, n):
            self.runs[n.name] = self.runs.get(n.name, 0) + 1
            return super().run_node(n)

    counting = Counting(fx.symbolic_trace(Resnet().eval()))
    counting.run(images()), counting.run(images())
    assert set(counting.runs.values()) == {2} and "conv" in counting.runs


def test_a_tracer_opens_what_it_is_told():
    net, tokens = Gpt(), tg.tensor([[1, 4, 2]])
    tracer = Opened()
    made = fx.GraphModule(net, tracer.trace(net))
    assert made(tokens).equal(net(tokens))
    assert any(n.target == "attention.qkv" for n in made.graph.nodes)
    longer = tg.tensor([[1, 4, 2, 7, 3]])
    assert made(longer).equal(net(longer))


def test_arguments_are_told_as_they_are_declared():
    made = fx.symbolic_trace(lambda x: tg.sum(tg.add(x, x, alpha=2), 0))
    total, add = (made.graph.find_nodes(op="call_function", target=t)[0] for t in (tg.sum, tg.add))
    assert add.normalized_arguments(made, normalize_to_only_use_kwargs=True).kwargs["alpha"] == 2
    found = total.normalized_arguments(made, normalize_to_only_use_kwargs=True).kwargs
    assert found["input"] is add and found["dim"] == 0 and found["keepdim"] is False
    net = fx.symbolic_trace(Resnet())
    head = net.graph.find_nodes(op="call_module", target="head")[0]
    assert list(head.normalized_arguments(net, normalize_to_only_use_kwargs=True).kwargs) == ["input"]
    assert net.graph.output_node().normalized_arguments(net) is None
