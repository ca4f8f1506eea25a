"""A table of programs gives PyTorch's nodes, its names, its errors and its replacements."""

import operator

import pytest

import tinygrad_ext as tg
from tests.helpers import fx_programs as programs

torch = pytest.importorskip("torch", reason="compares with PyTorch")
pytest.importorskip("torch.fx")

BOTH = pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda p: p.__name__)


@BOTH
def test_the_same_nodes(program):
    wanted = torch.fx.symbolic_trace(program(torch)[0]).graph
    found = tg.fx.symbolic_trace(program(tg)[0]).graph
    assert programs.nodes(found) == programs.nodes(wanted)


@BOTH
def test_what_was_traced_gives_what_the_program_gives(program):
    root, inputs = program(tg)
    more = {"k": 2} if program is programs.stars else {}
    traced = tg.fx.symbolic_trace(root)
    wanted = programs.plain(root(*inputs, **more))
    assert programs.plain(traced(*inputs, **more)) == wanted
    traced.recompile()
    traced.graph.lint()
    assert programs.plain(traced(*inputs, **more)) == wanted
    if not more:
        assert programs.plain(tg.fx.Interpreter(traced).run(*inputs)) == wanted
        again = tg.fx.Transformer(traced).transform()
        assert programs.plain(again(*inputs)) == wanted
        assert [n.op for n in again.graph.nodes] == [n.op for n in traced.graph.nodes]


@BOTH
def test_the_code_is_the_same_but_for_the_library(program):
    wanted = torch.fx.symbolic_trace(program(torch)[0]).code
    if program in (programs.functions, programs.sizes_and_numbers):
        pytest.skip("the other names functions of math and of its own core")
    found = tg.fx.symbolic_trace(program(tg)[0]).code
    assert found.strip() == wanted.strip().replace("torch.", "tinygrad_ext.")


NAMES = """
    MyMod.Sub.convLayer convLayer Conv2d HTTPServer a.b_1 x_1 x_1 x x a.0 0 layer_10 input sum sum sum_1 A
    torch device inf
    self **kw *args add_1 add add_2 add ABCDef _x x. a-b _ 1_2 x__1 x__1 lambda None max_1 max max
"""


def test_names_of_nodes():
    def made(fx):
        graph = fx.Graph()
        for name in NAMES.split():
            for op in ("placeholder", "call_module", "call_method", "get_attr"):
                yield graph.create_node(op, name, ()).name
        for function in (operator.add, operator.getitem, len, programs.plain):
            yield graph.call_function(function, ()).name
            yield graph.call_function(function, (), name="x").name

    assert list(made(tg.fx)) == list(made(torch.fx))


ASKS = {
    "bool": lambda x: bool(x),
    "len": lambda x: len(x),
    "list": lambda x: list(x),
    "int": lambda x: int(x),
    "float": lambda x: float(x),
    "range": lambda x: range(x),
    "if": lambda x: x if x > 0 else 1,
    "index of a list": lambda x: [1, 2][x],
    "in": lambda x: x in x,
    "key": lambda x: {x: 1},
    "object": lambda x: object() + x,
    "not": lambda x: not x,
    "max": lambda x: max(x, 1),
    "star": lambda x: max(*x),
}


@pytest.mark.parametrize("name", ASKS)
def test_what_cannot_be_recorded_raises_the_same(name):
    with pytest.raises(Exception) as wanted:
        torch.fx.symbolic_trace(ASKS[name])
    with pytest.raises(Exception) as found:
        tg.fx.symbolic_trace(ASKS[name])
    assert type(found.value).__name__ == type(wanted.value).__name__


def specialised(T, fx):
    def f(x, flag, n=None, k=3):
        return (x.add(1) * k if flag else x) if n is None else x

    return programs.nodes(fx.symbolic_trace(f, {"flag": True, "n": None, "k": 2}).graph)


def test_concrete_arguments():
    assert specialised(tg, tg.fx) == specialised(torch, torch.fx)


# ---- replacing


def chain(T):
    return lambda x, w: T.relu(x @ w + 1) + T.relu(w @ x + 1) * T.relu(x + 2)


def twice(T):
    return lambda x: (x.neg() + x.neg()).neg() + T.relu(x)


def kept(T):
    def f(x, y):
        a = T.sigmoid(x)
        return a * y + a, T.sigmoid(y) * x

    return f


REPLACEMENTS = {
    "relu of a sum": (chain, lambda T: lambda a, b: T.relu(a + b), lambda T: lambda a, b: T.sigmoid(a) - b),
    "a literal": (chain, lambda T: lambda a: T.relu(a + 2), lambda T: lambda a: a.exp()),
    "product and sum": (chain, lambda T: lambda a, b: a @ b + 1, lambda T: lambda a, b: T.add(b, a.tanh())),
    "overlapping": (twice, lambda T: lambda a: a.neg(), lambda T: lambda a: a.abs().neg()),
    "same argument": (twice, lambda T: lambda a: a.neg() + a.neg(), lambda T: lambda a: a * -2),
    "used outside": (kept, lambda T: lambda a, b: T.sigmoid(a) * b, lambda T: lambda a, b: T.add(a, b)),
    "nothing": (kept, lambda T: lambda a: T.tanh(a), lambda T: lambda a: a),
    "by its argument": (twice, lambda T: lambda a: T.relu(a), lambda T: lambda a: a),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_patterns_are_replaced_at_the_same_places(name):
    def done(T, fx):
        root, pattern, replacement = (make(T) for make in REPLACEMENTS[name])
        traced = fx.symbolic_trace(root)
        matches = fx.replace_pattern(traced, pattern, replacement)
        traced.graph.lint()
        inputs = [T.arange(4.0).reshape(2, 2), T.ones(2, 2)][
            : len([n for n in traced.graph.nodes if n.op == "placeholder"])
        ]
        return programs.nodes(traced.graph), [m.anchor.name for m in matches], programs.plain(traced(*inputs))

    (found, anchors, result), (wanted, wanted_anchors, wanted_result) = done(tg, tg.fx), done(torch, torch.fx)
    assert found == wanted and anchors == wanted_anchors
    assert str(result).replace("tinygrad_ext", "torch") == str(wanted_result) or _close(result, wanted_result)


def _close(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_close, a, b))
    return a == pytest.approx(b, abs=1e-6) if isinstance(a, float) else a == b


# ---- passes


def edited(T, fx):
    """A walk through the functions that passes use, told step by step."""
    traced = fx.symbolic_trace(lambda x, y: T.relu(x + y) * T.relu(x))
    graph, steps = traced.graph, []
    add, first, second, mul = [n for n in graph.nodes if n.op == "call_function"]

    def note(*more):
        graph.lint()
        steps.append((programs.nodes(graph), [programs.told(m) for m in more]))

    with graph.inserting_after(add):
        one, two = graph.call_method("neg", (add,)), graph.call_function(T.sigmoid, (add,))
    note(one < two, two < one, add.next, two.prev, len(graph.nodes))
    first.replace_input_with(add, two)
    note(list(add.users), first.all_input_nodes)
    note(*second.replace_all_uses_with(first))
    graph.erase_node(second)
    note(len(graph.nodes))
    note(graph.eliminate_dead_code(), graph.eliminate_dead_code())
    mul.update_arg(1, 3.0)
    mul.insert_arg(0, two)
    mul.args = mul.args[1:]
    first.update_kwarg("inplace", False)
    first.kwargs = {}
    note(mul.args)
    with graph.inserting_before(mul):
        new = graph.call_function(T.add, (first, 2), {"alpha": 2})
    first.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
    note(list(first.users))
    graph.inserting_before()
    with graph.inserting_before(graph.output_node()):
        last = graph.node_copy(mul)
    last.prepend(graph.call_method("exp", (mul,)))
    note([n.name for n in reversed(graph.nodes)], [n.name for n in graph.find_nodes(op="call_method")])
    other, values = fx.Graph(), {}
    other.output(other.graph_copy(graph, values))
    steps.append(programs.nodes(other))
    steps.append(str(graph).replace("tinygrad_ext.", "torch."))
    return steps


def test_a_pass_sees_the_same_at_each_step():
    for found, wanted in zip(edited(tg, tg.fx), edited(torch, torch.fx)):
        assert found == wanted


BROKEN = {
    "erase what is used": lambda fx, g, x, y: g.erase_node(x),
    "a text for a function": lambda fx, g, x, y: g.call_function("x"),
    "a function for a text": lambda fx, g, x, y: g.call_method(len),
    "an unknown kind": lambda fx, g, x, y: g.create_node("foo", "x"),
    "a change of arguments": lambda fx, g, x, y: g.call_function(len, ([x],)).args[0].append(1),
    "a change of names": lambda fx, g, x, y: g.call_function(len, (), {"a": {"b": x}}).kwargs["a"].pop("b"),
    "a list of arguments": lambda fx, g, x, y: g.call_function(len, [x]),
    "the order": lambda fx, g, x, y: (x.append(g.output_node()), g.lint()),
    "another graph": lambda fx, g, x, y: (y.update_arg(0, fx.Graph().placeholder("z")), g.lint()),
    "moved into another": lambda fx, g, x, y: x.append(fx.Graph().placeholder("z")),
    "erased from another": lambda fx, g, x, y: fx.Graph().erase_node(g.call_method("exp", (x,))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_graph_raises_the_same(name):
    def done(T, fx):
        graph = fx.symbolic_trace(lambda x: x.exp()).graph
        with pytest.raises(Exception) as error:
            BROKEN[name](fx, graph, *list(graph.nodes)[:2])
        return type(error.value).__name__

    assert done(tg, tg.fx) == done(torch, torch.fx)
