"""The commands put together, and what their exceptions mean for the exit status."""

import os
import sys
import warnings

import click

import tinygrad_ext
from tinygrad_ext.cli import ops, plugins, type_stubs
from tinygrad_ext.cli.show import dump
from tinygrad_ext.extension.loading import build_facts
from tinygrad_ext.plugins import PluginError, PluginWarning

CLOSED_PIPE = 141  # what shells tell of a program that SIGPIPE ended

HELP = """Ops, plugins and type stubs of tinygrad_ext.

Each command prints for people; with --json, for programs. Piped output is plain text.

Exit status: 0 done; 1 done, and something is wrong (a plugin is broken, a check failed); 2 the call is wrong.
"""


class App(click.Group):
    """The group of all commands."""

    def invoke(self, ctx):
        """Run a command. When the reader of its output goes away, `| head`, it ends as other tools do."""
        try:
            status = super().invoke(ctx)
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            with open(os.devnull, "w") as nowhere:  # what is left goes there when Python ends
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
            raise click.exceptions.Exit(CLOSED_PIPE) from None


def _includes(ctx, _, asked):
    """Print the compiler's words for the folder of tgx.h."""
    if asked:
        print(" ".join(f"-I{p}" for p in tinygrad_ext.utils.include_paths()))
        ctx.exit()


def _config(ctx, _, asked):
    """Print what a build of an extension may want to know."""
    if asked:
        table = build_facts()
        width = max(map(len, table))
        print("\n".join(f"{name:{width}}  {value}" for name, value in table.items()))
        ctx.exit()


@click.group(cls=App, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tinygrad_ext.__version__)
@click.option(
    "--includes", is_flag=True, is_eager=True, expose_value=False, callback=_includes, help="Print -I<folder of tgx.h>."
)
@click.option(
    "--config", is_flag=True, is_eager=True, expose_value=False, callback=_config, help="Print versions and compilers."
)
def app():
    """All commands."""


for command in (ops.ops, plugins.plugins, type_stubs.stubs):
    app.add_command(command)


def run(arguments=None):
    """Run a command; returns the exit status."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *where: print(f"warning: {message}", file=sys.stderr)
        warnings.simplefilter("always", PluginWarning)  # they are part of what was asked
        return _run(arguments)


def _run(arguments):
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    try:
        return app.main(arguments, prog_name="tinygrad-ext", standalone_mode=False) or 0
    except click.ClickException as error:
        if as_json:
            dump({"error": error.format_message()})
        else:
            error.show()
        return 2
    except click.Abort:
        print("interrupted", file=sys.stderr)
        return 130
    except (LookupError, PluginError) as error:  # a name that means nothing
        if isinstance(error, (KeyError, IndexError)):  # a fault of ours
            raise
        if as_json:
            dump({"error": error.args[0]})
        else:
            print(error.args[0], file=sys.stderr)
        return 2
