"""Gradients of lists and dicts of tensors: of the same keys, None where nothing arrived.

Those that say so take their first argument over, as `local` has it.
"""

from tinygrad_ext.core.data.tensor import Tensor

from .table import primitive


def _added(grads, key, grad):
    """What is there at a key is more by a gradient."""
    if grad is not None:
        old = grads.get(key) if type(grads) is dict else grads[key]
        grads[key] = grad if old is None else old + grad
    return grads


def _sum(a, b):
    """Both together, in a list or dict of its own."""
    made = a.copy()
    for key in b if type(b) is dict else range(len(b)):
        made = _added(made, key, b[key])
    return made


def _get(grads, key):
    return grads.get(key) if type(grads) is dict else grads[key]


def _cut(grads, key):
    """Nothing is at a key any more."""
    if type(grads) is dict:
        grads.pop(key, None)
    else:
        grads[key] = None
    return grads


def _put(grads, key, grad):
    """One more, so that it stands at a key."""
    if type(grads) is dict:
        grads[key] = grad
    else:
        grads.insert(key if key >= 0 else len(grads) + 1 + key, grad)
    return grads


def _taken(grads, key):
    return (grads.pop(key, None) if type(grads) is dict else grads.pop(key)), grads


def _spread(grads, count, start, stop, step):
    """Those of a slice in the places of the whole."""
    made = [None] * count
    made[start:stop:step] = grads
    return made


def _filled(grad, like):
    """A gradient, or what changes no sum."""
    if grad is not None or not isinstance(like, Tensor):
        return grad
    return like.new_full(like.shape, -0.0)


def _all_filled(grads, like):
    return [_filled(grad, x) for grad, x in zip(grads, like)]


def _place(count, index):
    """Where list.insert puts something in a list of so many."""
    return min(index, count) if index >= 0 else max(count + index, 0)


primitive("grads.none", "int", None, lambda count: [None] * count)
primitive("grads.added", "Any Any Any", None, _added, effect="takes")
primitive("grads.cut", "Any Any", None, _cut, effect="takes")
primitive("grads.put", "Any Any Any", None, _put, effect="takes")
primitive("grads.taken", "Any Any", None, _taken, effect="takes")
primitive("grads.sum", "Any Any", None, _sum)
primitive("grads.get", "Any Any", None, _get)
primitive("grads.spread", "Any int Any Any Any", None, _spread)
primitive("grads.filled", "Any Any", None, _filled)
primitive("grads.all_filled", "Any Any", None, _all_filled)
primitive("grads.when", "Any bool", None, lambda grad, there: grad if there else None)
primitive("grads.place", "int int", "int", _place)
primitive("grads.sizes", "Any int", "List[int]", lambda items, dim: [x.shape[dim] for x in items])
primitive("grads.unbind", "Tensor int", None, lambda grad, dim: list(grad.unbind(dim)))
primitive("grads.split", "Tensor List[int] int", None, lambda grad, sizes, dim: list(grad.split(sizes, dim)))
