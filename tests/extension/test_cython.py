"""tgx.pxd: a module of Cython that registers ops through the table."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.registry import scope
from tinygrad_ext.utils import cpp_extension

from .conftest import SAMPLES


def test_a_module_registers_ops_with_derivatives(_cache):
    module = cpp_extension.load("cubes", SAMPLES / "cubes.pyx")
    assert module.loaded.ops == ["cubes::cube"]
    x = tg.tensor([1.0, -2.0], dtype=tg.float64, requires_grad=True)
    f = tg.ops.cubes.cube
    for _ in range(10):
        assert f(x).tolist() == [1, -8]
    assert tg.autograd.gradcheck(f, (x,)) and tg.autograd.gradgradcheck(f, (x,))
    assert tg.func.hessian(lambda v: f(v).sum())(x.detach()).tolist() == [[6, 0], [0, -12]]
    with pytest.raises(TypeError, match="cubes::cube: x must be float64"):
        f(tg.ones(2))


def test_a_mistake_is_told_by_its_line(tmp_path, _cache):
    source = tmp_path / "wrong.pyx"
    source.write_text("from tgx cimport *\ncdef int x = no_such_name\n")
    with pytest.raises(RuntimeError, match=rf"{source}:2:"):
        cpp_extension.load("wrong", source)


def test_a_text_is_a_module(_cache):
    text = "def add(int a, int b):\n    return a + b\n"
    made = cpp_extension.load_inline("adds", cython_sources=text)
    assert made.add(2, 3) == 5 and cpp_extension.load_inline("adds", cython_sources=text) is made


FACTS = """
from tgx cimport *

cdef int same(tgx_ctx *c, void *self, const tgx_value *inputs, int32_t n, tgx_value *out, int32_t m) noexcept:
    tgx.retain(inputs[0].u.t)
    out[0] = inputs[0]
    return 0

cdef int init(tgx_ctx *c) noexcept:
    cdef tgx_op_def d = tgx_op_of("told::same(Tensor x) -> Tensor")
    d.kernel = same
    return tgx.register_op(c, &d)

def start(facts=None):
    return tgx_start("told", "1.0", init, facts)
"""


def test_facts_of_python_come_with_the_ops_and_go_with_them(_cache):
    module = cpp_extension.load_inline("told", cython_sources=FACTS)
    mark = scope.application.mark()
    for _ in range(2):  # a plugin is taken back and loaded again, its module is imported once
        assert module.start({"same": {"doc": "x"}}).ops == ["told::same"]
        assert registry.ops["told::same"].record.doc == "x"
        scope.application.undo(mark)
        assert "told::same" not in registry.ops
    with pytest.raises(ValueError, match="facts about 'other', but the extension registers told::same"):
        module.start({"other": {}})
    assert "told::same" not in registry.ops
