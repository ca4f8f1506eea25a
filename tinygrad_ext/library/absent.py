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
triton_op = _absent("triton_op", "there are no GPU kernels here. Make the function an op with custom_op")
wrap_triton = _absent("wrap_triton", "there are no GPU kernels here. Call the function inside of a custom_op")
