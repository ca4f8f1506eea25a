"""Lists, dicts and tuples: literals, methods, comprehensions, references."""

from typing import Dict, List, Optional, Tuple


@case(3)
def list_literals(n: int):
    a = [1, 2, n]
    b: List[float] = []
    c = [[n], [1, 2]]
    d = ["x"] * 2
    return a, b, c, d, [1] + a, len(a)


@case(([1, 2, 3],))
def list_methods(a: List[int]):
    a.append(4)
    a.extend([5, 6])
    a.insert(0, 0)
    last = a.pop()
    first = a.pop(0)
    a.remove(3)
    a.reverse()
    return a, last, first, a.index(4), a.count(2)


@case(([3, 1, 2],))
def list_sort(a: List[int]):
    b = a.copy()
    a.sort()
    b.sort(reverse=True)
    c = sorted(b)
    b.clear()
    return a, b, c


@case(([1, 2, 3, 4, 5],))
def list_slices(a: List[int]):
    return a[1:3], a[:-1], a[::2], a[-2:], a[:], a[0], a[-1]


@case(([1, 2, 3, 4, 5],), differs="PyTorch assigns no slices")
def list_assignments(a: List[int]):
    a[0] = 10
    a[1] += 5
    a[2:4] = [7, 8]
    del a[4]
    return a


@case(([1, 2],), ([],))
def list_truth(a: List[int]):
    if len(a) > 0:
        return a[0]
    return -1


@case(([1, 2], 2), ([1, 2], 5))
def list_contains(a: List[int], v: int):
    return v in a, v not in a, a == [1, 2], a != [1, 2]


@case(([1, 2, 3],), ([],))
def comprehensions(a: List[int]):
    return [v * 2 for v in a], [float(i) for i in range(len(a))]


@case(([1, 2, 3, 4],), differs="PyTorch takes no conditions in comprehensions")
def comprehensions_with_conditions(a: List[int]):
    return [v for v in a if v % 2 == 0 if v > 2], [(i, j) for i in a for j in a if i < j]


@case(([1, 2, 3],))
def dict_comprehensions(a: List[int]):
    return {v: v * v for v in a}, {str(v): float(v) for v in a}


@case(torch.ones(2))
def lists_of_tensors(x):
    out = []
    for i in range(3):
        out.append(x * i)
    return out, torch.stack(out).sum()


@case(3)
def references(n: int):
    a = [n]
    b = a
    b.append(4)
    c = [a, b]
    c[0].append(5)
    return a, b, c


@case(2)
def dict_literals(n: int):
    a = {"x": n, "y": 2}
    b: Dict[int, float] = {}
    b[n] = 1.5
    c = {1: [1], 2: [2, 3]}
    return a, b, c, len(a)


@case(({"a": 1, "b": 2},))
def dict_methods(d: Dict[str, int]):
    d["c"] = 3
    d["a"] += 10
    popped = d.pop("b")
    e = d.copy()
    d.update({"z": 26})
    del d["c"]
    return d, popped, e, list(d.keys()), list(d.values()), "a" in d, "q" in d, d.get("q", 5), d.setdefault("r", 1)


@case(({"a": 1}, "a"), ({"a": 1}, "b"))
def dict_get(d: Dict[str, int], key: str):
    found = d.get(key)
    if found is None:
        return -1
    return found + 1


@case(({"a": torch.ones(1)},))
def dict_of_tensors(d: Dict[str, torch.Tensor]):
    d["b"] = d["a"] * 2
    total = torch.zeros(1)
    for name in d:
        total += d[name]
    return d, total


@case(([("a", 1), ("b", 2)],))
def dict_from_pairs(pairs: List[Tuple[str, int]]):
    return dict(pairs), dict({"x": 1})


@case((1, "two", 3.0))
def tuples(a: int, b: str, c: float):
    t = (a, b, c)
    x, y, z = t
    return t, t[0], t[-1], t[1:], x, y + "!", z, len(t)


@case(((1, 2.0),))
def tuple_arguments(t: Tuple[int, float]):
    a, b = t
    return a + b, t[0], t[1]


@case(2)
def nested_tuples(n: int):
    t = ((1, 2), (n, (4, "x")))
    (a, b), (c, (d, e)) = t
    return a + b + c + d, e, t[1][1][0]


@case((1, 2))
def swaps(a: int, b: int):
    a, b = b, a
    return a, b


@case(((1, 2), (1, 2)), ((1, 2), (2, 1)))
def tuple_comparison(a: Tuple[int, int], b: Tuple[int, int]):
    return a == b, a != b


@case(([[1, 2], [3]],))
def nested_lists(a: List[List[int]]):
    a[0][1] = 9
    a.append([4, 5])
    total = 0
    for row in a:
        for v in row:
            total += v
    return a, total


@case(([None, 1, 2],))
def lists_of_optionals(a: List[Optional[int]]):
    total = 0
    for v in a:
        if v is not None:
            total += v
    return total


@case(([1, 2, 3],))
def aggregate(a: List[int]):
    return sum(a), min(a), max(a), any([v > 2 for v in a]), all([v > 0 for v in a])


@case(([1, 2],))
def list_of_list(a: List[int]):
    b = list(a)
    b.append(3)
    return a, b, list(range(3)), list("ab")


@case(3)
def concatenation(n: int):
    a = [n]
    a += [1, 2]
    return a + [3], a * 2, [0] * n


@case(([1, 2, 3],))
def unpack_lists(a: List[int]):
    x, y, z = a
    return x + y * z


@case(([1, 2],))
def unpack_wrong_length(a: List[int]):
    x, y, z = a
    return x + y * z


@case(([1, 2], 5), ([1, 2], -1))
def index_errors(a: List[int], i: int):
    return a[i]


@case(({"a": 1}, "b"))
def key_errors(d: Dict[str, int], k: str):
    return d[k]


@case(2)
def empty_list_is_of_tensors(n: int):
    out = []
    for i in range(n):
        out.append(torch.full([1], float(i)))
    return torch.cat(out)


@case(([1, 2, 3],), differs="PyTorch needs the number of items")
def starred(a: List[int]):
    first, *rest = (1, 2, 3)
    return first, rest, max(*(3, 4))


@case(({1: "a", 2: "b"},))
def dict_by_ints(d: Dict[int, str]):
    out = ""
    for k, v in d.items():
        out += str(k) + v
    return out


@case(3, 0, differs="PyTorch makes lists of them")
def tuples_of_unknown_length(n: int):
    a = (1, 2) * n
    b = n * (0,) + (3,)
    return a, b, (0,) + b + (4, 5), len(b), b[-1], (7, 8) * 2
