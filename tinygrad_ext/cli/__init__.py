"""The command line: `tinygrad-ext`, which is `python -m tinygrad_ext`. Not imported by the package.

It stands on click, rich and packaging, which the extra `cli` installs. Exit status: 0 done; 1 done, and something is
wrong (a plugin is broken, a check failed); 2 the call is wrong (command, option or name), or the extra is missing;
130 interrupted.
"""

import sys

NEEDS = ("click", "rich", "packaging")


def main(arguments=None):
    """Run a command; returns the exit status."""
    missing = [name for name in NEEDS if not _found(name)]
    if missing:
        needed = " and ".join(missing)
        print(f"tinygrad-ext needs {needed}: python -m pip install {' '.join(NEEDS)}", file=sys.stderr)
        return 2
    from tinygrad_ext.cli.app import run  # lazy: what it stands on may be missing

    return run(arguments)


def _found(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True
