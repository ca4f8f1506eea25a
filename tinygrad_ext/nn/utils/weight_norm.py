"""Weight normalisation, by a hook before every call; `parametrizations.weight_norm` is the newer form."""

import warnings

from tinygrad_ext.core.call.boundary import boundary

from ..parameter import Parameter, refuse_lazy_weight

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


@boundary
def norm_except_dim(v, pow=2, dim=0):
    """Norms over all dimensions but one, kept with size 1; ``dim=-1`` takes the norm of everything."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    if not others:
        return v.abs()
    if pow == 2:
        return v.square().sum(others, keepdim=True).sqrt()
    return v.abs().pow(pow).sum(others, keepdim=True).pow(1 / pow)


def _weight_norm(v, g, dim=0):
    return v * (g / norm_except_dim(v, 2, dim))


@boundary
class WeightNorm:
    """The hook: computes the weight from ``<name>_g`` and ``<name>_v``."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight: lengths times directions."""
        return _weight_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module, name, dim):
        """Split the parameter of that name, and hang the hook before the module's calls.

        Raises:
            RuntimeError: the parameter has such a hook.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        refuse_lazy_weight("WeightNorm", weight)
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module):
        """Make the parameter whole again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


@boundary
def weight_norm(module, name="weight", dim=0):
    """Split a parameter into its lengths ``<name>_g`` and directions ``<name>_v``, and return the module.

    Args:
        dim: the dimension along which there are several lengths; None for one of the whole.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


@boundary
def remove_weight_norm(module, name="weight"):
    """Make a parameter whole again, and return the module.

    Raises:
        ValueError: it is not split.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
