"""`PassManager`: passes in an order that keeps their constraints."""

import functools
import inspect

from .pass_base import PassResult


def pass_result_wrapper(fn):
    """A pass of a function that changes a module in place and returns it, or nothing; None of None."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def run(graph_module):
        made = fn(graph_module)
        if isinstance(made, PassResult):
            return made
        return PassResult(graph_module if made is None else made, True)

    run.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return run


def this_before_that_pass_constraint(this, that):
    """A constraint of PassManager: one pass never runs after another."""
    return lambda a, b: not (a == that and b == this)


class PassManager:
    """Runs passes over a module: `manager(module)` gives a PassResult.

    Args:
        passes: callables of a GraphModule that give a PassResult; see pass_result_wrapper for others.
        constraints: functions of two passes, whether the first may run before the second.
        steps: how often all of them run at most; no further time where nothing was changed.
        run_checks_after_each_pass: run the checks behind each pass, not at the beginning alone.
        suppress_check_failures: accepted.
    """

    def __init__(
        self, passes=None, constraints=None, steps=None, run_checks_after_each_pass=False, suppress_check_failures=False
    ):
        self.passes, self.constraints = list(passes or ()), list(constraints or ())
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._checks, self._ordered = [], False

    def add_pass(self, _pass):
        """Add a pass behind the others."""
        self.passes.append(_pass)
        self._ordered = False

    def add_constraint(self, constraint):
        """Add a constraint."""
        self.constraints.append(constraint)
        self._ordered = False

    def validate_constraints(self):
        """RuntimeError where the order of the passes breaks a constraint."""
        for constraint in self.constraints:
            for i, earlier in enumerate(self.passes):
                for j, later in enumerate(self.passes[i + 1 :], i + 1):
                    if not constraint(earlier, later):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {_name(later)} before {_name(earlier)} but "
                            f"found {_name(earlier)} at index {i} and {_name(later)} at index {j}"
                        )
        self._ordered = True

    def solve_constraints(self):
        """Put the passes in an order that keeps the constraints, else as they are. RuntimeError where there is none."""
        left, ordered = list(self.passes), []
        while left:
            free = [p for p in left if all(c(p, q) for c in self.constraints for q in left if q is not p)]
            if not free:
                raise RuntimeError(f"the constraints leave no order for {', '.join(map(_name, left))}")
            ordered.append(free[0])
            left.remove(free[0])
        self.passes, self._ordered = ordered, True

    def add_checks(self, check):
        """Add a function of the module that raises where it finds a fault. TypeError for one of other arguments."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, module")
        self._checks.append(check)

    def check(self, module):
        """Run the checks."""
        for check in self._checks:
            check(module)

    def __call__(self, module):
        if not self._ordered:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            module, modified = self._once(module)
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _once(self, module):
        modified = False
        for number, each in enumerate(self.passes):
            try:
                result = each(module)
                if not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {_name(each)} should be type PassResult. Please wrap it with "
                        "pass_result_wrapper()"
                    )
                module, modified = result.graph_module, modified or result.modified
                if hasattr(module, "recompile"):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            except Exception as error:
                before = [_name(p) for p in self.passes[:number]]
                raise Exception(
                    f"An error occurred when running the '{_name(each)}' pass after the following passes: {before}"
                ) from error
        return module, modified


def _name(each):
    return getattr(each, "__name__", type(each).__name__)
