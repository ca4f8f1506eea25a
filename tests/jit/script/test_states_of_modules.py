"""What a module is beside its methods: how it says its state is saved, defaults, children as lists and dicts."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def loaded(program):
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    return jit.load(file)


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", tg.ones(2))
        self.shift, self.number = tg.zeros(2), 1

    def forward(self, x):
        return x * self.scale + self.shift + self.number

    @jit.export
    def __getstate__(self):
        return self.scale, self.shift, 5, self.training

    @jit.export
    def __setstate__(self, state):
        self.scale, self.shift = state[0] * 2, state[1] + 1
        self.number, self.training = state[2], state[3]


class Holds(nn.Module):
    def __init__(self):
        super().__init__()
        self.packed = Packed()

    def forward(self, x):
        return self.packed(x)


@pytest.mark.parametrize("made", [Packed, Holds])
def test_a_module_says_what_of_it_is_saved(made):
    scripted, x = jit.script(made()), tg.ones(2)
    again = loaded(scripted)
    assert scripted(x).tolist() == [2.0, 2.0] and again(x).tolist() == [8.0, 8.0]
    assert loaded(again)(x).tolist() == [8.0, 8.0]  # reading a file and writing it again runs nothing


SHIFT = tg.tensor([3.0, 4.0], requires_grad=True)


def shifted(x, by=SHIFT):
    return x + by


def test_a_tensor_as_a_default_gets_its_gradient():
    def outer(x):
        return shifted(x) * shifted(x, x)

    x = tg.ones(2)
    for function in (outer, shifted):
        scripted = jit.script(function)
        assert scripted(x).equal(function(x)) and loaded(scripted)(x).equal(function(x))
    SHIFT.grad = None
    jit.script(outer)(x).sum().backward()
    assert SHIFT.grad.tolist() == [2.0, 2.0]
    again = loaded(jit.script(shifted))
    again(x).sum().backward()
    assert again(x, x).tolist() == [2.0, 2.0]


@jit.ignore
def last_of(x, *more):
    return more[-1] if more else x


@jit.script
def last_ones(x):
    return last_of(x), last_of(x, x + 1), last_of(x, x, x * 3)


def test_what_stays_python_takes_any_number_of_arguments():
    assert [r.item() for r in last_ones(tg.tensor(2.0))] == [2.0, 3.0, 6.0]


@jit.script
def grown(numbers: list[int], names: dict[str, int]):
    numbers.append(len(names))
    names["n"] = len(numbers)


def test_lists_and_dicts_are_shared_with_python():
    numbers, names = jit.script([1]), jit.script({"a": 1})
    grown(numbers, names)
    assert numbers == [1, 1] and names == {"a": 1, "n": 2}


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.ModuleList([nn.ReLU(), nn.Linear(2, 2)])
        self.steps = nn.Sequential(nn.Tanh(), nn.ReLU())
        self.named = nn.ModuleDict({"a": nn.Tanh()})

    def forward(self, x):
        return self.named["a"](self.steps(x))


def test_children_of_a_scripted_module_are_reached_as_those_of_the_module():
    scripted = jit.script(Parts())
    assert scripted.rows[0] is next(iter(scripted.rows)) and scripted.rows[-1].original_name == "Linear"
    assert [part.original_name for part in scripted.rows[1:]] == ["Linear"] and len(scripted.steps) == 2
    assert [part.original_name for part in scripted.steps[:1]] == ["Tanh"] and scripted.steps[1] in list(scripted.steps)
    assert list(scripted.named) == list(scripted.named.keys()) == ["a"] and "a" in scripted.named
    assert dict(scripted.named.items())["a"] is scripted.named["a"] is next(iter(scripted.named.values()))
    with pytest.raises(IndexError):
        scripted.rows[2]


class Counted(nn.ModuleList):
    def __len__(self):
        return 7


class OfCounted(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = Counted([nn.ReLU()])

    def forward(self, x):
        return x * len(self.parts)


class Owner(jit.ScriptModule):
    def __init__(self, part):
        super().__init__()
        self.part = part

    @jit.script_method
    def forward(self, x):
        return self.part(x)


def test_methods_of_the_class_are_asked_before_those_of_the_package():
    assert jit.script(OfCounted())(tg.tensor(2.0)).item() == 14.0


def test_what_a_script_module_is_given_is_compiled():
    part = nn.Linear(2, 2)
    owner = Owner(part)
    assert isinstance(owner.part, jit.ScriptModule) and owner.part.weight is part.weight
    assert owner(tg.ones(2)).equal(part(tg.ones(2)))


class TakesAlone(nn.Module):
    def forward(self, x):
        return x

    @jit.export
    def __setstate__(self, state: bool):
        self.training = state


def test_one_of_the_two_methods_is_refused_alone():
    with pytest.raises(RuntimeError, match="__getstate__ with jit.export"):
        jit.script(TakesAlone())
