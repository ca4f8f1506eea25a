"""Whatever a traced program closes over is noticed when something else stands in its place: words, functions, objects,
what lists and dicts hold, attributes of modules; not what the program itself changes."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn

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
