"""Rows of complex numbers: the table of cases goes on here."""

from .cases import CASES, Case, Variant

COMPLEX = [Variant("complex64", False), Variant("complex128", False)]


def row(name, call, *shapes):
    """A call on complex operands, each part between -1 and 1."""

    def build(lib, draw):
        def number(*shape):
            array = draw.array(*shape) + 1j * draw.array(*shape).real
            return lib.tensor(array.astype(draw.dtype))

        return call(lib.module, *[number(*shape) for shape in shapes])

    CASES.append(Case(f"complex {name}", "complex", 1.0, build, COMPLEX, ("numpy",)))


def _conj(module, a):
    """PyTorch's conj() is a view that postpones the work."""
    conj = getattr(module, "conj_physical", None) or module.conj
    return lambda: conj(a)


for n, size in ((10_000, "10k"), (1 << 20, "1M")):
    row(f"add {size}", lambda m, a, b: lambda: a + b, (n,), (n,))
    row(f"mul {size}", lambda m, a, b: lambda: a * b, (n,), (n,))
    row(f"div {size}", lambda m, a, b: lambda: a / b, (n,), (n,))
    row(f"conj {size}", _conj, (n,))
    row(f"abs {size}", lambda m, a: lambda: abs(a), (n,))
    row(f"exp {size}", lambda m, a: lambda: m.exp(a), (n,))
    row(f"sum {size}", lambda m, a: lambda: a.sum(), (n,))

row("matmul 100", lambda m, a, b: lambda: a @ b, (100, 100), (100, 100))
row("matmul 1000", lambda m, a, b: lambda: a @ b, (1000, 1000), (1000, 1000))
