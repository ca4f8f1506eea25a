"""What `compile` gives back beside plain tuples, lists and dicts: named tuples, ordered dicts, data classes, trees."""

import collections
import dataclasses
import functools
import typing

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import _pytree


class State(typing.NamedTuple):
    v: tg.Tensor
    i: tg.Tensor


@dataclasses.dataclass
class Output:
    loss: tg.Tensor
    steps: int = 3


@dataclasses.dataclass(frozen=True)
class Frozen:
    loss: tg.Tensor


def _through_a_graph(compiled):
    """Whether calls were made by graphs."""
    text = compiled.explain()
    return " graph" in text and "as it was written" not in text


def _kept(gm, inputs):
    return gm.forward


@pytest.fixture(params=["inductor", "function"])
def backend(request):
    return _kept if request.param == "function" else request.param


CASES = {
    "namedtuple": lambda x: State(x * 2, x + 1),
    "nested": lambda x: (x, [State(x * 2, x + 1), {"s": State(x, x)}]),
    "ordered": lambda x: collections.OrderedDict(b=x + 1, a=x),
    "default": lambda x: collections.defaultdict(list, a=x + 1),
    "deque": lambda x: collections.deque([x + 1, x], maxlen=4),
    "return type": lambda x: tg.max(x * 2, 0),
    "data class": lambda x: Output(x * 2),
    "frozen": lambda x: [Frozen(x * 2)],
    "number beside": lambda x: (State(x, x * 3), 4, "s", None),
}


def _same(a, b):
    assert type(a) is type(b)
    if isinstance(a, tg.Tensor):
        assert tg.equal(a, b)
    elif dataclasses.is_dataclass(a):
        _same(vars(a), vars(b))
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            _same(a[key], b[key])
    elif isinstance(a, (tuple, list, collections.deque)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            _same(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("name", CASES)
def test_results_are_what_the_program_gives(name, backend):
    compiled = tg.compile(CASES[name], backend=backend)
    for k in range(3):
        x = tg.arange(3.0) + k
        _same(compiled(x), CASES[name](x))
    assert _through_a_graph(compiled)


def test_sizes_are_sizes():
    compiled = tg.compile(lambda x: (x + 1, x.shape))
    assert type(compiled(tg.ones(2, 3))[1]) is tg.Size and compiled(tg.ones(4))[1] == (4,)


def test_a_state_goes_round_and_has_gradients():
    def step(x, s):
        v = s.v * 0.5 + x
        return v.sin(), State(v, s.i + 1)

    compiled, outs = tg.compile(step, fullgraph=True), []
    for f in (step, compiled):
        x, s = tg.ones(3, requires_grad=True), State(tg.zeros(3), tg.zeros(3))
        for _ in range(4):
            y, s = f(x, s)
        (y.sum() + s.v.sum()).backward()
        outs.append((y.detach(), s.i, x.grad))
    for a, b in zip(*outs):
        assert tg.allclose(a, b)


def test_what_is_written_to_comes_back_itself_in_a_named_tuple():
    def f(x):
        x.add_(1)
        return State(x, x * 2)

    compiled, x = tg.compile(f), tg.ones(2)
    for k in range(3):
        got = compiled(x)
        assert type(got) is State and got.v is x and got.i.tolist() == [2 * (k + 2)] * 2


def test_modules_give_them_too():
    class Net(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = tg.nn.Linear(3, 2)

        def forward(self, x):
            return State(self.linear(x), x)

    net, x = Net(), tg.ones(1, 3)
    got = tg.compile(net)(x)
    assert type(got) is State and tg.allclose(got.v, net(x).v)


def test_registered_trees_are_made_again():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    _pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    try:
        compiled = tg.compile(lambda x: Pair(x + 1, [x]), fullgraph=True)
        for k in range(2):
            got = compiled(tg.ones(2) * k)
            assert type(got) is Pair and got.a.tolist() == [k + 1] * 2 and got.b[0].tolist() == [k, k]
    finally:
        _pytree._deregister_pytree_node(Pair)


def test_objects_that_hold_tensors_run_as_written():
    class Box:
        def __init__(self, x):
            self.x = x

    def f(x):
        return Box(x + 1)

    compiled = tg.compile(f)
    for k in range(3):
        assert compiled(tg.ones(2) * k).x.tolist() == [k + 1] * 2
    assert "holds tensors and cannot be made again" in compiled.explain()
    with pytest.raises(RuntimeError, match="a result is of the class Box.*Return tuples"):
        tg.compile(f, fullgraph=True)(tg.ones(2))
    assert tg.compile(lambda x: {x.sum()})(tg.ones(2)).pop().item() == 2


# ---- what cannot be made again runs as it was written ----------------------------------------------------------------


@dataclasses.dataclass
class Entries(collections.OrderedDict):
    a: typing.Any = None


@dataclasses.dataclass(slots=True)
class InSlots:
    a: typing.Any


class Bag:
    pass


def _deep(x):
    bag = Bag()
    bag.held = [[[[x + 1]]]]
    return bag


UNKNOWN = {
    "dict and data class": (lambda x: Entries(x + 1), lambda r: r.a),
    "slots": (lambda x: InSlots(x + 1), lambda r: r.a),
    "deep": (_deep, lambda r: r.held[0][0][0][0]),
    "iterator": (lambda x: zip([x + 1], [x]), lambda r: next(r)[0]),
    "closure": (lambda x: lambda: x + 1, lambda r: r()),
    "partial": (lambda x: functools.partial(tg.add, x, 1), lambda r: r()),
    "method of a list": (lambda x: [x + 1].pop, lambda r: r()),
    "method of a tensor": (lambda x: (x + 1).clone, lambda r: r()),
    "values": (lambda x: {"a": x + 1}.values(), lambda r: next(iter(r))),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_tensors_in_what_is_not_known_are_those_of_each_call(name):
    f, taken = UNKNOWN[name]
    compiled = tg.compile(f)
    for k in range(3):
        assert taken(compiled(tg.ones(2) * k)).tolist() == [k + 1] * 2


def test_what_cannot_be_made_again_is_found_before_anything_is_written():
    def f(x):
        x.add_(1)
        return Entries(x * 1)

    x = tg.ones(2)
    assert tg.compile(f)(x).a.tolist() == [2.0, 2.0] and x.tolist() == [2.0, 2.0]


def test_sets_are_new_in_each_call():
    compiled = tg.compile(lambda x: (x + 1, {3}))
    compiled(tg.ones(2))[1].add(4)
    assert compiled(tg.ones(2))[1] == {3}


class Told:
    def __init__(self, inner=None):
        self.rows, self.inner = [1], inner


@dataclasses.dataclass
class Counts:
    rows: list


KEPT = Told()


def test_objects_without_tensors_are_new_in_each_call_where_the_program_makes_them():
    compiled = tg.compile(lambda x: (x + 1, Told(Told()), [Counts([1])], {"k": Told()}), fullgraph=True)
    compiled(tg.ones(2))
    _, first, (counts,), held = compiled(tg.ones(2))
    first.rows.append(2), first.inner.rows.append(3), counts.rows.append(4), held["k"].rows.append(5)
    _, second, (others,), more = compiled(tg.ones(2))
    assert second is not first and second.inner is not first.inner and others == Counts([1])
    assert second.rows == second.inner.rows == more["k"].rows == [1] and compiled.explain().endswith("1 graph")


def test_objects_that_were_there_are_the_same_in_each_call():
    net = tg.nn.Identity()
    net.told = Told()
    for kept, found in ((KEPT, lambda x: (x, KEPT)), (net.told, lambda x: (x, [net.told])), (net, lambda x: (x, net))):
        compiled = tg.compile(found, fullgraph=True)
        for _ in range(2):
            (other,) = _pytree.tree_leaves(compiled(tg.ones(2))[1])
            assert other is kept


def test_objects_that_cannot_be_made_again_are_made_by_the_program():
    for make in (lambda: np.zeros(2), lambda: bytearray(2)):
        compiled = tg.compile(lambda x, make=make: (x + 1, make()))
        compiled(tg.ones(2))[1][0] = 3
        assert compiled(tg.ones(2))[1][0] == 0 and "makes at each call" in compiled.explain()


# ---- what the program does to the lists and dicts that it is given -----------------------------------------------


def _appends_and_fails(held, x):
    held.append(x + 1)
    return x * 2 if x.sum() > 0 else x


CHANGES = {
    "append": (lambda held, x: (held.append(x + 1), x)[1], lambda x: [x]),
    "append to nothing": (lambda held, x: (held.append(x + 1), x)[1], lambda x: []),
    "put": (lambda held, x: (held.__setitem__(0, x * 3), held[0] + x)[1], lambda x: [x, x]),
    "update": (lambda held, x: (held.update(k=x + 1), x * 2)[1], lambda x: {"a": x}),
    "pop": (lambda held, x: held.pop("a") * x, lambda x: {"a": x, "b": x}),
    "within": (lambda held, x: (held["a"].append(x), x + 1)[1], lambda x: {"a": [x]}),
    "and a condition": (_appends_and_fails, lambda x: []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_lists_and_dicts_are_changed_as_the_program_does(name):
    f, given = CHANGES[name]
    x = tg.ones(2) * 2.0
    compiled, held, expected = tg.compile(f), given(x), given(x)
    for _ in range(2 if name != "pop" else 1):
        assert tg.equal(compiled(held, x), f(expected, x))
        tg.testing.assert_close(held, expected)
    assert "as it was written" in compiled.explain()


def test_what_only_reads_them_is_one_graph():
    compiled = tg.compile(lambda held, x: held["a"][0] + x)
    assert compiled({"a": [tg.ones(2)]}, tg.ones(2)).tolist() == [2.0, 2.0] and "1 graph" in compiled.explain()
