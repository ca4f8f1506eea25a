"""Names of PyTorch's executor, which say nothing here, and what a program needs to be read again."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


def double(x):
    return (x * 2).tanh()


def test_contexts_of_the_executor_change_no_bit():
    x = tg.linspace(-1, 1, 7)
    compiled = jit.script(double)
    expected = compiled(x).tolist()
    for context in (
        jit.optimized_execution(False),
        jit.optimized_execution(True),
        jit.fuser("fuser1"),
        jit.strict_fusion(),
    ):
        with context:
            assert compiled(x).tolist() == expected
    assert jit.onednn_fusion_enabled() is False and jit.enable_onednn_fusion(True) is None


def test_the_strategy_of_fusing_is_remembered():
    before = jit.set_fusion_strategy([("DYNAMIC", 1)])
    try:
        assert jit.set_fusion_strategy(before) == [("DYNAMIC", 1)]
    finally:
        jit.set_fusion_strategy(before)


def test_words_that_no_executor_has_are_refused():
    with pytest.raises(RuntimeError, match="unrecognized fuser option.*fuser0"):
        jit.fuser("fuser9")
    with pytest.raises(RuntimeError, match="'STATIC' or 'DYNAMIC'"):
        jit.set_fusion_strategy([("SOMETIMES", 1)])


def test_trace_takes_the_private_arguments_that_libraries_pass():
    traced = jit.trace(double, (tg.ones(2),), check_trace=False, _force_outplace=True, _module_class=None)
    assert traced(tg.zeros(3)).tolist() == [0, 0, 0]
    assert issubclass(jit.TracerWarning, Warning) and jit.TracerWarning.ignore_lib_warnings() is None


class Inner(tg.nn.Module):
    def forward(self, x):
        return x.exp()


class Outer(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        if x.sum() > 0:
            x = self.inner(x)
        return x + 1


def test_the_ops_that_a_program_needs_are_listed():
    names = jit.export_opnames(jit.script(Outer()))
    assert {"aten::exp", "aten::add.Tensor"} <= set(names) and names == sorted(names)
    with pytest.raises(AttributeError, match="no compiled program"):
        jit.export_opnames(double)
