"""Does a handler for types that the plugin does not own leave alone what it does not serve."""

import tinygrad_ext as tg
from tinygrad_ext import override_registrar
from tinygrad_ext.overrides import foreign
from tinygrad_ext.testing.battery.check import check

HANDLER_CHECKS = {}


class HandlerSubject:
    """A registered handler. Attributes: name (of the type or module prefix), owner, kind ("handler"), handle."""

    kind = "handler"

    def __init__(self, name):
        self.name, self.owner = name, override_registrar.handled[name]
        self.handle = next(r.call for r in foreign.registrations() if override_registrar.name_of(r.target) == name)

    def why_not(self, check):
        """No handler is excused from a check."""
        return None


def unserved(*args, **kwargs):
    """A function that no handler can know."""


@check(HANDLER_CHECKS, "declines", each="subject")
def declines(subject):
    """A call of a function it does not know is answered with NotImplemented, so that others may take it."""
    for args in ((), (object(),), (tg.ones(2), object())):
        answer = subject.handle(unserved, (object,), args, {})
        if answer is not NotImplemented:
            raise AssertionError(
                f"called for a function it cannot know, the handler returned {answer!r}; it must return NotImplemented"
            )
