"""Rows of Fourier transforms: the table of cases goes on here. Powers of two, a mixed length, a prime; many rows."""

from .cases import CASES, Case, Variant

REAL, PAIRS = [Variant("float32", False)], [Variant("complex64", False)]


def row(name, function, *shape, variants=REAL, **given):
    """A function of the module fft on one operand, each part between -1 and 1."""

    def build(lib, draw):
        array = draw.array(*shape)
        if variants is PAIRS:
            array = array + 1j * draw.array(*shape)
        operand, call = lib.tensor(array.astype(draw.dtype)), getattr(lib.module.fft, function)
        return lambda: call(operand, **given)

    CASES.append(Case(name, "transforms", 1.0, build, variants, ("numpy",)))


for shape, size in (
    ((1024,), "1024"),
    ((4096,), "4096"),
    ((65536,), "65536"),
    ((1 << 20,), "1M"),
    ((1000,), "1000"),
    ((1009,), "1009"),
    ((64, 1024), "64 x 1024"),
):
    row(f"fft {size}", "fft", *shape, variants=PAIRS)
    row(f"rfft {size}", "rfft", *shape)
    row(f"irfft {size}", "irfft", *shape[:-1], shape[-1] // 2 + 1, variants=PAIRS, n=shape[-1])

row("fft2 512 x 512", "fft2", 512, 512, variants=PAIRS)
