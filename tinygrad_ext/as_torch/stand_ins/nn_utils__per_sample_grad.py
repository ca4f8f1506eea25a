"""torch.nn.utils._per_sample_grad: a module's call whose backward pass gives the gradients of each sample.

Each parameter is expanded over the samples and the module runs under vmap, so that whatever vmap takes has them, where
PyTorch has rules of six functions.
"""

import functools

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.func import functional_call, vmap
from tinygrad_ext.nn import Module
from tinygrad_ext.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """A function like module(...), after whose backward pass each parameter has `grad_sample`: one for each sample.

    Args:
        module: what is called.
        batch_size: how many samples there are; found in the arguments unless given.
        loss_reduction: how the loss joins the samples, "sum" or "mean": "mean" scales gradients by their number.
        batch_first: whether the samples stand in the first dimension of arguments and results; else in the second.

    `grad` of the parameters is left as it is.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, weight in module.named_parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                f"call_for_per_sample_grads(): the parameter {name} has a grad_sample, which would be added to. "
                "Set it to None first"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def call(*args, **kwargs):
        size = _size_of((args, kwargs), dim) if batch_size is None else batch_size
        expanded = {n: _expanded(p, size, loss_reduction) for n, p in module.named_parameters() if p.requires_grad}
        leaves, spec = tree_flatten((args, kwargs))

        def of_one(weights, *sample):  # which is a batch of one, as the module expects
            given, named = tree_unflatten([s.unsqueeze(dim) if isinstance(s, Tensor) else s for s in sample], spec)
            return functional_call(module, weights, given, named)

        dims = [dim if isinstance(x, Tensor) else None for x in leaves]
        found = vmap(of_one, (0, *dims), 0, "different")(expanded, *leaves)
        return _joined(found, dim)

    return call


def _size_of(tree, dim):
    sizes = [x.shape[dim] for x in tree_leaves(tree) if isinstance(x, Tensor)]
    if not sizes:
        raise RuntimeError(
            "call_for_per_sample_grads(): Unable to find a tensor in the passed args and kwargs. "
            "Please specify batch_size"
        )
    other = next((s for s in sizes if s != sizes[0]), None)
    if other is not None:
        raise RuntimeError(
            f"When computing batch size, found at least one input with batch size {sizes[0]} and one with batch size "
            f"{other}. Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
        )
    return sizes[0]


def _expanded(parameter, size, loss_reduction):
    """One of a parameter for each sample, which leaves its gradient in `grad_sample`."""
    made = parameter.detach().expand(size, *parameter.shape).requires_grad_()

    def keep(grad):
        grad = grad * size if loss_reduction == "mean" else grad
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = grad if before is None else before + grad

    made.register_hook(keep)
    return made


def _joined(found, dim):
    """Results of batches of one as one of all samples."""
    leaves, spec = tree_flatten(found)
    return tree_unflatten([x.squeeze(dim + 1).movedim(0, dim) if isinstance(x, Tensor) else x for x in leaves], spec)
