"""Messages that several parts of the package build alike."""

import sys

PAGE = "docs/differences.md"


def no_attribute(module, name, known, more=""):
    """The AttributeError for a name that a public module lacks: the nearest one, and where differences are listed."""
    import difflib

    near = difflib.get_close_matches(name, known, 1, cutoff=0.7)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return AttributeError(
        f"module '{module}' has no attribute '{name}'.{hint}{more} What differs from PyTorch: {PAGE}."
    )


def refuse_unknown(module):
    """The `__getattr__` of a public module, which is asked for names that the module does not have."""

    def __getattr__(name):
        raise no_attribute(module, name, [n for n in dir(sys.modules[module]) if not n.startswith("_")])

    return __getattr__
