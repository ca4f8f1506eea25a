"""The error of a wrong gradient."""


class GradcheckError(RuntimeError):
    """A gradient is wrong. `result` is the GradcheckResult with everything that was found."""

    result = None
