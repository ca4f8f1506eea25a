"""Optional and Union, narrowed by conditions, assert and early return."""

from typing import Any, Dict, List, Optional, Tuple, Union


@case(1, None)
def is_none(x: Optional[int]):
    if x is None:
        return 0
    return x + 1


@case(1, None)
def is_not_none(x: Optional[int]):
    if x is not None:
        y = x + 1
    else:
        y = -1
    return y


@case(1, None)
def given_a_value(x: Optional[int]):
    if x is None:
        x = 5
    return x * 2


@case((1, 2), (1, None), (None, 2))
def by_and(x: Optional[int], y: Optional[int]):
    if x is not None and y is not None:
        return x + y
    return 0


@case((1, 2), (1, None), (None, None))
def by_or(x: Optional[int], y: Optional[int]):
    if x is None or y is None:
        return 0
    return x + y


@case((1,), (None,), (20,))
def within_the_condition(x: Optional[int]):
    if x is not None and x > 10:
        return "large"
    if x is None or x < 0:
        return "nothing"
    return "small"


@case(1, None)
def by_assert(x: Optional[int]):
    assert x is not None
    return x + 1


@case(1, None)
def by_raise(x: Optional[int]):
    if x is None:
        raise ValueError("needs a number")
    return x + 1


@case(1, None)
def by_not(x: Optional[int]):
    if not (x is None):
        return x + 1
    return 0


@case(1, None)
def by_ternary(x: Optional[int]):
    return x + 1 if x is not None else 0


@case(([1, None, 3],), differs="PyTorch narrows by return only")
def by_continue(items: List[Optional[int]]):
    total = 0
    for v in items:
        if v is None:
            continue
        total += v
    return total


@case(([1, None, 3],), differs="PyTorch narrows by return only")
def by_break(items: List[Optional[int]]):
    total = 0
    for v in items:
        if v is None:
            break
        total += v
    return total


@case((torch.ones(2), None), (torch.ones(2), torch.ones(2)))
def optional_tensors(x, y: Optional[torch.Tensor] = None) -> torch.Tensor:
    if y is None:
        y = torch.zeros_like(x)
    return x + y


@case((1,), ("abc",))
def unions(x: Union[int, str]) -> int:
    if isinstance(x, int):
        return x + 1
    else:
        return len(x)


@case((1,), ("abc",), (2.5,))
def unions_of_three(x: Union[int, str, float]) -> str:
    if isinstance(x, str):
        return x + "!"
    if isinstance(x, int):
        return str(x + 1)
    assert isinstance(x, float)
    return str(int(x))


@case((1,), (None,), ("a",))
def unions_with_none(x: Union[int, str, None]) -> int:
    if x is None:
        return 0
    elif isinstance(x, int):
        return x
    return len(x)


@case((1,), ("abc",), (2.5,))
def isinstance_of_several(x: Union[int, str, float]) -> str:
    if isinstance(x, (int, float)):
        return "number"
    return x


@case(3)
def isinstance_known(x: int):
    if isinstance(x, int):
        return 1
    return "never"


@case(0, 3)
def assigned_on_both_ways(n: int):
    x: Optional[int] = None
    if n > 2:
        x = n
    if x is not None:
        return x
    return -1


@case(0, 3, 6)
def optional_in_a_loop(n: int):
    last: Optional[int] = None
    for i in range(n):
        if last is not None:
            last = last + i
        elif i > 1:
            last = 10
    return last


@case(5, differs="PyTorch does not narrow in while")
def while_not_none(n: int):
    x: Optional[int] = n
    count = 0
    while x is not None:
        count += x
        if x > 1:
            x = x - 1
        else:
            x = None
    return count


@case(({"a": 1},))
def of_dict_get(d: Dict[str, int]):
    x = d.get("a")
    y = d.get("b")
    out = 0
    if x is not None:
        out += x
    if y is not None:
        out += 100
    return out


@case(((1, None),), ((None, 2),))
def in_tuples(t: Tuple[Optional[int], Optional[int]]):
    a, b = t
    if a is None:
        a = 7
    if b is None:
        b = 9
    return a * 10 + b


def or_default(x: Optional[int], default: int) -> int:
    if x is None:
        return default
    return x


@case(1, None)
def through_a_call(x: Optional[int]):
    return or_default(x, 5) + or_default(None, 1) + or_default(3, 1)


@case(([1, 2],), (["a"],))
def jit_isinstance(x: Any):
    if torch.jit.isinstance(x, List[int]):
        return len(x) + x[0]
    return 0


@case(0, 1, differs="PyTorch makes a bool of it")
def or_of_values(x: int):
    return x or 7, x and 8


@case(None, 3, differs="PyTorch takes no or of an Optional")
def or_of_optional(x: Optional[int]):
    y = x or 5
    return y + 1


@case(0, 1, 2)
def declared_in_each_branch(n: int):
    if n == 0:
        x: Union[int, str, None] = "zero"
    elif n == 1:
        x: Union[int, str, None] = 1
    else:
        x: Union[int, str, None] = None
    if isinstance(x, str):
        return len(x)
    return -1
