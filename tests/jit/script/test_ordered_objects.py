"""Lists of objects are sorted by the compiled `__lt__` of their class, with the class and from a file without it; and
what is annotated to give a Union may give each of its types."""

import io
import subprocess
import sys
import textwrap
from typing import Union

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, jit


class Guess:
    def __init__(self, score: float, place: int):
        self.score = score
        self.place = place

    def __lt__(self, other: "Guess") -> bool:
        return self.score < other.score


def places(scores: list[float], turned: bool) -> tuple[list[int], list[int], list[int]]:
    made: list[Guess] = []
    for i, score in enumerate(scores):
        made.append(Guess(score, i))
    ordered = sorted(made, reverse=not turned)
    before = [guess.place for guess in made]
    made.sort(reverse=turned)
    return before, [guess.place for guess in made], [guess.place for guess in ordered]


LENGTHS = [0, 1, 2, 3, 4, 5, 8, 17, 40]


@pytest.mark.parametrize("turned", [True, False])
def test_equal_objects_keep_their_order(turned):
    scripted = jit.script(places)
    for n in LENGTHS:
        scores = [float(i * 7 % 5) for i in range(n)]
        assert scripted(scores, turned) == places(scores, turned)


def test_a_file_sorts_without_the_class(tmp_path):
    path = tmp_path / "places.pt"
    jit.save(jit.script(places), path)
    code = f"""
        from tinygrad_ext import jit
        loaded = jit.load({str(path)!r})
        print([loaded([float(i * 7 % 5) for i in range(n)], n % 2 == 0) for n in {LENGTHS}])
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
    expected = [places([float(i * 7 % 5) for i in range(n)], n % 2 == 0) for n in LENGTHS]
    assert run.stdout.strip() == str(expected)


def either(x: Tensor, n: int) -> Union[int, Tensor, None]:  # noqa: UP007 - as programs write it
    if n < 0:
        return None
    for i in range(n):
        if i == 2:
            return i
    if n == 1:
        return x * 2
    return x


def used(x: Tensor, n: int) -> Tensor:
    found = either(x, n)
    if isinstance(found, Tensor):
        return found + 1
    if isinstance(found, int):
        return x * found
    return x


def test_each_way_out_may_give_another_type_of_a_union():
    scripted, caller = jit.script(either), jit.script(used)
    file = io.BytesIO()
    jit.save(caller, file)
    file.seek(0)
    loaded = jit.load(file)
    for n in (-1, 0, 1, 2, 3):
        for program in (caller, loaded):
            x, y = (tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
            used(x, n).sum().backward(), program(y, n).sum().backward()
            assert y.grad.equal(x.grad) and program(y, n).equal(used(x, n))
        given, expected = scripted(tg.ones(2), n), either(tg.ones(2), n)
        assert type(given) is type(expected) and (given.equal(expected) if n in (0, 1, 2) else given == expected)
