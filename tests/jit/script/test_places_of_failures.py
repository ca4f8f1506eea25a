"""What fails while a program runs shows the line, and the calls that led there."""

from itertools import pairwise

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


def transposed_sum(x):
    return x.t() + x


@jit.script
def program(x, table: dict[str, int], items: list[int]):
    if len(items) == 0:
        return transposed_sum(x)
    return x + table["k"]


def marked(text, part):
    """Whether a line of the text has this part, and the next underlines it."""
    rows = text.splitlines()
    return any(part in row and below[row.index(part) :].startswith("^" * len(part)) for row, below in pairwise(rows))


def test_an_op_that_fails_shows_its_line_and_the_call():
    with pytest.raises(RuntimeError, match="must match the size") as error:
        program(tg.ones(3, 4), {}, [])
    text = str(error.value)
    assert "failed in the TorchScript interpreter" in text
    assert marked(text, "x.t() + x") and marked(text, "transposed_sum(x)")
    assert text.index("in program") < text.index("in transposed_sum")


def test_what_python_raises_shows_its_line_behind_its_kind():
    with pytest.raises(KeyError) as error:
        program(tg.ones(3), {}, [1])
    assert str(error.value).startswith("KeyError: 'k'\n") and marked(str(error.value), 'table["k"]')


def test_an_op_that_fails_where_a_gradient_is_recorded_shows_its_line():
    @jit.script
    def added(x, y):
        return x + y

    with pytest.raises(RuntimeError, match="must match the size") as error:
        added(tg.ones(3, requires_grad=True), tg.ones(4, requires_grad=True))
    assert "failed in the TorchScript interpreter" in str(error.value) and marked(str(error.value), "x + y")


def test_an_op_of_a_program_from_a_file_names_the_line_that_it_was_saved_with(tmp_path):
    @jit.script
    def product(x, w):
        return x.mm(w.t())

    product.save(tmp_path / "product.pt")
    with pytest.raises(RuntimeError, match="cannot be multiplied") as error:
        jit.load(tmp_path / "product.pt")(tg.ones(3, 4), tg.ones(5, 6))
    number = product.__wrapped__.__code__.co_firstlineno + 2
    assert f'File "test_places_of_failures.py", line {number}, in product' in str(error.value)


def test_what_the_program_raises_says_what_it_says():
    @jit.script
    def raising(n: int):
        if n > 2:
            raise ValueError("too many")
        return n

    with pytest.raises(ValueError) as error:
        raising(3)
    assert str(error.value) == "ValueError: too many"
