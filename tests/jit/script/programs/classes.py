"""Classes, dataclasses, named tuples, enums."""

from dataclasses import InitVar, dataclass, field
from enum import Enum
from typing import Dict, List, NamedTuple, Optional


class Counter:
    def __init__(self, start: int, step: int = 1):
        self.value = start
        self.step = step
        self.log: List[int] = []

    def next(self) -> int:
        self.value += self.step
        self.log.append(self.value)
        return self.value

    def twice(self):
        self.next()
        return self.next()


@case(1, 5)
def counter(n: int):
    c = Counter(n)
    c.next()
    c.twice()
    c.step = 10
    c.next()
    d = Counter(0, step=3)
    return c.value, c.log, d.next(), d.step


@case(3)
def objects_are_references(n: int):
    a = Counter(n)
    b = a
    b.next()
    items = [a, Counter(7)]
    items[0].next()
    return a.value, items[1].value


def use_counter(c: Counter, n: int) -> int:
    for _ in range(n):
        c.next()
    return c.value


@case(3)
def objects_as_arguments(n: int):
    c = Counter(0)
    return use_counter(c, n) + c.value


class Vector:
    def __init__(self, x: float, y: float):
        self.x = x
        self.y = y

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k: float) -> "Vector":
        return Vector(self.x * k, self.y * k)

    def __eq__(self, other: "Vector") -> bool:
        return self.x == other.x and self.y == other.y

    def __lt__(self, other: "Vector") -> bool:
        return self.x < other.x

    def __neg__(self) -> "Vector":
        return Vector(-self.x, -self.y)

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> float:
        if i == 0:
            return self.x
        return self.y

    def __setitem__(self, i: int, v: float):
        if i == 0:
            self.x = v
        else:
            self.y = v

    def __contains__(self, v: float) -> bool:
        return v == self.x or v == self.y

    def __str__(self) -> str:
        return "<" + str(int(self.x)) + ">"

    def __call__(self, k: int) -> float:
        return self.x * k

    @property
    def norm1(self) -> float:
        return abs(self.x) + abs(self.y)

    @staticmethod
    def unit() -> "Vector":
        return Vector(1.0, 0.0)


@case((1.0, 2.0), differs="PyTorch makes no __ne__ of __eq__")
def magic(a: float, b: float):
    v = Vector(a, b) + Vector.unit() * 3.0
    w = -v
    v[1] = 7.5
    return v.x, v.y, w.x, v == w, v != w, w < v, len(v), v[0], v.norm1, 7.5 in v, v(2), str(v)


class Base:
    def __init__(self, k: int):
        self.k = k

    def scaled(self, x: int) -> int:
        return x * self.k


class Holder:
    def __init__(self, x):
        self.x = x
        self.inner = Base(3)
        self.maybe: Optional[int] = None

    def run(self) -> int:
        m = self.maybe
        if m is None:
            self.maybe = 4
            m = 0
        return self.inner.scaled(m + 1)


@case(torch.ones(2), differs="PyTorch learns no annotation in __init__")
def nested_objects(x):
    h = Holder(x)
    first = h.run()
    second = h.run()
    h.inner.k = 10
    return h.x + 1, first, second, h.run()


@case((3, 0), (3, 5))
def objects_in_branches(n: int, m: int):
    if m > 2:
        c = Counter(n, m)
    else:
        c = Counter(n)
    for _ in range(2):
        c.next()
    return c.value


class Point(NamedTuple):
    x: int
    y: float = 0.5
    name: str = "p"


@case(3)
def named_tuples(n: int):
    p = Point(n)
    q = Point(1, name="q", y=2.0)
    a, b, c = q
    return p, p.x + 1, q.y, q.name, p[0], a, b, c, len(q)


@case((Point(1, 2.0),))
def named_tuple_arguments(p: Point):
    return p.x, p.y, Point(p.x + 1, p.y, "next")


@dataclass
class Config:
    size: int
    rate: float = 0.1
    name: str = "net"

    def scaled(self, k: int) -> float:
        return self.size * self.rate * k


@case(4, differs="PyTorch wants the source of the made __init__")
def dataclasses(n: int):
    c = Config(n)
    d = Config(size=1, rate=2.0)
    c.size += 1
    return c.size, c.rate, d.scaled(3), c.name


class Color(Enum):
    RED = 1
    GREEN = 2


@case((Color.RED,), (Color.GREEN,))
def enums(c: Color):
    if c == Color.RED:
        return "red"
    return "other"


@case((Color.RED,), differs="PyTorch compares enums by value only")
def enum_parts(c: Color):
    return c.name, c.value, c == Color.GREEN, c != Color.GREEN, c is Color.RED


@case()
def enum_members():
    total = 0
    for c in Color:
        total += c.value
    return total


@case(differs="PyTorch has no enums as keys")
def enums_in_containers():
    d: Dict[Color, int] = {Color.RED: 1}
    d[Color.GREEN] = 2
    return d[Color.RED] + d[Color.GREEN], Color.RED in [Color.GREEN]


class Account:
    def __init__(self, start: int):
        self.total = start

    def add(self, n: int) -> int:
        self.total += n
        return self.total


class Taxed(Account):
    def __init__(self, start: int, tax: int):
        super().__init__(start)
        self.tax = tax

    def add(self, n: int) -> int:
        return super().add(n - self.tax)


@case(10, differs="PyTorch takes no bases of classes")
def bases(n: int):
    a = Taxed(n, 2)
    a.add(5)
    return a.add(1), a.total, a.tax


@dataclass(order=True)
class Version:
    major: int
    minor: int = 0


@case(1, 2, 3, differs="PyTorch compiles the methods of a dataclass with order only where it is scripted by name")
def ordered_dataclasses(n: int):
    a, b = Version(n, 1), Version(2)
    return a < b, a <= b, a > b, a >= b, a == b


class Turned:
    def __init__(self, x):
        self.x = x

    def turn(self):
        self.x = -self.x
        return self


@case(torch.tensor([1.0, -2.0]))
def tensors_that_an_object_holds_in_turn(x):
    first = Turned(x)
    second = Turned(x * 2)
    return -first.turn().x, first.turn().turn().x, second.x, second.turn().x


class Box:
    def __init__(self, number: float, tensor: torch.Tensor):
        self.number = number
        self.tensor = tensor


@case((1.5, torch.tensor([2.0])), (0.0, torch.tensor([1.0])))
def tensors_in_objects(n: float, x):
    box = Box(n, x)
    box.tensor = torch.tensor(box.number) + box.tensor * 2
    other = Box(float(box.tensor), box.tensor)
    return box.tensor * 3, other.tensor + other.number


@dataclass
class Ranged:
    low: float
    width: InitVar[Optional[float]] = None
    names: List[str] = field(default_factory=list)
    wide: bool = field(init=False, default=False)
    high: float = field(init=False, default=0.0)

    def __post_init__(self, width: Optional[float]):
        self.high = self.low
        if width is not None:
            self.high += width
            self.wide = width > 1.0


@case((1.0, 2.0), (0.5, 0.5), differs="it has no default factories")
def dataclasses_with_init_vars(low: float, width: float):
    a, b, c = Ranged(low), Ranged(low, width), Ranged(low, width=width + 1.0, names=["c"])
    a.names.append("a")
    return a.high, a.wide, b.high, b.wide, c.high, c.wide, a.names, b.names, c.names
