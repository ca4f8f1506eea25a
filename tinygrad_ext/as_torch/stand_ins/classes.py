"""torch.classes: the classes that compiled libraries of PyTorch bring, of which there are none here."""

import tinygrad_ext as _tg

__all__ = ["load_library", "loaded_libraries"]
loaded_libraries = set()


def load_library(path):
    """Load a compiled extension, as `ops.load_library` does."""
    _tg.ops.load_library(path)
    loaded_libraries.add(path)


class _Namespace:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"torch.classes.{self._name}.{name}: there is no such class; compiled classes of PyTorch's libraries can "
            "not be had here: write it in Python, or its functions as ops of an extension"
        )


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
