"""Shows who is asked about a call, in which order, and what each answered."""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpFunction
from tinygrad_ext.core.call.levels import Observer, Operation
from tinygrad_ext.overrides.protocol import path_of
from tinygrad_ext.overrides.tables import asks
from tinygrad_ext.overrides.watch import NOT_ASKED, Rung, Watch


class Explanation:
    """What `explain` found.

    Attributes:
        func: the function. rungs: the handlers, in the order in which they were asked; see `watch.Rung`.
        result: what the call returned. error: the exception it raised, or None.

    `str()` gives the ladder as text.
    """

    def __init__(self, func, args, kwargs):
        self.func, self.rungs, self.result, self.error = func, [], None, None
        shown = [type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()]
        self.call = f"{path_of(func)}({', '.join(shown)})"

    def __str__(self):
        lines = [self.call]
        for number, rung in enumerate(self.rungs, 1):
            asked = "" if _asked_for(rung, self.func) or rung.func == self.func else f"{_name(rung.func)}, "
            lines.append(f"{number:3}. {'  ' * rung.depth}{asked}{title(rung)}: {answer(rung)}")
        end = f"raises {_short_error(self.error)}" if self.error is not None else f"returns {_short(self.result)}"
        return "\n".join([*lines, f"  => {end}"])

    __repr__ = __str__


@boundary
def explain(fn, *args, **kwargs):
    """Make the call and tell which handlers took part: modes, types, registered handlers, and our own implementation.

    The call is really made, with all that it does. An exception is kept, not raised. Of a function that is none of
    ours, say a lambda, all calls inside are shown.

    Returns an `Explanation`; print it.

        >>> import tinygrad_ext as tg
        >>> print(tg.overrides.explain(tg.neg, tg.ones(2)))
        tinygrad_ext.neg(Tensor)
          1. engine tinygrad_ext: returned Tensor
          => returns Tensor
    """
    func = getattr(fn, "__func__", fn)
    found = Explanation(func, args, kwargs)
    with Watch() as watch, _Engine(watch):
        try:
            found.result = fn(*args, **kwargs)
        except Exception as error:
            found.error = error
    if not (isinstance(func, OpFunction) or asks(func)):
        found.rungs = watch.rungs
        return found
    found.rungs = [rung for rung in watch.rungs if _asked_for(rung, func)]
    if found.error is None and not any(_answered(rung) for rung in found.rungs):
        found.rungs.append(Rung("engine", None, func, 0, found.result))  # one that is not made from a record
    return found


class _Engine(Observer):
    """Notes the operations that reach our own implementation, composites as a whole."""

    after_transforms = True

    def __init__(self, watch):
        self.watch = watch

    def process(self, operation, args):
        return self.watch.note("engine", None, operation, operation, *args)


def _name(func):
    return func.name if isinstance(func, Operation) else path_of(func)


def _asked_for(rung, func):
    """Whether a handler was asked about func, or the engine ran one of its overloads."""
    if rung.kind == "engine":
        return getattr(rung.func, "op", None) in getattr(func, "candidates", ())
    return rung.func == func


def _answered(rung):
    return rung.returned is not NOT_ASKED and rung.returned is not NotImplemented


# ---- text ----------------------------------------------------------------------------------------------------------


def owner_of(thing):
    """'module' of a class, function or instance, with the distribution it comes from: 'tgx_sparse (tgx-sparse 1.2)'."""
    module = getattr(thing, "__module__", None) or type(thing).__module__
    from importlib import metadata

    names = metadata.packages_distributions().get(module.partition(".")[0], ())
    return module + "".join(f" ({name} {metadata.version(name)})" for name in names[:1])


def title(rung):
    if rung.kind == "engine":
        return "engine tinygrad_ext"
    name = getattr(rung.who, "__name__", type(rung.who).__name__)
    if rung.kind == "registered handler":
        return f"handler registered for {name} by {rung.owner}"
    return f"{rung.kind} {name} of {owner_of(rung.who)}"


def answer(rung):
    if rung.error is not None:
        return f"raised {_short_error(rung.error)}"
    if rung.returned is NOT_ASKED:
        return "not asked"
    return f"returned {_short(rung.returned)}"


def _short(value):
    return "NotImplemented" if value is NotImplemented else "None" if value is None else type(value).__name__


def _short_error(error):
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text[:100]}{'...' if len(text) > 100 else ''}"
