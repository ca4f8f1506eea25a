"""What autograd is asked of sparse tensors: their values are what it knows, in their places."""

import tinygrad_ext as tg

from .coo import SparseTensor
from .handlers import handler


def _at_places(name, gradient, t):
    """The gradient of the values of a sparse tensor, where one of its size is given."""
    if gradient is None:
        raise RuntimeError(f"{name}(): grad can be implicitly created only for scalar outputs, not for a sparse tensor")
    if gradient.shape != t.shape:
        raise RuntimeError(f"{name}(): expected a gradient of the size {list(t.shape)}, but got {list(gradient.shape)}")
    whole = gradient.to_dense() if isinstance(gradient, SparseTensor) else gradient
    return whole[tuple(t._parts[0].unbind(0))]


def _plain(x):
    return x.to_dense() if isinstance(x, SparseTensor) else x


def _known(x):
    """What autograd knows of a tensor."""
    return x._parts[1] if isinstance(x, SparseTensor) else x


def _listed(x):
    return [x] if x is None or isinstance(x, tg.Tensor) else list(x)


def _for_each(gradients, tensors):
    return gradients * len(tensors) if len(gradients) == 1 and gradients[0] is None else gradients


@handler("backward")
def backward(tensors, gradient=None, retain_graph=None, create_graph=False, inputs=None, grad_tensors=None):
    """Gradients of the values; one that is sparse itself stays so at a leaf, and elsewhere gets its zeros."""
    tensors, gradients = _listed(tensors), _listed(gradient if grad_tensors is None else grad_tensors)
    roots, given = [], []
    for t, gradient in zip(tensors, _for_each(gradients, tensors), strict=True):
        if isinstance(t, SparseTensor):
            roots.append(t._parts[1])
            given.append(_at_places("backward", gradient, t))
        elif isinstance(gradient, SparseTensor) and t.is_leaf and t.requires_grad and inputs is None:
            if gradient.shape != t.shape:
                raise RuntimeError(
                    f"backward(): expected a gradient of the size {list(t.shape)}, but got {list(gradient.shape)}"
                )
            gradient = gradient.detach().clone()
            t.grad = gradient if t.grad is None else t.grad + gradient
        else:
            roots.append(t)
            given.append(_plain(gradient))
    if roots:
        inputs = inputs if inputs is None else [_known(x) for x in _listed(inputs)]
        tg.autograd.backward(roots, given, retain_graph, create_graph, inputs=inputs)


@handler("grad")
def grad(outputs, inputs, grad_outputs=None, *args, **kwargs):
    """Gradients of the inputs, of a sparse one in its places."""
    outputs, inputs, given = _listed(outputs), _listed(inputs), _listed(grad_outputs)
    given = [
        _at_places("grad", g, t) if isinstance(t, SparseTensor) else _plain(g)
        for t, g in zip(outputs, _for_each(given, outputs), strict=True)
    ]
    found = tg.autograd.grad([_known(t) for t in outputs], [_known(t) for t in inputs], given, *args, **kwargs)
    return tuple(
        t.with_values(g) if isinstance(t, SparseTensor) and g is not None else g
        for t, g in zip(inputs, found, strict=True)
    )


@handler("register_hook")
def register_hook(self, hook):
    """A function of the gradient, which it gets in its places."""

    def asked(gradient):
        found = hook(self.with_values(gradient))
        return None if found is None else _at_places("register_hook", found, self)

    return self._parts[1].register_hook(asked)


def _let_require(self, requires_grad):
    self._parts[1].requires_grad = requires_grad


SparseTensor.requires_grad = SparseTensor.requires_grad.setter(_let_require)
SparseTensor.is_leaf = property(lambda self: self._parts[1].is_leaf)
SparseTensor.grad_fn = property(lambda self: self._parts[1].grad_fn)
