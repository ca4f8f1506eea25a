"""Classes and functions that a program has named safe: the reader of PyTorch's files makes objects of these alone.

PyTorch asks for the same list. Nothing is on it unless somebody puts it there: what stands on it is called with
whatever a file says.
"""

from _compat_pickle import NAME_MAPPING
from copyreg import _slotnames

named = []  # classes and functions, or (one, the name that files know it by)


def path_of(entry):
    """(what files name it, the class or function)."""
    if isinstance(entry, tuple):
        return entry[1], entry[0]
    return f"{entry.__module__}.{entry.__qualname__}", entry


def found(module, name):
    """What was named safe under a name in a file, or None."""
    paths = dict(map(path_of, named))
    if module == "__builtin__":  # as a file of the second protocol calls it
        module, name = "builtins", NAME_MAPPING.get((module, name), (module, name))[1]
    path = f"{module}.{name}"
    if path not in paths and path.startswith("torch."):  # a class of this package, as PyTorch knows it
        path = "tinygrad_ext." + path.removeprefix("torch.")
    return paths.get(path)


def is_safe(value):
    """Whether a class or function was named safe."""
    return any(path_of(entry)[1] is value for entry in named)


def set_state(instance, state):
    """Give an object of such a class the state that its file has."""
    own = getattr(instance, "__setstate__", None)
    if own is not None:
        own(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        vars(instance).update(attributes)
    for name in _slotnames(type(instance)):
        if name in (slots or {}):
            setattr(instance, name, slots[name])
