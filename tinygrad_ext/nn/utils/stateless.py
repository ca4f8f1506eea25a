"""A module called with tensors in the place of its parameters and buffers."""

import contextlib
import warnings

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor

__all__ = ["functional_call"]

_MISSING = object()


@boundary
def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Deprecated name of `func.functional_call`."""
    warnings.warn(
        "`nn.utils.stateless.functional_call` is deprecated: `func.functional_call` takes the same arguments.",
        FutureWarning,
        stacklevel=2,
    )
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights, strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The same without a warning; PyTorch's private name for it."""
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights, strict)


def call_with(module, given, args, kwargs, tie_weights, strict):
    """module(*args, **kwargs) with the given tensors; what it assigns to those names meanwhile goes into `given`."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, given, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False):
    """The module with the given tensors inside the `with`; PyTorch's private name for it, which libraries call."""
    given = parameters_and_buffers
    values = _tied(module, given) if tie_weights else given
    if strict:
        _check_keys(module, values)
    places = {name: _place(module, name) for name in values}
    before = {}
    try:
        for name, value in values.items():
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"functional_call: expected '{name}' to be a Tensor, got {type(value).__name__}")
            before[name] = _swap(*places[name], value)
        yield
    finally:
        for name, value in reversed(before.items()):
            now = _swap(*places[name], value)
            if name in given and now is not _MISSING:
                given[name] = now


def _place(module, name):
    """(module, attribute) that a dotted name leads to."""
    path, _, attribute = name.rpartition(".")
    for part in path.split(".") if path else ():
        if not hasattr(module, part):
            raise AttributeError(f"functional_call: {type(module).__name__} has no attribute `{part}`, of '{name}'")
        module = getattr(module, part)
    return module, attribute


def _swap(module, attribute, value):
    """Put a tensor where the module keeps that name; what was there before."""
    for registry in (module._parameters, module._buffers):
        if attribute in registry:
            old = registry.pop(attribute) if value is _MISSING else registry[attribute]
            if value is not _MISSING:
                registry[attribute] = value
            return old
    old = getattr(module, attribute, _MISSING)
    if old is not _MISSING and old is not None and not isinstance(old, Tensor):
        raise TypeError(f"functional_call: attribute `{attribute}` of {type(module).__name__} is no Tensor: {old!r}")
    if value is not _MISSING:
        setattr(module, attribute, value)
    elif old is not _MISSING:
        delattr(module, attribute)
    return old


def _all_tensors(module):
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _tied(module, given):
    """The given tensors, under all names of those that the module knows under several."""
    names = {}
    for name, tensor in _all_tensors(module):
        names.setdefault(id(tensor), []).append(name)
    found = dict(given)
    for group in names.values():
        chosen = [name for name in group if name in given]
        if not chosen or len(group) == 1:
            continue
        if any(given[name] is not given[chosen[0]] for name in chosen):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider using "
                "tie_weights=False"
            )
        found.update(dict.fromkeys(group, given[chosen[0]]))
    return found


def _check_keys(module, given):
    known = {name for name, _ in _all_tensors(module)}
    told = []
    for what, names in (("Unexpected", given.keys() - known), ("Missing", known - given.keys())):
        if names:
            told.append(f"{what} key(s): {', '.join(map(repr, sorted(names)))}.")
    if told:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(told))
