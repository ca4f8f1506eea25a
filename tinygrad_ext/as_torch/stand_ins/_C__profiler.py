"""torch._C._profiler: where a program stands, as helpers of tests ask for it."""

import sys
import traceback


def gather_traceback(python, script, cpp):
    """The frames of Python that a call stands in, the innermost first; scripts and compiled code have none here."""
    return list(traceback.walk_stack(sys._getframe(1))) if python else []


def symbolize_tracebacks(to_symbolize):
    """For each of those a list of dicts: name, filename, line."""
    return [
        [{"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "line": line} for frame, line in frames]
        for frames in to_symbolize
    ]
