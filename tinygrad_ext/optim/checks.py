"""Range checks that the optimizers share."""

import tinygrad_ext as tg


def check_lr(lr):
    """Raise ValueError for a negative step size or a tensor of several."""
    if isinstance(lr, tg.Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, got shape {tuple(lr.shape)}")
    if lr < 0:
        raise ValueError(f"Invalid learning rate: {lr}; it must be 0 or more")


def check_not_negative(what, value):
    """Raise ValueError for a negative ``value``."""
    if value < 0:
        raise ValueError(f"Invalid {what}: {value}; it must be 0 or more")


def check_betas(betas):
    """Raise ValueError unless both are in [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}; it must be in [0, 1)")


def check_tensors(lr, betas, foreach, capturable):
    """Raise ValueError for tensors as options where PyTorch does: beside numbers, and in steps over all parameters."""
    numbers = [not isinstance(beta, tg.Tensor) for beta in betas]
    if any(numbers) and not all(numbers):
        raise ValueError("betas must be either both floats or both Tensors")
    if foreach and not capturable:
        for name, value in (("lr", lr), *((f"betas[{index}]", beta) for index, beta in enumerate(betas))):
            if isinstance(value, tg.Tensor):
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")


def check_fused(fused, foreach, differentiable):
    """Raise RuntimeError where ``fused`` meets an option that asks for another kind of step."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_fused_param(param):
    """Raise RuntimeError for a parameter that no fused step takes in PyTorch: none of floats, or one without memory."""
    if not param.is_floating_point() or param.is_meta:
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices, got one of "
            f"{param.dtype} on {param.device}"
        )


def refuse_sparse(name, advice="make the gradient plain by to_dense(), or leave sparse=True out"):
    """Raise RuntimeError for a sparse gradient."""
    raise RuntimeError(f"{name} does not support sparse gradients, {advice}")


def plain_number(value):
    """An option as a float; what stands for a number while a graph is captured is left as it is."""
    return value if type(value) is float or hasattr(value, "hint") else float(value)
