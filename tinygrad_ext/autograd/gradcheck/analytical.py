"""What backward computes: rows of the Jacobian, and sums of them."""

import time

import numpy as np

from tinygrad_ext.autograd.engine import grad
from tinygrad_ext.autograd.gradcheck.error import GradcheckError
from tinygrad_ext.autograd.gradcheck.subject import array
from tinygrad_ext.core.call.construct import from_numpy


class View:
    """A differentiable output, or the real or imaginary part of a complex one: what has rows of its own."""

    def __init__(self, number, position, name, tensor, part):
        self.number, self.position, self.name, self.tensor, self.part = number, position, name, tensor, part
        self._seed = np.zeros(tuple(tensor.shape), np.float32 if tensor.dtype.name == "bfloat16" else tensor.dtype.name)
        self.unit = 1j if part == "imaginary part" else 1

    def pull(self, picked, weights, inputs):
        """Gradients of the sum of picked elements times weights: one flat array for each input."""
        self._seed[...] = 0
        self._seed.reshape(-1)[picked] = self.unit * weights
        seed = from_numpy(self._seed).to(self.tensor.dtype)
        tensors = [x for _, x in inputs]
        got = grad(self.tensor, tensors, seed, retain_graph=True, allow_unused=True)
        return [np.zeros(x.numel()) if g is None else array(g).reshape(-1) for g, x in zip(got, tensors)]


def views(outputs):
    """The outputs that require grad as views, in PyTorch's order: imaginary parts come before real ones."""
    number, found = 0, []
    for position, (name, t) in enumerate(outputs):
        if t.requires_grad:
            found.append((number, position, name, t))
            number += 1
    mixed = any(t.dtype.is_complex for _, t in outputs)
    first = [View(*v, "imaginary part" if v[3].dtype.is_complex else None) for v in found]
    return first + [View(*v, "real part") for v in found if mixed and v[3].dtype.is_complex]


def rows(view, picked, inputs, kept, nondet_tol, deadline=None):
    """(rows done, for each input an array (input elements, rows)) of the Jacobian; every row is computed twice.

    kept: for each input, which of its elements to keep.
    """
    found = [np.zeros((len(keep), len(picked)), array(x).dtype) for keep, (_, x) in zip(kept, inputs)]
    done = 0
    for r, flat in enumerate(picked):
        for out, keep, g in zip(found, kept, pull_twice(view, flat, 1, inputs, nondet_tol)):
            out[:, r] = g[keep]
        done += 1
        if deadline is not None and time.monotonic() > deadline:
            break
    return done, [f[:, :done] for f in found]


def pull_twice(view, picked, weights, inputs, nondet_tol):
    """Gradients as `View.pull` gives them; GradcheckError when a second pass gives others."""
    first = [g.copy() for g in view.pull(picked, weights, inputs)]
    for a, b, (name, _) in zip(first, view.pull(picked, weights, inputs), inputs):
        with np.errstate(invalid="ignore"):
            gap = np.abs(a - b).max(initial=0)
        if gap > nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives"
                f" different values: the gradient of {name} from {view.name} differs by {gap:.3g}. "
                f"The tolerance for nondeterminism was {nondet_tol}. If random or unordered sums in backward are "
                "intended, pass nondet_tol=."
            )
    return first
