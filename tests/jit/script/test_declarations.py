"""What a program declares: defaults, overloads, types in comments and of attributes that __init__ makes empty."""

import math
import typing
from typing import Optional

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Annotated(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = jit.annotate(tg.Tensor | None, None)
        self.counts = jit.annotate(dict[str, int], {})

    def forward(self, x):
        self.counts["calls"] = len(self.counts)
        if self.last is not None:
            x = x + self.last
        self.last = x
        return x


def test_annotate_in_init_types_an_attribute():
    scripted, plain = jit.script(Annotated()), Annotated()
    for _ in range(3):
        assert scripted(tg.ones(2)).equal(plain(tg.ones(2)))
    assert scripted.counts == plain.counts == {"calls": 1}


@pytest.mark.parametrize("default", [[], [1], {}, ([],), (1, ([], 2))], ids=str)
def test_a_default_that_calls_would_share_is_refused(default):
    def program(x: int, y=default):
        return x

    with pytest.raises(jit.Error, match="Mutable default parameters"):
        jit.script(program)


def _numbers(
    scale: float = 5,
    on: bool = 1,
    count: int = True,
    phase: complex = 2,
    maybe: float | None = 3,
    pair: tuple[float, tuple[int, float]] = (1, (2, 3)),
):
    return scale, on, count, phase, maybe, pair


def test_a_default_is_the_number_that_its_declaration_tells():
    def calls(x: float):
        return _numbers(x), _numbers()

    whole = (5.0, True, 1, 2 + 0j, 3.0, (1.0, (2, 3.0)))
    for given in (jit.script(_numbers)(), *jit.script(calls)(5.0)):
        assert repr(given) == repr(whole)
    assert jit.script(_numbers)(maybe=None)[4] is None


def test_a_declaration_of_an_overload_does_nothing():
    with pytest.raises(RuntimeError, match="Only `pass` statement"):

        @jit._overload
        def declared(x: int) -> int:
            return x + 1

    @jit._overload
    def alone(x: int) -> int:
        """Of which there is nothing else."""

    def program():
        return alone(0)

    with pytest.raises(jit.Error, match="Implementation for the function .* is missing"):
        jit.script(program)

    class Declared(nn.Module):
        @jit._overload_method
        def forward(self, x: int): ...

    with pytest.raises(jit.Error, match="Implementation for the method .* is missing"):
        jit.script(Declared())


def test_types_in_comments_are_there_for_each_parameter():
    def short(
        a,  # type: int
        b,
    ):
        # type: (...) -> int
        return a

    with pytest.raises(jit.Error, match="Number of type annotations"):
        jit.script(short)


def test_lists_of_several_types_are_not_added():
    def program(x):
        return [[x]] + [[1]]

    with pytest.raises(jit.Error, match="previously matched to type"):
        jit.script(program)


def test_modf_and_frexp():
    @jit.script
    def parts(x: float) -> tuple[tuple[float, float], tuple[float, int]]:
        return math.modf(x), math.frexp(x)

    for x in (2.5, -0.75, 0.0, 1e300):
        assert parts(x) == (math.modf(x), math.frexp(x))


def test_futures_need_no_import_in_annotations():
    unit = jit.CompilationUnit("""
        def program(x):
            waiting: List[Future[Tensor]] = []
            return len(waiting)
    """)
    assert unit.program(tg.ones(1)) == 0


def test_a_failure_is_told_with_the_calls_that_led_to_it():
    def inner(x: int) -> int:
        return x

    def outer(x: list[int]) -> int:
        return inner(x)

    class Net(nn.Module):
        def forward(self, x: list[int]):
            return outer(x)

    with pytest.raises(jit.Error, match="'outer' is being compiled since it was called from 'forward'"):
        jit.script(Net())


def test_an_attribute_of_another_type_is_told_of_the_whole_statement():
    @jit.script
    class Holder:
        def __init__(self, x):
            self.x = x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 1

        def forward(self, x):
            self.n = "text"
            return x

    with pytest.raises(jit.Error) as error:
        jit.script(Net())
    assert "^" * len('self.n = "text"') in str(error.value)


def test_traces_take_keyword_examples_by_module():
    class Two(nn.Module):
        def forward(self, x=None, y=None):
            return x - y

    given = {"y": tg.ones(2), "x": tg.full((2,), 3.0)}
    traced = jit.trace_module(Two(), {"forward": given}, example_inputs_is_kwarg=True)
    assert traced(**given).tolist() == [2.0, 2.0]


class Optionally(nn.Module):
    def __init__(self, before):
        super().__init__()
        self.before: Optional[nn.Module] = before  # noqa: UP045 - as programs write it
        self.layer: nn.Linear = nn.Linear(2, 2)
        self.act: typing.Callable = tg.relu
        self.after: nn.Module | None = None

    def forward(self, x):
        if self.before is not None:
            x = self.before(x)
        if self.after is not None:
            x = self.after(x)
        return self.act(self.layer(x))


@pytest.mark.parametrize("before", [None, nn.Tanh()])
def test_types_of_modules_and_functions_in_init_say_nothing(before):
    module, x = Optionally(before), tg.randn(3, 2)
    assert jit.script(module)(x).equal(module(x))


def test_other_types_in_init_that_no_value_has_are_told():
    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.names: set[str] = set()

        def forward(self, x):
            return x * len(self.names)

    with pytest.raises(jit.Error, match="attribute 'names' of Wrong: Unknown type annotation"):
        jit.script(Wrong())


def listed(x, dims: list[int] = (0, 1), scale: list[float] | None = (1, 2.5)):
    if scale is not None:
        x = x * scale[1]
    return x.sum(dims)


def test_tuples_are_defaults_of_lists():
    made = jit.script(listed)
    assert "int[] dims=[0, 1], float[]? scale=[1.0, 2.5]" in str(made.schema)
    assert made(tg.ones(2, 3)).item() == 15 and made(tg.ones(2, 3), [1], None).tolist() == [3, 3]


def wrong(x, dims: list[int] = (0, 1.5)):
    return x.sum(dims)


def test_tuples_of_others_are_no_defaults_of_lists():
    with pytest.raises(jit.Error, match="Expected a default value of type List.int. for parameter 'dims'"):
        jit.script(wrong)
