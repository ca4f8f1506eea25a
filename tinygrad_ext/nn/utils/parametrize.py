"""Parameters that are computed from others: a module's tensor becomes the value of a module of its own.

The tensor moves to ``module.parametrizations.<name>.original``, the class of the module is replaced by a subclass in
which the name is a property, and reading it runs the parametrizations on the original.
"""

import contextlib
import copy

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.levels import active_levels
from tinygrad_ext.errors import refuse_unknown

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache = {}


@boundary
@contextlib.contextmanager
def cached():
    """Compute each parametrized tensor once inside; without it every read computes it."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _inverse_or_itself(parametrization, value):
    """What the right inverse of a parametrization gives; the value where it has none, or says so."""
    if hasattr(parametrization, "right_inverse"):
        with contextlib.suppress(NotImplementedError):
            return parametrization.right_inverse(value)
    return value


def _check_kept(who, value, shape, dtype):
    """ValueError for what is no tensor of this shape and dtype."""
    if not isinstance(value, tg.Tensor):
        raise ValueError(f"{who} must return a tensor. Got {type(value).__name__}.")
    for what, wanted, found in (("dtype", dtype, value.dtype), ("shape", tuple(shape), tuple(value.shape))):
        if found != wanted:
            rule = f"Registering a parametrization may not change the {what} of the tensor"
            if who != "A parametrization":
                rule = f"The tensor returned by {who} must have the same {what} as the parametrized one"
            raise ValueError(f"{rule}, unless unsafe=True: {wanted} became {found}")


def _maybe_set(destination, source):
    """Let a tensor hold what another holds, without a new object where the sizes allow."""
    if destination.shape == source.shape and destination.dtype == source.dtype:
        destination.data = source.detach()
    else:
        raise ValueError(
            "Function `right_inverse` must return outputs of the shape and dtype of the original: "
            f"{tuple(destination.shape)} of {destination.dtype} and {tuple(source.shape)} of {source.dtype}"
        )


@boundary
class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what it is computed from: ``original``, or ``original0`` and others.

    Args:
        modules: the parametrizations, the first one first.
        original: the tensor.
        unsafe: keep no checks that shape and dtype stay.
    """

    def __init__(self, modules, original, unsafe=False):
        if not len(modules):
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with tg.no_grad():
            new = self._inverted(original)
        if not isinstance(new, tg.Tensor) and not isinstance(new, (tuple, list)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors, got {type(new).__name__}")
        self.is_tensor = isinstance(new, tg.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype: "
                    f"{original.dtype} became {new.dtype}"
                )
            with tg.no_grad():
                original.data = new.detach() if new is not original else original.data
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, tg.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors. Got element "
                        f"{i} of the sequence with type {type(part).__name__}"
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _register(self, f"original{i}", part.requires_grad_(original.requires_grad))
        if not unsafe:
            _check_kept("A parametrization", self(), shape, dtype)

    def _inverted(self, value):
        for module in reversed(list(self)):
            value = _inverse_or_itself(module, value)
        return value

    def right_inverse(self, value):
        """Set the originals so that the parametrized tensor is ``value``.

        Raises:
            RuntimeError: a parametrization has no ``right_inverse``.
            ValueError: it gives tensors of another shape or dtype.
        """
        with tg.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse; "
                        "assign to its originals instead"
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, tg.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                _maybe_set(self.original, value)
                return
            if len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must return {self.ntensors} tensors. Got {len(value)}.")
            for i, part in enumerate(value):
                _maybe_set(getattr(self, f"original{i}"), part)

    def forward(self):
        """The tensor, from the originals through all parametrizations."""
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in list(self)[1:]:
            value = module(value)
        return value


def _parametrized_class(module):
    """Give the module a class of its own, in which names can become properties."""
    cls = type(module)

    def refuse(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See nn.utils.parametrize."
        )

    def deepcopy(self, memo):
        replica = self.__new__(self.__class__)
        memo[id(self)] = replica
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    names = {"__getstate__": refuse, "__module__": cls.__module__}
    if not hasattr(cls, "__deepcopy__"):
        names["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), names)


def _add_property(module, tensor_name):
    def read(self):
        if not _cache_depth:
            return self.parametrizations[tensor_name]()
        if any(getattr(level, "sees_attributes", False) for level in active_levels()):
            raise RuntimeError(
                f"Cannot trace a model while caching the parametrized tensors: '{tensor_name}' would be kept for later "
                "as a value of the graph. Trace it outside of cached()"
            )
        key = id(self), tensor_name
        if key not in _cache:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def write(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(read, write))


@boundary
def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Let ``module.<tensor_name>`` be ``parametrization(original)``, and return the module.

    Args:
        parametrization: a module; its ``right_inverse``, where it has one, is applied to the tensor first.
        unsafe: allow another shape or dtype.

    Raises:
        ValueError: the module has no such tensor, or shape or dtype change.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext import nn
        >>> from tinygrad_ext.nn.utils import parametrize
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        >>> layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
        >>> tg.equal(layer.weight, layer.weight.mT)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        present = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_kept("A parametrization", after, before.shape, before.dtype)
            back = _inverse_or_itself(parametrization, after)
            _check_kept("parametrization.right_inverse", back, before.shape, before.dtype)
        present.append(parametrization)
        present.unsafe = present.unsafe or unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _parametrized_class(module)
        module.parametrizations = ModuleDict()
    _add_property(module, tensor_name)
    module.parametrizations[tensor_name] = parametrizations
    return module


@boundary
def is_parametrized(module, tensor_name=None):
    """Whether the module has parametrizations, or one of that tensor."""
    parametrizations = getattr(module, "parametrizations", None)
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    return tensor_name in parametrizations if tensor_name is not None else len(parametrizations) > 0


@boundary
def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make ``module.<tensor_name>`` an ordinary tensor again, and return the module.

    Args:
        leave_parametrized: keep the value that the parametrizations gave; False: the original's.

    Raises:
        ValueError: it is not parametrized, or several originals are to be left without their parametrization.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with tg.no_grad():
                value = getattr(module, tensor_name)
            if value.shape == original.shape and value.dtype == original.dtype:
                original.data = value.detach()
            else:
                original = Parameter(value, original.requires_grad) if isinstance(original, Parameter) else value
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is made of several.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


@boundary
def type_before_parametrizations(module):
    """The class that the module had before its first parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


@boundary
def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give a module the parametrizations of another one, with their originals, and return it."""
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        source, target = from_module.parametrizations[name], to_module.parametrizations[name]
        for original in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module


__getattr__ = refuse_unknown(__name__)
