"""Saving a module's tensors into a flat dict, and loading them back.

``state_dict`` and ``load_state_dict`` walk the tree; one module's own part is
``_save_to_state_dict`` and ``_load_from_state_dict``, which a class may override, for example
to rename keys of an older ``_version``.
"""

import contextlib
import functools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any, TypeVar

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.registry.module_registrar import owner_of

from .conversion import get_swap_module_params_on_conversion, swap_loaded
from .hooks import _add
from .parameter import Parameter, is_lazy
from .walk import suggestion

EXTRA = "_extra_state"
STATE_TABLES = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ("missing_keys", "unexpected_keys"))):
    """What `load_state_dict` found missing and left over."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if any(self) else "<All keys matched successfully>"

    __str__ = __repr__


class _InPlace(functools.partial):
    """A hook that may not return another dict."""


class _WithModule:
    """A hook that gets its module first, which is held weakly: its table has the hook, and they would make a circle."""

    def __init__(self, hook, module):
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args):
        return self.hook(self.module(), *args)

    def __reduce__(self):
        return _WithModule, (self.hook, self.module())


@boundary
class Saving:
    """The part of Module that saves and loads."""

    T_destination = TypeVar("T_destination", bound=dict[str, Any])  # of annotations of state_dict

    def _init_state_hooks(self):
        for name in STATE_TABLES:
            self.__dict__[name] = OrderedDict()

    def get_extra_state(self):
        """Return what ``state_dict`` should hold beside tensors; override together with `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__}.get_extra_state() is called only where a class defines it.")

    def set_extra_state(self, state):
        """Take back what `get_extra_state` returned."""
        raise RuntimeError(
            f"{type(self).__name__}.set_extra_state() is called only where a class defines it; "
            "the class has get_extra_state() alone, or the checkpoint is another class's."
        )

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Return an ordered dict from dotted name to tensor: parameters and persistent buffers.

        Args:
            destination: write into this dict.
            prefix: put in front of every name.
            keep_vars: return the parameters themselves; by default detached tensors on the same memory.

        The three may be given by position too, which is deprecated. ``_metadata`` of the result holds each module's
        ``_version``, and for a plugin's module its name and owner.
        """
        if args:
            destination, prefix, keep_vars = _by_position(args, destination, prefix, keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version, **_brought_by(self)}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return self._run_state_dict_hooks(destination, prefix, metadata)

    def _run_state_dict_hooks(self, destination, prefix, metadata):
        for hook in self._state_dict_hooks.values():
            returned = hook(self, destination, prefix, metadata)
            if returned is None:
                continue
            if isinstance(hook, _InPlace):
                raise RuntimeError(
                    "state_dict post-hook must return None; change the dict in place instead of "
                    f"returning {type(returned).__name__}"
                )
            destination = returned
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Write this module's own parameters, persistent buffers and extra state."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if type(self).get_extra_state is not Saving.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self):
        """Iterate over this module's own ``(name, tensor)`` that belong into a state dict."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy the values of ``state_dict`` into the parameters and buffers.

        Args:
            strict: raise when names are missing or left over.
            assign: put the given tensors in place of the present ones instead of copying.

        Returns:
            ``(missing_keys, unexpected_keys)``.

        Raises:
            TypeError: ``state_dict`` is not a mapping.
            RuntimeError: names or shapes do not fit; lists all of them.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        report = _Report()
        _load_tree(self, state_dict, "", metadata or {}, assign, report)
        errors = report.errors
        if strict:
            known = [name for name, _ in _tree_state(self)]
            errors = _describe_keys(report, known) + errors
        if errors:
            errors += _missing_plugins(self, metadata or {})
            lines = "".join(f"\n\t{line}" for line in errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:{lines}")
        return report.incompatible

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Copy this module's own part; report what is missing, left over or wrong in the three lists.

        ``local_metadata`` has the saved ``version``, where a class upgrades older keys before
        it calls this. With ``strict`` false nothing is reported as missing or left over.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, current in self._own_state():
            key = prefix + name
            if key in state_dict:
                error = _load_tensor(self, name, current, state_dict[key], key, assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix + EXTRA, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(self._left_over(state_dict, prefix))

    def _load_extra_state(self, state_dict, key, strict, missing_keys, unexpected_keys):
        if type(self).set_extra_state is not Saving.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _left_over(self, state_dict, prefix):
        own = {name for name, _ in self._own_state()}
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + EXTRA:
                continue
            first, _, rest = key[len(prefix) :].partition(".")
            # A child reports its own keys; a bare child name is nobody's.
            if (rest and first not in self._modules) or (not rest and first not in own):
                yield key

    def _register_state_dict_hook(self, hook):
        """Like `register_state_dict_post_hook`, but the hook may return another dict."""
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after saving; it changes the dict in place."""
        with contextlib.suppress(AttributeError):  # of a method
            hook._from_public_api = True
        return _add(self._state_dict_hooks, _InPlace(hook))

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before saving."""
        return _add(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """Like `register_load_state_dict_pre_hook`; without ``with_module`` the module is not passed."""
        return _add(self._load_state_dict_pre_hooks, _WithModule(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook`` before loading, with the module and the arguments of `_load_from_state_dict`."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after loading; it may edit both lists in place."""
        return _add(self._load_state_dict_post_hooks, hook)


def _by_position(args, *named):
    """The arguments of ``state_dict`` where some come by position, which those that come by name go before."""
    warnings.warn("Positional args of state_dict are deprecated: give them by name.", FutureWarning, stacklevel=3)
    if len(args) > len(named):
        raise TypeError(f"state_dict() takes at most {len(named)} positional arguments, got {len(args)}")
    given = [*args, *(None, "", False)[len(args) :]]
    return [name or position for name, position in zip(named, given)]


def _brought_by(module):
    """What the metadata of a plugin's module says beside its version."""
    name, owner = owner_of(type(module)) or (None, BUILTIN)
    return {} if owner == BUILTIN else {"module": name, "owner": str(owner)}


def _missing_plugins(model, metadata):
    """Lines about modules of plugins that were saved and are not in their places in the model."""
    here = dict(model.named_modules())
    for path, saved in metadata.items():
        name, owner = (saved.get("module"), saved.get("owner")) if isinstance(saved, Mapping) else (None, None)
        present = _brought_by(here[path]) if path in here else {}
        if not isinstance(name, str) or present == {"module": name, "owner": owner}:
            continue
        what = f"of {present['owner']} here" if present.get("module") == name else _how_to_get(name)
        yield f"'{path}' was saved from a {name} of {owner}, which is {what}."


def _how_to_get(name):
    from .plugins import module_class  # lazy: for a warning only

    try:
        cls = module_class(name)
    except AttributeError as error:
        return f"needed for these keys: {error}"
    return f"not what stands there in this model; {cls.__module__}.{cls.__qualname__} is that module"


class _Report:
    """What one `load_state_dict` has found so far."""

    def __init__(self):
        self.incompatible = _IncompatibleKeys([], [])
        self.errors = []


def _load_tree(module, state_dict, prefix, metadata, assign, report):
    local_metadata = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local_metadata["assign_to_params_buffers"] = True
    missing, unexpected = report.incompatible
    module._load_from_state_dict(state_dict, prefix, local_metadata, True, missing, unexpected, report.errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = OrderedDict((key, value) for key, value in state_dict.items() if key.startswith(below))
            _load_tree(child, part, below, metadata, assign, report)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, report.incompatible) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return "
                "new values; edit incompatible_keys in place."
            )


def _tree_state(module):
    for path, owner in module.named_modules(remove_duplicate=False):
        for name, tensor in owner._own_state():
            yield (f"{path}.{name}" if path else name), tensor


def _describe_keys(report, known):
    missing, unexpected = report.incompatible
    lines = []
    if missing:
        names = ", ".join(f'"{key}"' for key in missing)
        lines.append(f"Missing key(s) in state_dict: {names}. ")
    if unexpected:
        # Near misses are looked for only among what is missing: another hit would be a false lead.
        near = functools.partial(suggestion, known=[key for key in known if key in set(missing)])
        names = ", ".join(f'"{key}"' for key in unexpected)
        hints = "".join(f'\n\t\t"{key}"{near(key)}' for key in unexpected[:20] if near(key))
        lines.append(f"Unexpected key(s) in state_dict: {names}. {hints}")
    return lines


def _load_tensor(module, name, current, given, key, assign):
    """Load one tensor; returns what is wrong with it, or None."""
    if not isinstance(given, tg.Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
            f"from checkpoint but received {type(given)}"
        )
    if is_lazy(current) and is_lazy(given):
        return None
    # Scalars were saved with shape (1,) in files from before 0-dim tensors.
    if current.dim() == 0 and given.dim() == 1 and given.numel() == 1:
        given = given[0]
    if given.shape != current.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {current.shape}."
        )
    if current.is_meta and not given.is_meta and not assign and not is_lazy(current):
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
            "which is a no-op: pass assign=True to put the checkpoint's tensors in place of the model's",
            stacklevel=2,
        )
    doing, swap = "copying", get_swap_module_params_on_conversion()
    try:
        if swap:
            doing = "swapping"
            with tg.no_grad():
                swap_loaded(current, given, assign)
        elif assign:
            _assign(module, name, current, given)
        else:
            with tg.no_grad():
                current.copy_(given)
    except Exception as error:
        return (
            f'While {doing} the parameter named "{key}", whose dimensions in the model are {current.shape} '
            f"and whose dimensions in the checkpoint are {given.shape}, an exception occurred: {error!r}."
        )
    return None


def _assign(module, name, current, given):
    if isinstance(current, Parameter) and not isinstance(given, Parameter):
        given = Parameter(given, requires_grad=current.requires_grad)
    elif isinstance(current, Parameter):
        given.requires_grad_(current.requires_grad)
    setattr(module, name, given)
