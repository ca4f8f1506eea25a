"""The gradients of a function as a function of their own, to be checked in its turn."""

import numpy as np

from tinygrad_ext.autograd.engine import grad
from tinygrad_ext.autograd.gradcheck.subject import Subject
from tinygrad_ext.core.call.construct import from_numpy


def random_gradient(t, rng, strided):
    """A leaf of t's shape and dtype with numbers between -1 and 1."""
    shape = tuple(t.shape)
    if strided and shape:
        shape = (*shape[:-1], 2 * shape[-1])
    values = rng.uniform(-1, 1, shape)
    if t.dtype.is_complex:
        values = values + 1j * rng.uniform(-1, 1, shape)
    drawn = from_numpy(np.asarray(values)).to(t.dtype)
    return (drawn[..., ::2] if strided and shape else drawn).detach().requires_grad_()


class Gradients(Subject):
    """The gradients of a subject's inputs as a function of its inputs and of its outputs' gradients."""

    def __init__(self, first, seeds):
        self.first, self.seeds = first, seeds
        given = [(f"grad_output[{i}]", t) for i, t in enumerate(seeds) if t is not None]
        self.tensors = first.tensors + given
        self.inputs = first.inputs + [found for found in given if found[1].requires_grad]

    def outputs(self, instead=None):
        instead = instead or {}
        tensors = [instead.get(id(x), x) for _, x in self.first.inputs]
        seeds = [instead.get(id(s), s) for s in self.seeds]
        roots = [t for _, t in self.first.outputs(instead) if t.requires_grad]
        got = grad(roots, tensors, seeds, create_graph=True, allow_unused=True)
        return [(f"gradient of {name}", g) for (name, _), g in zip(self.first.inputs, got) if g is not None]
