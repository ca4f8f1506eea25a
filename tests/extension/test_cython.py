"""tgx.pxd: a module of Cython that registers ops through the table."""

import pytest

import tinygrad_ext as tg
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
