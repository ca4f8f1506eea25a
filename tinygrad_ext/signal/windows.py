"""Window functions, one for each record with where="signal.windows"."""

from tinygrad_ext.errors.places import attributes as _attributes

__getattr__, __dir__ = _attributes(__name__, "signal.windows")
