"""`collect`: what a test calls instead of `gc.collect`, which returns at once while another thread is collecting."""

import gc
import threading
import time

PASSES = 10  # at most: something may make garbage whenever it is collected


def collect():
    """Collect every circle there is, with those that a finalizer leaves behind: until nothing more is found.

    The test runner has threads of its own, whose collections may be under way.
    """
    found = []

    def note(phase, info):
        if phase == "stop" and threading.get_ident() == me:
            found.append(info["collected"])

    me = threading.get_ident()
    gc.callbacks.append(note)
    try:
        while len(found) < PASSES:
            passes = len(found)
            gc.collect()
            if len(found) == passes:
                time.sleep(0.001)
            elif not found[-1]:
                return
    finally:
        gc.callbacks.remove(note)
