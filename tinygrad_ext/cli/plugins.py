"""`plugins list|info|doctor|check|new`: what is installed, what is wrong with it, and how to begin one."""

import warnings

import click

from tinygrad_ext import plugins as installed
from tinygrad_ext.cli.show import as_json, dump, facts, note, table
from tinygrad_ext.plugins import PluginWarning, loader, undeclared
from tinygrad_ext.plugins import table as known
from tinygrad_ext.plugins.model import phrase

KINDS = ("pure", "cython", "c", "cpp")
BROKEN = ("failed", "incompatible", "conflict", "shadowed")
load_first = click.option("--load", is_flag=True, help="Load first what is enabled: runs the plugins' code.")


@click.group()
def plugins():
    """Installed plugins. NAME is a plugin, its namespace or its distribution."""


@plugins.command("list")
@load_first
@as_json
def list_plugins(load, as_json):
    """All plugins, their state and what they provide. Imports none of them.

    Exit status 1 when --load meets one that is broken.
    """
    if load:
        load_quietly()
    found = installed.list()
    if as_json:
        dump([i._asdict() for i in found])
    elif not found:
        print("No plugins are installed. `tinygrad-ext plugins new NAME` writes one.")
    else:
        rows = [(i.name, i.distribution, i.version, i.state, _provides(i)) for i in found]
        table(("name", "distribution", "version", "state", "provides"), rows)
        reasons = {}
        for i in found:
            reasons.setdefault((i.name, i.state, i.reason), []).append(i.distribution)
        for (name, state, reason), owners in reasons.items():
            if reason:
                print()
                note(f"{name} ({', '.join(owners)}) is {phrase(state)}: {reason}")
    for u in undeclared.find() if not as_json else ():
        if u.sure:
            print()
            note(f"not listed: {u.text}")
    return int(load and any(i.state in BROKEN for i in found))


@plugins.command()
@click.argument("name")
@load_first
@as_json
def info(name, load, as_json):
    """All facts of one plugin. What it registers is known once it is loaded.

    Exit status 1 when --load meets that it is broken.
    """
    if load:
        load_quietly(name)
    i = installed.info(name)
    if as_json:
        dump(i._asdict())
    else:
        rows = [
            ("distribution", f"{i.distribution} {i.version}".strip()),
            ("state", i.state),
            ("reason", i.reason),
            ("location", i.location),
            *(("entry point", e) for e in i.entry_points),
            *((title, ", ".join(getattr(i, title))) for title in ("namespaces", "prefixes")),
            *((title, ", ".join(getattr(i, title))) for title in ("ops", "modules", "overrides", "devices", "dtypes")),
            ("loaded in", f"{i.milliseconds:.1f} ms" if i.milliseconds else ""),
        ]
        facts(f"plugin '{i.name}'", rows)
    return int(load and i.state in BROKEN)


@plugins.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds that each plugin has.",
)
@as_json
def doctor(names, timeout, as_json):
    """Load each plugin in a process of its own and report.

    Crashes and hangs are reported like any other fault. Without a name all that are not disabled are examined. Exit
    status 1 when something is wrong.
    """
    from tinygrad_ext.cli.doctor import run  # lazy: for this command only

    return run(names, timeout=timeout, as_json=as_json)


@plugins.command()
@click.argument("name")
@click.option("--only", metavar="CHECK", help="Run one check.")
@click.option("--op", metavar="NAME", help="Check one op or module.")
@as_json
def check(name, only, op, as_json):
    """Run the battery of checks on all a plugin brings. Exit status 1 when a check fails."""
    from tinygrad_ext.cli.check import run  # lazy: for this command only

    return run(name, as_json=as_json, only=only, op=op)


@plugins.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Python, or compiled kernels too.")
@click.option(
    "--with",
    "parts",
    type=click.Choice(("override",)),
    multiple=True,
    help="override: a handler for values of types that are not yours.",
)
@click.option("--directory", default=".", help="Folder to make the package's folder in.  [default: .]")
@as_json
def new(name, kind, parts, directory, as_json):
    """Write a complete package tgx-NAME to begin with.

    It has an op, a module, tests and metadata, and what --with names. Nothing that exists is overwritten.
    """
    from tinygrad_ext.cli.new import run  # lazy: for this command only

    return run(name, kind=kind, parts=parts, directory=directory, as_json=as_json)


def load_quietly(name=None):
    """Load plugins; what fails stands in the state and the reason afterwards, so its warning would say it twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        for plugin in known.everything() if name is None else known.select(name):
            loader.load(plugin)


def _provides(info):
    """What a plugin has registered once it is loaded; before, what its entry points announce."""
    loaded = [(info.ops, "ops"), (info.modules, "modules"), (info.overrides, "overrides")]
    counts = [f"{len(names)} {what if len(names) > 1 else what[:-1]}" for names, what in loaded if names]
    announced = [f"ops.{n}" for n in info.namespaces] + [f"overrides for {p}" for p in info.prefixes]
    announced += [f"device {d}" for d in info.devices] + [f"dtype {d}" for d in info.dtypes]
    return "; ".join([", ".join(announced), *([", ".join(counts)] if counts else [])])
