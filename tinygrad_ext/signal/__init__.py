"""Signal processing: `signal.windows`, weights for stretches of a signal. Transforms stand in `fft`."""

from tinygrad_ext.signal import windows as windows

__all__ = ["windows"]
