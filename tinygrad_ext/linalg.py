"""Functions of linear algebra, one for each record with where="linalg"."""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.errors import no_attribute

_PLACE = "linalg."


class LinAlgError(RuntimeError):
    """A matrix is not of the kind that an op needs, as a singular one for solve."""


@_boundary
def __getattr__(name):
    found = functions.get(_PLACE + name)
    if found is None:
        raise no_attribute(__name__, name, __dir__())
    return found


def __dir__():
    return sorted(["LinAlgError", *(key[len(_PLACE) :] for key in functions if key.startswith(_PLACE))])
