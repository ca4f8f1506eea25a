"""Lists, dicts and objects that a scripted program makes, where gradients are asked for: each run has its own, and no
gradient is lost in what they hold."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, jit


class Box:
    def __init__(self, x: Tensor, n: int):
        self.x = x
        self.n = n
        self.seen = [n]

    def __lt__(self, other: "Box") -> bool:
        return self.n < other.n


def lists_of_lists(x: Tensor, n: int) -> list[list[Tensor]]:
    out: list[list[Tensor]] = []
    for i in range(n):
        out.append([x * i, x + i])
    return out


def lists_of_dicts(x: Tensor, n: int) -> list[dict[str, Tensor]]:
    out: list[dict[str, Tensor]] = []
    for i in range(n):
        kept = x[x > 0.5 * i]
        out.append({"kept": kept, "all": x * i})
    return out


def dicts_of_lists(x: Tensor, n: int) -> dict[str, list[Tensor]]:
    out: dict[str, list[Tensor]] = {}
    for i in range(n):
        key = str(i % 2)
        if key not in out:
            out[key] = jit.annotate(list[Tensor], [])
        out[key].append(x * i)
    return out


def lists_of_tuples(x: Tensor, n: int) -> list[tuple[int, Tensor]]:
    out: list[tuple[int, Tensor]] = []
    for i in range(n):
        out.insert(0, (i, x * i))
    return out


def lists_of_optionals(x: Tensor, n: int) -> list[Tensor | None]:
    out: list[Tensor | None] = []
    for i in range(n):
        out.append(x * i if i % 2 == 0 else None)
    return out


def objects(x: Tensor, n: int) -> list[Tensor]:
    made: list[Box] = []
    for i in range(n):
        made.append(Box(x * i, i % 3))
    made.sort(reverse=True)
    return [box.x * len(box.seen) for box in made]


PROGRAMS = [lists_of_lists, lists_of_dicts, dicts_of_lists, lists_of_tuples, lists_of_optionals, objects]


def tensors_in(value):
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for part in parts for t in tensors_in(part)]


def slope(program, n):
    x = tg.tensor([0.2, 0.7, 1.5], requires_grad=True)
    sum((t * (k + 1)).sum() for k, t in enumerate(tensors_in(program(x, n)))).backward()
    return x.grad


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_no_gradient_is_lost_in_containers_that_grow(program):
    scripted = jit.script(program)
    for n in (2, 4, 1):
        assert slope(scripted, n).equal(slope(program, n))
    assert all(t.grad_fn is not None for t in tensors_in(scripted(tg.ones(3, requires_grad=True), 3)))


def counted(x: Tensor, n: int) -> tuple[Tensor, list[Box]]:
    made: list[Box] = []
    for i in range(n):
        box = Box(x, i)
        box.n += 1
        box.seen.append(n)
        x = x * box.n
        made.append(box)
    return x, made


@pytest.mark.parametrize("grad", [True, False])
def test_each_turn_and_each_run_has_objects_of_its_own(grad):
    scripted, x = jit.script(counted), tg.ones(1, requires_grad=grad)
    (first, made), (second, again) = scripted(x, 3), scripted(x, 2)
    assert first.item() == 6 and second.item() == 2 and first.requires_grad is grad
    assert [b.n for b in made] == [1, 2, 3] and [b.seen for b in again] == [[0, 2], [1, 2]]
    assert not {id(b) for b in made} & {id(b) for b in again}


def texts(x: Tensor, n: int) -> tuple[Tensor, list[str], list[int], dict[str, list[int]]]:
    parts = "a b".split(" ")  # noqa: SIM905 - what script makes of it
    parts.append("c")
    numbers = list(range(3))
    return x * len(parts), parts, numbers, {"a": sorted([2, 1])}


@pytest.mark.parametrize("grad", [True, False])
def test_lists_that_hang_on_no_argument_are_made_in_each_run(grad):
    scripted, x = jit.script(texts), tg.ones(1, requires_grad=grad)
    for _ in range(3):
        y, parts, numbers, table = scripted(x, 1)
        assert (y.item(), parts, numbers, table) == (3, ["a", "b", "c"], [0, 1, 2], {"a": [1, 2]})
        parts.append("d"), numbers.clear(), table["a"].append(3)


def test_methods_name_a_class_that_stands_in_a_function():
    class Sum:
        def __init__(self, x: Tensor):
            self.parts = [x]

        def put(self, x: Tensor) -> "Sum":
            self.parts.append(x)
            return self

        def with_all_of(self, other: "Sum") -> "Sum":
            self.parts.extend(other.parts)
            return self

    def total(x: Tensor, n: int) -> Tensor:
        found = Sum(x).put(x * n)
        for i in range(n):
            found.with_all_of(Sum(x * i).put(x))
        return tg.stack(found.parts).sum(0)

    scripted, x, y = jit.script(total), *(tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    for n in (0, 2):
        assert scripted(x, n).equal(total(y, n))
        scripted(x, n).sum().backward(), total(y, n).sum().backward()
    assert x.grad.equal(y.grad)
