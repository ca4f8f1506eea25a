"""Optimizers whose update is a formula in ops, one parameter at a time.

A subclass says what a parameter's state is at first (`_first_state`) and how one gradient changes both (`_update`).
What a formula reads again in backward it does not overwrite, so that ``differentiable=True`` is the same code with
gradients on.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import refuse_sparse
from .optimizer import Optimizer


def new_count():
    """A count of steps, which is a tensor because PyTorch saves it as one."""
    return tg.tensor(0.0, dtype=scalar_dtype())


def scalar_dtype():
    """The dtype of state that belongs to no element."""
    return tg.float64 if tg.get_default_dtype() == tg.float64 else tg.float32


def as_pairs(*tensors):
    """Complex tensors as real ones with a last dimension of two, to which most formulas apply; others as they are."""
    return tuple(
        tg.view_as_real(tensor) if tensor is not None and tensor.is_complex() else tensor for tensor in tensors
    )


def number(value):
    """An option that may be a 0-dim tensor, as a Python number."""
    return value.item() if isinstance(value, tg.Tensor) else value


@boundary
class OneByOne(Optimizer):
    """Base of the optimizers whose `_update(param, grad, group)` writes into a parameter, which needs no gradient."""

    def step(self, closure=None):
        """Update the parameters that have a gradient; returns what ``closure`` returned.

        Raises:
            RuntimeError, ValueError: what the class does not take, a layout of gradients above all.
        """
        loss = None
        if closure is not None:
            with tg.enable_grad():
                loss = closure()
        with tg.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._update(param, param.grad, group)
        return loss


@boundary
class PerParameter(Optimizer):
    """Base of the optimizers that are written in ops.

    Raises:
        TypeError, ValueError: see `Optimizer`.
    """

    _penalty = True
    """Whether `weight_decay` adds ``weight_decay * p`` to the gradient; else `_update` sees to it."""

    def step(self, closure=None):
        """Update the parameters that have a gradient; returns what ``closure`` returned.

        Raises:
            RuntimeError: a sparse gradient, unless the class says otherwise, or a formula that an op refuses.
        """
        loss = None
        if closure is not None:
            with tg.enable_grad():
                loss = closure()
        for group in self.param_groups:
            with tg.set_grad_enabled(bool(group.get("differentiable"))):
                self._update_group(group)
        return loss

    def _update_group(self, group):
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:  # before there is state
                self._check_sparse(group)
            state = self.state[param]
            if not state:
                # assigned as a whole: the saved lists of state are marked once
                self.state[param] = self._first_state(param, group)
                state = self.state[param]
            self._step_one(param, grad, state, group)

    def _update_one(self, param, grad, state, group):
        """The step of one parameter whose state is there; `_functional` calls it."""
        if grad.is_sparse:
            self._check_sparse(group)
        self._step_one(param, grad, state, group)

    def _step_one(self, param, grad, state, group):
        if group["maximize"]:
            grad = -grad
        if self._penalty and group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])
        state["step"].add_(1)
        self._update(param, grad, state, group)

    def _check_sparse(self, group):
        """Called for a sparse gradient."""
        refuse_sparse(type(self).__name__)

    def _first_state(self, param, group):
        raise NotImplementedError(f"{type(self).__name__} does not define _first_state(self, param, group)")

    def _update(self, param, grad, state, group):
        raise NotImplementedError(f"{type(self).__name__} does not define _update(self, param, grad, state, group)")

    def __setstate__(self, state):
        super().__setstate__(state)
        # Old checkpoints count steps with a Python number.
        for entries in self.state.values():
            if "step" in entries and not isinstance(entries["step"], tg.Tensor):
                entries["step"] = tg.tensor(float(entries["step"]), dtype=scalar_dtype())


def moments(param):
    """State of the optimizers that keep two averages."""
    return {"step": new_count(), "exp_avg": tg.zeros_like(param), "exp_avg_sq": tg.zeros_like(param)}
