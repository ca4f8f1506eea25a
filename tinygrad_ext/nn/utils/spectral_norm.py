"""Spectral normalisation, by a hook before every call; `parametrizations.spectral_norm` is the newer form."""

import functools

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.nn.functional import normalize

from ..parameter import Parameter, refuse_lazy_weight

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


@boundary
class SpectralNorm:
    """The hook: divides the weight by its largest singular value, which power iterations follow."""

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations=" + str(n_power_iterations)
            )
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight):
        """The weight with ``dim`` as rows and all others as columns."""
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        """The weight over its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with tg.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(tg.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(normalize(tg.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # the graph keeps them, and the next call writes to the buffers
        return weight / tg.dot(u, tg.mv(matrix, v))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Move the parameter to ``<name>_orig``, and hang the hook before the module's calls.

        Raises:
            RuntimeError: the parameter has such a hook.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        refuse_lazy_weight("SpectralNorm", weight)
        with tg.no_grad():
            rows, columns = hook.reshape_weight_to_matrix(weight).size()
            u = normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(functools.partial(_tell_version, name))
        return hook

    def remove(self, module):
        """Make the parameter what the hook computed last."""
        with tg.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        delattr(module, self.name + "_u")
        delattr(module, self.name + "_v")
        delattr(module, self.name + "_orig")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def _tell_version(name, module, state, prefix, metadata):
    """Write into a state's metadata that the parameter ``name`` is stored with both vectors, as PyTorch does."""
    versions = metadata.setdefault("spectral_norm", {})
    key = name + ".version"
    if key in versions:
        raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
    versions[key] = 1


@boundary
def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a parameter by its largest singular value before every call, and return the module.

    Args:
        n_power_iterations: steps of the iteration that follows the singular value, each call in training.
        dim: the dimension of outputs; by default 1 for transposed convolutions, else 0.

    Raises:
        ValueError: no iterations.
    """
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


@boundary
def remove_spectral_norm(module, name="weight"):
    """Make a parameter an ordinary one again, and return the module.

    Raises:
        ValueError: it has no such hook.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            for key, hook in module._state_dict_hooks.items():
                if getattr(hook, "func", None) is _tell_version and hook.args == (name,):
                    del module._state_dict_hooks[key]
                    break
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
