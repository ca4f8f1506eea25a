class Variable(Tensor):
    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False) -> Tensor: ...  # type: ignore[misc]
