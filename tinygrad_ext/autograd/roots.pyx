# cython: language_level=3, boundscheck=True
"""Where a backward pass begins: the outputs, a gradient for each, and the level that has to differentiate them itself.

Compiled, because a transform begins several passes for one call of the user's.
"""
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, same_sizes
from tinygrad_ext.core.data.types cimport is_complex
from tinygrad_ext.core.grad.engine cimport run_backward

from tinygrad_ext.core.data.slots import get_slot


def level_of(outputs):
    """The level that carries one of the outputs, and has to differentiate it itself; None where there is none."""
    for t in outputs:
        if type(t) is Carried:
            return (<Carried>t).level
    return None


def gradients(outputs, inputs, seeds, keep_graph, create_graph, allow_unused):
    """What `grad` gives, of sequences: a list with a gradient or None for each input."""
    level = level_of(outputs)
    if level is not None:
        return level.gradients(outputs, inputs, seeds, create_graph, allow_unused)
    return run_backward(outputs, root_grads(outputs, seeds), keep_graph, create_graph, inputs, False, allow_unused)


cpdef list root_grads(outputs, grads):
    """One gradient for each output: ones for a scalar when none is given."""
    cdef Py_ssize_t i, n = len(outputs)
    cdef list ready = []
    if grads is None:
        grads = (None,) * n
    if len(grads) != n:
        raise RuntimeError(f"got {n} tensors and {len(grads)} gradients")
    for i in range(n):
        out, g = outputs[i], grads[i]
        if g is None:
            _check_implicit(i, out)
            g = get_slot("ones_like")(out)
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif isinstance(out, Tensor):
            _check_given(i, out, g)
        ready.append(g)
    return ready


cdef int _check_implicit(Py_ssize_t i, out) except -1:
    """An output that may go without a gradient of its own."""
    if not isinstance(out, Tensor):
        raise RuntimeError("grad must be given for an output that is a GradientEdge")
    if not out.requires_grad:
        raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    if out.numel() != 1:
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs. This output has shape "
            f"{list(out.shape)}: reduce it first, for example with .sum(), or pass gradient=."
        )
    if not out.dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
    return 0


cdef int _check_given(Py_ssize_t i, Tensor out, Tensor g) except -1:
    if not same_sizes(g, out):
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {out.shape}."
        )
    if is_complex(g.tid) != is_complex(out.tid):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {out.dtype}."
        )
    return 0
