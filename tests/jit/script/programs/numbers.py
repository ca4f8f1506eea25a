"""Arithmetic of int, float, bool, complex; conversions; math."""

import math


@case((7, 2), (-7, 2), (7, -2), (-7, -2), differs="PyTorch takes no unary +")
def whole_numbers(a: int, b: int):
    return a + b, a - b, a * b, a // b, a % b, -a, +a, abs(a)


@case((7, 2), (-7, 2), (7, -2))
def true_division(a: int, b: int):
    return a / b


@case((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0))
def floats(a: float, b: float):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a, abs(a)


@case((7, 2.5), (-7, 0.5))
def promotion(a: int, b: float):
    return a + b, b - a, a * b, a / b, b // a, a % b


@case((2, 10), (3, 0), differs="PyTorch gives a float for int ** int")
def power_of_ints(a: int, b: int):
    return a**b, a**2, a**3


@case((2.0, 0.5), (3.0, -1.0))
def power_of_floats(a: float, b: float):
    return a**b, a**2, 2**b


@case((12, 10), (0, 7), differs="PyTorch has no ~ for int")
def bits(a: int, b: int):
    return a & b, a | b, a ^ b, ~a, a << 2, a >> 1


@case((True, False), (True, True))
def bools(a: bool, b: bool):
    return a and b, a or b, not a, a == b, a != b


@case((True, False), differs="PyTorch has no operators on bools")
def bools_as_numbers(a: bool, b: bool):
    return a & b, a | b, a ^ b, a + b


@case(3.7, -3.7, 0.0)
def conversions(x: float):
    return int(x), float(int(x)), bool(x), str(int(x))


@case(7, 0, -2)
def conversions_of_ints(x: int):
    return float(x), bool(x), int(x), str(x)


@case(("12", "2.5"))
def numbers_from_text(a: str, b: str):
    return int(a) + 1, float(b) * 2


@case(2.5, 3.5, -1.2, differs="PyTorch has no math.trunc")
def rounding(x: float):
    return round(x), math.floor(x), math.ceil(x), math.trunc(x)


@case(2.345, differs="PyTorch rounds to whole numbers only")
def rounding_to_digits(x: float):
    return round(x, 2)


@case(0.3, 0.9)
def functions_of_math(x: float):
    return math.sin(x), math.cos(x), math.exp(x), math.log(x), math.sqrt(x), math.atan2(x, 2.0), math.pow(x, 2.0)


@case(0.3, differs="PyTorch has no math.log2")
def more_functions_of_math(x: float):
    return (
        math.erf(x),
        math.gamma(x),
        math.log2(x),
        math.log10(x),
        math.log1p(x),
        math.degrees(x),
        math.copysign(x, -1.0),
    )


@case((12, 18))
def whole_math(a: int, b: int):
    return math.gcd(a, b), math.factorial(5)


@case(1.0)
def constants_of_math(x: float):
    return x * math.pi, math.e, math.inf, math.isnan(math.nan), math.isinf(math.inf), math.isfinite(x)


@case((3, 5), (5, 3))
def extremes(a: int, b: int):
    return min(a, b), max(a, b), max(a, 4), min(a, b, 4)


@case((3, 4.5))
def extremes_of_two_types(a: int, b: float):
    return min(float(a), b), max(float(a), b)


@case(([3, 1, 2],))
def extremes_of_lists(items: list[int]):
    return min(items), max(items), sum(items), sorted(items)


@case((7, 3), (-7, 3))
def divmod_of_ints(a: int, b: int):
    return divmod(a, b)


@case((1, 2), (2, 2), (3, 2))
def comparisons(a: int, b: int):
    return a < b, a <= b, a > b, a >= b, a == b, a != b


@case((1, 1.5), (2, 2.0))
def comparisons_of_two_types(a: int, b: float):
    return a < b, a <= b, a > b, a == b, b != a


@case((1 + 2j, 3 - 1j))
def complex_numbers(a: complex, b: complex):
    return a + b, a * b, a - b, a == b


@case((1.5, 2.0), differs="PyTorch has no .real of a number")
def complex_from_parts(a: float, b: float):
    z = complex(a, b)
    return z, z.real, z.imag, abs(z)


@case(5, differs="PyTorch takes no //=")
def augmented(x: int):
    x += 2
    x *= 3
    x -= 1
    y = float(x)
    y /= 4
    x //= 3
    x %= 5
    return x, y


@case(255)
def other_bases(n: int):
    return hex(n), oct(n), bin(n), chr(65), ord("a")


@case(3)
def literals(n: int):
    return 0x10 + n, 1_000, 1e3, 0b101, 1.5e-3, True, None


@case((1, 0), (1, 1), differs="PyTorch gives inf where Python raises")
def division_by_zero(a: int, b: int):
    return a / b


@case((1, 0), (4, 2))
def floor_division_by_zero(a: int, b: int):
    return a // b


@case(10**15)
def large(n: int):
    return n * 1000 + 7, n // 3, n % 7


@case(torch.tensor(3), torch.tensor(2.5), torch.tensor([4]))
def numbers_from_tensors(x):
    return int(x), float(x), bool(x), x.item()


@case(torch.tensor(3.5))
def math_of_tensors(x):
    return math.sqrt(float(x)), math.floor(x.item())


@case((2, 3), (-2, -1))
def powers_of_math(a: int, b: int):
    return math.pow(a, b), math.pow(a, 2.0)


@case((4294967294, 4294967294), differs="PyTorch gives inf")
def a_power_that_no_float_holds(a: int, b: int):
    return math.pow(a, b)
