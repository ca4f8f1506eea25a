"""The official alias: `import torch` means tinygrad_ext.

``python -m tinygrad_ext.as_torch script.py`` runs a script under it, `install` switches it on in a running process, and
the pytest fixture ``as_torch`` for one test. ``torch.nn`` is the module object ``tinygrad_ext.nn``, and so for every
other submodule: there is one of each thing, whichever name it is imported by.
"""

import importlib
import sys

import tinygrad_ext
from tinygrad_ext.as_torch import absent_names, absent_ops
from tinygrad_ext.as_torch.finder import BESIDE, NAME, OURS, AliasFinder, MissingFinder, drop, loaded, mirror
from tinygrad_ext.as_torch.version import Version
from tinygrad_ext.core.call.type_names import name_types

__all__ = ["installed", "install", "uninstall"]

# The version of PyTorch whose names and rules are followed; scripts compare it with the one they need.
TORCH_VERSION = "2.13.0"

# Parts of the standard library that PyTorch's import brings, and that programs use without an import of their own.
BROUGHT = ("multiprocessing.connection", "unittest.mock", "urllib.request")

_finders = ()
_own_version = tinygrad_ext.__version__
_set_aside = {}
_undo = []


def installed():
    """Whether `import torch` means tinygrad_ext now."""
    return bool(_finders)


def install(*, replace=False):
    """Make `import torch` and every `torch.` submodule resolve to tinygrad_ext, until `uninstall`.

    Calling it again changes nothing. Meanwhile ``tinygrad_ext.__version__`` is that of the PyTorch that is followed,
    with our own behind a plus sign.

    Args:
        replace: set a real torch that is already imported aside, and let `uninstall` put it back. Code that has
            imported it keeps it: the two never mix in one module, but may meet in one process.

    Raises:
        RuntimeError: a real torch is already imported and `replace` is False.

        >>> from tinygrad_ext import as_torch
        >>> as_torch.install(replace=True)
        >>> import torch.nn as nn
        >>> nn.__name__
        'tinygrad_ext.nn'
        >>> as_torch.uninstall()
    """
    global _finders
    if installed():
        return
    for name in BROUGHT:
        importlib.import_module(name)
    real = loaded(NAME)
    if real and not replace:
        path = getattr(real.get(NAME), "__file__", None) or "an unknown place"
        raise RuntimeError(
            f"as_torch.install(): a torch is already imported (from {path}), and modules that use it would mix with "
            "tinygrad_ext's. Call install() before the first import of torch, run the program with "
            "python -m tinygrad_ext.as_torch, or set it aside with install(replace=True)."
        )
    _set_aside.update({**drop(NAME), **drop(BESIDE)})
    _finders = (AliasFinder(), MissingFinder())
    sys.meta_path.insert(0, _finders[0])
    sys.meta_path.append(_finders[1])
    tinygrad_ext.__version__ = Version(f"{TORCH_VERSION}+tinygrad_ext.{_own_version}")
    _name(NAME)
    mirror()
    _undo.append(absent_ops.install())


def uninstall():
    """Undo `install`: `import torch` finds what it found before. Modules already imported keep what they have."""
    global _finders
    if not installed():
        return
    for finder in _finders:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    _finders = ()
    absent_names.empty()
    _undo.pop()()
    _take_stand_ins_off(drop(NAME))
    drop(BESIDE)
    _name(OURS)
    tinygrad_ext.__version__ = _own_version
    sys.modules.update(_set_aside)
    _set_aside.clear()


def _take_stand_ins_off(modules):
    """An import sets a module as an attribute of its parent, which stays: ours keep their own, and none keeps what
    was made for this time."""
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        above = modules.get(parent)
        goes = above and _is_stand_in(module) and (not _is_stand_in(above) or module.__name__.startswith(f"{NAME}."))
        if goes and vars(above).get(last) is module:
            delattr(above, last)


def _is_stand_in(module):
    return module.__name__.startswith((f"{OURS}.as_torch.stand_ins.", f"{NAME}."))


def _name(package):
    """What the package and its types say they are called: libraries ask for `Tensor.__module__`."""
    tinygrad_ext.__name__ = package
    name_types(package)
    if package == NAME:  # PyTorch's package imports itself, and libraries write torch.torch.Tensor
        tinygrad_ext.torch = tinygrad_ext
    else:
        vars(tinygrad_ext).pop(NAME, None)
