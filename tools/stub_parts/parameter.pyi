class Parameter(Tensor):
    """A tensor that a Module counts among its parameters."""

    def __init__(self, data: Tensor | None = None, requires_grad: _bool = True) -> None: ...
