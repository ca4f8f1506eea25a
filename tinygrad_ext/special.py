"""Special functions, one for each record with where="special" or an alias there."""

from tinygrad_ext.errors.places import attributes as _attributes

__getattr__, __dir__ = _attributes(__name__, "special")
