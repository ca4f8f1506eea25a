"""What a program asks of how tensors lie in memory, and which of them are one: a graph holds for the same
answers."""

import pytest

import tinygrad_ext as tg
import tinygrad_ext.nn.functional as F
from tinygrad_ext import jit, nn

X = tg.arange(12.0).reshape(3, 4)
LAID = {
    "rows": X,
    "columns": tg.arange(12.0).reshape(4, 3).t(),
    "other sizes": tg.ones(5, 7),
    "other columns": tg.ones(7, 5).t(),
    "gaps": tg.ones(6, 4)[::2],
    "later in memory": tg.arange(24.0).reshape(6, 4)[3:],
    "one column": tg.ones(5, 1).t(),
    "none": tg.ones(3, 0),
}
ASKED = {
    "stride": lambda x: x * x.stride(0) + x.stride()[1],
    "stride from the end": lambda x: x * x.stride(-2) + x.stride(-1),
    "is_contiguous": lambda x: x + 1 if x.is_contiguous() else x * 2,
    "storage_offset": lambda x: x + x.storage_offset(),
    "of a view": lambda x: x + (1 if x.t().is_contiguous() else 2),
    "of what was computed": lambda x: x + (x * 2).stride(0),
    "in a list": lambda x: sum(part * part.stride(0) for part in [x, x + 1]),
}


@pytest.mark.parametrize("backend", ["inductor", lambda module, inputs: module.forward], ids=["graphs", "function"])
@pytest.mark.parametrize("name", ASKED)
def test_how_an_argument_lies(name, backend):
    program = ASKED[name]
    made = tg.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        for x in LAID.values():
            assert made(x).equal(program(x))


def test_strides_of_rows_are_values_of_one_graph():
    made = tg.compile(lambda x: x * x.stride(0) + x.stride(1), fullgraph=True)
    for rows in range(1, 9):
        for columns in range(2, 5):
            x = tg.ones(rows, columns)
            assert made(x).equal(x * columns + 1)
    assert "1 graph\n" in made.explain() + "\n"


def test_a_question_of_one_argument_is_not_asked_of_others():
    made = tg.compile(lambda x, y: x + y if x.is_contiguous() else x - y, fullgraph=True)
    for y in (tg.ones(3, 4), tg.ones(4, 3).t(), tg.ones(6, 4)[::2]):
        assert made(X, y).equal(X + y)
    assert "1 graph\n" in made.explain() + "\n"
    x = LAID["columns"]
    assert made(x, y).equal(x - y)
    assert "2 graphs" in made.explain()
    assert "is_contiguous() of argument 0" in made.explain()


def test_what_the_library_asks_for_itself_is_no_question():
    made = tg.compile(lambda x: F.interpolate(x * 2, size=(8, 8), mode="bilinear"), fullgraph=True)
    for size in range(2, 6):
        x = tg.rand(1, 2, size, size)
        assert made(x).equal(F.interpolate(x * 2, size=(8, 8), mode="bilinear"))
    assert "1 graph\n" in made.explain() + "\n"


def test_bits_of_complex_numbers():
    z = tg.tensor([1 + 2j, 3j])
    for asks in (tg.Tensor.is_conj, tg.is_conj):
        made = tg.compile(lambda z, asks=asks: z * 2 if asks(z) else z, fullgraph=True)
        for x in (z, z.conj(), z):
            assert made(x).equal(x * 2 if x.is_conj() else x)


def test_how_a_tensor_lies_that_is_no_argument():
    held = {"w": tg.ones(3, 4)}
    made = tg.compile(lambda x: x * held["w"].stride(0), fullgraph=True)
    assert made(X).equal(X * 4)
    held["w"] = tg.ones(4, 3).t()
    assert made(X).equal(X * 1)
    held["w"] = tg.ones(3, 5)
    assert made(X).equal(X * 5)
    layer = nn.Linear(4, 3)
    made = tg.compile(lambda x: x * 2 if layer.weight.is_contiguous() else x * 3, fullgraph=True)
    assert made(X).equal(X * 2)
    layer.weight.data = tg.ones(4, 3).t()
    assert made(X).equal(X * 3)


def test_gradients_and_traces():
    program = lambda x: x * x.stride(0)
    for made in (tg.compile(program, fullgraph=True), jit.trace(program, (X,))):
        for x in (X, LAID["columns"], X):
            leaf = x.detach().requires_grad_()
            assert leaf.stride() == x.stride()
            made(leaf).sum().backward()
            assert leaf.grad.equal(tg.full_like(x, x.stride(0)))


def compares(x, y):
    return x + 1 if x is y else x + y


def by_id(x, y):
    return x + 1 if id(x) == id(y) else x + y


def among(x, y):
    return x + 1 if any(x is part for part in [y, X]) else x + y


@pytest.mark.parametrize("program", [compares, by_id, among])
def test_which_arguments_are_one(program):
    made = tg.compile(program)
    for x, y in ((X, X), (X, X.clone()), (X.clone(), X), (X[:], X), (X, X), (LAID["rows"] + 0, X)):
        assert made(x, y).equal(program(x, y))
        z = x.clone()
        assert made(z, z).equal(z + 1)


def test_whether_an_argument_is_a_tensor_that_is_known_besides():
    weight = nn.Parameter(tg.ones(3, 4))
    program = lambda x: x * 2 if x is weight else x * weight
    made = tg.compile(program, fullgraph=True)
    for x in (X, weight, X, weight.detach(), weight):
        assert made(x).equal(program(x))
    made(weight).sum().backward()
    assert weight.grad.equal(tg.full((3, 4), 2.0))


def write(x, y):
    if x is y:
        x.add_(1)
        return x
    y.add_(2)
    return x + y


def test_one_tensor_that_is_written_to_under_two_names():
    made, z = tg.compile(write, fullgraph=True), X.clone()
    for step in range(1, 4):
        assert made(z, z) is z
        assert z.equal(X + step)
    y = X.clone()
    assert made(z, y).equal(X + 3 + X + 2)
    assert y.equal(X + 2)
    weight = X.clone()
    made = tg.compile(lambda x: weight.add_(1) * 2 if x is weight else x + weight, fullgraph=True)
    assert made(X).equal(X + weight)
    for step in range(1, 4):
        assert made(weight).equal((X + step) * 2)
        assert weight.equal(X + step)


def test_functions_of_the_library_that_are_replaced(monkeypatch):
    room = F

    def by_default(x, *, room=F):
        return room.relu(x)

    for program in (lambda x: F.relu(x), lambda x: tg.nn.functional.relu(x), lambda x: room.relu(x), by_default):
        made = tg.compile(program, fullgraph=True)
        assert made(-X).equal(X * 0)
        with monkeypatch.context() as patch:
            patch.setattr(F, "relu", lambda x: x * 7)
            assert made(-X).equal(X * -7)
        assert made(-X).equal(X * 0)
        assert "2 graphs" in made.explain()


def test_names_that_are_defined_later():
    table = {"tg": tg}
    exec(compile("def later(x): return x * SCALE", "later.py", "exec"), table)
    made = tg.compile(table["later"], fullgraph=True)
    for scale in (2, 3, 2):
        table["SCALE"] = scale
        assert made(X).equal(X * scale)
    made = tg.compile(lambda x: x * scale_of_cell, fullgraph=True)
    scale_of_cell = 4
    assert made(X).equal(X * 4)
    scale_of_cell = 5
    assert made(X).equal(X * 5)


def test_attributes_that_come_to_stand_in_front():
    class Base:
        scale = 2

    class Derived(Base):
        pass

    held = Derived()
    of_object, of_class = tg.compile(lambda x: x * held.scale), tg.compile(lambda x: x * Derived.scale)
    for change, of_held, of_derived in (
        (lambda: None, 2, 2),
        (lambda: setattr(Derived, "scale", 3), 3, 3),
        (lambda: setattr(held, "scale", 4), 4, 3),
        (lambda: delattr(Derived, "scale"), 4, 2),
        (lambda: delattr(held, "scale"), 2, 2),
        (lambda: setattr(Base, "scale", 5), 5, 5),
    ):
        change()
        assert of_object(X).equal(X * of_held)
        assert of_class(X).equal(X * of_derived)


class Scaled(nn.Module):
    scale = 2

    def forward(self, x):
        return x * self.scale


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Scaled(), Scaled()

    def forward(self, x):
        return self.first(x) + self.second(x)


def test_attributes_of_modules_that_come_to_stand_in_front():
    pair = Pair()
    made = tg.compile(pair, fullgraph=True)
    assert made(X).equal(X * 4)
    pair.second.scale = 5
    assert made(X).equal(X * 7)
    pair.first.scale = 1
    assert made(X).equal(X * 6)
    del pair.second.scale
    assert made(X).equal(X * 3)


def test_what_a_program_changes_of_what_a_class_inherits():
    class Base:
        count = 0

    class Derived(Base):
        pass

    def program(x):
        Derived.count += 1
        return x * Derived.count

    made = tg.compile(program)
    for step in range(1, 6):
        assert made(X).equal(X * step)
    assert (Derived.count, Base.count) == (5, 0)
