"""The command line: `python -m tinygrad_ext ops list|where|show`. Not imported by the package.

Output to a terminal is coloured when `rich` is installed (extra `cli`); piped output is plain text.
"""

import argparse
import sys


def main(arguments=None):
    """Run a command; returns the exit status."""
    from tinygrad_ext.cli import ops

    parser = argparse.ArgumentParser(prog="python -m tinygrad_ext", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    ops.add_parser(commands)
    options = parser.parse_args(arguments)
    try:
        return options.run(options) or 0
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head` went away
        sys.stderr.close()
        return 0
