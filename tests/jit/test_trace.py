"""What `jit.trace` gives runs as the program does, for other sizes and values too, and notices what it was not
captured for."""

import random
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.graph import Graph


def test_a_function_runs_for_other_sizes_from_one_graph():
    def f(x, w):
        y = (x @ w).relu()
        return y.view(y.shape[0], 2, -1).sum(0), y.shape[0] * 2

    w = tg.randn(3, 4)
    traced = jit.trace(f, (tg.randn(2, 3), w))
    for batch in (2, 1, 3, 17):
        x = tg.randn(batch, 3)
        (y, n), (wanted, m) = traced(x, w), f(x, w)
        assert y.equal(wanted) and n == m
    assert traced.explain().startswith("f: 1 graph captured\n")
    assert Graph.parse(str(traced.graph)) == traced.graph


def test_structures_go_in_and_come_out():
    def f(batch, *, scale):
        x, (y, z) = batch["x"], batch["rest"]
        return {"sum": x + y * scale, "parts": [x, (z, None)]}, "word"

    def batch():
        return {"x": tg.randn(3), "rest": (tg.randn(3), tg.randn(2))}

    traced = jit.trace(f, (batch(),), example_kwarg_inputs={"scale": 2})
    given = batch()
    (out, word), (wanted, _) = traced(given, scale=5), f(given, scale=5)
    assert word == "word" and out["sum"].equal(wanted["sum"]) and out["parts"][1][1] is None
    assert traced.graph.inputs[1].type.word == "int"  # a number that is passed is an input


def test_modules_keep_their_parameters_and_move_their_statistics():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    twin = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    twin.load_state_dict(model.state_dict())
    traced = jit.trace(model, tg.randn(5, 3))
    assert isinstance(traced, nn.Module)
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in model.named_parameters()]
    for batch in (5, 2, 9):
        x = tg.randn(batch, 3)
        assert traced(x).equal(twin(x))
    for mine, wanted in zip(model.state_dict().values(), twin.state_dict().values()):
        assert mine.equal(wanted)
    traced.eval(), twin.eval()
    assert traced(x).equal(twin(x))


def test_tracing_changes_nothing():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    x = tg.randn(5, 3, requires_grad=True)
    generator = tg.get_rng_state()
    jit.trace(model, x)
    assert tg.get_rng_state().equal(generator)
    for k, v in model.state_dict().items():
        assert v.equal(before[k])


def test_gradients_flow_through_what_was_traced():
    model = nn.Linear(3, 2)
    traced = jit.trace(model, tg.randn(2, 3))
    x = tg.randn(5, 3, requires_grad=True)
    traced(x).pow(2).sum().backward()
    got = x.grad.clone(), model.weight.grad.clone()
    x.grad = None
    model.zero_grad()
    model(x).pow(2).sum().backward()
    assert got[0].equal(x.grad) and got[1].equal(model.weight.grad)


def test_random_numbers_are_those_of_eager_mode():
    traced = jit.trace(lambda x: nn.functional.dropout(x, 0.5) + tg.randn(3), (tg.ones(3),))
    for seed in (1, 2):
        tg.manual_seed(seed)
        wanted = [nn.functional.dropout(tg.ones(3), 0.5) + tg.randn(3) for _ in range(3)]
        tg.manual_seed(seed)
        assert all(traced(tg.ones(3)).equal(w) for w in wanted)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * float(x[0]),
        lambda x: [1, 2, 3][int(x[0])],
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: x if x[0].item() > 0 else -x,
        lambda x: x * 2 if tg.equal(x, x) else x,
        lambda x: x * 2 if tg.allclose(x, x) else x,
        lambda x: tg.from_dlpack(x),
        lambda x: tg.Tensor([x[0], x[1]]),
    ],
    ids=["if", "float", "int", "tolist", "numpy", "item", "equal", "allclose", "dlpack", "Tensor"],
)
def test_reading_elements_is_refused_with_the_line(read):
    with pytest.raises((RuntimeError, BufferError), match=r"(?s)(reads the elements|no memory to).*test_trace\.py"):
        jit.trace(read, (tg.tensor([1.0, 2.0]),))


@pytest.mark.parametrize("make", [tg.tensor, tg.as_tensor, tg.asarray, tg.ones(1).new_tensor])
def test_a_tensor_made_of_elements_follows_them(make):
    traced = jit.trace(lambda x: make([x[1], x[0] * 2]), (tg.tensor([1.0, 2.0]),))
    assert traced(tg.tensor([2.0, 5.0])).tolist() == [5.0, 4.0]


def test_a_number_read_of_a_tensor_may_go_on_into_ops():
    traced = jit.trace(lambda x: x * (x.sum().item() + 1), (tg.tensor([1.0, 2.0]),))
    assert traced(tg.tensor([2.0, 5.0])).tolist() == [16.0, 40.0]


def test_control_flow_on_sizes_is_a_guard():
    def f(x):
        return x.sum() if x.shape[0] > 2 else x.prod()

    traced = jit.trace(f, (tg.ones(3),))
    for n in (3, 4, 2, 1, 7, 2):
        x = tg.full((n,), 3.0)
        assert traced(x).equal(f(x))
    assert "2 graphs captured" in traced.explain()
    assert "test_trace.py" in traced.explain()


def test_training_mode_hooks_and_structure_are_noticed():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    traced = jit.trace(model, tg.ones(3, 2))
    model.eval()
    assert traced(tg.ones(3, 2)).equal(model(tg.ones(3, 2)))
    model.register_forward_hook(lambda m, i, o: o * 2)
    assert traced(tg.ones(3, 2)).equal(model(tg.ones(3, 2)))
    model.append(nn.ReLU())
    assert traced(tg.ones(3, 2)).equal(model(tg.ones(3, 2)))


def test_what_differs_each_time_is_refused():
    with pytest.raises(jit.TracingCheckError, match="two captures with the same arguments differ"):
        jit.trace(lambda x: x * random.random(), (tg.ones(2),))
    jit.trace(lambda x: x * random.random(), (tg.ones(2),), check_trace=False)


def test_writing_to_views_and_through_closed_over_tensors():
    count, table = tg.zeros(()), tg.zeros(3, 2)

    def f(x):
        count.add_(1)
        table[1] += x
        y = x.clone()
        y[0] = 7
        y[1:].mul_(2)
        return y + table[1]

    traced = jit.trace(f, (tg.tensor([1.0, 2.0]),))
    assert count == 0 and table.sum() == 0
    assert traced(tg.tensor([1.0, 2.0])).tolist() == [8.0, 6.0]
    assert traced(tg.tensor([1.0, 2.0])).tolist() == [9.0, 8.0]
    assert count == 2 and table.tolist() == [[0, 0], [2, 4], [0, 0]]


def test_is_tracing():
    seen = []
    jit.trace(lambda x: seen.append(jit.is_tracing()) or x + 1, (tg.ones(1),))
    assert seen == [True, True] and not jit.is_tracing()


def test_a_traced_function_inside_another_is_written_down_again():
    inner = jit.trace(lambda x: x * 2, (tg.ones(2),))
    outer = jit.trace(lambda x: inner(x) + 1, (tg.ones(2),))
    assert outer(tg.ones(3)).tolist() == [3, 3, 3]
    assert [n.op for n in outer.graph.nodes] == ["aten::mul.Tensor", "aten::add.Tensor"]


def test_methods_of_a_module():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x)

        def twice(self, x):
            return self.linear(self.linear(x))

    model = Two()
    traced = jit.trace_module(model, {"forward": tg.ones(1, 2), "twice": (tg.ones(1, 2),)})
    x = tg.randn(4, 2)
    assert traced(x).equal(model(x)) and traced.twice(x).equal(model.twice(x))


def test_no_warning_and_no_state_is_left_by_a_failed_trace():
    weight = nn.Parameter(tg.ones(2))

    def f(x):
        (weight * x).sum().backward()
        return float(x[0])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="reads the elements"):
            jit.trace(f, (tg.ones(2),))
    assert weight.grad is None and not jit.is_tracing()


def test_the_code_comes_with_the_tensors_that_are_constants():
    kept = tg.tensor([3.0, 4.0])
    code, constants = jit.trace(lambda x: x + kept, tg.ones(2)).code_with_constants
    assert "aten.add" in code and constants.c0.equal(kept)
    assert not vars(jit.trace(nn.Linear(2, 2), tg.ones(2)).code_with_constants[1])


def test_a_traced_module_counts_as_a_script_module_and_knows_what_it_was_made_of():
    traced = jit.trace(nn.Linear(2, 3), (tg.ones(1, 2),))
    assert isinstance(traced, jit.ScriptModule) and traced.original_name == "Linear"
    assert not isinstance(traced, jit.RecursiveScriptModule) and not isinstance(nn.Linear(2, 3), jit.ScriptModule)
    assert jit.script(traced) is traced


def test_traced_functions_and_modules_are_of_the_classes_that_pytorch_gives_them():
    function, module = jit.trace(tg.sin, tg.ones(2)), jit.trace(nn.Linear(2, 3), tg.ones(1, 2))
    assert isinstance(function, jit.ScriptFunction) and not isinstance(tg.sin, jit.ScriptFunction)
    assert isinstance(module, jit.TopLevelTracedModule) and isinstance(module, jit.TracedModule)
    assert not isinstance(jit.script(nn.Linear(2, 3)), jit.TracedModule)
    assert jit.script(function) is function
    assert [node.op for node in module.inlined_graph.nodes] == ["aten::linear"]


def traced_within(x):
    return _CLIPPED(x) + 1


_CLIPPED = jit.trace(lambda x: x.clamp(0, 1), tg.ones(2))


def test_script_calls_a_traced_function_by_its_graph():
    assert jit.script(traced_within)(tg.tensor([-1.0, 3.0])).tolist() == [1, 2]


class Counting(nn.Module):
    """Sets its buffer to another tensor at each call."""

    def __init__(self):
        super().__init__()
        self.steps = nn.Buffer(tg.zeros(2))

    def count(self):
        self.steps = self.steps + 1
        return self.steps * 2

    def forward(self, x):
        return x + self.count()


@pytest.mark.parametrize("make", [tg.compile, lambda f: jit.trace(f, (tg.ones(2),))])
@pytest.mark.parametrize("shared", [False, True])
def test_a_part_of_a_module_that_sets_a_buffer_keeps_no_value_of_the_capture(make, shared):
    outer = nn.Sequential(Counting())
    if shared:
        twin = Counting()
        twin.__dict__.update(outer[0].__dict__)
        outer[0] = twin
    for program in (outer, lambda x: outer[0](x), lambda x: x + outer[0].count()):
        before = outer[0].steps.tolist()
        called = make(program)
        if make is not tg.compile:
            assert outer[0].steps.tolist() == before
            assert [t.tolist() for t in outer.state_dict().values()] == [before]
            continue
        assert called(tg.ones(2)).tolist() == [1 + (before[0] + 1) * 2] * 2
        assert outer[0].steps.tolist() == [before[0] + 1] * 2


def test_a_trace_of_forward_is_that_of_its_module():
    layer = nn.Linear(2, 1)
    traced = jit.trace(layer.forward, (tg.ones(2),))
    assert isinstance(traced, nn.Module) and traced.training and [*traced.state_dict()] == ["weight", "bias"]
    assert traced(tg.ones(2)).equal(layer(tg.ones(2)))
    assert not isinstance(jit.trace(Counting().count, ()), nn.Module)
