"""Strings: methods, slices, formatting."""


@case(("abc", "de"), ("", "x"), differs="PyTorch repeats no strings")
def joining(a: str, b: str):
    return a + b, a * 2, ", ".join([a, b]), a == b, a < b, a in b, len(a)


@case("Hello World", "a,b c")
def cases(s: str):
    return s.upper(), s.lower(), s.capitalize(), s.title(), s.swapcase()


@case("  pad ", "xxaxx")
def strips(s: str):
    return s.strip(), s.lstrip(), s.rstrip(), s.strip("x"), s.lstrip("x"), s.rstrip("x")


@case("a,b,,c", "")
def splits(s: str):
    return s.split(","), s.rsplit(",", 1), s.split(",", 1), s.partition(","), s.rpartition(",")


@case("one two  three")
def splits_at_blanks(s: str):
    return s.split(), s.splitlines()


@case("banana")
def finds(s: str):
    return s.find("an"), s.rfind("an"), s.find("x"), s.count("a"), s.index("n"), s.find("a", 2), s.find("a", 2, 3)


@case("banana")
def tests(s: str):
    return s.startswith("ba"), s.endswith("na"), s.isalpha(), s.isdigit(), s.islower(), s.isupper(), s.isspace()


@case("banana")
def replaces(s: str):
    return s.replace("a", "o"), s.replace("a", "o", 2)


@case("ab")
def pads(s: str):
    return s.center(6), s.ljust(5), s.rjust(5), s.zfill(4), s.center(7, "*")


@case("hello")
def slices(s: str):
    return s[0], s[-1], s[1:3], s[:2], s[2:], s[::2], s[:-1]


@case((3, 2.5, "x"), differs="PyTorch knows {} only")
def formats(n: int, x: float, s: str):
    return f"{n} and {s}", f"{s} {n} {s}"


@case((3, 2.5, "x"), differs="PyTorch knows {} only")
def formats_with_specs(n: int, x: float, s: str):
    return f"{n:03d} {x:.2f} {s!r:>5} {n:{n}}", f"{n:>4}|{s:<4}|"


@case((3, "x"))
def f_strings(n: int, s: str):
    return f"{n} is {s}", f"{s}{s}", "plain", f"{{{n}}}"


@case((3, 2.5, "x"))
def percent(n: int, x: float, s: str):
    return "%d" % n, "%s and %s" % (s, n), "%d %s" % (n, s)


@case("a-b-c")
def loops(s: str):
    out: list[str] = []
    word = ""
    for c in s:
        if c == "-":
            out.append(word)
            word = ""
        else:
            word += c
    out.append(word)
    return out


@case("level", "python")
def palindrome(s: str):
    i, j = 0, len(s) - 1
    while i < j:
        if s[i] != s[j]:
            return False
        i += 1
        j -= 1
    return True


@case("x")
def escapes(s: str):
    return "a\tb\n" + s + "\\", 'q"q', "é" + s


@case(("b", "a"))
def order(a: str, b: str):
    return a < b, a > b, a <= b, a >= b, sorted([a, b])


@case("a1b22")
def digits(s: str):
    total = 0
    for c in s:
        if c.isdigit():
            total = total * 10 + int(c)
    return total


@case(torch.ones(1))
def text_of_values(x):
    return str(1) + str(2.5) + str(True), str(x.size(0))
