"""Whether programs are compiled at all: not with PYTORCH_JIT=0, where `script` and `trace` give back what they get; and
what is writing one down now."""

import contextlib
import os
from contextvars import ContextVar

_on = [os.environ.get("PYTORCH_JIT", "1") != "0"]


def enabled():
    """Whether `script` and `trace` compile."""
    return _on[0]


def disable():
    """From now on they give functions and modules back as they are, for a debugger to step through."""
    _on[0] = False


def enable():
    """Let them compile again."""
    _on[0] = True


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
