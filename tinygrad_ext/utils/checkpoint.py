"""Less memory for more time: what a part of a model saves for its backward is thrown away and computed again there.

There are two forms, as in PyTorch. The one that does not re-enter the engine hangs hooks on what is saved: each saved
tensor becomes an empty place, and the first place that backward asks for runs the function again and fills them all.
The other is a Function whose backward runs the function again with gradients and calls the engine itself.
"""

import contextlib
import warnings
import weakref

import tinygrad_ext as tg
from tinygrad_ext import random as _random
from tinygrad_ext.autograd.function import Function
from tinygrad_ext.autograd.graph import saved_tensors_hooks
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.utils.selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]

_early_stop = True


class CheckpointError(RuntimeError):
    """What was computed again differs from what was computed first."""


class _Enough(Exception):
    """All places are filled; the rest of the function need not run."""


@boundary
@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Whether the second run of a function ends when all that was saved is there again; inside this context."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@boundary
def noop_context_fn():
    """Two contexts that do nothing, for the first run and for the second one."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@boundary
def detach_variable(inputs):
    """The inputs detached, each wanting a gradient if it did.

    Raises:
        RuntimeError: ``inputs`` is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, tg.Tensor) else value
        for value in inputs
    )


@boundary
def check_backward_validity(inputs):
    """Warn if none of the inputs wants a gradient: backward would not reach what is inside."""
    if not any(isinstance(value, tg.Tensor) and value.requires_grad for value in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def _casting():
    """(on, dtype, whether what was converted is kept) of autocast."""
    state = later("autocast state")
    return state.is_autocast_enabled("cpu"), state.get_autocast_dtype("cpu"), state.is_autocast_cache_enabled()


def _cast_again(casting):
    if casting == _casting():
        return contextlib.nullcontext()
    enabled, dtype, cache_enabled = casting
    return later("autocast").autocast("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class _Again:
    """A function with its arguments, to be run again as it ran first: its random numbers, contexts, autocast."""

    def __init__(self, function, kwargs, preserve_rng_state, context):
        self.function, self.kwargs, self.context = function, kwargs, context
        self.state = _random.get_rng_state() if preserve_rng_state else None
        self.casting = _casting()

    def __call__(self, *args):
        fork = _random.fork_rng(devices=[], enabled=self.state is not None)
        with fork, _cast_again(self.casting), self.context, tg.enable_grad():
            if self.state is not None:
                _random.set_rng_state(self.state)
            return self.function(*args, **self.kwargs)


@boundary
class CheckpointFunction(Function):
    """The form that re-enters the engine."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Run without saving anything but the tensors among the arguments."""
        check_backward_validity(args)
        ctx.again = _Again(run_function, {}, preserve_rng_state, contextlib.nullcontext())
        ctx.args = [None if isinstance(value, tg.Tensor) else value for value in args]
        ctx.places = [i for i, value in enumerate(args) if isinstance(value, tg.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with tg.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Run again, with gradients, and go through what that gives."""
        args = list(ctx.args)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            args[place] = tensor
        args = detach_variable(tuple(args))
        outputs = ctx.again(*args)
        outputs = (outputs,) if isinstance(outputs, tg.Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, tg.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        tg.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(value.grad if isinstance(value, tg.Tensor) else None for value in args))


class _Place:
    """Where a saved tensor will be again."""

    __slots__ = ("__weakref__", "value")


class _Saved:
    """The places of one checkpoint, in the order in which the function saved."""

    def __init__(self, again, args, determinism_check, early_stop):
        self.again, self.args, self.early_stop = again, args, early_stop
        self.strict = determinism_check == "default"
        self.places, self.shown = [], []

    def pack(self, tensor):
        """A place instead of the tensor."""
        place = _Place()
        self.places.append(weakref.ref(place))
        self.shown.append(_look(tensor))
        return place

    def unpack(self, place):
        """The tensor of a place, by running again where it is not filled."""
        if not hasattr(place, "value"):
            self._fill()
        if not hasattr(place, "value"):
            raise CheckpointError(
                "checkpoint: fewer tensors were saved when the function ran again than when it ran first; it must do "
                "the same both times"
            )
        value = place.value
        del place.value  # another backward through the same graph runs it again
        return value

    def _fill(self):
        count = 0

        def pack(tensor):
            nonlocal count
            if count >= len(self.places):
                raise CheckpointError(
                    "checkpoint: more tensors were saved when the function ran again than when it ran first; it must "
                    "do the same both times"
                )
            if self.strict and _look(tensor) != self.shown[count]:
                raise CheckpointError(
                    f"checkpoint: recomputed values have different metadata than during the forward pass: saved tensor "
                    f"{count} was {self.shown[count]}, and is {_look(tensor)} now; the function must do the same twice"
                )
            place = self.places[count]()
            if place is not None:
                place.value = tensor.detach()
            count += 1
            if self.early_stop and count == len(self.places):
                raise _Enough
            return tensor.detach()

        with saved_tensors_hooks(pack, lambda tensor: tensor), contextlib.suppress(_Enough):
            self.again(*self.args)


def _look(tensor):
    return tuple(tensor.shape), tensor.dtype, str(tensor.device)


@boundary
def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    preserve_rng_state=True,
    **kwargs,
):
    """``function(*args, **kwargs)``, whose saved tensors are thrown away and computed again in the backward.

    Args:
        use_reentrant: False for the form with hooks, which takes everything; True for the older one, whose backward
            calls the engine, which takes no keyword arguments and needs an input that wants a gradient.
        context_fn: gives two contexts, for the first run and for the second one.
        determinism_check: 'default' compares what is saved the second time by shape and dtype; 'none' does not.
        early_stop: end the second run when all is there.
        preserve_rng_state: draw the same random numbers the second time.

    Raises:
        ValueError: arguments that the form does not take.
        CheckpointError: in the backward, the function did something else the second time.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.checkpoint import checkpoint
        >>> x = tg.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
        >>> x.grad is not None
        True
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended",
            stacklevel=2,
        )
        use_reentrant = True
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    first, second = context_fn()
    again = _Again(function, kwargs, preserve_rng_state, second)
    saved = _Saved(again, args, determinism_check, early_stop and _early_stop)
    with saved_tensors_hooks(saved.pack, saved.unpack), first:
        return function(*args, **kwargs)


@boundary
def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A Sequential, or a list of functions, in so many parts, each but the last of which is checkpointed.

    Raises:
        ValueError: keyword arguments that there are none of.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly.",
            stacklevel=2,
        )
        use_reentrant = True
    functions = list(functions)
    size = len(functions) // segments

    def part(start, end):
        def run(value):
            for function in functions[start:end]:
                value = function(value)
            return value

        return run

    last = size * (segments - 1)
    for start in range(0, last, size or 1):
        input = checkpoint(part(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(last, len(functions))(input)
