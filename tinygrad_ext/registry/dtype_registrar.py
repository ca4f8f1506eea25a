"""The one way to bring a dtype: for plugins by `register.dtype` of the hook tgx_register_ops, for programs by
`library.register_dtype`.
"""

from tinygrad_ext.core.data import coded
from tinygrad_ext.core.data.table import CODED_SIZES
from tinygrad_ext.registry.checks import is_plain_name

brought = {}  # name of a dtype -> Owner of what brings it


def bring(name, scope, *, values=None, itemsize=None, widen=None, narrow=None):
    """Make a dtype of a name, until the scope is undone; returns it. See library.register_dtype."""
    if not isinstance(name, str) or not is_plain_name(name):
        raise ValueError(
            f"register_dtype: the name must be small letters, digits and _, such as 'float8_toy', not {name!r}"
        )
    if (values is None) == (widen is None) or (widen is None) != (narrow is None):
        raise TypeError(
            f"register_dtype: '{name}' needs either values=, the number of each code, or itemsize=, widen= and "
            "narrow=, functions in C that convert a row to float32 and back"
        )
    if values is not None:
        values, itemsize = _table(name, values, itemsize)
    if itemsize not in CODED_SIZES:
        raise ValueError(f"register_dtype: the itemsize of '{name}' must be 1 or 2 bytes, not {itemsize!r}")
    made = coded.bring(name, itemsize, values, _address(name, widen), _address(name, narrow), scope.owner)
    scope.note(coded.take_back, name)
    scope.put(brought, name, scope.owner)
    return made


def _table(name, values, itemsize):
    """The values as floats, and the bytes of an element."""
    values = [float(v) for v in (values.tolist() if hasattr(values, "tolist") else values)]
    sizes = {1 << 8 * size: size for size in CODED_SIZES}
    if len(values) not in sizes or itemsize not in (None, sizes[len(values)]):
        raise ValueError(
            f"register_dtype: the values of '{name}' must be one for each code, 256 of an itemsize of 1 or 65536 of 2, "
            f"not {len(values)}"
        )
    import ctypes

    for code, v in enumerate(values):
        if v == v and ctypes.c_float(v).value != v:
            raise ValueError(
                f"register_dtype: '{name}' computes in float32, which has no {v!r}, the value of code {code}"
            )
    if not any(abs(v) < float("inf") for v in values):
        raise ValueError(f"register_dtype: none of the values of '{name}' is a finite number")
    return values, sizes[len(values)]


def _address(name, function):
    """Where a function in C lies; 0: there is none."""
    if function is None:
        return 0
    import ctypes

    if isinstance(function, ctypes._CFuncPtr):
        function = ctypes.cast(function, ctypes.c_void_p).value
    if not isinstance(function, int) or isinstance(function, bool) or function <= 0:
        raise TypeError(
            f"register_dtype: widen= and narrow= of '{name}' must be functions of a library that ctypes loaded, "
            f"or their addresses, not {type(function).__name__}"
        )
    return function
