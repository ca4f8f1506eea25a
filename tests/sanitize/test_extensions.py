"""Samples of compiled extensions, and the sources of packages, which `make sanitize` compiles with the sanitizers."""

import os
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext.registry import scope
from tinygrad_ext.utils import compiling, cpp_extension

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "extension" / "samples"
PLUGINS = ROOT / "plugins"


@pytest.fixture
def load(tmp_path):
    mark = scope.application.mark()
    yield lambda name, path: cpp_extension.load(name, path, build_directory=tmp_path)
    scope.application.undo(mark)


def run_through(op, args, wanted_grads):
    """Eagerly, watched and not; twice differentiated; in a graph."""
    inputs = [a.detach().requires_grad_(i in wanted_grads) for i, a in enumerate(args) if isinstance(a, tg.Tensor)]
    rest = args[len(inputs) :]
    for _ in range(9):
        y = op(*inputs, *rest)
    chosen = [inputs[i] for i in wanted_grads]
    squared = op(*[t * t if t.requires_grad else t for t in inputs], *rest)
    grads = tg.autograd.grad(squared, chosen, tg.ones_like(y), create_graph=True)
    tg.autograd.grad(sum(g.sum() for g in grads), chosen)
    plain = [t.detach() for t in inputs]
    assert tg.jit.trace(lambda *ts: op(*ts, *rest), tuple(plain))(*plain).equal(op(*plain, *rest))
    return y


def test_roi_align(load):
    load("vision", PLUGINS / "vision/src/tgx_vision/roi_align.c")
    rois = tg.tensor([[1, 0.5, 0.5, 7.5, 6], [0, -9.0, -9, 30, 40], [0, 3.0, 3, 3, 3]], dtype=tg.float64)
    image = tg.rand(2, 8, 3, 7, dtype=tg.float64).transpose(1, 2)
    for sampling in (2, 0):
        y = run_through(tg.ops.vision.roi_align, (image, rois, 0.5, 3, 2, sampling), [0])
        assert y.shape == (3, 3, 3, 2)
    assert tg.ops.vision.roi_align(image[:, :0], rois, 1.0, 2, 2, 2).shape == (3, 0, 2, 2)


def test_a_gate_in_c_plus_plus(load):
    load("gates", PLUGINS / "gates/src/tgx_gates/gates.cpp")
    for shape in ((3, 5), (1,), (0, 2)):
        x, g = (tg.randn(*shape, dtype=tg.float64) for _ in range(2))
        assert tg.allclose(run_through(tg.ops.gates.swiglu, (x, g), [0, 1]), x * g * g.sigmoid())


@pytest.mark.parametrize("way", ["by_call", "by_hand", "composite"])
def test_squares(load, way):
    load("squares", SAMPLES / "squares.c")
    x = tg.randn(4, 6, dtype=tg.float64)[:, 1::2].t()
    assert run_through(getattr(tg.ops.squares, way), (x,), [0]).equal(x * x)
    assert tg.vmap(tg.ops.squares.forward)(x).equal(x * x)


def test_values_of_every_kind(load):
    load("values", SAMPLES / "values.c")
    values = tg.ops.values
    assert values.echo6(list(range(5000))) == list(range(5000)) and values.echo20("") == ""
    assert values.tell29({"a": 1, "b" * 300: 2}).startswith("dict2(")
    assert values.echo22([]) == [] and values.echo17([True, 1, 2.0, 3j]) == [True, 1, 2.0, 3j]


@pytest.mark.skipif("-fsanitize" not in os.environ.get("CC", ""), reason="the compiler is not told to sanitize")
def test_what_is_compiled_here_is_instrumented(load, tmp_path):
    load("squares", SAMPLES / "squares.c")
    (library,) = tmp_path.glob("*.so")
    assert b"__asan_report_load" in library.read_bytes() and "-fsanitize" in " ".join(compiling.command("c"))
