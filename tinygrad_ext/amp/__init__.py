"""Mixed precision: `autocast` computes some ops in lower precision, `GradScaler` keeps small gradients."""

from tinygrad_ext.amp import autocast_mode as autocast_mode
from tinygrad_ext.amp import grad_scaler as grad_scaler
from tinygrad_ext.amp.autocast_mode import _enter_autocast as _enter_autocast
from tinygrad_ext.amp.autocast_mode import _exit_autocast as _exit_autocast
from tinygrad_ext.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from tinygrad_ext.amp.grad_scaler import GradScaler
from tinygrad_ext.errors import refuse_unknown

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__getattr__ = refuse_unknown(__name__)
