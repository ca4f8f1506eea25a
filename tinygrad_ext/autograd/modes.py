"""Grad modes: context managers that are decorators too."""

import functools
import inspect
import warnings

from tinygrad_ext.core.call.modes import (
    get_modes,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    set_modes,
)

__all__ = [
    "detect_anomaly",
    "enable_grad",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Mode:
    """Base: switches on entry, and back to what was on exit; one remembered state for each nesting."""

    __slots__ = ("_saved",)

    def __init__(self):
        self._saved = []

    def __enter__(self):
        self._saved.append(get_modes())
        self._switch(*self._saved[-1])

    def __exit__(self, *exc):
        set_modes(*self._saved.pop())

    def clone(self):
        """A fresh one of the same setting, for each call of a decorated function."""
        return type(self)()

    def __call__(self, fn):
        if inspect.isclass(fn):
            raise TypeError(
                f"{type(self).__name__} decorates functions, not the class {fn.__name__}; decorate its methods"
            )
        if inspect.isgeneratorfunction(fn):
            return _generator(self, fn)

        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with self.clone():
                return fn(*args, **kwargs)

        return wrapped


def _generator(mode, fn):
    """A generator function whose body runs in the mode, and whose consumer does not."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        generator = fn(*args, **kwargs)
        resume = functools.partial(generator.send, None)
        try:
            while True:
                with mode.clone():
                    value = resume()
                try:
                    resume = functools.partial(generator.send, (yield value))
                except GeneratorExit:
                    with mode.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)
        except StopIteration as stop:
            return stop.value

    return wrapped


class no_grad(_Mode):
    """Operations inside are not recorded for backward. Also a decorator, with or without brackets."""

    __slots__ = ()

    def __new__(cls, fn=None):
        return object.__new__(cls) if fn is None else cls()(fn)

    def _switch(self, grad, inference, anomaly):
        set_modes(False, inference, anomaly)


class enable_grad(_Mode):
    """Operations inside are recorded for backward, also within no_grad."""

    __slots__ = ()

    def __new__(cls, fn=None):
        return object.__new__(cls) if fn is None else cls()(fn)

    def _switch(self, grad, inference, anomaly):
        set_modes(not inference, inference, anomaly)


class set_grad_enabled(_Mode):
    """Switch recording on or off, at once; as a `with` or decorator, for its extent only."""

    __slots__ = ("mode",)

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}")
        self.mode = mode
        self._saved = [get_modes()]
        self._switch(*get_modes())

    def __enter__(self):
        self._switch(*get_modes())

    def __call__(self, fn):
        set_modes(*self._saved.pop())
        return super().__call__(fn)

    def clone(self):
        return set_grad_enabled(self.mode)

    def _switch(self, grad, inference, anomaly):
        set_modes(self.mode, inference, anomaly)


class recording(_Mode):
    """History is recorded whatever is on outside, inference mode too: for what differentiates by itself."""

    __slots__ = ()

    def _switch(self, grad, inference, anomaly):
        set_modes(True, False, anomaly)


class not_inference(_Mode):
    """Inference mode is off, and what it made of recording stays: tensors made inside may enter graphs of others."""

    __slots__ = ()

    def _switch(self, grad, inference, anomaly):
        set_modes(grad and not inference, False, anomaly)


class inference_mode(_Mode):
    """No recording, and the tensors made inside can never enter a graph."""

    __slots__ = ("mode",)

    def __new__(cls, mode=True):
        return object.__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode=True):
        super().__init__()
        self.mode = mode

    def clone(self):
        return inference_mode(self.mode)

    def _switch(self, grad, inference, anomaly):
        set_modes(not self.mode, self.mode, anomaly)


class set_multithreading_enabled(_Mode):
    """Accepted for PyTorch's sake: a backward pass always runs in the thread that asked for it."""

    __slots__ = ("mode",)

    def __init__(self, mode):
        super().__init__()
        if not isinstance(mode, bool):
            raise TypeError(f"set_multithreading_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.mode = mode

    def clone(self):
        return set_multithreading_enabled(self.mode)

    def _switch(self, grad, inference, anomaly):
        pass


class set_detect_anomaly(_Mode):
    """Anomaly mode on or off: backward errors show where their forward was; check_nan looks for NaN gradients."""

    __slots__ = ("anomaly",)

    def __init__(self, mode, check_nan=True):
        self.anomaly = (2 if check_nan else 1) if mode else 0
        self._saved = [get_modes()]
        self._switch(*get_modes())

    def __enter__(self):
        self._switch(*get_modes())

    def clone(self):
        return set_detect_anomaly(self.anomaly > 0, self.anomaly == 2)

    def _switch(self, grad, inference, anomaly):
        set_modes(grad, inference, self.anomaly)


class detect_anomaly(_Mode):
    """Anomaly mode for the extent of a `with`. Slow: for debugging only."""

    __slots__ = ("anomaly",)

    def __init__(self, check_nan=True):
        super().__init__()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled "
            "for debugging.",
            UserWarning,
            stacklevel=2,
        )
        self.anomaly = 2 if check_nan else 1

    def clone(self):
        return set_detect_anomaly(True, self.anomaly == 2)

    def _switch(self, grad, inference, anomaly):
        set_modes(grad, inference, self.anomaly)
