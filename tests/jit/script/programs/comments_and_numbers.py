"""Types in comments, hash, slices made by hand, complex functions."""

import cmath
from typing import Dict, List, Optional, Tuple, Union


def in_comment(a, n):
    # type: (Tensor, int) -> Tensor
    return a * n


def line_by_line(
    a,  # type: Tensor
    n,  # type: int
    items=None,  # type: Optional[List[int]]
):
    # type: (...) -> Tuple[Tensor, int]
    total = n
    if items is not None:
        for i in items:
            total += i
    return a + total, total


@case((torch.ones(2), 3))
def comments(x, n):
    # type: (Tensor, int) -> Tuple[Tensor, Tuple[Tensor, int], int]
    return in_comment(x, n), line_by_line(x, n, [n, 2]), line_by_line(x, n)[1]


@case((True,), (False,))
def comment_without_a_result(flag):
    # type: (bool)
    if flag:
        return 1
    return 2


def total_of(sizes: Optional[List[int]]) -> int:
    if sizes is None:
        return 0
    return sum(sizes)


@case()
def tuples_for_lists():
    return total_of((1, 2)), total_of([3]), total_of(None)


@case(torch.arange(10.0))
def slices_by_hand(x):
    text = "foo_bar"
    items = [1, 2, 3, 4]
    return x[slice(1, 5, 2)], text[slice(3)], items[slice(None, 3, 1)], x[slice(2, None)]


@case(("a", 3), ("b", -3))
def hashes(word: str, n: int):
    return hash(word) == hash(word), hash(n) == hash(n), hash((word, n)) == hash((word, n)), hash(1.5) == hash(1.5)


@case(1 + 2j, -1 + 0j)
def complex_functions(z: complex):
    return cmath.exp(z), cmath.sqrt(z), cmath.phase(z), cmath.rect(abs(z), 0.5)


@case(([1, 3], [1, 2]))
def lists_in_order(a: List[int], b: List[int]):
    return min(a, b), max(a, b)


@case((1,), ("x",))
def wide_after_a_question(y: Union[int, str]):
    n = 0
    if isinstance(y, str):
        n = len(y)
    else:
        n = y + 10
    z = y
    return z, n


@case()
def an_empty_dict():
    d: Dict[str, int] = dict([])
    d["a"] = 1
    return d
