"""What PyTorch's library has and this one does not: each says so, and what to use instead."""


def _absent(name, why):
    def refuse(*args, **keywords):
        raise NotImplementedError(f"library.{name}: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"NotImplementedError: {why}."
    return refuse


register_torch_dispatch = _absent(
    "register_torch_dispatch",
    "there are no rules for an op and a class. A class's own __torch_dispatch__ and a TorchDispatchMode see custom "
    "ops as all others",
)


class wrap_triton:
    """A kernel for GPUs as ops call it: `wrap_triton(kernel)[grid](...)`. NotImplementedError where it is called."""

    def __init__(self, kernel, /):
        self.kernel = kernel

    def __getitem__(self, grid):
        return self

    def __call__(self, *args, **keywords):
        name = getattr(self.kernel, "__name__", type(self.kernel).__name__)
        raise NotImplementedError(f"library.wrap_triton: there are no GPUs here to call {name} on. Compute it in ops")
