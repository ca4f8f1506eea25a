"""Floats that lie outside of the integers they become: one number of the processor's, in every layout."""

import pytest

import tinygrad_ext as tg

LOW32, LOW64 = -(2**31), -(2**63)
FLOATS = [
    -129.9,
    1e5,
    2.0**31 - 1,
    2.0**31,
    2.0**31 + 300,
    3e9,
    -3e9,
    2.0**40 + 3,
    2.0**63,
    -(2.0**64),
    1e30,
    float("inf"),
    float("nan"),
]
NEAR = [int(x) if abs(x) < 2**31 else LOW32 for x in FLOATS[:-2]] + [LOW32, LOW32]
FAR = [int(x) if abs(x) < 2**63 else LOW64 for x in FLOATS[:-2]] + [LOW64, LOW64]
WANTED = {
    "int32": NEAR,
    "int16": [(x + 2**15) % 2**16 - 2**15 for x in NEAR],
    "uint16": [x % 2**16 for x in NEAR],
    "int8": [(x + 2**7) % 2**8 - 2**7 for x in NEAR],
    "uint8": [x % 2**8 for x in FAR],
    "uint32": [x % 2**32 for x in FAR],
    "int64": FAR,
}
# the whole of a vector, its rest, and elements of their own
LAYOUTS = {
    "one": lambda x: x,
    "many": lambda x: x.expand(67).contiguous(),
    "apart": lambda x: x.expand(67).contiguous().reshape(-1, 1).repeat(1, 3)[:, 1],
    "turned": lambda x: x.expand(17, 19).contiguous().t(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", WANTED)
def test_floats_outside_of_an_integer_become_its_least_number(name, layout):
    for source in (tg.float64, tg.complex128):
        for value, wanted in zip(FLOATS, WANTED[name]):
            got = LAYOUTS[layout](tg.tensor(value, dtype=source)).to(getattr(tg, name))
            assert set(got.flatten().tolist()) == {wanted}, (value, source)


@pytest.mark.parametrize("source", ["float32", "bfloat16", "float16", "complex64"])
def test_narrow_floats_alike(source):
    for name in ("int32", "int16", "int8"):
        for value in (float("inf"), float("-inf"), float("nan")):
            x = tg.full((35,), value, dtype=getattr(tg, source)).to(getattr(tg, name))
            assert set(x.tolist()) == {LOW32 if name == "int32" else 0}, (name, value)
    x = tg.full((35,), 2.0**31, dtype=tg.float32)
    assert set(x.int().tolist()) == {LOW32} and set(x.long().tolist()) == {2**31}


@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16", "float16"])
def test_they_are_pytorchs(source):
    torch = pytest.importorskip("torch")
    for name in ("int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"):
        for value in FLOATS:
            ours = tg.full((67,), value, dtype=tg.float64).to(getattr(tg, source))
            theirs = torch.full((67,), value, dtype=torch.float64).to(getattr(torch, source))
            assert ours.to(getattr(tg, name)).tolist() == theirs.to(getattr(torch, name)).tolist(), (name, value)
