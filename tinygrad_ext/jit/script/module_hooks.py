"""Forward hooks of modules: compiled around forward, in the order in which eager mode runs them."""

from tinygrad_ext.graph.types import NONE

from .values import TupleValue, type_of

_REFUSED = (
    ("_backward_hooks", "backward hooks"),
    ("_backward_pre_hooks", "backward pre-hooks"),
    ("_forward_hooks_with_kwargs", "hooks that take keyword arguments"),
    ("_forward_pre_hooks_with_kwargs", "hooks that take keyword arguments"),
    ("_forward_hooks_always_called", "hooks that are called after an error too"),
)


class Hooks:
    """What is registered around a module's forward. Attributes: before, after (lists of functions)."""

    def __init__(self, module):
        for table, told in _REFUSED:
            if getattr(module, table):
                raise RuntimeError(
                    f"jit.script(): {type(module).__name__} has {told}, which script does not run. Remove them, or "
                    "call what they do in forward."
                )
        self.before = list(module._forward_pre_hooks.values())
        self.after = list(module._forward_hooks.values())


def hooks_of(module):
    """The Hooks of a module, of a scripted one those of the module it was made of; None where it has none."""
    found = module.__dict__.get("_tgx_hooks")
    return found if found is not None or not module._live_hooks else Hooks(module)


def call_with_hooks(c, owner, hooks, forward, args, kwargs):
    """What a call of a module gives: hooks before may replace the arguments, those behind the result."""
    for hook in hooks.before:
        made = _run(c, owner, hook, TupleValue(args))
        if made is not None:
            args = c.unpacked(made) if c.is_tuple(made) else [made]
    result = forward.call(c, args, kwargs)
    for hook in hooks.after:
        made = _run(c, owner, hook, TupleValue(args), result)
        result = result if made is None else made
    return result


def _run(c, owner, hook, *args):
    """What a hook gives; None where it leaves things as they are."""
    name = getattr(hook, "__name__", "a hook")
    made = c.python(hook, name).call(c, [owner, *args], {})
    given = type_of(made)
    if given is NONE:
        return None
    if given is not None and given.is_optional:
        c.fault(f"the hook {name} returns a value on some ways and None on others; return a value on all")
    return made
