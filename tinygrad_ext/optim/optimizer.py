"""The base of all optimizers: parameter groups, state, hooks, saving."""

import copy
import functools
import inspect
import operator
import warnings
from collections import OrderedDict

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from ..utils.grads import clear_grads
from ..utils.hooks import RemovableHandle
from . import saving
from .checks import check_fused_param
from .state import OptimizerState

_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


class _Required:
    """Stands as the default of an option that every group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()


def _add(table, hook, prepend=False):
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


@boundary
def register_optimizer_step_pre_hook(hook):
    """Call ``hook(optimizer, args, kwargs)`` before ``step`` of every optimizer."""
    return _add(_global_pre_hooks, hook)


@boundary
def register_optimizer_step_post_hook(hook):
    """Call ``hook(optimizer, args, kwargs)`` after ``step`` of every optimizer."""
    return _add(_global_post_hooks, hook)


def _with_hooks(step):
    """Wrap a class's ``step``: hooks run around it, and schedulers can see that it ran."""

    @functools.wraps(step)
    def step_and_hooks(self, *args, **kwargs):
        self._opt_called = True
        hooks = self._pre_hooks or self._post_hooks or _global_pre_hooks or _global_post_hooks
        if hooks and _leads_to(type(self).step, step_and_hooks):
            return _step_between_hooks(self, step, args, kwargs)
        # Mostly there is nothing to hand on; unpacking it would make a list, a tuple and a dict.
        return step(self, *args, **kwargs) if args or kwargs else step(self)

    return step_and_hooks


def _leads_to(step, wanted):
    """Whether `step`, without what decorators put around it, is the wanted function.

    A step that calls ``super().step()`` is one step, with its hooks around the outer one.
    """
    return inspect.unwrap(step, stop=lambda found: found is wanted) is wanted


def _step_between_hooks(optimizer, step, args, kwargs):
    """A step whose hooks see and replace all that it gets, the optimizer as its first argument."""
    args = (optimizer, *args)
    for hook in [*_global_pre_hooks.values(), *optimizer._pre_hooks.values()]:
        replaced = hook(optimizer, args, kwargs)
        if replaced is None:
            continue
        if not (isinstance(replaced, tuple) and len(replaced) == 2):
            raise RuntimeError(f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {replaced!r}.")
        args, kwargs = replaced
    result = step(*args, **kwargs)
    for hook in [*optimizer._post_hooks.values(), *_global_post_hooks.values()]:
        hook(optimizer, args, kwargs)
    return result


@boundary
class Optimizer:
    """Holds parameters in groups with options, and a dict of state per parameter.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dicts with ``"params"`` and own options.
        defaults: options of groups that do not give them.

    Raises:
        TypeError: one tensor, a set, or something that is no tensor.
        ValueError: nothing to optimize, a tensor that is no leaf, one that stands in two groups.

    A subclass defines ``step``; the hooks are put around it when the class is made. One that wraps another optimizer
    may leave ``super().__init__()`` out and set ``param_groups``, ``state`` and ``defaults`` itself.
    """

    def __new__(cls, *args, **kwargs):
        # Not in __init__, which a subclass may leave out; and not in a __getattr__ that makes the tables when they are
        # asked for: a class that has one pays for it in every attribute of `step`.
        self = super().__new__(cls)
        self._init_hooks()
        return self

    def __init__(self, params, defaults):
        self.defaults = defaults
        if isinstance(params, tg.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type(params).__name__}; write [tensor] for a single one"
            )
        self.state = OptimizerState()
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list; are the layers attributes of the module?")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)

    def _init_hooks(self):
        self._pre_hooks = OrderedDict()
        self._post_hooks = OrderedDict()
        self._state_dict_hooks = {"pre": OrderedDict(), "post": OrderedDict()}
        self._load_hooks = {"pre": OrderedDict(), "post": OrderedDict()}
        self._opt_called = False
        self._columns = {}

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        if "_columns" not in self.__dict__:
            self._init_hooks()
        self.__dict__.update(state)
        if not isinstance(self.state, OptimizerState):
            self.state = OptimizerState(self.state)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        self._columns = {}

    def __repr__(self):
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
        return text + ")"

    def step(self, closure=None):
        """Update the parameters once; ``closure`` computes the loss anew and returns it."""
        raise NotImplementedError(f"{type(self).__name__} does not define step(self, closure=None)")

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def add_param_group(self, param_group):
        """Add a dict with ``"params"`` and the options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params, names = _params_and_names(param_group["params"])
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for param in params:
            _check_param(param, self.defaults.get("differentiable"))
            if self.defaults.get("fused"):
                check_fused_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_groups(param_group)
        self.param_groups.append(param_group)

    def _check_groups(self, group):
        params = group["params"]
        if len(set(params)) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=5)
        if any(("param_names" in other) != ("param_names" in group) for other in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if 'param_names' in group else 'without'} names to the optimizer"
            )
        taken = {param for other in self.param_groups for param in other["params"]}
        if not taken.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")

    def _state_columns(self, number, names):
        """Return one list per name with that entry of each parameter of a group, None where there is none.

        The lists are the same objects from step to step, until the state or the group is edited.
        """
        params = self.param_groups[number]["params"]
        if self.state.edits.stale:
            self.state.edits.stale = False
            self._columns = {}
        elif number in self._columns:
            known, columns = self._columns[number]
            # The same objects; == would compare tensors by value.
            if len(known) == len(params) and all(map(operator.is_, known, params)):
                return columns
        states = [self.state.get(param, {}) for param in params]
        columns = [[state.get(name) for state in states] for name in names]
        self._columns[number] = list(params), columns
        return columns

    def register_step_pre_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` before ``step``; may return new ``(args, kwargs)``."""
        return _add(self._pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` after ``step``."""
        return _add(self._post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return _add(self._state_dict_hooks["pre"], hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; a dict returned replaces it."""
        return _add(self._state_dict_hooks["post"], hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` before loading; a dict returned replaces it."""
        return _add(self._load_hooks["pre"], hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` after loading."""
        return _add(self._load_hooks["post"], hook, prepend)

    def state_dict(self):
        """Return ``{"state": {number: {...}}, "param_groups": [...]}``; parameters are counted through all groups."""
        for hook in self._state_dict_hooks["pre"].values():
            hook(self)
        state_dict = saving.pack(self.state, self.param_groups)
        for hook in self._state_dict_hooks["post"].values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        return state_dict

    def load_state_dict(self, state_dict):
        """Take over the options and the state of `state_dict`; floating state is cast to each parameter's dtype.

        Raises:
            ValueError: the groups are not as many or as large as ours.
        """
        state_dict = dict(state_dict)
        for hook in self._load_hooks["pre"].values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved = copy.deepcopy(state_dict["param_groups"])
        saving.check_groups(saved, self.param_groups)
        state = saving.unpack_state(state_dict["state"], saved, self.param_groups)
        groups = [saving.with_params(new, old) for new, old in zip(saved, self.param_groups)]
        self.__setstate__({"state": OptimizerState(state), "param_groups": groups})
        for hook in self._load_hooks["post"].values():
            hook(self)


def _params_and_names(params):
    """Return a list of tensors, and the list of their names if all were given as pairs."""
    if isinstance(params, tg.Tensor):
        return [params], None
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors "
            "in sets will change between runs. Please use a list instead."
        )
    params = list(params)
    named = [isinstance(param, tuple) for param in params]
    if not any(named):
        return params, None
    if not all(named):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [param for _, param in params], [name for name, _ in params]


def _check_param(param, differentiable):
    if not isinstance(param, tg.Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
    if not differentiable and not param.is_leaf and not param.retains_grad:
        raise ValueError(
            "can't optimize a non-leaf Tensor: it is the result of an op; optimize what it was computed from, "
            "or detach it first"
        )
