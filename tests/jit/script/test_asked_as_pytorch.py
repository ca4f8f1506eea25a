"""What programs written for PyTorch ask a compiled function, and which errors they expect of it."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


def doubled(x, n: int = 2):
    return x.exp() * n + x


def test_a_graph_answers_the_calls_of_pytorch():
    program = jit.script(doubled)
    traced = jit.trace(lambda x: x.exp() + x, (tg.ones(2),))
    for graph in (program.graph, traced.graph):
        assert next(graph.nodes()).kind() == "aten::exp"
        assert next(v.debugName() for v in graph.inputs()) == graph.inputs[0].name
        assert str(next(graph.outputs()).type()) == "Tensor"
        assert list(graph.nodes()) == graph.nodes
    assert program.graph_for(tg.ones(2)) is program.graph
    assert traced.graph_for(tg.ones(2)) is traced.graph
    needs = tg.ones(2, requires_grad=True)
    assert traced.graph_for(needs) is traced.graph  # the one that was captured for it


def test_lists_of_a_graph_that_a_pass_replaced_can_be_called_too():
    graph = jit.script(doubled).graph.copy()
    graph.block.outputs = list(graph.block.outputs)
    assert list(graph.outputs()) == graph.outputs
    graph.outputs.append(1)
    assert graph.block.outputs[-1] == 1


def sliced(x: list[int]) -> list[int]:
    return x[1:3]


def test_a_range_is_a_list_of_int():
    assert jit.script(sliced)(range(5)) == [1, 2]
    with pytest.raises(RuntimeError, match="Expected a value of type 'List"):
        jit.script(sliced)(iter([1]))


def emptied(x: list[int], n: int, d: dict[str, int]) -> int:
    x.pop()
    return d["a"] // n


@pytest.mark.parametrize(
    "given, kind",
    [(([], 1, {"a": 1}), IndexError), (([1], 0, {"a": 1}), ZeroDivisionError), (([1], 1, {}), KeyError)],
)
def test_errors_of_a_program_are_pythons_and_torchscripts(given, kind):
    program = jit.script(emptied)
    with pytest.raises(kind) as error:
        program(*given)
    assert isinstance(error.value, jit.Error) and isinstance(error.value, RuntimeError)
    assert type(error.value).__name__ == kind.__name__
    assert "emptied" in "".join(getattr(error.value, "__notes__", ["emptied"]))


def test_fork_and_wait_by_their_older_names():
    assert jit._wait(jit._fork(tg.add, tg.ones(2), 1)).tolist() == [2.0, 2.0]


def test_check_inputs_of_a_program_that_draws():
    def program(x):
        return tg.dropout(x, 0.5, True)

    tg.manual_seed(3)
    traced = jit.trace(program, (tg.ones(4, 4),), check_inputs=[(tg.ones(50),)])
    assert traced(tg.ones(9)).shape == (9,)


def nothing_zipped():
    for _ in zip():
        pass


def changed(t: tuple[int, int]):
    t[0] += 1


def looped(n: int):
    for _ in [1]:
        pass
    else:
        n = 2
    return n


def too_few(t: tuple[int, int]):
    a, b, c = t
    return a


@pytest.mark.parametrize(
    "function, told",
    [
        (nothing_zipped, "zip expected at least 1 arguments, got 0"),
        (changed, "does not support augmented assign"),
        (looped, "else branches of for loops aren't supported"),
        (too_few, "need 3 values to unpack, but found only 2"),
    ],
)
def test_refusals_in_words_that_programs_look_for(function, told):
    with pytest.raises(jit.Error, match=told):
        jit.script(function)


def test_what_a_function_gives_that_is_no_value_has_a_type():
    program = jit.CompilationUnit("def f(x):\n    raise ValueError('one', 'two')")
    (output,) = program.f.graph.outputs()
    assert str(output.type()) == "NoneType" and output.debugName() == "None"
    with pytest.raises(ValueError, match="ValueError: one, two"):
        program.f(tg.ones(1))


def test_a_state_dict_without_what_is_shared():
    layers = tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.Linear(2, 2))
    layers[1].weight = layers[0].weight
    assert list(jit._unique_state_dict(layers)) == ["0.weight", "0.bias", "1.bias"]
    assert jit._unique_state_dict(layers, keep_vars=True)["0.weight"] is layers[0].weight


def test_methods_that_are_dropped_may_have_any_annotations():
    class Listed:
        def __init__(self, n: int):
            self.n = n

        @jit._drop
        def made(self, tracer: "Nowhere") -> "Nothing":  # noqa: F821
            return tracer.n

    assert jit.script(Listed) is Listed
