"""Whatever a traced program closes over is noticed when something else stands in its place: words, functions, objects,
what lists and dicts hold, attributes of modules; not what the program itself changes."""

import collections

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.utils import _pytree

X = tg.tensor([1.0, 2.0])


class Bag:
    """What a program reads, by name."""

    def __init__(self, **entries):
        self.__dict__.update(entries)


def same(program, traced, x=X):
    return traced(x).equal(program(x))


def changed(bag, **entries):
    bag.__dict__.update(entries)


CHANGES = {
    "a tensor is appended": (lambda b: lambda x: x + sum(b.held), lambda b: b.held.append(tg.ones(2))),
    "a tensor of a list": (lambda b: lambda x: x + sum(b.held), lambda b: b.held.__setitem__(0, tg.ones(2) * 9)),
    "a list is shorter": (lambda b: lambda x: x + sum(b.held), lambda b: b.held.pop()),
    "a dict grows": (lambda b: lambda x: x + sum(b.named.values()), lambda b: b.named.update(more=tg.ones(2))),
    "a key is another": (
        lambda b: lambda x: x * len(next(iter(b.named))),
        lambda b: (b.named.clear(), b.named.update(longer=tg.ones(2))),
    ),
    "a word": (lambda b: lambda x: getattr(x, b.word)(), lambda b: changed(b, word="sin")),
    "a function": (lambda b: lambda x: b.function(x), lambda b: changed(b, function=tg.sin)),
    "a function of Python": (lambda b: lambda x: b.written(x), lambda b: changed(b, written=lambda x: x * 5)),
    "None": (lambda b: lambda x: x if b.nothing is None else x * 2, lambda b: changed(b, nothing=3)),
    "a dtype": (lambda b: lambda x: x.to(b.dtype), lambda b: changed(b, dtype=tg.float64)),
    "1 and True": (lambda b: lambda x: x.long() * b.one, lambda b: changed(b, one=1.0)),
    "numbers of a list": (lambda b: lambda x: x * len(b.numbers), lambda b: b.numbers.append(4)),
    "a tuple": (lambda b: lambda x: x * sum(b.pair), lambda b: changed(b, pair=(3, 4))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_closed_over(name):
    make, change = CHANGES[name]
    bag = Bag(
        held=[tg.ones(2), tg.ones(2)], named={"a": tg.ones(2)}, word="exp", function=tg.exp, written=lambda x: x + 5,
        nothing=None, dtype=tg.float32, one=1, numbers=[1, 2], pair=(1, 2),
    )  # fmt: skip
    program = make(bag)
    traced = jit.trace(program, (X,))
    assert same(program, traced)
    before = traced(X)
    change(bag)
    after = traced(X)
    assert after.equal(program(X)) and after.dtype == program(X).dtype
    assert not (after.dtype == before.dtype and after.equal(before))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.word, self.factors, self.dims, self.function, self.option = "relu", [1, 2], (0, 1), tg.relu, None
        self.plain = tg.ones(2)

    def forward(self, x):
        x = getattr(self.inner(x), self.word)()
        for factor in self.factors:
            x = x * factor
        x = self.function(x.permute(self.dims) + self.plain)
        return x if self.option is None else -x


IN_MODULES = {
    "a word": lambda m: setattr(m, "word", "exp"),
    "a list": lambda m: m.factors.append(3),
    "a number of a list": lambda m: m.factors.__setitem__(0, 300),
    "a tuple": lambda m: setattr(m, "dims", (1, 0)),
    "a function": lambda m: setattr(m, "function", tg.sin),
    "None": lambda m: setattr(m, "option", 1),
    "a plain tensor": lambda m: setattr(m, "plain", tg.full((2,), 7.0)),
    "forward of a part": lambda m: setattr(m.inner, "forward", lambda x: x * 3),
    "forward": lambda m: setattr(m, "forward", lambda x: x * 4),
}


@pytest.mark.parametrize("name", IN_MODULES)
def test_attributes_of_modules(name):
    tg.manual_seed(1)
    net, x = Net(), tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    traced = jit.trace(net, (x,))
    before = traced(x)
    IN_MODULES[name](net)
    assert traced(x).equal(net(x)) and not traced(x).equal(before)


def test_hooks_at_one_address_are_told_apart():
    net, x = nn.Linear(2, 2), tg.ones(1, 2)
    traced = jit.trace(net, (x,))
    for k in range(5):
        handle = net.register_forward_hook(lambda module, args, out, k=float(k): out * k)
        assert traced(x).equal(net(x))
        handle.remove()
        del handle


def test_what_the_program_itself_changes_is_left_out():
    seen, cache = [], {}

    def program(x):
        seen.append(len(seen))
        return x * cache.setdefault("factor", 3.0)

    traced = jit.trace(program, (X,))
    for k in range(40):
        if k % 3 == 0:
            seen.clear()
        assert traced(X).equal(X * 3)
    assert traced.explain().startswith("program: 1 graph captured")


def test_keywords_alone():
    traced = jit.trace(lambda a, b: a * b, example_kwarg_inputs={"a": X, "b": X})
    assert traced(a=X, b=X * 2).equal(X * X * 2)


# ---- objects in what a compiled program is given -------------------------------------------------------------------


class Held:
    def __init__(self, x):
        self.x = x


class Equal(Held):
    def __eq__(self, other):  # and so no hash
        return type(self) is type(other)


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


Couple = collections.namedtuple("Couple", "held x")
GIVEN = {
    "itself": lambda o: o, "in a list": lambda o: [o], "in a tuple": lambda o: ((o,), 1),
    "in a dict": lambda o: {"a": o}, "in a named tuple": lambda o: Couple(o, X),
}  # fmt: skip


def inner(given):
    while isinstance(given, (tuple, list, dict)):
        given = next(iter(given.values() if isinstance(given, dict) else given))
    return given


@pytest.mark.parametrize("kind", [Held, Equal, Slotted])
@pytest.mark.parametrize("name", GIVEN)
def test_attributes_of_objects_among_arguments_are_read_anew(kind, name):
    compiled = tg.compile(lambda given, x: inner(given).x * x, fullgraph=True)
    held = kind(tg.ones(2))
    given = GIVEN[name](held)
    assert compiled(given, X).equal(X)
    held.x = tg.full((2,), 5.0)
    assert compiled(given, X).equal(X * 5) and compiled(given, x=X + 1).equal(X * 5 + 5)
    held.x = 3
    assert compiled(given, X).equal(X * 3)
    assert compiled(GIVEN[name](kind(tg.full((2,), 7.0))), X).equal(X * 7)


def test_attributes_of_registered_trees_among_arguments_are_read_anew():
    _pytree.register_pytree_node(Equal, lambda e: ([e.x], None), lambda parts, _: Equal(*parts))
    try:
        compiled = tg.compile(lambda given: _pytree.tree_map(lambda t: t * 2, given), fullgraph=True)
        given = Equal(X)
        assert compiled(given).x.equal(X * 2)
        given.x = X + 1
        assert compiled(given).x.equal(X * 2 + 2)
    finally:
        _pytree._deregister_pytree_node(Equal)


def test_modules_in_a_list_among_arguments_are_those_that_are_there():
    compiled = tg.compile(lambda parts, x: parts[0](x), fullgraph=True)
    parts = [nn.Linear(2, 1)]
    assert compiled(parts, X).equal(parts[0](X))
    parts[0].weight = nn.Parameter(tg.full((1, 2), 100.0))
    assert compiled(parts, X).equal(parts[0](X))
    parts[0] = nn.Linear(2, 1)
    assert compiled(parts, X).equal(parts[0](X))


def test_a_list_with_objects_that_a_program_appends_to_grows():
    def program(parts, x):
        parts.append(x)
        return parts[0].x + x

    compiled, parts = tg.compile(program), [Held(X)]
    for count in range(2, 5):
        assert compiled(parts, X).equal(X * 2) and len(parts) == count


def test_slots_of_what_a_program_closes_over_are_read_anew():
    held = Slotted(tg.ones(2))
    traced = jit.trace(lambda x: x * held.x, (X,))
    held.x = tg.full((2,), 5.0)
    assert traced(X).equal(X * 5)
    held.x = 3
    assert traced(X).equal(X * 3)
    del held.x
    with pytest.raises(AttributeError):
        traced(X)
