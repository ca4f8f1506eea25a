"""Kernels stand in C behind one caller. Those that speak Python are counted, with a reason; the number only falls."""

from tinygrad_ext.registry import ops

PYTHON = "its job is Python"
LATER = "not yet in C"

# By the kernel's name: what it takes or gives is a Python object, so there is nothing for C without Python to do.
JOB = {
    "basic_index": "reads an index: ints, slices, None, Ellipsis, tuples of them",
    "basic_index_backward": "reads the same index",
    "tensor": "reads nested lists of anything that is a number",
    "item": "gives a Python number",
    "tolist": "gives nested lists of Python numbers",
}
AT_MOST = 41  # ops whose kernel is not yet in C: lower it when some are, never raise it


def boxed():
    """{op: reason} for every op whose kernel speaks Python."""
    found = (op for op in ops.values() if op.kernel_kind == "boxed")
    return {op.name: PYTHON if op.record.kernel in JOB else LATER for op in found}


def test_no_kernel_comes_that_speaks_python():
    waiting = sorted(name for name, reason in boxed().items() if reason == LATER)
    assert len(waiting) <= AT_MOST, f"{len(waiting)} kernels speak Python, at most {AT_MOST} may: {waiting}"


def test_each_kernel_whose_job_is_python_is_there_and_boxed():
    kernels = {op.record.kernel for op in ops.values() if op.kernel_kind == "boxed"}
    assert set(JOB) <= kernels
