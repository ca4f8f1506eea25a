"""Kernels stand in C behind one caller. Those that speak Python have it as their job; the number only falls."""

from tinygrad_ext.registry import ops

# By the kernel's name: what it takes or gives is a Python object, or memory that only the runtime knows, so there is
# nothing for C without Python to do.
JOB = {
    "basic_index": "reads an index: ints, slices, None, Ellipsis, tuples of them",
    "basic_index_backward": "reads the same index",
    "tensor": "reads nested lists of anything that is a number",
    "item": "gives a Python number",
    "tolist": "gives nested lists of Python numbers",
    "copy": "carries elements to and from the memory of plugins' devices",
    "_to_copy": "makes its result on another device",
}
AT_MOST = 10  # ops: lower it when there are fewer, never raise it


def boxed():
    return {op.name: op.record.kernel for op in ops.values() if op.kernel_kind == "boxed"}


def test_a_kernel_that_speaks_python_has_it_as_its_job():
    assert set(boxed().values()) == set(JOB)


def test_no_op_comes_whose_kernel_speaks_python():
    assert len(boxed()) <= AT_MOST, sorted(boxed())
