"""make_fx: what a function calls in the end, as an fx graph of ops; and nested arguments of recorded functions."""

import collections
import copy
import pickle

import pytest

import tinygrad_ext as tg
from tests.helpers import fx_programs as programs
from tinygrad_ext import fx, nn
from tinygrad_ext.fx.experimental.proxy_tensor import make_fx
from tinygrad_ext.utils import _pytree


def nested(T):
    def f(x, more):
        y = x.sin() + more["a"] * x.shape[0]
        return {"o": y.view(-1), "t": (y.sum(), more["n"])}

    return f, (T.ones(2, 3), {"a": T.ones(3) * 2, "n": 4})


def views(T):
    return lambda x: (T.split(x, 1)[1] + 1, x[1:].T, x.unsqueeze(0)), (T.arange(6.0).reshape(2, 3),)


def outside(T):
    held = T.ones(3) * 2
    return lambda x: T.relu(x * held) @ held, (T.arange(3.0) - 1,)


def gradient(T):
    return lambda x: T.func.grad(lambda y: (y * y).sin().sum())(x), (T.arange(3.0),)


def mapped(T):
    return T.func.vmap(lambda x: x.sum() * x), (T.arange(6.0).reshape(3, 2),)


def sizes(T):
    def f(x):
        for i in range(x.shape[0]):
            x = x + i if x.dim() == 2 else x
        return x.reshape(x.shape[0] * x.shape[1])

    return f, (T.ones(2, 3),)


PROGRAMS = [nested, views, outside, gradient, mapped, sizes]
each = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


@each
def test_the_module_gives_what_the_function_gives(program):
    f, args = program(tg)
    made = make_fx(f)(*args)
    made.graph.lint()
    assert all(n.op in ("placeholder", "call_function", "get_attr", "output") for n in made.graph.nodes)
    wanted = programs.plain(f(*args))
    assert programs.plain(made(*args)) == programs.plain(fx.Interpreter(made).run(*args)) == wanted
    assert programs.plain(copy.deepcopy(made)(*args)) == wanted


@each
def test_results_are_those_of_pytorch_and_ops_too(program):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    proxies = pytest.importorskip("torch.fx.experimental.proxy_tensor")
    (f, args), (g, given) = program(tg), program(torch)
    found, wanted = make_fx(f)(*args), proxies.make_fx(g)(*given)
    leaves = lambda r: [t.tolist() if hasattr(t, "tolist") else t for t in _pytree.tree_leaves(r)]
    for a, b in zip(leaves(found(*args)), leaves(wanted(*given)), strict=True):
        assert tg.allclose(tg.tensor(a), tg.tensor(b))
    if program is nested:
        ops = lambda made: [str(n.target) for n in made.graph.nodes if n.op == "call_function"]
        assert ops(found) == ops(wanted)


def test_what_is_written_to_is_written_to():
    norm = nn.BatchNorm1d(3)

    def f(x):
        x.add_(1)
        return norm(x)

    made = make_fx(f)(tg.randn(4, 3))
    twin = copy.deepcopy(norm)
    x = tg.randn(4, 3)
    given, wanted = x.clone(), twin(x + 1)
    made.graph.eliminate_dead_code()
    made.recompile()
    assert made(given).equal(wanted) and given.equal(x + 1)
    assert norm.running_mean.equal(twin.running_mean) and norm.num_batches_tracked.equal(twin.num_batches_tracked)
    assert norm.weight is made._param_constant0


def test_random_numbers_are_drawn_when_it_runs():
    def f(x):
        return tg.dropout(x, 0.5, True) + tg.rand_like(x)

    made, x = make_fx(f)(tg.ones(4)), tg.ones(4)
    for seed in (0, 1):
        tg.manual_seed(seed)
        wanted = f(x)
        tg.manual_seed(seed)
        assert made(x).equal(wanted)


def test_ops_are_decomposed():
    table = {tg.ops.aten.silu: lambda x: x * tg.sigmoid(x)}
    made = make_fx(lambda x, n: nn.functional.silu(x)[: x.shape[0] - n].sum(), decomposition_table=table)(tg.ones(3), 1)
    assert [str(n.target) for n in made.graph.nodes if n.op == "call_function"][:2] == [
        "aten.sigmoid.default",
        "aten.mul.Tensor",
    ]
    assert tg.allclose(made(tg.ones(3), 1), nn.functional.silu(tg.ones(2)).sum())


def test_the_mode_fake_gives_the_same_program():
    f, args = (lambda x: x.view(-1, x.shape[1]).sum(0)), (tg.ones(2, 3),)
    assert make_fx(f, tracing_mode="fake")(*args).code == make_fx(f)(*args).code


def test_entries_for_products_reach_layers():
    seen = []

    def addmm(bias, a, b):
        seen.append("addmm")
        return (a.unsqueeze(-1) * b).sum(1) + bias

    def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
        seen.append("convolution")
        return tg.conv2d(x, weight, None, stride, padding, dilation, groups) + bias.reshape(-1, 1, 1)

    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(12, 4))
    x = tg.randn(5, 2, 4, 4)
    table = {tg.ops.aten.addmm.default: addmm, tg.ops.aten.convolution.default: convolution}
    made = make_fx(net, decomposition_table=table)(x)
    assert seen == ["convolution", "addmm"] and tg.allclose(made(x), net(x), atol=1e-5)
    assert not any("addmm" in str(n.target) for n in made.graph.nodes)


def test_sizes_and_numbers_stay_open_in_the_mode_symbolic():
    f = lambda x, n: x.reshape(x.shape[0] * x.shape[1]) * n + x.shape[0]
    made = make_fx(f, tracing_mode="symbolic")(tg.ones(2, 3), 4)
    x = tg.randn(5, 2)
    assert made(x, 7).equal(f(x, 7)) and made(tg.ones(2, 3), 4).equal(f(tg.ones(2, 3), 4))
    sizes = [n for n in made.graph.nodes if n.op == "call_method" and n.target == "size"]
    assert sizes and all(type(n.meta["val"]) is int for n in sizes)


def test_what_python_decided_by_an_open_size_is_asked_again():
    f = lambda x: x * 2 if x.shape[0] > 2 else x
    made = make_fx(f, tracing_mode="symbolic")(tg.ones(3))
    made.graph.eliminate_dead_code()
    made.recompile()
    assert made(tg.ones(5)).equal(tg.full((5,), 2.0))
    with pytest.raises(RuntimeError, match="depends on it"):
        made(tg.ones(2))
    assert not any(n.target is None or "guard" in n.name for n in make_fx(f)(tg.ones(3)).graph.nodes)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_branches_and_loops_are_calls_of_modules(mode):
    w = tg.full((3,), 3.0)

    def f(x):
        y = tg.cond(x.sum() > 0, lambda a: a * w + x, lambda a: a - x.shape[0], (x.sin(),))
        return tg.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * y), (tg.tensor(0), y))

    made = make_fx(f, tracing_mode=mode)(tg.ones(3))
    made.graph.lint()
    for x in (tg.ones(3), -tg.ones(3)):
        for got, wanted in zip(made(x), f(x), strict=True):
            assert got.equal(wanted)
    assert made.true_graph_0.code != made.false_graph_0.code and "body_graph_0" in made.code
    assert tg.cond in [n.target for n in made.graph.nodes]


def test_loops_of_scripted_code_are_kept():
    @tg.jit.script
    def loop(x):
        for i in range(x.shape[0]):
            x = x * 0.5 + i
        while bool(x.sum() > 1):
            x = x * 0.5
        return x

    made = make_fx(lambda x: loop(x))(tg.ones(3))
    for x in (tg.ones(3), tg.ones(3) * 100):
        assert made(x).equal(loop(x))


def test_nodes_tell_what_they_are_for_the_example():
    made = make_fx(lambda x: x.mm(x.T).sum(0))(tg.ones(2, 3))
    found = {n.name: n.meta["val"] for n in made.graph.nodes if n.op in ("placeholder", "call_function")}
    assert all(v.is_meta and v.dtype == tg.float32 for v in found.values())
    assert found["x_1"].shape == (2, 3) and list(found.values())[-1].shape == (2,)


def test_what_is_not_taken_is_refused():
    with pytest.raises(ValueError, match="'real', 'fake' or 'symbolic', not 'all'"):
        make_fx(lambda x: x, tracing_mode="all")
    with pytest.raises(TypeError, match="record it for such arguments too"):
        make_fx(lambda x: x["a"])({"a": tg.ones(1)})({"b": tg.ones(1)})


# ---- nested arguments


def open_and_closed(fx):
    return fx.symbolic_trace(lambda p, y: p["a"][0] + p["b"] * y, {"p": {"a": [fx.PH], "b": 3}})


def test_nested_arguments_are_told_leaf_by_leaf():
    made = open_and_closed(fx)
    assert made({"a": [1], "b": 3}, 2) == 7 == fx.Interpreter(made).run({"a": [1], "b": 3}, 2)
    assert pickle.loads(pickle.dumps(made))({"a": [1], "b": 3}, 2) == 7
    assert fx.Transformer(made).transform()({"a": [1], "b": 3}, 5) == 16
    with pytest.raises(AssertionError, match="specialized to have value 3"):
        made({"a": [1], "b": 4}, 2)
    with pytest.raises(TypeError, match="nested as"):
        made({"a": [1, 2], "b": 3}, 2)
    with pytest.raises(NotImplementedError, match="name each argument"):
        fx.symbolic_trace(lambda p, *more: p["a"], {"p": {"a": fx.PH}})
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    wanted = open_and_closed(pytest.importorskip("torch.fx"))
    names = lambda made: [(n.op, n.name) for n in made.graph.nodes]
    assert names(made) == names(wanted) and torch is not None


def ops_of(f, *args):
    return [str(n.target).rpartition("aten.")[2] for n in make_fx(f)(*args).graph.nodes if n.op == "call_function"]


X, W, B = tg.arange(12.0).reshape(4, 3), tg.arange(6.0).reshape(2, 3) - 2, tg.ones(2)
IMAGES, FILTERS = tg.arange(150.0).reshape(2, 3, 5, 5), tg.ones(4, 3, 3, 3)


@pytest.mark.parametrize(
    ("f", "args", "ops"),
    [
        (nn.functional.linear, (X, W, B), ["t.default", "addmm.default"]),
        (nn.functional.linear, (X, W), ["t.default", "mm.default"]),
        (
            nn.functional.linear,
            (X.reshape(2, 2, 3), W, B),
            ["t.default", "view.default", "addmm.default", "view.default"],
        ),
        (
            nn.functional.linear,
            (tg.ones(2, 4, 3).transpose(0, 1), W),
            ["t.default", "reshape.default", "mm.default", "view.default"],
        ),
        (nn.functional.linear, (X[0], W, B), ["linear.default"]),
        (tg.matmul, (X, W.T), ["mm.default"]),
        (tg.matmul, (X, W[0]), ["mv.default"]),
        (tg.matmul, (X[0], W[0]), ["dot.default"]),
        (tg.matmul, (IMAGES[0], IMAGES[1]), ["bmm.default"]),
        (tg.matmul, (IMAGES[0, :1], IMAGES[1]), ["matmul.default"]),
        (lambda x, w: nn.functional.conv2d(x, w, padding=1), (IMAGES, FILTERS), ["convolution.default"]),
        (
            lambda x, w: nn.functional.conv1d(x, w, stride=2),
            (IMAGES[0], FILTERS[0, :, :, :3].permute(1, 0, 2)[:1, :1].expand(2, 5, 3)),
            ["convolution.default"],
        ),
        (nn.functional.conv2d, (IMAGES[0], FILTERS), ["conv2d.default"]),
    ],
)
def test_layers_are_told_by_the_ops_that_readers_of_graphs_look_for(f, args, ops):
    assert ops_of(f, *args) == ops
    tg.testing.assert_close(make_fx(f)(*args)(*args), f(*args))


def test_a_whole_convolution_has_all_its_numbers():
    (node,) = [n for n in make_fx(lambda x, w: tg.conv2d(x, w, None, 1, 2))(IMAGES, FILTERS).graph.nodes if n.args][:1]
    assert list(node.args[2:]) == [None, [1, 1], [2, 2], [1, 1], False, [0, 0], 1]


def test_layers_are_told_beside_a_table_of_decompositions():
    module = nn.Sequential(nn.Linear(2, 3), nn.GELU())
    table = {tg.ops.aten.gelu.default: lambda x, approximate="none": x * 0.5 * (1 + tg.erf(x * 0.5**0.5))}
    made = make_fx(module, decomposition_table=table)(tg.ones(2, 2))
    names = [str(node.target) for node in made.graph.nodes]
    assert any("addmm" in name for name in names) and not any("gelu" in name for name in names)
    assert tg.allclose(made(tg.ones(2, 2)), module(tg.ones(2, 2)))


Pair = collections.namedtuple("Pair", "a b")


class Box:
    def __init__(self, inside):
        self.inside = inside


@pytest.fixture
def box():
    _pytree.register_pytree_node(Box, lambda box: ([box.inside], None), lambda inside, _: Box(*inside))
    yield
    _pytree._deregister_pytree_node(Box)


def output_of(made):
    (node,) = made.graph.find_nodes(op="output")
    return node.args[0]


def test_results_are_nested_as_the_function_nests_them():
    x = tg.ones(2)
    for f, kind in ((lambda x: [x + 1, x], list), (lambda x: (x + 1,), tuple), (lambda x: {"a": x + 1}, dict)):
        made = make_fx(f)(x)
        assert isinstance(output_of(made), kind) and type(made(x)) is type(f(x))
    made = make_fx(lambda x: Pair(x + 1, (x, 3)))(x)
    assert output_of(made).target is Pair and type(made(x)) is Pair and made(x).b[1] == 3


def test_leaves_of_the_result_are_a_list_where_arguments_are_nested(box):
    x = tg.ones(2)
    made = make_fx(lambda d, x: x + d["a"])({"a": x}, x)
    (result,) = output_of(made)
    assert isinstance(output_of(made), list) and result.target is tg.ops.aten.add.Tensor
    assert made({"a": x}, x).tolist() == [2, 2]
    made = make_fx(lambda d: Pair(d[0], [d[1], collections.OrderedDict(q=d[0] * 2)]))([x, x])
    assert len(output_of(made)) == 3 and type(made([x, x]).b[1]) is collections.OrderedDict
    made = make_fx(lambda x: Box(x + 1))(x)
    assert made(x).inside.tolist() == [2, 2]
    made.recompile()
    assert fx.Interpreter(made).run(x).inside.tolist() == [2, 2]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.max(0)[0] + x.chunk(2)[1].sum(),
        lambda x: nn.functional.batch_norm(x, tg.zeros(4), tg.ones(4), training=True),
        lambda x: nn.functional.linear(x[None], tg.ones(3, 4), tg.ones(3)) @ tg.ones(3),
        lambda x: nn.functional.conv2d(x[None, None], tg.ones(1, 1, 2, 2)),
        lambda x: tg.cond(x.sum() > 1, lambda: (x + 1, x), lambda: (x - 1, x))[0],
        lambda x: nn.functional.cross_entropy(x, tg.tensor([0, 1, 2, 3])),
    ],
)
def test_every_node_tells_what_it_is_for_the_example(f):
    made = make_fx(f)(tg.rand(4, 4))
    for node in made.graph.nodes:
        if node.op == "output" or (node.op == "get_attr" and isinstance(getattr(made, node.target), nn.Module)):
            continue
        value = node.meta["val"]
        row = value if isinstance(value, (tuple, list)) else [value]
        assert all(not isinstance(part, tg.Tensor) or part.is_meta for part in row), node


def test_numbers_come_from_the_generator_of_the_program():
    own = tg.Generator()

    def program(x):
        return x * tg.rand(3, generator=own) + tg.rand(3)

    table = {tg.ops.aten.mul.Tensor: lambda a, b: a / (1 / b)}
    for made in (make_fx(program)(tg.ones(3)), make_fx(program, table)(tg.ones(3))):
        found = []
        for function in (program, made):
            tg.manual_seed(1)
            own.manual_seed(2)
            found.append([function(tg.ones(3)), tg.rand(1), tg.rand(1, generator=own)])
        for eager, told in zip(*found):
            tg.testing.assert_close(told, eager)
