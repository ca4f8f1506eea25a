"""Grad modes: context managers that are decorators too. Those entered often are compiled (core/call/modes.pyx)."""

import warnings

from tinygrad_ext.core.call.modes import (
    Mode,
    enable_grad,
    get_modes,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
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


class recording(Mode):
    """History is recorded whatever is on outside, inference mode too: for what differentiates by itself."""

    __slots__ = ()

    def _switch(self, grad, inference, anomaly):
        set_modes(True, False, anomaly)


class not_inference(Mode):
    """Inference mode is off, and what it made of recording stays: tensors made inside may enter graphs of others."""

    __slots__ = ()

    def _switch(self, grad, inference, anomaly):
        set_modes(grad and not inference, False, anomaly)


class set_multithreading_enabled(Mode):
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


class set_detect_anomaly(Mode):
    """Anomaly mode on or off: backward errors show where their forward was; check_nan looks for NaN gradients."""

    __slots__ = ("anomaly",)

    def __init__(self, mode, check_nan=True):
        self.anomaly = (2 if check_nan else 1) if mode else 0
        super().__enter__()

    def __enter__(self):
        self._switch(*get_modes())

    def clone(self):
        return set_detect_anomaly(self.anomaly > 0, self.anomaly == 2)

    def _switch(self, grad, inference, anomaly):
        set_modes(grad, inference, self.anomaly)


class detect_anomaly(Mode):
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
