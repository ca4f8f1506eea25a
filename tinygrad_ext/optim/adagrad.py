"""Adagrad: a step size of each element that falls with the gradients it has seen."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_fused, check_lr, check_not_negative
from .per_parameter import PerParameter, as_pairs, new_count, number


@boundary
class Adagrad(PerParameter):
    """Adagrad (Duchi, Hazan and Singer, 2011).

    With the gradient g at step t: ``s = s + g²`` and
    ``p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)``.

    Args:
        params: see `Optimizer`.
        lr: step size.
        lr_decay: how it falls with the steps.
        weight_decay: strength of the L2 penalty.
        initial_accumulator_value: s before the first step.
        eps: added to the denominator.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, fused: accepted; there is one implementation.

    A sparse gradient changes s and p in its rows alone; with ``weight_decay`` it is refused in `step`.

    Raises:
        ValueError: a negative option.
        RuntimeError: ``fused`` with ``foreach`` or ``differentiable``.
    """

    def __init__(
        self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
        maximize=False, differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_fused(fused, foreach, differentiable)
        check_not_negative("lr_decay value", lr_decay)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("initial_accumulator_value value", initial_accumulator_value)
        check_not_negative("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        # Unlike in the others the state is there from the start, so that processes can share it before they train.
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self._first_state(param, group)

    def share_memory(self):
        """Move the state to shared memory.

        Raises:
            AttributeError: tensors cannot be shared yet.
        """
        for state in self.state.values():
            state["sum"].share_memory_()

    def _first_state(self, param, group):
        start = group["initial_accumulator_value"]
        value = complex(start, start) if param.is_complex() else start
        return {"step": new_count(), "sum": tg.full_like(param, value, requires_grad=False)}

    def _check_sparse(self, group):
        if group["weight_decay"]:
            raise RuntimeError(
                "weight_decay option is not compatible with sparse gradients: Adagrad got weight_decay="
                f"{group['weight_decay']}; leave it 0, or sparse=True out"
            )

    def _update(self, param, grad, state, group):
        step_size = number(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        if grad.is_sparse:
            grad = grad.coalesce()
            state["sum"].add_(grad.with_values(grad.values().square()))
            roots = state["sum"].sparse_mask(grad).values().sqrt() + group["eps"]
            param.add_(grad.with_values(grad.values() / roots), alpha=-step_size)
            return
        param, grad, total = as_pairs(param, grad, state["sum"])
        total.addcmul_(grad, grad)
        param.addcdiv_(grad, total.sqrt() + group["eps"], value=-step_size)
