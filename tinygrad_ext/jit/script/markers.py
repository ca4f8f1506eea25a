"""What programs say to the compiler, and what Python does with it when nothing is compiled."""

import builtins
import typing
import warnings

from tinygrad_ext.core.call.scripting import is_scripting  # noqa: F401 - what lies below asks too
from tinygrad_ext.graph.primitives.objects import fits

from .types import NoType, type_from, without_contained

MODIFIER = "_tgx_script_modifier"  # attribute of a function: "ignore", "unused" or "export"

Final = typing.Final


def annotate(the_type, the_value):
    """Return the value; in script it has this type: ``annotate(List[int], [])``.

    >>> from tinygrad_ext import jit
    >>> jit.annotate(int, 3)
    3
    """
    return the_value


class Attribute(typing.NamedTuple):
    """The value of a module's attribute together with its type: ``self.names = Attribute([], List[str])``."""

    value: object
    type: object


def _unwrap_optional(x):
    """The value, which is not None: AssertionError otherwise. PyTorch's older word for an assertion."""
    assert x is not None, "Unwrapping null optional: a value that may be None was None"
    return x


def isinstance(obj, target_type):
    """Whether obj is of a type, which may say what a container holds; script narrows the type of a name by it.

    >>> from typing import List
    >>> from tinygrad_ext import jit
    >>> jit.isinstance([1], List[int]), jit.isinstance([1], List[str])
    (True, False)
    """
    targets = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    if builtins.isinstance(target_type, (list, set)):
        raise RuntimeError(f"jit.isinstance(): target_type must be a type or a tuple of types, not {target_type}")
    if builtins.isinstance(obj, (list, dict)) and not obj and any(map(typing.get_args, targets)):
        warnings.warn(
            "jit.isinstance(): an empty container of Python does not say what it holds, so it may be of any type",
            stacklevel=2,
        )
    for target in targets:
        check_contained(target)
    try:
        return any(fits(obj, type_from(t, lambda text: eval(text, vars(typing)))) for t in targets)
    except NoType as error:
        raise RuntimeError(f"jit.isinstance(): {error}") from None


_CONTAINED = {list: ("List", "List[int]"), tuple: ("Tuple", "Tuple[int]"), dict: ("Dict", "Dict[int, int]")}


def check_contained(target):
    """Raise where a type to ask for is a List, Dict or Tuple of whatever."""
    found = _CONTAINED.get(typing.get_origin(target) or target)
    if found is not None and not typing.get_args(target) and not str(target).endswith("[()]"):
        word, example = found
        raise RuntimeError(f"{without_contained(example)}; isinstance(x, {word.lower()}) of Python asks for any.")


def _marked(function, word):
    target = function.fget if builtins.isinstance(function, property) else function
    setattr(target, MODIFIER, word)
    return function


def export(fn):
    """Decorator: compile this method of a module too, though `forward` does not call it."""
    return _marked(fn, "export")


def ignore(drop=False, *, drop_on_export=None):
    """Decorator: leave this function to Python. Graphs that call it stay in this process.

    Args:
        drop: raise where compiled code comes here, as `unused` does.
        drop_on_export: an older word for drop, which warns.
    """
    if callable(drop):
        return _marked(drop, "ignore")
    if drop_on_export is not None:
        warnings.warn(
            "ignore(drop_on_export=...) is deprecated: TorchScript will now drop the function where it is compiled, "
            "not where it is exported; write jit.unused",
            FutureWarning,
            stacklevel=2,
        )
        drop = drop_on_export
    return lambda fn: _marked(fn, "unused" if drop else "ignore")


def _drop(fn):
    """Decorator: not compiled, whatever its annotations are, and gone in compiled code, as `unused` is."""
    return unused(fn)


def unused(fn):
    """Decorator: do not compile this function; compiled code that comes here raises."""
    return _marked(fn, "unused")
