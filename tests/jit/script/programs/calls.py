"""Calls of functions, defaults, keywords; exceptions; with; what stands outside of a function."""

import math
from typing import List, Optional, Tuple

SCALE = 3
NAME = "outside"
SIZES = (2, 3)


def double(x: int) -> int:
    return x * 2


def pair(x: int, y: int = 10, *, z: int = 100) -> Tuple[int, int]:
    return x + y, z


def no_result(items: List[int], v: int):
    items.append(v)


def shift(x, by: float = 1.0):
    return x + by


def first_or(items: List[int], default: Optional[int] = None) -> Optional[int]:
    if len(items) > 0:
        return items[0]
    return default


@case(3)
def simple(n: int):
    return double(n) + double(double(n))


@case(3, differs="PyTorch takes no keyword-only defaults")
def defaults_and_keywords(n: int):
    return pair(n), pair(n, 1), pair(n, z=5), pair(y=2, x=n)


@case(3)
def effects(n: int):
    items = [1]
    no_result(items, n)
    no_result(v=4, items=items)
    return items


@case(torch.ones(2))
def tensors(x):
    return shift(x), shift(x, 2.0), shift(by=3.0, x=x)


@case(([1],), ([],))
def optional_results(items: List[int]):
    a = first_or(items)
    b = first_or(items, 7)
    return a, b


@case(2, differs="PyTorch takes no constants from outside")
def outside(n: int):
    return n * SCALE, NAME, SIZES[0] + SIZES[1]


@case(2, differs="PyTorch takes no keyword-only defaults")
def star_of_a_tuple(n: int):
    t = (n, 5)
    return pair(*t)


def even_steps(n: int) -> int:
    while n > 0:
        if n % 2 == 0:
            return n
        n -= 1
    return 0


@case(7, 4)
def returns_inside_of_calls(n: int):
    total = 0
    for i in range(n):
        total += even_steps(i)
    return total


def branchy(x, flag: bool):
    if flag:
        return x.relu()
    return x.sigmoid()


@case((torch.tensor([-1.0, 1.0]), True), (torch.tensor([-1.0, 1.0]), False))
def called_in_branches(x, flag: bool):
    y = branchy(x, flag)
    if flag:
        y = branchy(y, not flag)
    return y


@case(1, 5)
def raises(n: int):
    if n > 3:
        raise RuntimeError("too large")
    return n


@case(1, 5)
def raises_with_text(n: int):
    if n > 3:
        raise ValueError("n is %d" % n)
    return n


@case(1, 5)
def asserts(n: int):
    assert n < 3, "n must be small"
    return n


@case(1, 5)
def asserts_without_text(n: int):
    assert n < 3
    return n


@case(1, 5, 9)
def raises_in_a_loop(n: int):
    for i in range(n):
        if i == 7:
            raise IndexError("seven")
        if i == 3 and n == 5:
            return i
    return -1


@case(5)
def always_raises(n: int) -> int:
    raise NotImplementedError("later")


class OwnError(Exception):
    pass


@case(1, 5, differs="PyTorch makes a type of the class by its module")
def raises_its_own(n: int):
    if n > 3:
        raise OwnError("mine")
    return n


@case(torch.ones(2, requires_grad=True))
def without_grad(x):
    with torch.no_grad():
        y = x * 2
    z = x * 3
    return y.requires_grad, z.requires_grad


@case(torch.ones(2, requires_grad=True), differs="PyTorch has no enable_grad")
def grad_inside_of_no_grad(x):
    with torch.no_grad():
        with torch.enable_grad():
            y = x * 2
        z = y * 2
    return y.requires_grad, z.requires_grad, torch.is_grad_enabled()


@case((torch.ones(2, requires_grad=True), 1), (torch.ones(2, requires_grad=True), 5), differs="PyTorch fails inside")
def returns_inside_of_with(x, n: int):
    with torch.no_grad():
        if n > 3:
            return x * 2
        y = x + 1
    return y


@case((torch.ones(2, requires_grad=True), 3), differs="PyTorch fails inside")
def with_in_a_loop(x, n: int):
    total = x.sum()
    for i in range(n):
        with torch.no_grad():
            if i == 1:
                continue
            total = total + i
    return total.requires_grad, float(total)


class Scope:
    def __init__(self):
        self.depth = 0
        self.log: List[str] = []

    def __enter__(self):
        self.depth += 1
        self.log.append("in")
        return self

    def __exit__(self, type: Optional[int], value: Optional[int], trace: Optional[int]):
        self.depth -= 1
        self.log.append("out")


@case(3, differs="PyTorch wants Any in __exit__")
def with_an_object(n: int):
    s = Scope()
    with s:
        n += s.depth
    return n, s.depth, s.log


@case(torch.ones(2))
def scripting(x):
    if torch.jit.is_scripting():
        return x + 1
    else:
        return x + 1


@case(3)
def annotate(n: int):
    items = torch.jit.annotate(List[float], [])
    for i in range(n):
        items.append(float(i))
    return items


@case(2)
def prints(n: int):
    print("n is", n, float(n))
    return n


@case(([3, 1],), ([],))
def recursion_by_a_stack(items: List[int]):
    stack = [items]
    total = 0
    while len(stack) > 0:
        top = stack.pop()
        for v in top:
            total += v
            if v > 2:
                stack.append([v - 2])
    return total


@case(0.5)
def area(r: float):
    return math.pi * r**2
