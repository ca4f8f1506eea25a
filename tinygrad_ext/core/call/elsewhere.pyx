# cython: language_level=3
"""PyTorch itself in the same process: its tensors in our functions, and ours in its.

Each library's tensors answer the protocol by calling the function again, which for a function of the other library
would go on forever. So PyTorch's tensors do not count as overriding here, and a function of PyTorch's that got one of
our tensors is refused.
"""
import sys

from cpython.object cimport PyTypeObject
from tinygrad_ext.core.data.tensor cimport Carried, Tensor
from tinygrad_ext.core.data.slots import set_slot

cdef extern from "Python.h":
    PyTypeObject *Py_TYPE(object o)
    bint PyType_IsSubtype(PyTypeObject *a, PyTypeObject *b)

cdef object _theirs = None              # torch.Tensor of PyTorch itself, once that is imported
cdef set _own_types = set()             # classes of our public callables


cdef bint from_elsewhere(object o) except -1:
    global _theirs
    if _theirs is None:
        found = getattr(sys.modules.get("torch"), "Tensor", None)
        if found is None or found is Tensor or not isinstance(found, type):
            return False
        _theirs = found
    return PyType_IsSubtype(Py_TYPE(o), <PyTypeObject *>_theirs)


cdef bint is_ours(object func) except -1:
    """Whether func is a public callable of ours. TypeError for a function of PyTorch itself."""
    if type(func) in _own_types:
        return True
    from_elsewhere(None)
    if _theirs is None:
        return False
    for owner in (func, getattr(func, "__objclass__", None), getattr(func, "__self__", None),
                  getattr(getattr(func, "__self__", None), "__objclass__", None)):
        if owner is Tensor:             # which is called torch.Tensor under the alias
            return False
        home = getattr(owner, "__module__", None) or ""
        if isinstance(home, str) and home.partition(".")[0] == "torch":
            name = getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(func))
            raise TypeError(f"torch.{name.rpartition('.')[2]}(): a tensor of tinygrad_ext cannot be an argument of a function of "
                            "PyTorch. Convert one side first: torch.from_dlpack(...) of our tensor, or "
                            "tinygrad_ext.from_dlpack(...) of PyTorch's; both share the memory.")
    return False


def own_types(*types):
    """Classes of public callables: their instances are ours without a look at where they come from."""
    _own_types.update(types)


# ---- words for messages --------------------------------------------------------------------------------------------

cdef bint must_convert(object o) except -1:
    """NumPy's arrays, and what takes part in its operators, need no conversion."""
    return from_elsewhere(o) or (hasattr(o, "__dlpack__") and not isinstance(o, Tensor) and not hasattr(o, "__array_ufunc__"))


cpdef str class_name(object o):
    """The name of o's type; that of another library's Tensor and of NumPy's types with the library's."""
    t = type(o)
    if t is Carried:
        return "Tensor"         # what a level calls it is nothing to a user
    if t.__module__ == "numpy":
        return f"numpy.{t.__name__}"
    if t.__name__ not in ("Tensor", "Parameter") or isinstance(o, Tensor):
        return t.__name__
    return f"{(t.__module__ or '').partition('.')[0]}.{t.__name__}"


cpdef str how_to_convert(object o):
    """The end of a message about a value that is no tensor of ours: how to bring another library's array over."""
    if hasattr(o, "__dlpack__") and not isinstance(o, Tensor):
        return ". Convert it first with tinygrad_ext.from_dlpack(...)"
    return ""


set_slot("as_words", lambda value: class_name(value) + how_to_convert(value))
