"""Functions of linear algebra, one for each record with where="linalg"."""

from tinygrad_ext.core.call.matrix_error import LinAlgError as LinAlgError
from tinygrad_ext.errors.places import attributes as _attributes

__getattr__, __dir__ = _attributes(__name__, "linalg", ["LinAlgError"])
