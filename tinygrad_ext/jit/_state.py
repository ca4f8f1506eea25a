"""Whether programs are compiled at all: not with PYTORCH_JIT=0, where `script` and `trace` give back what they get."""

import os

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
