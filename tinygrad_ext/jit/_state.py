"""Whether programs are compiled at all: not with PYTORCH_JIT=0, where `script` and `trace` give back what they get; and
what is writing one down now."""

import contextlib
import os
from contextvars import ContextVar


class _Switch:
    """A bool that libraries import and ask."""

    def __init__(self, enabled):
        self.enabled = enabled

    def __bool__(self):
        return self.enabled


_enabled = _Switch(os.environ.get("PYTORCH_JIT", "1") != "0")


def enabled():
    """Whether `script` and `trace` compile."""
    return _enabled.enabled


def disable():
    """From now on they give functions and modules back as they are, for a debugger to step through."""
    _enabled.enabled = False


def enable():
    """Let them compile again."""
    _enabled.enabled = True


_writing = ContextVar("writing", default="")


@contextlib.contextmanager
def writing(word):
    """Inside, a program is written down for "compile" or "export"."""
    token = _writing.set(word)
    try:
        yield
    finally:
        _writing.reset(token)


def written_for():
    """What a program is being written down for: "compile", "export", or "" for neither."""
    return _writing.get()
