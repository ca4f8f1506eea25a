"""L-BFGS: steps by what the last gradients tell of the curvature."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from ._wolfe import strong_wolfe
from .checks import check_lr
from .optimizer import Optimizer


@boundary
class LBFGS(Optimizer):
    """Limited-memory BFGS (Liu and Nocedal, 1989), over all parameters as one vector.

    Args:
        params: see `Optimizer`; one group.
        lr: length of a step, or the first length that the line search tries.
        max_iter: directions per call of ``step``.
        max_eval: calls of the closure per call of ``step``; None for ``max_iter * 5 // 4``.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when the vector or the loss changes less.
        history_size: pairs of steps and changes of the gradient that are kept.
        line_search_fn: None, or ``"strong_wolfe"``.

    Raises:
        ValueError: several groups, or a negative ``lr``.
        RuntimeError: from ``step``, for another line search.
    """

    def __init__(
        self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
        line_search_fn=None,
    ):  # fmt: skip
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups); give it one list")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def _gather_flat_grad(self):
        pieces = []
        for param in self._params:
            grad = tg.zeros_like(param) if param.grad is None else param.grad
            grad = grad.to_dense() if grad.is_sparse else grad
            pieces.append((tg.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return tg.cat(pieces)

    def _add_grad(self, step_size, direction):
        place = 0
        for param in self._params:
            values = tg.view_as_real(param) if param.is_complex() else param
            piece = direction[place : place + values.numel()]
            values.add_(piece.view(values.shape), alpha=step_size)
            place += values.numel()

    def _loss_and_grad(self, closure):
        with tg.enable_grad():
            loss = closure()
        return float(loss), self._gather_flat_grad()

    def _at(self, closure, start, step_size, direction):
        """The loss and the gradient some way along a direction; the parameters are put back to `start`."""
        self._add_grad(step_size, direction)
        found = self._loss_and_grad(closure)
        for param, value in zip(self._params, start):
            param.copy_(value)
        return found

    def step(self, closure):
        """Take up to ``max_iter`` steps; ``closure`` clears the gradients, computes them and returns the loss.

        Returns:
            What ``closure`` returned at the point where the call began.

        Raises:
            RuntimeError: an unknown ``line_search_fn``.
        """
        with tg.no_grad():
            return self._step(closure)

    def _step(self, closure):
        group, state = self.param_groups[0], self.state[self._params[0]]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported as line_search_fn, got {search!r}")
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        with tg.enable_grad():
            first_loss = closure()
        loss, grad = float(first_loss), self._gather_flat_grad()
        evaluations = 1
        state["func_evals"] += 1
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss

        history = _History(state, group["history_size"])
        step_size = state.get("t")
        previous_loss = state.get("prev_loss")
        taken = 0
        while taken < group["max_iter"]:
            taken += 1
            state["n_iter"] += 1
            history.go_on(grad, step_size, first=state["n_iter"] == 1)
            direction = history.direction
            history.previous_grad, previous_loss = grad.clone(), loss
            step_size = lr
            if state["n_iter"] == 1 and (total := float(grad.abs().sum())):
                step_size = min(1.0, 1.0 / total) * lr
            slope = float(grad.dot(direction))
            if slope > -tolerance:
                break
            calls = 0
            if search:
                start = [param.clone() for param in self._params]
                loss, grad, step_size, calls = strong_wolfe(
                    lambda t, d=direction, x=start: self._at(closure, x, t, d),
                    step_size, loss, grad, slope, direction, tries=group["max_eval"] - evaluations,
                )  # fmt: skip
                self._add_grad(step_size, direction)
            else:
                self._add_grad(step_size, direction)
                # After the last step nobody needs the gradient there.
                if taken != group["max_iter"]:
                    loss, grad = self._loss_and_grad(closure)
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            if (
                taken == group["max_iter"]
                or evaluations >= group["max_eval"]
                or grad.abs().max() <= group["tolerance_grad"]
                or (direction * step_size).abs().max() <= tolerance
                or abs(loss - previous_loss) < tolerance
            ):
                break
        state["t"] = step_size
        state["prev_loss"] = previous_loss
        history.keep(state)
        return first_loss


class _History:
    """The last steps and changes of the gradient, and the direction that follows from them."""

    def __init__(self, state, size):
        self.size = size
        self.direction = state.get("d")
        self.changes = state.get("old_dirs")
        self.steps = state.get("old_stps")
        self.inverses = state.get("ro")
        self.scale = state.get("H_diag")
        self.previous_grad = state.get("prev_flat_grad")
        self.factors = state.get("al")

    def keep(self, state):
        """Write all of it into the optimizer's state, under the names of a saved one."""
        state["d"] = self.direction
        state["old_dirs"] = self.changes
        state["old_stps"] = self.steps
        state["ro"] = self.inverses
        state["H_diag"] = self.scale
        state["prev_flat_grad"] = self.previous_grad
        if self.factors is not None:
            state["al"] = self.factors

    def go_on(self, grad, step_size, first):
        """Take in the gradient after a step, and compute the next direction."""
        if first:
            self.direction = -grad
            self.changes, self.steps, self.inverses, self.scale = [], [], [], 1
            return
        change, step = grad - self.previous_grad, self.direction * step_size
        curvature = change.dot(step)
        # Without it the pair says nothing, or that the loss is not convex here.
        if curvature > 1e-10:
            if len(self.changes) == self.size:
                for kept in (self.changes, self.steps, self.inverses):
                    kept.pop(0)
            self.changes.append(change)
            self.steps.append(step)
            self.inverses.append(1.0 / curvature)
            self.scale = curvature / change.dot(change)
        self.direction = self._two_loops(grad)

    def _two_loops(self, grad):
        """The inverse of the approximated Hessian times the gradient, with a minus (Nocedal, 1980)."""
        known = len(self.changes)
        if self.factors is None:
            self.factors = [None] * self.size
        rest = -grad
        for at in reversed(range(known)):
            self.factors[at] = self.steps[at].dot(rest) * self.inverses[at]
            rest = rest - self.changes[at] * self.factors[at]
        result = rest * self.scale
        for at in range(known):
            share = self.factors[at] - self.changes[at].dot(result) * self.inverses[at]
            result = result + self.steps[at] * share
        return result
