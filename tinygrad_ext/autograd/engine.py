"""backward() and grad(): arguments in, the compiled engine behind."""

import warnings
from collections.abc import Iterator, Mapping, ValuesView
from typing import Any, NamedTuple

from tinygrad_ext.core.call.elsewhere import class_name, how_to_convert
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.overridable import overridable
from tinygrad_ext.core.data.slots import get_slot
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.engine import run_backward

from .roots import gradients, level_of, root_grads


class GradientEdge(NamedTuple):
    """A node and the number of one of its outputs: a place in the graph that needs no tensor to be kept.

    The node itself is held, so the third field, by which PyTorch keeps a leaf's node alive, is None.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def _as_tuple(values, what):
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


def _inputs(values, who):
    """inputs= as a tuple; a dict stands for its values."""
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
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    outputs = _as_tuple(tensors, "tensors")
    if inputs is not None:
        inputs = _inputs(inputs, "backward")
    level = level_of(outputs)
    if level is not None:
        level.backward(outputs, _as_tuple(grad_tensors, "grad_tensors"), create_graph, inputs)
        return
    grads = root_grads(outputs, _as_tuple(grad_tensors, "grad_tensors"))
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
            stacklevel=2,
        )
    outputs = (outputs,) if type(outputs) is Tensor else _as_tuple(outputs, "outputs")
    wanted = (inputs,) if type(inputs) is Tensor else _inputs(inputs, "grad")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow = materialize_grads if allow_unused is None else allow_unused
    if is_grads_batched:
        seeds = _batched_seeds(outputs, _as_tuple(grad_outputs, "grad_outputs"))
        got = _in_batch(outputs, wanted, seeds, retain_graph, create_graph, allow)
        if materialize_grads:
            got = [_zeros(t, create_graph) if g is None else g for g, t in zip(got, wanted)]
        return dict(zip(inputs, got)) if isinstance(inputs, dict) else tuple(got)
    seeds = (grad_outputs,) if type(grad_outputs) is Tensor else _as_tuple(grad_outputs, "grad_outputs")
    keep = create_graph if retain_graph is None else retain_graph
    got = gradients(outputs, wanted, seeds, keep, create_graph, allow)
    if materialize_grads:
        got = [_zeros(t, create_graph) if g is None else g for g, t in zip(got, wanted)]
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
