"""Forward hooks of modules: compiled around forward, in the order in which eager mode runs them."""

from tinygrad_ext.graph.types import NONE, Type, accepts

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
        _check(c, hook, args)
        made = _run(c, owner, hook, TupleValue(args))
        _check_given(c, hook, args, made)
        if made is not None:
            args = c.unpacked(made) if c.is_tuple(made) else [made]
    result = forward.call(c, args, kwargs)
    for hook in hooks.after:
        _check(c, hook, args, result)
        made = _run(c, owner, hook, TupleValue(args), result)
        result = result if made is None else made
    return result


def _check(c, hook, args, *result):
    """Raise where a hook is declared to take something else than it is called with."""
    given = [type_of(a) for a in args]
    told = f"the hook '{getattr(hook, '__name__', hook)}'"
    types = c.parameter_types(hook) if None not in given else None
    if types is None:
        return
    if len(types) != 2 + len(result):
        c.fault(f"{told} was expected to only have exactly {2 + len(result)} inputs but it had {len(types)} inputs")
    wanted, found = Type("Tuple", given), types[1]
    if found is not None and found.word != "Tuple":
        c.fault(f"{told} expected the input argument to be typed as a Tuple but found type: '{found}' instead.")
    more = f"Received type: '{found}'. Expected type: '{wanted}'"
    if found is not None and len(found.args) != len(given):
        c.fault(f"{told} has the wrong number of contained types for the input argument's Tuple. {more}")
    if found is not None and not all(map(accepts, found.args, given)):
        c.fault(f"{told} has the wrong inner types for the input tuple argument. {more}")
    for output, got in zip(map(type_of, result), types[2:]):
        if None not in (output, got) and not accepts(got, output):
            c.fault(
                f"{told} has the wrong type for the output argument. Received type: '{got}'. Expected type: '{output}'"
            )


def _check_given(c, hook, args, made):
    """Raise where what a hook puts in the place of the arguments is of other types."""
    given, got = [type_of(a) for a in args], type_of(made)
    if made is None or got is None or None in given:
        return
    whole = Type("Tuple", given)
    single = len(given) == 1 and given[0].word != "Tuple" and accepts(given[0], got)
    if single or accepts(whole, got):
        return
    told = f"the hook '{getattr(hook, '__name__', hook)}'"
    if len(given) == 1 and given[0].word == "Tuple":
        c.fault(
            f"{told} returned the type '{got}'. When forward has a single tuple input argument, the return needs to "
            f"be 'None' or a nested tuple containing forward's input tuple argument as in: '{whole}'"
        )
    if "return" not in getattr(hook, "__annotations__", ()):
        c.fault(f"{told} is missing a return annotation. Return annotations are required, please add one.")
    c.fault(f"{told} returned the wrong type of: '{got}'. It gives '{whole}' or None.")


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
