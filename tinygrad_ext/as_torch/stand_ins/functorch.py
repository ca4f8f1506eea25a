"""functorch, the package that PyTorch's wheel brings beside torch: function transforms under their older names."""

import copy
import functools
import importlib
import warnings

import tinygrad_ext as tg
from tinygrad_ext import func
from tinygrad_ext.func import functional_call

from . import absent

__version__ = "2.13.0"
__path__ = []  # `functorch.dim` and its like are asked of the finder

_PARTS = ("compile", "dim", "experimental")


def __getattr__(name):
    if name in _PARTS:
        return importlib.import_module(f"functorch.{name}")
    raise AttributeError(f"module 'functorch' has no attribute '{name}'")


def _outdated(now):
    """Let a function say at each call what it is called since PyTorch 2.0."""

    def decorator(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            warnings.warn(
                f"`functorch.{function.__name__}` is deprecated: functorch is part of PyTorch since 2.0. "
                f"Please use `torch.{now}` instead",
                FutureWarning,
                stacklevel=2,
            )
            return function(*args, **kwargs)

        return called

    return decorator


vmap = _outdated("vmap")(func.vmap)
grad = _outdated("func.grad")(func.grad)
grad_and_value = _outdated("func.grad_and_value")(func.grad_and_value)
vjp = _outdated("func.vjp")(func.vjp)
jvp = _outdated("func.jvp")(func.jvp)
jacrev = _outdated("func.jacrev")(func.jacrev)
jacfwd = _outdated("func.jacfwd")(func.jacfwd)
hessian = _outdated("func.hessian")(func.hessian)
functionalize = _outdated("func.functionalize")(func.functionalize)
make_fx = absent.function("fx.experimental.proxy_tensor.make_fx", "there are no traces of dispatched ops; use fx.trace")


class FunctionalModuleWithBuffers(tg.nn.Module):
    """A module without state: ``f(parameters, buffers, *args)``."""

    def __init__(self, model, no_gradients):
        super().__init__()
        own = copy.deepcopy(model)
        self.param_names = [name for name, _ in own.named_parameters()]
        self.buffer_names = [name for name, _ in own.named_buffers()]
        for param in own.parameters() if no_gradients else ():
            param.requires_grad_(False)
        self.__dict__["stateless_model"] = own  # no part of this one, which has no parameters

    def _call(self, params, buffers, args, kwargs):
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)

    def _state(self, model, no_gradients):
        params = tuple(model.parameters())
        if no_gradients:
            params = tuple(p.detach() for p in params)
        return params, tuple(model.buffers())

    def forward(self, params, buffers, *args, **kwargs):
        return self._call(params, buffers, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without parameters: ``f(parameters, *args)``."""

    def forward(self, params, *args, **kwargs):
        return self._call(params, tuple(self.stateless_model.buffers()), args, kwargs)


@_outdated("func.functional_call")
def make_functional(model, disable_autograd_tracking=False):
    """(function of parameters and arguments, tuple of the module's parameters)."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    made = FunctionalModule(model, disable_autograd_tracking)
    return made, made._state(model, disable_autograd_tracking)[0]


@_outdated("func.functional_call")
def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function of parameters, buffers and arguments, tuple of parameters, tuple of buffers)."""
    made = FunctionalModuleWithBuffers(model, disable_autograd_tracking)
    return made, *made._state(model, disable_autograd_tracking)


@_outdated("func.stack_module_state")
def combine_state_for_ensemble(models):
    """(function of one of the models, their parameters stacked, their buffers stacked)."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made, params, buffers = zip(*(make_functional_with_buffers.__wrapped__(m) for m in models))
    return made[0], *(tuple(tg.stack(same) for same in zip(*state)) for state in (params, buffers))


def _models(model_class, shape, device, args, kwargs):
    if len(shape) > 1:
        raise ValueError(f"functional_init: ensemble_shape has at most one number, got {tuple(shape)}")
    if shape and shape[0] <= 0:
        raise ValueError(f"functional_init: num_models {shape[0]} should be > 0")
    return [model_class(*args, **kwargs).to(device) for _ in range(shape[0] if shape else 1)]


def functional_init_with_buffers(model_class, ensemble_shape=(), device="cpu"):
    """A function that makes models of a class: their parameters and buffers, stacked where there are several.

    It returns (parameters, buffers, function of these and a tuple of arguments, names of both).
    """

    def init(*args, **kwargs):
        models = _models(model_class, ensemble_shape, device, args, kwargs)
        made = FunctionalModuleWithBuffers(models[0], False)
        states = [made._state(model, False) for model in models]
        stacked = [tuple(tg.stack(same).detach() for same in zip(*kind)) for kind in zip(*states)]
        weights, buffers = stacked if ensemble_shape else states[0]
        names = [
            tuple(name for name, _ in named) for named in (models[0].named_parameters(), models[0].named_buffers())
        ]
        return weights, buffers, lambda weights, buffers, args: made(weights, buffers, *args), *names

    return init


def functional_init(model_class, ensemble_shape=(), device="cpu"):
    """The same of models without buffers: (parameters, function of these and a tuple of arguments, names)."""
    init = functional_init_with_buffers(model_class, ensemble_shape, device)

    def without(*args, **kwargs):
        weights, buffers, function, names, _ = init(*args, **kwargs)
        return weights, lambda weights, args: function(weights, buffers, args), names

    return without
