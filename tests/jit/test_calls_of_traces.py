"""What a traced program makes of arguments that are not like the examples."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Sum(nn.Module):
    def forward(self, x, y=None):
        return x if y is None else x + y


@pytest.mark.parametrize(
    "given, words",
    [
        ({"z": 1, "y": 1}, r"forward\(\) is missing value for argument 'x'"),
        ({"x": 1, "y": 1, "z": 1}, r"forward\(\): got an unexpected keyword argument 'z'"),
    ],
)
def test_arguments_that_the_program_does_not_take(given, words):
    x = tg.ones(2)
    traced = jit.trace(Sum(), example_kwarg_inputs={"x": x, "y": x})
    with pytest.raises(RuntimeError, match=words):
        traced(**dict.fromkeys(given, x))
    assert traced(x=x).equal(x) and traced(x, x).equal(x + x)


def test_a_hook_may_give_what_the_caller_left_out():
    module = Sum()
    module.register_forward_pre_hook(lambda module, args: (*args, tg.ones(2)))
    traced = jit.trace(module, (tg.zeros(2),))
    assert traced(tg.zeros(2)).tolist() == [1, 1] and traced(tg.zeros(2, 2)).tolist() == [[1, 1], [1, 1]]
    with pytest.raises(TypeError, match="of its own"):
        jit.trace(refusing, (tg.ones(2),))(tg.ones(3, dtype=tg.int64))


def refusing(x):
    if x.dtype == tg.int64:
        raise TypeError("a text of its own")
    return x


def test_a_loaded_trace_for_another_number_of_dimensions_runs_and_warns(tmp_path):
    traced = jit.trace(lambda a, b: a * b + b, (tg.ones(2, 3), tg.ones(2, 3)))
    traced.save(tmp_path / "traced.pt")
    loaded, a, b = jit.load(tmp_path / "traced.pt"), tg.arange(3.0), tg.ones(3)
    with pytest.warns(jit.TracerWarning, match="for other numbers of dimensions"):
        assert loaded(a, b).equal(a * b + b)
    with pytest.raises(RuntimeError, match="saved with graphs for arguments"):
        loaded(a.to(tg.int64), b)


def test_examples_that_share_memory_which_is_written_to_get_their_own():
    def filled(x, y):
        x[:, 2] = y + 1
        return x

    x = tg.zeros(3, 4)
    traced = jit.trace(filled, (x, x[:, 0]))
    assert x.equal(tg.zeros(3, 4))
    x = tg.arange(50.0).reshape(10, 5)
    assert traced(x.clone(), x[:, 0]).equal(filled(x.clone(), x[:, 0]))
    y = x.clone()
    assert traced(x, x[:, 0]) is x and x.equal(filled(y, y[:, 0]))


def in_place(a, b):
    a += 1
    b += 1
    return a, b


def test_a_trace_that_writes_to_its_arguments_is_called_in_script_with_memory_of_their_own():
    traced = jit.trace(in_place, (tg.ones(2), tg.ones(2)))

    @jit.script
    def calling(x, y):
        return traced(x, y)

    x, y = tg.ones(2), tg.zeros(2)
    assert calling(x, y)[0] is not None and x.tolist() == [2, 2] and y.tolist() == [1, 1]
    for other in (x, x[:1]):
        with pytest.raises(RuntimeError, match="writes to its argument a, and another one lies in the same memory"):
            calling(x, other)
    outplace = jit.trace(in_place, (tg.ones(2), tg.ones(2)), _force_outplace=True)

    @jit.script
    def apart(x):
        return outplace(x, x)

    assert apart(tg.ones(2))[0].tolist() == [2, 2]


def test_a_program_that_keeps_what_it_computed_is_refused():
    kept = []

    def remembering(x):
        if not kept:
            kept.append(-x)
        return x + kept[0]

    with pytest.raises(jit.TracingCheckError, match="Graphs differed across invocations!"):
        jit.trace(remembering, tg.ones(3))


def growing(*xs):
    total = xs[0] + 1
    for x in xs:
        total = x.add_(total)
    return total


CALLS = {
    "one": lambda f, x, y: f(x, x, x),
    "two around": lambda f, x, y: f(x, y, x),
    "last two": lambda f, x, y: f(y, x, x),
    "unpacked": lambda f, x, y: f(*(x, x), y),
    "returned": lambda f, x, y: f(*(x, x), y),
}
TWICE = jit.trace(lambda x: (x, x), (tg.ones(2),))
TRACED = jit.trace(growing, tuple(tg.ones(2) for _ in range(3)))


@jit.script
def one(x, y):
    return TRACED(x, x, x)


@jit.script
def two_around(x, y):
    z = x
    return TRACED(x, y, z)


@jit.script
def last_two(x, y):
    return TRACED(y, x, x)


@jit.script
def unpacked(x, y):
    pair = (x, x)
    return TRACED(*pair, y)


@jit.script
def returned(x, y):
    return TRACED(*TWICE(x), y)


SCRIPTED = dict(zip(CALLS, (one, two_around, last_two, unpacked, returned)))


@pytest.mark.parametrize("name, scripted", SCRIPTED.items(), ids=SCRIPTED)
def test_script_passes_one_tensor_in_several_places_to_a_trace_that_writes(name, scripted, tmp_path):
    jit.save(scripted, tmp_path / "called.pt")
    for run in (scripted, jit.load(tmp_path / "called.pt")):
        given, wanted = [[tg.tensor([1.0, 2.0, 3.0]), tg.tensor([4.0, 5.0, 6.0])] for _ in range(2)]
        assert run(*given).equal(CALLS[name](growing, *wanted))
        assert all(a.equal(b) for a, b in zip(given, wanted))


def test_script_refuses_parts_of_one_memory_in_a_trace_that_writes():
    @jit.script
    def called(x):
        return TRACED(x, x[:], x + 1)

    with pytest.raises(RuntimeError, match="another one lies in the same memory"):
        called(tg.ones(2))
