"""Small rules of Python that compiled programs keep: identity, items, what raises when it runs."""

import io
import math
import weakref
from typing import Any

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def same(function, *args):
    """What a function gives, compiled, after a look that Python gives the same."""
    scripted = jit.script(function)(*args)
    assert scripted == function(*args) and type(scripted) is type(function(*args))
    return scripted


def test_an_empty_list_of_numbers_is_an_index_of_whole_numbers():
    def picked(x):
        none: list[int] = []
        return x[none, :], x[[1, 0], :], x[[True, False], :]

    x = tg.arange(6.0).reshape(2, 3)
    shapes = [tuple(part.shape) for part in jit.script(picked)(x)]
    assert shapes == [(0, 3), (2, 3), (1, 3)]


def test_values_of_any_type_are_ordered_when_the_program_runs():
    def ordered(items: list[Any]):
        items.sort()
        return items

    assert same(ordered, [(2, "b"), (1, "a")]) == [(1, "a"), (2, "b")]
    with pytest.raises(TypeError, match="not supported between"):
        jit.script(ordered)([(2, "b"), ("a", 1)])


def test_a_range_of_no_step_raises_where_it_is_reached():
    def counted(way: bool):
        found = 0
        if way:
            for i in range(3, 0, 0):
                found += i
        return found

    assert same(counted, False) == 0
    with pytest.raises(ValueError, match="must not be zero"):
        jit.script(counted)(True)


def test_equal_constants_are_one_object_and_objects_have_identities():
    def constants():
        a, b, one, true = 0.5, 0.5, 1, True
        return [a is b, a is not b, a is one, true is one]

    assert jit.script(constants)() == [True, False, False, False]

    def identities(x):
        y = x + 1
        z = x
        return [id(x) == id(z), id(x) == id(y), id(x) == id(None)]

    assert same(identities, tg.ones(2)) == [True, False, False]
    with pytest.raises(jit.Error, match="Compare with =="):
        jit.script(lambda n: id(2) == id(n))


def test_a_traced_module_that_writes_to_an_argument_writes_to_it_in_script():
    class Total(nn.Module):
        def forward(self, *items):
            total = items[0]
            for item in items[1:]:
                total += item
            return total

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.total = jit.trace(Total(), (tg.ones(2), tg.ones(2)))

        def forward(self, x):
            row = (x * 2, x)
            return self.total(*row), row[0]

    total, written = jit.script(Outer())(tg.ones(2))
    assert total.tolist() == written.tolist() == [3.0, 3.0]


def test_what_an_ignored_function_gives_is_asked_where_it_is_used_only():
    class Told(nn.Module):
        @jit.ignore
        def tell(self, n: int):
            self.told = n

        def forward(self, x, use: bool):
            self.tell(3)
            if use:
                return self.tell(3)
            return x

        @jit.ignore
        def give(self, x):
            return x

        @jit.export
        def through(self, x, items: list[int]):
            self._and_more(x, items)
            return items

        def _and_more(self, x, items: list[int]):
            given = self.give(x)
            items.append(4)
            return given

    scripted = jit.script(Told())
    assert scripted(tg.ones(1), False).tolist() == [1.0]
    assert scripted.through(tg.ones(1), []) == [4]
    with pytest.raises(RuntimeError, match="expected a value of type Tensor"):
        scripted(tg.ones(1), True)


def test_a_dropped_function_is_told_by_its_older_word_too():
    with pytest.warns(FutureWarning, match="jit.unused"):

        @jit.ignore(drop_on_export=True)
        def left(x):
            return {x}

    def calls(x):
        return left(x)

    with pytest.raises(NotImplementedError):
        jit.script(calls)(tg.ones(1))


def test_factories_give_leaves_that_require_grad():
    def made(wanted: bool):
        a = tg.tensor(2.5, requires_grad=True)
        b = tg.ones(2, requires_grad=wanted)
        return a, b, a * 2

    a, b, twice = jit.script(made)(False)
    twice.backward()
    assert a.grad.item() == 2.0 and a.is_leaf and not b.requires_grad
    assert jit.script(made)(True)[1].requires_grad


def test_numbers_of_several_types_are_computed_with():
    def halved(x: int | float, y: int | float) -> int | float:
        if x > y:
            return x * 2
        return x - y

    for x, y in ((1, 2.5), (3, 2), (2.5, 1)):
        same(halved, x, y)


def test_a_function_is_compiled_once_for_all_that_use_it():
    def twice(x):
        return x * 2

    first = jit.script(twice)
    assert jit.script(twice) is first
    gone = weakref.ref(first)
    del first
    collect()
    assert gone() is None  # nobody has it: nor has the package


def test_a_tensor_stands_for_the_number_that_an_op_takes_as_in_eager_mode():
    def sized(x, n):
        return tg.zeros(n, 2), x.cumsum(n), x.unsqueeze(n)

    def scaled(x, n):
        return x.add(x, alpha=n), x.addcmul(x, x, value=n)

    given = [tg.tensor(0), tg.tensor(2), tg.tensor(1.5), tg.tensor([0]), tg.tensor(True)]
    for function in (sized, scaled):
        scripted = jit.script(function)
        for n in [*given, tg.tensor(1.5, requires_grad=True)]:
            try:
                want = function(tg.ones(3, 3, 3), n)
            except (TypeError, RuntimeError) as error:
                with pytest.raises(type(error)):
                    scripted(tg.ones(3, 3, 3), n)
            else:
                assert all(a.equal(b) for a, b in zip(want, scripted(tg.ones(3, 3, 3), n)))


def test_a_tuple_of_a_list_has_its_items_and_is_told_as_one():
    def shapes(x, y):
        items = [1, 2]
        kept = tuple(items)
        items.append(3)
        total = 0
        for n in tuple(x.shape):
            total += n
        rows, columns = tuple(y.shape)
        same_sizes = tuple(x.shape) == tuple(y.shape), tuple(x.shape) == (2, 3), tuple(y.shape) != (2, 3)
        text = f"{tuple(x.shape)}"
        return text, kept, len(kept), kept[1], total, rows * columns, same_sizes, x.reshape(tuple(y.shape))

    given = tg.arange(6).reshape(2, 3), tg.zeros(3, 2)
    *want, sizes = shapes(*given)
    *found, scripted = jit.script(shapes)(*given)
    assert found == want and scripted.equal(sizes)


def test_products_of_numbers():
    def volumes(x):
        return math.prod(x.shape[1:]), math.prod([0.5, 4.0]), math.prod((2, 3))

    assert same(volumes, tg.zeros(2, 3, 4)) == (12, 2.0, 6)
    with pytest.raises(jit.Error, match="list or tuple of numbers"):
        jit.script(lambda x: math.prod(["a"]))


def test_an_object_whose_call_is_left_to_python_is_called():
    class Told:
        def __init__(self):
            self.seen = []

        @jit.ignore
        def __call__(self, *args) -> str:
            self.seen.append(len(args))
            return "told"

    tell = Told()

    def calls(x):
        return tell(x), tell(x, x)

    assert jit.script(calls)(tg.ones(1)) == ("told", "told") and tell.seen == [1, 2]


def test_a_program_saves_values_to_a_file(tmp_path):
    def kept(x, path: str):
        y = x * 2
        tg.save((y, y.view(-1), {"n": 3}), path)
        return y

    scripted = jit.script(kept)
    made = scripted(tg.ones(2, 2), str(tmp_path / "kept"))
    whole, flat, told = tg.load(tmp_path / "kept")
    assert whole.equal(made) and flat.tolist() == [2.0] * 4 and told == {"n": 3}
    with pytest.raises(tg.graph.GraphError, match="no file can hold"):
        scripted.save(io.BytesIO())


def test_a_part_of_a_tensor_can_be_copied():
    x = tg.arange(6.0).reshape(2, 3)
    part = jit.script(lambda x: x.narrow_copy(1, 1, 2))(x)
    assert part.equal(x[:, 1:]) and part.is_contiguous()
    part.zero_()
    assert x[0, 1] == 1


def test_a_list_that_is_multiplied_stays_the_list():
    def repeated(items: list[int], times: int):
        kept = items
        items *= times
        items += [7]
        own = [1]
        held = own
        own *= 2
        return kept, items is kept, held is own, own

    for times in (2, 0):
        assert jit.script(repeated)([1, 2], times) == repeated([1, 2], times)


def test_bytes_stand_for_a_text_of_their_numbers():
    @jit.script
    def numbers(s: str):
        return [ord(c) for c in s], len(s)

    assert numbers(b"a\xc2\x00") == ([97, 194, 0], 3)
    with pytest.raises(RuntimeError, match="Expected a value of type 'str'"):
        numbers(bytearray(b"a"))


def rows_and_tuple(x, sizes: tuple[int, int]):
    return x.shape[:1] + (5,), (4,) + x.shape, x.shape + sizes


def test_a_tuple_beside_a_list_is_one():
    assert tg.jit.script(rows_and_tuple)(tg.ones(2, 3), (6, 7)) == ([2, 5], [4, 2, 3], [2, 3, 6, 7])


def sizes_and_tuples(x, n: int):
    return x.shape == (n,), (2, n) == x.shape, x.shape != (2, n), x.shape == (), x.shape < (2, n + 1)


def test_a_list_is_compared_with_a_tuple():
    assert tg.jit.script(sizes_and_tuples)(tg.ones(2, 3), 3) == (False, True, False, False, True)


class Pair(tuple):
    """Two numbers that do not say how many they are."""

    def __len__(self):
        raise NotImplementedError


def test_unpacking_asks_for_the_items_and_not_for_their_number():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.pairs = Pair(((2, Pair((1, 3))), (3, Pair((2, 2)))))

        def forward(self, x):
            if not self.training:
                return x
            for factor, (a, b) in self.pairs:
                x = x * factor + a * b
            return x

    module = jit.script(Module().eval())
    assert module(tg.ones(1)).item() == 1
    module.train()
    assert module(tg.ones(1)).item() == (1 * 2 + 3) * 3 + 4


def test_a_tuple_is_repeated_as_often_as_a_number_says():
    def shape(x: tg.Tensor, dim: int):
        return ((1,) * dim) + (-1,) + ((1,) * (x.dim() - dim - 1)), dim * (2, 3)

    scripted = jit.script(shape)
    for dim in range(3):
        assert scripted(tg.ones(2, 3, 4), dim) == shape(tg.ones(2, 3, 4), dim)

    def mixed(dim: int):
        return (1, "a") * dim

    assert jit.script(mixed)(2) == mixed(2)


def test_texts_lists_and_tuples_are_repeated_by_truths():
    def repeated(yes: bool, text: str, numbers: list[int]):
        return (1, 2) * True, (1, 2) * yes, yes * (3, 4), text * yes, yes * numbers, numbers * False, True * text

    scripted = jit.script(repeated)
    for yes in (True, False):
        assert scripted(yes, "ab", [5, 6]) == repeated(yes, "ab", [5, 6])


def test_repr_gives_the_text_that_python_gives():
    def told(x: str, y: list[float], z: int):
        return repr(x), repr(y), repr(z), repr((x, None)), str(x)

    assert same(told, "it's", [1.0, math.inf], 3)[0] == '"it\'s"'
    with pytest.raises(jit.Error, match="repr.. takes 1 argument, got 2"):
        jit.CompilationUnit("def f(x: int):\n    return repr(x, x)").f(3)
