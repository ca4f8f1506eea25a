# cython: language_level=3, boundscheck=True
"""backward() and grad(): arguments in, the compiled engine behind.

Compiled, because a transform begins several passes for one call of the user's, and because of small graphs: as Python these
few lines cost more than the pass behind them.
"""

import warnings
from collections import namedtuple
from collections.abc import Iterator, Mapping, ValuesView

from tinygrad_ext.core.call.elsewhere import class_name, how_to_convert
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.overridable import overridable
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, exact, same_sizes
from tinygrad_ext.core.data.types cimport is_complex
from tinygrad_ext.core.grad.engine cimport run_backward

from tinygrad_ext.core.data.slots import get_slot


class GradientEdge(namedtuple("GradientEdge", "node output_nr ownership_token", defaults=(None,))):
    """A node and the number of one of its outputs: a place in the graph that needs no tensor to be kept.

    The node itself is held, so the third field, by which PyTorch keeps a leaf's node alive, is None.
    """

    __slots__ = ()


# A plain tensor stands for a row of one: of a small graph the tuples around its root, its seed and its input would cost as
# much as the pass.

cdef _as_row(values, str what):
    if exact(values):
        return values
    if isinstance(values, (Tensor, GradientEdge)):
        return (values,)
    if values is None:
        return None
    if isinstance(values, (tuple, list, Iterator, ValuesView)):
        return tuple(values)
    raise TypeError(
        f"{what} must be a tensor, a GradientEdge or a sequence of them, got {class_name(values)}"
        f"{how_to_convert(values)}"
    )


cdef tuple _as_tuple(values, str what):
    row = _as_row(values, what)
    return None if row is None else _tuple_of(row)


cdef _inputs(values, str who):
    """inputs= as a row; a dict stands for its values."""
    if exact(values):                       # (the look at Mapping is a slow one)
        return values
    if isinstance(values, Mapping):
        if type(values) is not dict:
            raise TypeError(
                f"`inputs` argument to `{who}()` must be a dict, not {type(values).__name__}. Other Mapping types are "
                "not supported."
            )
        values = tuple(values.values())
    elif values is None:
        raise TypeError(f"{who}(): inputs must be a tensor, a GradientEdge, or a sequence or dict of them, got None")
    found = _as_tuple(values, "inputs")
    if not found:
        raise RuntimeError(f"`inputs` argument to `{who}()` cannot be empty.")
    return found


cdef tuple _tuple_of(row):
    return (row,) if exact(row) else tuple(row)


# ---- where a pass begins: the outputs, a gradient for each, and the level that has to differentiate them itself -------

cdef _level_of(outputs):
    """The level that carries one of the outputs, and has to differentiate it itself; None where there is none."""
    if exact(outputs):
        return None
    for t in outputs:
        if type(t) is Carried:
            return (<Carried>t).level
    return None


def gradients(outputs, inputs, seeds, keep_graph, create_graph, allow_unused):
    """What `grad` gives, of sequences: a gradient or None for each input."""
    return _gradients(outputs, inputs, seeds, keep_graph, create_graph, allow_unused)


cdef _gradients(outputs, inputs, seeds, bint keep_graph, bint create_graph, bint allow_unused):
    level = _level_of(outputs)
    if level is not None:
        return level.gradients(outputs, _tuple_of(inputs), None if seeds is None else _tuple_of(seeds), create_graph, allow_unused)
    return run_backward(outputs, _root_grads(outputs, seeds), keep_graph, create_graph, inputs, False, allow_unused)


cdef _root_grads(outputs, grads):
    """One gradient for each output: ones for a scalar when none is given."""
    cdef Py_ssize_t i, n
    if exact(outputs):
        if grads is None:
            _check_implicit(0, outputs)
            return get_slot("ones_like")(outputs)
        if exact(grads):
            _check_given(0, <Tensor>outputs, <Tensor>grads)
            return grads
        outputs = (outputs,)
    if exact(grads):
        grads = (grads,)
    n = len(outputs)
    if grads is None:
        grads = (None,) * n
    ready = grads
    if len(grads) != n:
        raise RuntimeError(f"got {n} tensors and {len(grads)} gradients")
    for i in range(n):
        out, g = outputs[i], grads[i]
        if g is None:
            _check_implicit(i, out)
            if ready is grads:
                ready = list(grads)
            ready[i] = get_slot("ones_like")(out)
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif isinstance(out, Tensor):
            _check_given(i, out, g)
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


# ---- what users call ------------------------------------------------------------------------------------------------

@overridable
def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of the sum of `tensors` (weighted by `grad_tensors`) into the leaves' ``.grad``.

    Arguments:
        tensors: tensor or sequence of tensors to differentiate.
        grad_tensors: gradient for each, of its shape; may be left out for single-element tensors.
        retain_graph: keep what was saved, for a second pass (default: the value of create_graph).
        create_graph: record the pass itself, for derivatives of higher order.
        inputs: fill only these tensors' ``.grad``.

    Raises RuntimeError when a tensor needs no gradient, a gradient is missing or of the wrong shape, or the graph
    has been freed by an earlier pass.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=1)
        grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    outputs = _as_row(tensors, "tensors")
    if inputs is not None:
        inputs = _tuple_of(_inputs(inputs, "backward"))
    level = _level_of(outputs)
    if level is not None:
        level.backward(outputs, _as_tuple(grad_tensors, "grad_tensors"), create_graph, inputs)
        return
    grads = _root_grads(outputs, _as_row(grad_tensors, "grad_tensors"))
    keep = create_graph if retain_graph is None else retain_graph
    run_backward(outputs, grads, keep, create_graph, _retained(inputs), True, True)


def _retained(inputs):
    """Non-leaf inputs of backward() get their .grad filled as retained gradients."""
    if inputs is None:
        return None
    for t in inputs:
        if isinstance(t, Tensor) and not t.is_leaf:
            t.retain_grad()
    return inputs


@overridable
def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Gradients of the sum of `outputs` with respect to `inputs`, as a tuple in their order.

    Arguments:
        outputs, inputs: tensors or sequences of them; inputs may be a dict, and then the answer is one.
        grad_outputs: gradient for each output, of its shape.
        retain_graph, create_graph: as for `backward`.
        allow_unused: give None for an input that the outputs do not depend on, instead of raising.
        materialize_grads: give zeros there.
        is_grads_batched: grad_outputs have one dimension more in front, and so have the answers: a row for each, by
            vmap over the backward pass.
        only_inputs: deprecated, and ignored; to accumulate gradients for other leaves there is ``backward``.

    Raises RuntimeError as `backward` does, and for unused inputs.
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). Gradients of other leaves are "
            "accumulated by torch.autograd.backward.",
            FutureWarning,
            stacklevel=1,
        )
    outputs = _as_row(outputs, "outputs")
    wanted = _inputs(inputs, "grad")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow = materialize_grads if allow_unused is None else allow_unused
    if is_grads_batched:
        outputs = _tuple_of(outputs)
        seeds = _batched_seeds(outputs, _as_tuple(grad_outputs, "grad_outputs"))
        got = _in_batch(outputs, _tuple_of(wanted), seeds, retain_graph, create_graph, allow)
    else:
        seeds = _as_row(grad_outputs, "grad_outputs")
        keep = create_graph if retain_graph is None else retain_graph
        got = _gradients(outputs, wanted, seeds, keep, create_graph, allow)
    if materialize_grads:
        got = [_zeros(t, create_graph) if g is None else g for g, t in zip(got, _tuple_of(wanted))]
    return dict(zip(inputs, got)) if isinstance(inputs, dict) else tuple(got)


def _zeros(t, requires_grad):
    """A gradient of zeros for an input that the outputs do not depend on."""
    like = t.node._input_metadata[t.output_nr] if isinstance(t, GradientEdge) else t
    return get_slot("zeros")(like.shape, like.dtype, like.device).requires_grad_(requires_grad)


def _batched_seeds(outputs, seeds):
    """The gradients of the outputs, checked: each has a dimension more in front."""
    if seeds is None or len(seeds) != len(outputs) or any(s is None for s in seeds):
        raise RuntimeError("grad(): is_grads_batched=True needs a tensor in grad_outputs for each output")
    for i, (out, seed) in enumerate(zip(outputs, seeds)):
        if not seed.dim() or (isinstance(out, Tensor) and tuple(seed.shape[1:]) != tuple(out.shape)):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {seed.shape} and output[{i}] "
                f"has a shape of {out.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )
    return seeds


def _in_batch(outputs, inputs, seeds, retain_graph, create_graph, allow_unused):
    """The gradients for all rows of the seeds, None for inputs that no output depends on."""
    missing = []

    def row(*seeds):
        got = grad(outputs, inputs, seeds, retain_graph, create_graph, allow_unused=allow_unused)
        missing[:] = [g is None for g in got]
        return tuple([g for g in got if g is not None])

    found = iter(later("vmap").vmap(row)(*seeds))
    return [None if gone else next(found) for gone in missing]
