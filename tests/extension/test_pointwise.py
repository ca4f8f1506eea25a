"""PointwiseExtension: scalar= of a plugin's records is compiled as that of the built-in ones is."""

import importlib.util
import subprocess

import pytest

import tinygrad_ext as tg
from tinygrad_ext.core.loops import loop_tables
from tinygrad_ext.registry import scope
from tinygrad_ext.registry.op_registrar import OpRegistrar
from tinygrad_ext.utils import cpp_extension

RECORDS = """
def register_all(register):
    register(
        "loops::add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        scalar={"alpha == 1": "x + y", "else": "x + alpha * y"},
        types="int float half complex",
    )
    register("loops::fade(Tensor self) -> Tensor", scalar="x * exp(-x)", promote="float", types="float")
    register("loops::low(Tensor self) -> Tensor", scalar="x < 0", returns="bool", types="int float")
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Build the loops of a text of records; gives the library and the function that registers them."""

    def make(text, *flags):
        folder = tmp_path_factory.mktemp("loops")
        source, path = folder / "records.py", folder / "_loops.so"
        source.write_text(text)
        e = cpp_extension.PointwiseExtension("_loops", [source], folder=folder / "c")
        words = ["cc", "-shared", "-fPIC", *e.extra_compile_args, *flags, f"-I{e.include_dirs[0]}", *e.sources]
        subprocess.run([*words, "-lm", "-o", str(path)], check=True)
        return path, _records(source)

    return make


def _records(source):
    spec = importlib.util.spec_from_file_location("records", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.register_all


@pytest.fixture(scope="module")
def library(build):
    return build(RECORDS)


@pytest.fixture
def ops(library):
    register = OpRegistrar(scope.application)
    register.loops(library[0])
    library[1](register)
    register.finish()
    return tg.ops.loops


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("alpha", [1, 3])
def test_the_same_expression_gives_the_same_bits_as_a_built_in_op(ops, dtype, alpha):
    x, y = (tg.randn(4, 999).mul(9).to(getattr(tg, dtype)) for _ in range(2))
    for a, b in ((x, y), (x.t(), y.t()), (x[:, ::3], y[:, ::3]), (x, y[:, :1]), (x[0], y)):
        assert tg.equal(ops.add(a, b, alpha=alpha), tg.add(a, b, alpha=alpha))


def test_other_results_and_promotion(ops):
    x = tg.arange(-3, 4)
    assert ops.fade(x).dtype == tg.float32 and tg.allclose(ops.fade(x), x * tg.exp(-x.float()))
    assert ops.low(x).tolist() == [True] * 3 + [False] * 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_graph_computes_it_as_a_built_in_one_would_be(ops, dtype):
    x = tg.randn(3000, dtype=getattr(tg, dtype))
    own = tg.jit.trace(lambda x: ops.add(ops.add(x * x, x), x, alpha=2) * 2 - x, (x,))
    built_in = tg.jit.trace(lambda x: tg.add(tg.add(x * x, x), x, alpha=2) * 2 - x, (x,))
    for _ in range(2):
        assert tg.equal(own(x), built_in(x))
    assert "loops::add" in str(own.graph)


def test_loops_come_and_go_with_their_owner(library):
    mark, before = scope.application.mark(), len(loop_tables.formulas())
    for _ in range(2):
        register = OpRegistrar(scope.application)
        register.loops(library[0])
        library[1](register)
        register.finish()
        assert {"loops::add"} <= _plain() and "loops::fade" not in _plain()  # exp is no plain arithmetic
        assert tg.ops.loops.fade(tg.zeros(2)).tolist() == [0, 0]
        scope.application.undo(mark)
        assert len(loop_tables.formulas()) == before and "loops::add" not in loop_tables.tables


def _plain():
    return {name for _, name in loop_tables.formulas().values()}


def test_a_record_that_changed_since_the_build_is_refused(library):
    register = OpRegistrar(scope.application)
    register.loops(library[0])
    with pytest.raises(
        RuntimeError, match="loops::low.* its loops were compiled from something else.*Build the package"
    ):
        register("loops::low(Tensor self) -> Tensor", scalar="x < 1", returns="bool", types="int float")
    with pytest.raises(TypeError, match="has brought no loops for it: name the file in PointwiseExtension"):
        register("loops::new(Tensor self) -> Tensor", scalar="x")


def test_what_is_no_library_of_loops_is_told(build, library, tmp_path):
    register = OpRegistrar(scope.application)
    text = tmp_path / "_loops.so"
    text.write_text("no")
    with pytest.raises(OSError, match="_loops.so"):
        register.loops(text)
    plain = tmp_path / "plain.so"
    source = tmp_path / "plain.c"
    source.write_text("int x;")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(plain)], check=True)
    with pytest.raises(ImportError, match="exports no tgx_loops_v1. Build it as PointwiseExtension"):
        register.loops(plain)
    newer, _ = build(RECORDS, "-include", str(_of_version(99, tmp_path)))
    with pytest.raises(ImportError, match="has loops of version 99 .* Build it with this tinygrad_ext"):
        register.loops(newer)
    other, _ = build(
        'def f(register):\n    register("aten::own(Tensor self) -> Tensor", scalar="x")\ndef register_all(r): pass\n'
    )
    with pytest.raises(RuntimeError, match="the namespace 'aten' belongs to tinygrad_ext"):
        register.loops(other)
    assert "aten::own" not in loop_tables.tables


def _of_version(number, folder):
    """A header that plays another version of the package's."""
    header = folder / "played.h"
    header.write_text(f'#include "loop_library.h"\n#undef TGX_LOOP_LIBRARY\n#define TGX_LOOP_LIBRARY {number}\n')
    return header


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1\n", "no call of register"),
        (
            'def f(register, s):\n    register(s, scalar="x")\n',
            r"records.py:2: what the build reads of a record is a literal",
        ),
        (
            'E = "x"\ndef f(register):\n    register("a::b(Tensor self) -> Tensor", scalar=E)\n',
            "records.py:3: .* literal",
        ),
    ],
)
def test_records_that_cannot_be_read_are_told(tmp_path, text, words):
    source = tmp_path / "records.py"
    source.write_text(text)
    with pytest.raises(ValueError, match=words):
        cpp_extension.PointwiseExtension("_loops", [source], folder=tmp_path / "c")
