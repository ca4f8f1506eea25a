"""How `torch.nn` is found: two finders on sys.meta_path, one in front of all others, one behind them.

The one in front answers for every module we have. It must come first: `torch` is the package tinygrad_ext itself, whose
folder the ordinary finder would search, and so load each file a second time under a second name. The one behind is
reached only by names that nobody found; it raises the error that says what there is.
"""

import difflib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

from tinygrad_ext.as_torch import absent_names, places
from tinygrad_ext.errors import torch_names

OURS = "tinygrad_ext"
NAME = "torch"
BESIDE = "functorch"  # a package of its own that PyTorch's wheel brings, which would ask PyTorch's insides
PAGE = "docs/differences.md"


def _renamed(name, old, new):
    """'torch.nn' as 'tinygrad_ext.nn'; None for what does not stand below `old`."""
    if name == old or name.startswith(old + "."):
        return new + name[len(old) :]
    return None


def loaded(root):
    """The modules in sys.modules that stand below root, itself included."""
    return {name: module for name, module in list(sys.modules.items()) if _renamed(name, root, root)}


def drop(root):
    """Take the modules below root out of sys.modules and return them."""
    return {name: sys.modules.pop(name) for name in loaded(root)}


def mirror():
    """Enter every module of ours that is loaded under its other name too.

    An import that finds its module in sys.modules leaves the parent alone. Any other import sets it as an attribute of
    the parent, and `torch.autograd.gradcheck`, a function, would become the module of that name.
    """
    for name, module in loaded(OURS).items():
        place = name[len(OURS) + 1 :]
        if place in places.PACKAGES and not hasattr(module, "__path__"):
            module.__path__ = []  # a package in PyTorch, one file here
        sys.modules[_renamed(name, OURS, NAME)] = module
        absent_names.fill(module, place)


def own_name(place):
    """The module of ours that answers for a place in PyTorch which has no file here; None where nothing does."""
    answer = places.answers(place)
    return answer and f"{OURS}.{answer}"


class AliasFinder:
    """Finds torch and its submodules in tinygrad_ext."""

    def find_spec(self, name, path=None, target=None):
        """The spec of a module of ours under its alias, or None."""
        if _renamed(name, BESIDE, BESIDE):
            return _beside(name)
        own = _renamed(name, NAME, OURS)
        if not own:
            return None
        # what stands for a place goes first: the place's parent may have no file here, and could not be asked
        place = name[len(NAME) + 1 :]
        own = own_name(place) or own
        try:
            spec = importlib.util.find_spec(own)
        except ModuleNotFoundError:  # of its parent, which stands for a place and has no folder
            spec = None
        if not spec:
            absent = place in absent_names.places() and not _asked_by()[0]
            return ModuleSpec(name, _AbsentLoader(place), is_package=True) if absent else None
        package = (
            spec.submodule_search_locations is not None or place in places.PACKAGES or place in absent_names.packages()
        )
        return ModuleSpec(name, _AliasLoader(own, place), origin=spec.origin, is_package=package)

    def find_distributions(self, context=None):
        """What importlib.metadata is told of the package torch: libraries ask which version is installed."""
        asked = getattr(context, "name", None)
        return [_Installed()] if asked is None or asked.lower() == NAME else []


class _Installed(importlib.metadata.Distribution):
    """PyTorch's package as the alias stands for it: its name and version, and no files."""

    def read_text(self, filename):
        """The text of METADATA; None for any other file."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {sys.modules[OURS].__version__}\n"

    def locate_file(self, path):
        """Where a file of ours lies."""
        return Path(sys.modules[OURS].__file__).parent.parent / path


def _beside(name):
    """The spec of what stands for functorch or one of its modules."""
    own = f"{OURS}.as_torch.stand_ins.{name.replace('.', '_')}"
    if not importlib.util.find_spec(own):
        return None
    return ModuleSpec(name, _AliasLoader(own, name), is_package=name == BESIDE)


class _AliasLoader:
    """Hands out the module that exists instead of making one."""

    def __init__(self, own, place):
        self._own, self._place = own, place

    def create_module(self, spec):
        """The module of ours; the import system is about to write the alias's spec into it."""
        module = importlib.import_module(self._own)
        self._spec = module.__spec__
        return module

    def get_code(self, name):
        """The code of the module, for `-m`."""
        return importlib.util.find_spec(self._own).loader.get_code(self._own)

    def exec_module(self, module):
        """Nothing to run; give the module its own spec back, and show what its import brought in."""
        module.__spec__ = self._spec
        _hold_parts(module, self._place)
        absent_names.fill(module, self._place)
        mirror()


class _AbsentLoader:
    """Makes a module of PyTorch's of which nothing is here."""

    def __init__(self, place):
        self._place = place

    def create_module(self, spec):
        """A module whose names fail at use."""
        return absent_names.module(self._place)

    def exec_module(self, module):
        """Nothing to run."""


def _hold_parts(module, place):
    """Let what stands for a package have its modules as attributes: `from torch.distributed import nn` asks for one."""
    if place not in places.PACKAGES or hasattr(module, "__getattr__"):
        return

    def part(name):
        if places.answers(f"{place}.{name}"):
            return importlib.import_module(f"{NAME}.{place}.{name}")
        raise AttributeError(f"module '{NAME}.{place}' has no attribute '{name}'")

    module.__getattr__ = part


class MissingFinder:
    """Last in the row: what of torch comes here does not exist in tinygrad_ext."""

    def find_spec(self, name, path=None, target=None):
        """None for other packages; ModuleNotFoundError for a submodule that we lack."""
        alias = _renamed(name, OURS, NAME) or _renamed(name, NAME, NAME)
        is_question, from_import = _asked_by()
        if alias is None or is_question:
            return None
        # `from torch import x` asks for torch.x too, and the import system drops an error about just that name. One
        # about the other name reaches the user.
        named = _renamed(alias, NAME, OURS) if from_import and name == alias else alias
        raise ModuleNotFoundError(_message(alias, from_import), name=named)


def _asked_by():
    """(importlib.util.find_spec is asking, which wants None for a module that is not there; `from x import y` is)."""
    frame, from_import = sys._getframe(2), False
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib._bootstrap"):
        from_import = from_import or frame.f_code.co_name == "_handle_fromlist"
        frame = frame.f_back
    return frame is not None and frame.f_code is importlib.util.find_spec.__code__, from_import


def _message(alias, from_import):
    parent, _, name = alias.rpartition(".")
    package = sys.modules.get(parent)
    names = [m.name for m in pkgutil.iter_modules(getattr(package, "__path__", ()))]
    # for users, `tensor` and `gradcheck` are functions
    there = torch_names.for_users(parent, (n for n in names if not callable(vars(package).get(n))))
    near = difflib.get_close_matches(name, there, 3)
    refused = f"cannot import name '{name}' from '{parent}'" if from_import else f"No module named '{alias}'"
    return (
        f"{refused}: torch is tinygrad_ext here, which has no {name} there.{torch_names.hint(parent, name, near)}"
        f"{f' Modules of {parent}: ' + ', '.join(there) + '.' if there else ''} What differs stands in {PAGE}."
    )
