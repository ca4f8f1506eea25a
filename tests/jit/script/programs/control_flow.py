"""If, while, for, break, continue, early return."""

from typing import Dict, List, Optional, Tuple


@case(1, 5, -3)
def if_else(x: int):
    if x > 3:
        y = x * 2
    else:
        y = x - 1
    return y


@case(1, 5, 12)
def elif_chain(x: int):
    if x < 2:
        return "small"
    elif x < 10:
        return "middle"
    else:
        return "large"


@case(0, 3, 10)
def while_sum(n: int):
    total, i = 0, 0
    while i < n:
        total += i
        i += 1
    return total, i


@case(0, 4)
def for_range(n: int):
    total = 0
    for i in range(n):
        total = total + i * i
    return total


@case((0, 10, 3), (10, 0, -4), (5, 5, 1), (-3, 4, 2))
def range_of_three(a: int, b: int, step: int):
    out: List[int] = []
    for i in range(a, b, step):
        out.append(i)
    return out


@case(0, 3, 20)
def break_out(n: int):
    found = -1
    for i in range(n):
        if i * i > 10:
            found = i
            break
    return found


@case(0, 3, 20)
def continue_over(n: int):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        if i > 10:
            break
        total += i
    return total


@case(0, 5, 100)
def return_from_loop(n: int):
    for i in range(n):
        if i > 7:
            return i * 10
    return -1


@case(0, 5, 12)
def return_from_nested_loops(n: int):
    for i in range(n):
        for j in range(i):
            if j == 3:
                return i, j
            if i + j == 9:
                break
        if i == 10:
            break
    return -1, -1


@case(4, 9)
def while_true(n: int):
    i = 0
    while True:
        i += 1
        if i > n:
            break
        if i % 2 == 0:
            continue
        n -= 1
    return i, n


@case((3, 1), (3, 7))
def break_keeps_what_was_set(n: int, limit: int):
    x = 0
    for i in range(n):
        x = i * 10
        if i == limit:
            x = 99
            break
        x += 1
    return x


@case(1, 5, 50)
def nested_ifs(x: int):
    y = 0
    if x > 2:
        if x > 10:
            y = 3
        else:
            y = 2
        y += 1
    return y


@case(1, 5, 50)
def return_deep_inside(x: int):
    if x > 2:
        if x > 10:
            return "big"
        y = "medium"
    else:
        y = "little"
    return y + "!"


@case((2, 3), (0, 5))
def loops_in_loops(n: int, m: int):
    total = 0
    for i in range(n):
        j = 0
        while j < m:
            j += 1
            if j == i:
                continue
            total += i * j
    return total


@case(torch.tensor([1.0, 2.0]), torch.tensor([-5.0, 1.0]))
def if_on_a_tensor(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


@case(torch.tensor(1.0), torch.tensor(50.0))
def while_on_a_tensor(x):
    count = 0
    while x < 40:
        x = x * 3
        count += 1
    return x, count


@case(torch.arange(6).reshape(3, 2), torch.zeros(0, 2))
def for_over_a_tensor(x):
    total = torch.zeros(2)
    for row in x:
        total = total + row
    return total


@case(([1, 2, 3],), ([],))
def for_over_a_list(items: List[int]):
    total = 0
    for v in items:
        total += v
    return total


@case("abc", "")
def for_over_a_string(text: str):
    out = ""
    for c in text:
        out = c + out
    return out


@case(3)
def for_over_a_tuple(n: int):
    total = 0.0
    for v in (1, 2, n):
        total += v * 2.0
    return total


@case(3, differs="PyTorch prints 3.0 as 3.")
def for_over_a_tuple_of_types(n: int):
    out = ""
    for v in (1, "two", 3.0, n):
        out += str(v)
    return out


@case(({"a": 1, "b": 2},))
def for_over_a_dict(d: Dict[str, int]):
    keys = ""
    total = 0
    for k in d:
        keys += k
        total += d[k]
    return keys, total


@case(({"a": 1, "b": 2},))
def for_over_items(d: Dict[str, int]):
    out: List[str] = []
    for k, v in d.items():
        out.append(k + str(v))
    for k in d:
        out.append(k)
    for v in d.values():
        out.append(str(v))
    return out


@case((["x", "y"], 0), (["x", "y"], 5))
def enumerate_a_list(items: List[str], start: int):
    out: List[Tuple[int, str]] = []
    for i, v in enumerate(items, start):
        out.append((i, v))
    for i, v in enumerate(items):
        out.append((i, v))
    return out


@case(([1, 2, 3], [4.0, 5.0]), ([], [1.0]))
def zip_lists(a: List[int], b: List[float]):
    total = 0.0
    for x, y in zip(a, b):
        total += x * y
    return total


@case(([1, 2, 3], ["a", "b", "c"]))
def enumerate_of_zip(a: List[int], b: List[str]):
    out = ""
    for i, (x, y) in enumerate(zip(a, b)):
        out += str(i) + str(x) + y
    return out


@case(([1, 2, 3],), differs="PyTorch takes no reversed")
def reversed_list(a: List[int]):
    out: List[int] = []
    for v in reversed(a):
        out.append(v)
    return out, [v for v in reversed(range(3))]


@case(3, 0)
def loop_variable_stays(n: int):
    i = -1
    for i in range(n):
        pass
    return i


@case(3)
def variable_of_a_loop_body(n: int):
    out: List[int] = []
    for i in range(n):
        twice = i * 2
        out.append(twice)
    return out


@case(5, differs="PyTorch asks for the same type")
def optional_by_a_loop(n: int):
    last = None
    for i in range(n):
        last = i
    return last


@case((3, True), (3, False))
def condition_is_a_bool(n: int, flag: bool):
    if flag and n > 2:
        return 1
    if not flag or n == 0:
        return 2
    return 3


@case(0, 2, 7)
def ternary(n: int):
    return "even" if n % 2 == 0 else ("one" if n == 1 else "odd")


@case(0, 2, 5, 9)
def chained_comparison(n: int):
    return 0 < n <= 5, 0 <= n < 3 < 4, 1 != n != 9


@case(0, 4)
def short_circuit(n: int):
    return n != 0 and 8 // n > 1, n == 0 or 8 // n > 1


@case(3, differs="PyTorch takes no ... as statement")
def pass_and_docstring(n: int):
    """Says nothing."""
    if n > 100:
        pass
    for _ in range(n):
        pass
    return n


@case(1, 3)
def returns_nothing(n: int):
    if n > 2:
        return
    n += 1


@case(1, 3)
def optional_result(n: int) -> Optional[int]:
    if n > 2:
        return n
    return None


@case(2, 20, 200)
def early_returns(n: int) -> str:
    if n < 10:
        return "a"
    if n < 100:
        if n == 50:
            return "fifty"
        n += 1
    else:
        return "c"
    n += 1
    return "b" + str(n)
