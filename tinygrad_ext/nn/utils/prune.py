"""Pruning: parameters times masks of zeros and ones, by a hook before every call."""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.errors import refuse_unknown

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


@boundary
class BasePruningMethod(ABC):
    """Base of the ways to prune. A subclass sets ``PRUNING_TYPE`` and defines ``compute_mask(t, default_mask)``."""

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for ``t``, zeros where it or ``default_mask`` cuts."""

    def apply_mask(self, module):
        """The original times the mask."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune a parameter, on top of what cut it before, and hang the hook before the module's calls.

        Raises:
            AssertionError: ``importance_scores`` have another shape than the parameter.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        found = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        for key, hook in found:
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
            del module._forward_pre_hooks[key]
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if not found:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = tg.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=tg.contiguous_format)
        try:
            mask = method.compute_mask(scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not found:  # as it was before
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The pruned ``t``, which itself stays.

        Raises:
            AssertionError: ``importance_scores`` have another shape.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default_mask = tg.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module):
        """Make the pruned values an ordinary parameter; what was cut stays cut."""
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters[self._tensor_name + "_orig"]
        original.data = weight.detach()
        del module._parameters[self._tensor_name + "_orig"]
        del module._buffers[self._tensor_name + "_mask"]
        module.register_parameter(self._tensor_name, original)


@boundary
class PruningContainer(BasePruningMethod):
    """Several ways to prune one parameter, one after the other, each of what the ones before it left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if not isinstance(args, Iterable) or len(args) == 1:
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        elif args:
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Append one, for the same parameter.

        Raises:
            TypeError: it is no pruning method.
            ValueError: it is for another parameter.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        """The last one's mask, of what is left, times the one before."""
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            kept = default_mask.sum(others) != 0
            left = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.detach().to(dtype=t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if not 0 <= amount <= (amount if isinstance(amount, numbers.Integral) else 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"{amount=} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount, tensor_size):
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


@boundary
class Identity(BasePruningMethod):
    """Cuts nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The mask that was."""
        return default_mask

    @classmethod
    def apply(cls, module, name):
        """See `BasePruningMethod.apply`."""
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        """The mask, with as many more zeros."""
        _validate_pruning_amount(self.amount, t.nelement())
        count = _compute_nparams_toprune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=tg.contiguous_format)
        if count:
            mask.view(-1)[self._places(t, count)] = 0
        return mask


@boundary
class RandomUnstructured(_Unstructured):
    """Cuts elements at random."""

    def _places(self, t, count):
        return tg.topk(tg.rand_like(t).view(-1), k=count).indices


@boundary
class L1Unstructured(_Unstructured):
    """Cuts the elements nearest to zero."""

    def _places(self, t, count):
        return tg.topk(t.abs().reshape(-1), k=count, largest=False).indices


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t, default_mask):
        """The mask, with as many more slices of zeros."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. "
                f"Found tensor of shape {tuple(t.shape)} with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {tuple(t.shape)}")
        size = t.shape[self.dim]
        _validate_pruning_amount(self.amount, size)
        count = _compute_nparams_toprune(self.amount, size)
        if count == 0:
            return default_mask
        mask = tg.zeros_like(t)
        mask[(slice(None),) * (self.dim % t.dim()) + (self._kept(t, size - count),)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


@boundary
class RandomStructured(_Structured):
    """Cuts slices along ``dim`` at random."""

    def _kept(self, t, count):
        return tg.topk(tg.rand(t.shape[self.dim]), k=count).indices


@boundary
class LnStructured(_Structured):
    """Cuts the slices along ``dim`` whose norm of order ``n`` is smallest."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t, count):
        dims = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return tg.topk(tg.norm(t, p=self.n, dim=dims), k=count, largest=True).indices


@boundary
class CustomFromMask(BasePruningMethod):
    """Cuts where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """Both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and mask should have the same shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


@boundary
def identity(module, name):
    """Give a parameter the form of a pruned one without cutting anything, and return the module."""
    Identity.apply(module, name)
    return module


@boundary
def random_unstructured(module, name, amount):
    """Cut elements at random, a number or a share of them, and return the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


@boundary
def l1_unstructured(module, name, amount, importance_scores=None):
    """Cut the elements nearest to zero, a number or a share of them, and return the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


@boundary
def random_structured(module, name, amount, dim):
    """Cut slices along ``dim`` at random, a number or a share of them, and return the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


@boundary
def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Cut the slices along ``dim`` whose norm of order ``n`` is smallest, and return the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@boundary
def custom_from_mask(module, name, mask):
    """Cut where the mask is zero, and return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


@boundary
def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune several parameters as one.

    Args:
        parameters: pairs of a module and a name.
        pruning_method: a class that cuts single elements, such as `L1Unstructured`.
        importance_scores: tensors by such pairs, which take the place of the parameters.

    Raises:
        TypeError: ``parameters`` or ``importance_scores`` are of another kind, or the method cuts whole slices.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters, scores = list(parameters), importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    originals = [getattr(module, name) for module, name in parameters]
    flat = tg.cat([scores.get(pair, tensor).detach().reshape(-1) for pair, tensor in zip(parameters, originals)])
    masks = [getattr(m, n + "_mask", tg.ones_like(getattr(m, n))) for m, n in parameters]
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    container = PruningContainer(method)
    final = container.compute_mask(flat, tg.cat([mask.reshape(-1) for mask in masks]))
    at = 0
    for (module, name), tensor in zip(parameters, originals):
        custom_from_mask(module, name, mask=final[at : at + tensor.numel()].view_as(tensor))
        at += tensor.numel()


@boundary
def remove(module, name):
    """Make a pruned parameter an ordinary one; what was cut stays cut. Returns the module.

    Raises:
        ValueError: it is not pruned.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


@boundary
def is_pruned(module):
    """Whether any parameter in the module or below it is pruned."""
    hooks = (hook for part in module.modules() for hook in part._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)


__getattr__ = refuse_unknown(__name__)
