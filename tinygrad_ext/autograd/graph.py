"""The backward graph: its nodes and edges, hooks on several gradients, and what is kept for backward.

grad_fn = loss.grad_fn
isinstance(grad_fn, Node)          # name(), next_functions, metadata, register_hook, register_prehook
"""

from collections.abc import Iterable

from tinygrad_ext.autograd.engine import GradientEdge
from tinygrad_ext.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from tinygrad_ext.autograd.saved_bytes import saved_bytes
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.engine import current_pass, gradient_edge_of
from tinygrad_ext.core.grad.methods import increment
from tinygrad_ext.core.grad.node import Node

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_bytes",
    "saved_tensors_hooks",
]


@boundary
def get_gradient_edge(tensor):
    """Where the gradient of `tensor` is computed: `backward` and `grad` take it in the tensor's place.

    The edge keeps the graph alive, but not the tensor. Raises RuntimeError when the tensor needs no gradient.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    edge = gradient_edge_of(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge)


@boundary
def increment_version(tensor):
    """Say that a tensor, or each of several, was written to in a way that the engine could not see.

    Raises RuntimeError for what is not a tensor, and for inference tensors, which have no version.
    """
    tensors = (tensor,) if isinstance(tensor, Tensor) or not isinstance(tensor, Iterable) else tuple(tensor)
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, got {type(t).__name__}")
    for t in tensors:
        increment(t)


# ---- a hook on several gradients -----------------------------------------------------------------------------------


class _MultiHandle:
    """Takes the hooks of several tensors away."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        """Take them away; again is harmless."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class _Gathered:
    """The gradients of one backward pass on their way to a hook of mode "all"."""

    def __init__(self, expected):
        self.expected, self.grads = expected, [None] * len(expected)

    def add(self, i, grad):
        """Whether this was the last."""
        self.grads[i], self.expected[i] = grad, False
        return not any(self.expected)


@boundary
def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn` once in each backward pass that computes gradients of `tensors`. Returns a handle.

    mode "all": fn(grads) when the last of them is there, a list with None for those that the pass does not reach.
    mode "any": fn(grad) with the first.

    Raises ValueError for another mode, AssertionError for a tensor that needs no gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if not callable(fn):
        raise TypeError(f"register_multi_grad_hook(): argument 'fn' must be callable, not {type(fn).__name__}")
    tensors = tuple(tensors)
    edges = [gradient_edge_of(t) for t in tensors]
    if None in edges:
        raise AssertionError(
            f"Expected gradient function to be set: tensor {edges.index(None)} of register_multi_grad_hook() does not "
            "require grad"
        )
    nodes, key = [node for node, _ in edges], object()

    def on_all(i, grad):
        running = current_pass()
        gathered = running.gathered(key, lambda: _Gathered(running.reaches(nodes)))
        if gathered.add(i, grad):
            fn(gathered.grads)

    def on_any(grad):
        current_pass().gathered(key, lambda: fn(grad) or True)

    if mode == "any":
        return _MultiHandle([t.register_hook(on_any) for t in tensors])
    return _MultiHandle([t.register_hook(_numbered(on_all, i)) for i, t in enumerate(tensors)])


def _numbered(hook, i):
    """A tensor hook that passes its number on and replaces nothing."""

    def call(grad):
        hook(i, grad)

    return call
