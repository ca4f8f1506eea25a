"""Functions of Fourier transforms, one for each record with where="fft"."""

from tinygrad_ext.errors.places import attributes as _attributes

__getattr__, __dir__ = _attributes(__name__, "fft")
