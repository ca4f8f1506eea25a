"""Puts the garbage collector aside while the package builds itself."""

import gc


class collector_at_rest:
    """`with collector_at_rest():` nothing is collected, and what is made there counts as old afterwards.

    The import makes some ten thousands of objects, next to none of which go. The collector would look at them a dozen
    times while they are made, and at all of them right after, which took a tenth of the import. So it is off meanwhile,
    as in other programs that build much at once, and on again whatever is raised, if it was on; what another thread
    asks of it meanwhile is lost. `freeze` and `unfreeze` move the list of all objects to one side, and back as old
    ones, without a look at them. `unfreeze` would also bring back what the program itself froze: then it is left.
    Rejected: to leave all frozen, since objects of the program are among them, which would never be collected.
    """

    def __enter__(self):
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, kind, error, traceback):
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if self._was_on:
            gc.enable()
