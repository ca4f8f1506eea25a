"""Does a handler for types that the plugin does not own leave alone what it does not serve."""

import sys

import tinygrad_ext as tg
from tinygrad_ext.registry import foreign, override_registrar
from tinygrad_ext.testing.battery.check import check

HANDLER_CHECKS = {}


class HandlerSubject:
    """A registered handler. Attributes: name (of the type or module prefix), owner, kind ("handler"), handle."""

    kind = "handler"

    def __init__(self, name):
        self.name, self.owner = name, override_registrar.handled[name]
        found = next(r for r in foreign.registrations() if override_registrar.name_of(r.target) == name)
        self.handle, self.types = found.call, _types(found.target)

    def why_not(self, check):
        """No handler is excused from a check."""
        return None


def _types(target):
    """Types that a handler is registered for: the one, or one that a loaded module below the prefix defines."""
    if isinstance(target, type):
        return (target,)
    for name, module in sorted(sys.modules.items()):
        if f"{name}.".startswith(f"{target}."):
            for value in vars(module).values():
                if isinstance(value, type) and f"{value.__module__}.".startswith(f"{target}."):
                    return (value,)
    return (object,)  # none is loaded


def unserved(*args, **kwargs):
    """A function that no handler can know."""


@check(HANDLER_CHECKS, "declines", each="subject")
def declines(subject):
    """A call of a function it does not know is answered with NotImplemented: the call then goes on as without it."""
    for args in ((), (object(),), (tg.ones(2), object())):
        try:
            answer = subject.handle(unserved, subject.types, args, {})
        except Exception as error:
            raise AssertionError(
                f"called for a function it cannot know, the handler raised {type(error).__name__}: {error}; it must "
                "return NotImplemented"
            ) from error
        if answer is not NotImplemented:
            raise AssertionError(
                f"called for a function it cannot know, the handler returned {answer!r}; it must return NotImplemented"
            )
