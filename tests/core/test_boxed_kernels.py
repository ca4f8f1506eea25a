"""Kernels stand in C behind one caller. Those that speak Python have it as their job; the number only falls."""

from tinygrad_ext.describe.speaking_python import REASONS, reason
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.registry import ops

AT_MOST = 7  # lower it when there are fewer, never raise it


def boxed():
    return {op.name: op.record.kernel for op in ops.values() if op.kernel_kind == "boxed"}


def test_a_kernel_that_speaks_python_has_it_as_its_job():
    assert set(boxed().values()) == {name for name in REASONS if "::" not in name}


def test_a_kernel_that_is_a_function_of_python_has_a_reason():
    own = {op.name for op in ops.values() if op.kernel_kind == "python" and op.record.owner == BUILTIN}
    assert own == {name for name in REASONS if "::" in name}
    assert all(reason(op) for op in ops.values() if op.kernel_kind in ("boxed", "python"))


def test_no_kernel_comes_that_speaks_python():
    assert len(set(boxed().values())) <= AT_MOST, sorted(boxed())
